"""Programs that grow by small Python objects, killed at 80 % of their growth: is the line that makes them the first of the report?

make small-objects runs each program of small_objects/ under `kmemshim run`, with default settings and with --python-objects. A program
grows until its processes together have KILL_BYTES of anonymous memory of their own; then all of them get SIGKILL, the largest first. The
line with the comment "# culprit" must be the place with most live bytes, over all domains and processes. Printed are the first row
and its share of all live bytes, and how often it was right; --results writes the same into small_objects/RESULTS.md. Programs that need
a package which the interpreter lacks are skipped by name (`# needs:` in their first line).

    small_objects.py [--python PATH] [--results] [NAME...]
"""
import argparse
import datetime
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
BUILD = Path(os.environ.get("BUILD_DIR", ROOT / "build")).absolute()
KMEMSHIM = BUILD / "kmemshim"
PROGRAMS = HERE / "small_objects"
RESULTS = PROGRAMS / "RESULTS.md"
GROWTH_BYTES = 160 << 20
KILL_BYTES = GROWTH_BYTES * 80 // 100
TIMEOUT = 300  # seconds, for a program to grow so far
POLL_SECONDS = 0.02
WAYS = {"default": [], "--python-objects": ["--python-objects"]}


def programs():
    return sorted(PROGRAMS.glob("*.py"))


def culprit(program):
    """file:line of the line that makes the objects; there is one."""
    lines = [number for number, line in enumerate(program.read_text().splitlines(), 1) if line.endswith("# culprit")]
    assert len(lines) == 1, f"{program.name}: {len(lines)} lines have the comment"
    return f"{program.name}:{lines[0]}"


def lacks(program, python):
    """The packages that the program needs and the interpreter has not, or nothing."""
    needs = re.findall(r"^# needs: (.*)$", program.read_text(), re.MULTILINE)
    return [name for name in " ".join(needs).split() if subprocess.run([python, "-c", f"import {name}"], capture_output=True).returncode != 0]


def descendants(pid):
    """Process ids below this one, as far as they are still there."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in children:
            found += [int(child)] + descendants(child)
    return found


def own_bytes(pid):
    """Anonymous memory of a process; what it shares with others counts in parts."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    found = re.search(r"^Pss_Anon: +(\d+) kB$", text, re.MULTILINE)
    return int(found[1]) << 10 if found else 0


def kill_when_grown(process):
    """True when it grew so far. All that it started is dead afterwards."""
    deadline = time.monotonic() + TIMEOUT
    is_grown = False
    while process.poll() is None and not is_grown and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        is_grown = sum(map(own_bytes, descendants(process.pid))) >= KILL_BYTES
    below = sorted(descendants(process.pid), key=own_bytes, reverse=True)
    for pid in below:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return is_grown


def record(program, python, options, folder):
    """The report of one death, or a sentence that says why there is none."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KMEMSHIM_", "LD_PRELOAD", "PYTHON"))}
    command = [KMEMSHIM, "run", "-o", folder / "capture", *options, "--", python, program]
    with open(folder / "errors", "w") as errors:
        process = subprocess.Popen(command, env=environment | {"PYTHONDONTWRITEBYTECODE": "1"}, cwd=folder,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        is_grown = kill_when_grown(process)
        process.wait(timeout=TIMEOUT)
    if not is_grown:
        return "ended or stood still before it had grown: " + (folder / "errors").read_text()[-300:]
    done = subprocess.run([KMEMSHIM, "sites", folder / "capture", "--json", "--top", "1000"], capture_output=True, text=True)
    return json.loads(done.stdout) if done.returncode == 0 else done.stderr.strip()


def place(row):
    where = row.get("where") or {}
    if row["domain"] == "python/arena":
        return "arenas"
    return f"{os.path.basename(where.get('file') or '?')}:{where.get('line')}"


def first_row(document):
    """The place with most live bytes over all domains, and its share of all that is live, in percent. Address space is no memory."""
    live = {}
    for row in document["lines"]:
        if row["domain"] != "reserved":
            live[place(row)] = live.get(place(row), 0) + row["live_bytes"]
    total = sum(figures["live_bytes"] for domain, figures in document["totals"].items() if domain != "reserved")
    first = max(live, key=live.get, default="nothing")
    return first, round(100 * live.get(first, 0) / max(total, 1))


def judge(program, python, options):
    """First place, its share in percent, and whether it is the culprit."""
    with tempfile.TemporaryDirectory(prefix="small-objects") as folder:
        document = record(program, python, options, Path(folder))
    if isinstance(document, str):
        return document.replace("\n", " "), 0, False
    first, share = first_row(document)
    return first, share, first == culprit(program)


def table(chosen, python):
    """Yields the lines of the table, then those of the sums."""
    yield "| program | culprit | " + " | ".join(f"first, {way} | share" for way in WAYS) + " |"
    yield "|---" * (2 + 2 * len(WAYS)) + "|"
    right, count, skipped = dict.fromkeys(WAYS, 0), 0, []
    for program in chosen:
        missing = lacks(program, python)
        if missing:
            skipped.append(f"{program.stem}: skipped, needs {', '.join(missing)}")
            continue
        count += 1
        cells = []
        for way, options in WAYS.items():
            first, share, is_right = judge(program, python, options)
            right[way] += is_right
            cells += [first if is_right else f"**{first}**", f"{share} %"]
        yield f"| {program.stem} | {culprit(program).rsplit(':')[-1]} | " + " | ".join(cells) + " |"
    yield ""
    for way in WAYS:
        yield f"{way}: {right[way]} of {count}"
    yield from skipped


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--python", default="/usr/bin/python3")
    options.add_argument("--results", action="store_true", help="write small_objects/RESULTS.md")
    options.add_argument("names", nargs="*")
    chosen = options.parse_args()
    lines = []
    for line in table([path for path in programs() if not chosen.names or path.stem in chosen.names], chosen.python):
        print(line, flush=True)
        lines.append(line)
    if chosen.results:
        version = subprocess.run([chosen.python, "--version"], capture_output=True, text=True).stdout.strip()
        RESULTS.write_text(f"# Small objects: is the line first?\n\n`make small-objects RESULTS=1`, {datetime.date.today()}, {version}, "
                           f"{platform.machine()}. A first place in bold is not the culprit.\n\n" + "\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
