"""Real programs with and without the shim: the same output and status, what it costs, and what was lost.

make real-programs writes RESULTS.md. Each program is a script in programs/, whose first lines name its packages and how to ask for
its version; all that it prints on its standard output is compared. A script that names a Debian source package, and how to build it, finds it
in $SOURCE. What it starts is recorded too, shells included. It runs alone,
recorded as users do, and with KMEMSHIM_VERIFY=64, where what is remembered of stacks is held against walked ones.

    real_programs.py [--no-install] [--keep DIR] [NAME...]
"""
import argparse
import datetime
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("BUILD_DIR", ROOT / "build"))
SCRIPTS = HERE / "programs"
RESULTS = HERE / "RESULTS.md"
ROWS = BUILD / "real" / "rows.json"  # of programs that ran before: a run of some replaces only theirs
TIMEOUT = 1800
ROUNDS, SHORT_SECONDS = 3, 10  # short programs run so often; the least CPU time of each kind counts


class Program:
    def __init__(self, script):
        self.script = script
        self.name = script.stem
        self.words = dict(re.findall(r"^# (packages|version|needs|source|build): (.*)$", script.read_text(), re.MULTILINE))

    def packages(self):
        return self.words["packages"].split()

    def version(self):
        return subprocess.run(["bash", "-c", self.words["version"]], env=os.environ | self.variables(), capture_output=True, text=True).stdout.strip()

    def variables(self):
        return {"SOURCE": str(self.folder() / "tree")} if "source" in self.words else {}

    def folder(self):
        return BUILD / "real" / self.name

    def missing(self):
        """Packages that are not there; elsewhere than on Debian all of them."""
        query = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev} ${Package}\n", *self.packages()], capture_output=True, text=True)
        have = {line.split()[1] for line in query.stdout.splitlines() if line.startswith("ii")}
        missing = [package for package in self.packages() if package not in have]
        if not missing and "needs" in self.words and subprocess.run(["bash", "-c", self.words["needs"]], capture_output=True).returncode != 0:
            missing = [self.words["needs"]]
        if not missing and "source" in self.words and not (self.folder() / "built").exists():
            missing = [f"source of {self.words['source']}"]
        return missing


def install(packages):
    """Best effort; what is then still missing is skipped by name."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "-qq", "update"], env=environment, capture_output=True)
    for package in packages:
        subprocess.run(["apt-get", "-qq", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", "install", package],
                       env=environment, stdin=subprocess.DEVNULL, capture_output=True)


def build(program):
    """The program's source package, as the system's own package lists name it, built once. Best effort, as above."""
    folder = program.folder()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lists" / "partial").mkdir(parents=True)
    (folder / "parts").mkdir()
    (folder / "tree").mkdir()
    for file in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*.sources"), *Path("/etc/apt/sources.list.d").glob("*.list")]:
        if file.exists():
            text = re.sub(r"^(Types: *|)deb(?= |$)", r"\1deb-src", file.read_text(), flags=re.MULTILINE)
            (folder / "parts" / (file.name if file.suffix == ".sources" else file.stem + ".list")).write_text(text)
    apt = ["apt-get", "-qq", "-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={folder}/parts",
           "-o", f"Dir::State::lists={folder}/lists", "-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache="]
    for words in ([*apt, "update"], [*apt, "source", "--download-only", program.words["source"]],
                  ["bash", "-c", "tar xf *.orig.tar.* --strip-components=1 -C tree"], ["bash", "-c", f"cd tree && {program.words['build']}"]):
        done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{' '.join(words[:3])}: {done.stderr[-500:]}", flush=True)
            return
    (folder / "built").touch()


# --- one run ------------------------------------------------------------------------------------

def measured(program, folder, environment, report_to):
    """In a process of its own, which inherits daemons too: runs the script and tells what all of its processes used."""
    import ctypes
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    os.chdir(folder)
    with open("stdout", "wb") as out, open("stderr", "wb") as err:
        script = subprocess.Popen(["bash", "-eu", "-o", "pipefail", program.script], env=environment, stdin=subprocess.DEVNULL,
                                  stdout=out, stderr=err, start_new_session=True)
        end = time.monotonic() + TIMEOUT
        status = None
        while True:
            try:
                pid, waited = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == script.pid:
                status = os.waitstatus_to_exitcode(waited)
                end = min(end, time.monotonic() + 20)  # what it left behind may finish
            elif pid == 0:
                if time.monotonic() > end:
                    status = "timeout" if status is None else status
                    kill_children()
                time.sleep(0.02)
    usage = os_usage()
    report_to.write_text(json.dumps(dict(status=status, **usage)))


def kill_children():
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == os.getpid():
                os.kill(int(stat.parent.name), signal.SIGKILL)
        except (OSError, ValueError):
            pass


def os_usage():
    import resource
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return dict(cpu=usage.ru_utime + usage.ru_stime, resident=usage.ru_maxrss * 1024)


def run(program, folder, shim=None, **settings):
    """A run: status, output, cpu, resident, and where captures are."""
    work, capture = folder / "work", folder / "capture"
    work.mkdir(parents=True)
    capture.mkdir()
    capture.chmod(0o1777)  # some programs drop their privileges
    folder.chmod(0o755)
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("KMEMSHIM_", "LD_PRELOAD", "MAKE", "MFLAGS", "PYTEST_"))}
    # The same path in every run: programs print it.
    place = Path(tempfile.gettempdir()) / f"kmemshim-real-{program.name}-{os.getpid()}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    environment.update(LC_ALL="C.UTF-8", TZ="UTC", PYTHONHASHSEED="0", ROOT=str(ROOT), **program.variables(), **settings)
    if shim:
        environment.update(LD_PRELOAD=str(shim), KMEMSHIM_OUT=str(capture))
    pid = os.fork()
    if pid == 0:
        try:
            measured(program, place, environment, folder / "usage.json")
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    usage = json.loads((folder / "usage.json").read_text())
    done = dict(usage, output=(place / "stdout").read_bytes().decode("utf-8", "replace"),
                errors=(place / "stderr").read_bytes().decode("utf-8", "replace"), capture=capture)
    for name in ("stdout", "stderr"):
        shutil.copy(place / name, folder / name)
    shutil.rmtree(place, ignore_errors=True)
    return done


# --- what came out ------------------------------------------------------------------------------

def differing_lines(plain, other):
    """Lines on which the runs alone agree and the other does not; all are compared, in order, where they agree in full."""
    if other in plain:
        return []
    if len(set(plain)) == 1:
        return sorted(set(plain[0].splitlines()) ^ set(other.splitlines())) or ["the order of lines"]
    return sorted(set.intersection(*(set(output.splitlines()) for output in plain)) - set(other.splitlines()))


def ledger(capture):
    """What the captures of a folder say of themselves."""
    done = subprocess.run([BUILD / "kmemshim", "report", capture, "--json", "--top", "0"], capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        return dict(error=done.stderr.strip() or f"kmemshim report: {done.returncode}")
    document = json.loads(done.stdout)
    events = sum(total["allocated_count"] + total["freed_count"] for total in document["totals"].values())
    return dict(processes=len(document["processes"]), events=events, verify=document["verify"],
                losses={name: count for name, count in document["losses"].items() if count},
                damages=len(document["damages"]), bytes=sum(file.stat().st_size for file in capture.glob("*.kmem")))


def examine(program, keep):
    """The row of a program: its runs compared."""
    shim = BUILD / "libkmemshim.so"
    with tempfile.TemporaryDirectory(prefix="kmemshim-real") as scratch:
        folder = Path(keep) / program.name if keep else Path(scratch)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        plain, watched = [run(program, folder / "plain1")], [run(program, folder / "watched1", shim)]
        for n in range(2, (ROUNDS if plain[0]["cpu"] < SHORT_SECONDS else 1) + 1):
            plain.append(run(program, folder / f"plain{n}"))
            watched.append(run(program, folder / f"watched{n}", shim))
        verified = run(program, folder / "verified", shim, KMEMSHIM_VERIFY="64")
        if len(plain) == 1 and any(done["output"] != plain[0]["output"] for done in watched + [verified]):
            plain.append(run(program, folder / "plain2"))  # does it agree with itself?
        outputs = [done["output"] for done in plain]
        different = [line for done in watched + [verified] for line in differing_lines(outputs, done["output"])]
        said = [line for done in watched + [verified] for line in done["errors"].splitlines() if line.startswith("kmemshim:")]
        row = dict(name=program.name, version=program.version(), statuses=[done["status"] for done in plain + watched + [verified]],
                   different=sorted(set(different)), said=sorted(set(said)), lines=len(outputs[0].splitlines()),
                   cpu=min(done["cpu"] for done in plain), cpu_ratio=min(done["cpu"] for done in watched) / min(done["cpu"] for done in plain),
                   resident_ratio=min(done["resident"] for done in watched) / min(done["resident"] for done in plain),
                   ledger=ledger(watched[0]["capture"]), verified=ledger(verified["capture"]))
    return row


def faults(row):
    """Why a row is not as it should be, [] = it is."""
    found = []
    if "skipped" in row:
        return found
    if len(set(map(str, row["statuses"]))) != 1:
        found.append("status " + " ".join(map(str, row["statuses"])))
    found += [f"differs: {line[:150]}" for line in row["different"][:5]]
    found += row["said"][:3]
    for which in ("ledger", "verified"):
        found += [row[which]["error"]] if "error" in row[which] else []
    mismatched = row["verified"].get("verify", {}).get("mismatched", 0)
    found += [f"{mismatched} stacks differ from walked ones"] if mismatched else []
    return found


# --- the table ----------------------------------------------------------------------------------

def size(count):
    return f"{count / 2**20:.0f} MiB" if count >= 2**20 else f"{count / 2**10:.0f} KiB"


def cells(row):
    kept, verified = row["ledger"], row["verified"].get("verify", {})
    losses = kept.get("losses", {})
    return [row["name"], row["version"], str(row["statuses"][0]) if len(set(map(str, row["statuses"]))) == 1 else "differs",
            "same" if not row["different"] else "differs", f"{row['cpu']:.1f} s", f"{row['cpu_ratio']:.2f}", f"{row['resident_ratio']:.2f}",
            f"{kept.get('processes', 0):,}", f"{kept.get('events', 0):,}", size(kept.get("bytes", 0)),
            ", ".join(f"{name.removeprefix('lost_').replace('_', ' ')} {count:,}" for name, count in losses.items()) or "none",
            f"{verified.get('checked', 0):,} / {verified.get('mismatched', 0)}"]


HEAD = ["program", "version", "status", "output", "CPU alone", "CPU ratio", "peak RSS ratio", "processes", "events", "captures", "lost",
        "stacks verified / different"]


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)


def write_section(title, text):
    """Replaces one section of RESULTS.md, or adds it."""
    head = "# Real programs under the shim\n\nWritten by `make real-programs` and `make peers-tests`; see the scripts for what is compared.\n"
    old = RESULTS.read_text() if RESULTS.exists() else head
    sections = dict(re.findall(r"^## (.*?)\n\n(.*?)(?=^## |\Z)", old, re.MULTILINE | re.DOTALL))
    sections[title] = text.rstrip() + "\n\n"
    RESULTS.write_text((head + "\n" + "".join(f"## {name}\n\n{body.rstrip()}\n\n" for name, body in sections.items())).rstrip() + "\n")


NOTE = """`status`: of all runs, alone and recorded. `CPU alone`: of the program and all that it started; `peak RSS ratio`: of its largest
process, the pages of its capture included. `lost`: as `kmemshim report` says it; inherited frees are of blocks that a child had from its parent,
missed frees come from plugins opened with RTLD_DEEPBIND, unwinds are native stacks that end early (code made at run time).
Short processes that held less than 1 MiB leave no capture; bash and git are a thousand of them, and pay for their starts.
Of chromium only mappings are seen: it contains its own malloc (docs/limits.md).

"""


def system():
    name = platform.freedesktop_os_release().get("PRETTY_NAME", "unknown system")
    libc = platform.libc_ver()
    return f"{datetime.date.today()}, {name}, {' '.join(libc)}, Linux {platform.release()}, {os.cpu_count()} cores, load {os.getloadavg()[1]:.0f}" + "".join(
        f", {name}={os.environ[name]}" for name in ("PGBENCH_TRANSACTIONS", "CPYTHON_MODULES") if name in os.environ)


def write_table(rows):
    text = f"{system()}\n\n{NOTE}{table(HEAD, [cells(row) for row in rows if 'skipped' not in row])}\n"
    text += "".join(f"\nSkipped: {row['name']}: {row['skipped']}" for row in rows if "skipped" in row)
    text += "".join(f"\nNot as it should be: {row['name']}: {fault}" for row in rows for fault in faults(row))
    write_section("Programs", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--no-install", action="store_true", help="use what is there")
    parser.add_argument("--keep", metavar="DIR", help="leave outputs and captures there")
    options = parser.parse_args()
    programs = [Program(script) for script in sorted(SCRIPTS.glob("*.sh"))]
    unknown = set(options.names) - {program.name for program in programs}
    if unknown:
        parser.error(f"no such program: {' '.join(sorted(unknown))}: have {' '.join(program.name for program in programs)}")
    programs = [program for program in programs if not options.names or program.name in options.names]
    missing = sorted({package for program in programs for package in program.missing() if " " not in package})
    if missing and not options.no_install and os.geteuid() == 0 and shutil.which("apt-get"):
        print("installing " + " ".join(missing), flush=True)
        install(missing)
    rows = json.loads(ROWS.read_text()) if ROWS.exists() else {}
    for program in programs:
        if not options.no_install and [reason.split()[0] for reason in program.missing()] == ["source"]:
            print(f"building {program.words['source']}", flush=True)
            build(program)
        if program.missing():
            rows[program.name] = dict(name=program.name, skipped=f"not installed: {' '.join(program.missing())}")
            print(f"{program.name} skipped: {rows[program.name]['skipped']}", flush=True)
            continue
        row = rows[program.name] = examine(program, options.keep)
        print(" | ".join(cells(row)), *faults(row), sep="\n  ", flush=True)
        ROWS.parent.mkdir(parents=True, exist_ok=True)
        ROWS.write_text(json.dumps(rows, indent=1))
        write_table([rows[name] for name in sorted(rows)])
    return 1 if any(faults(rows[program.name]) for program in programs) else 0


if __name__ == "__main__":
    sys.exit(main())
