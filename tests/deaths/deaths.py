"""
Staged deaths: does the report name the right cause, and the right line? Each kind of death is staged with `kmemshim run` and with
LD_PRELOAD alone, where nobody sees how the program ended; then the verdict is at most likely, and says why.

make test-deaths stages all of them REPEAT times (5) and prints the table; NAMES= some of them. It fails below 95 %, and for one false
claim of memory. test_deaths.py stages a few, once.

    deaths.py [--repeat N] [NAME...]
"""
import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections import namedtuple
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "preload"))
import harness  # noqa: E402

HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
CUDA = harness.BUILD / "tests" / "cuda"
MIB = 1 << 20
WAYS = ("run", "preload")
WANTED_PERCENT = 95
TIMEOUT = 120

# Causes that say: it was memory.
MEMORY = {"container-limit", "machine-memory", "child-killed", "shm-full", "device-memory", "request-refused", "low-memory-daemon"}

# Why a verdict without a launcher is less sure, or what else saw the end.
REASONS = ("read after the fact", "nobody saw how", "only its parent saw how", "Which ones is not counted")
LOG = "says: \""

"""
cause     with `kmemshim run`; what counts for both ways where the program ended by itself
alone     with LD_PRELOAD alone, when a signal ended it
finding   one that must be there
has_line  the first line that is named is the one with the comment
limit     of its container, in MiB
before    what starts it: words in front of it
send      a signal that it gets when it has said that it is ready
needs     modules of Python
device    MiB of the driver double's device
pids      limit of processes and threads
function  of the program, where its name is not that of the kind
place     where it is no line of the program
unlogged  cause with `kmemshim run` where no log can be read that tells of the end
"""
Kind = namedtuple("Kind", "name cause alone finding has_line language limit before send needs device pids function place unlogged",
                  defaults=(None, None, True, "py", 160, (), None, (), 0, 0, None, None, None))


def memory(name, cause="container-limit", **more):
    return Kind(name, cause, **{"alone": cause, **more})


def other(name, cause, alone=None, **more):
    return Kind(name, cause, alone=alone or cause, has_line=False, **{"limit": 2048, **more})


SHM = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=16m tmpfs /dev/shm && exec "$0" "$@"')
SHM_FOR_ALL = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=1g tmpfs /dev/shm && exec "$0" "$@"')
ULIMIT = ("sh", "-c", 'ulimit -v 4000000; exec "$0" "$@"')

KINDS = (
    # the limit of a container
    memory("leak_in_a_loop"),
    memory("whole_data_set"),
    memory("wider_type", needs=("numpy",)),
    memory("numpy_in_a_loop", needs=("numpy",)),
    memory("small_objects"),
    memory("many_strings"),
    memory("cache_without_end"),
    memory("kept_tracebacks"),
    memory("reference_cycles"),
    memory("threads_results"),
    memory("anonymous_mapping"),
    memory("results_in_out", place="cell In[1] line 4"),
    memory("small_blocks", language="cc"),
    memory("growing_vector", language="cc"),
    memory("map_without_end", language="cc"),
    memory("mappings", language="cc"),
    memory("holes", language="cc", finding="freed-not-returned"),
    # and several processes
    memory("workers_copy", limit=185, finding="copied-after-fork"),
    memory("same_in_every_worker"),
    memory("child_is_killed", "child-killed"),
    memory("pool_breaks"),
    memory("files_in_memory", has_line=False, finding="parts-in-memory", before=SHM_FOR_ALL),
    memory("sibling_eats", has_line=False, finding="parts-in-memory"),
    # a request is refused
    memory("address_space", "request-refused", limit=2048),
    memory("ulimit_v", "request-refused", limit=8192, before=ULIMIT),
    memory("refused_at_once", "request-refused", limit=2048),
    memory("beyond_the_machine", "request-refused", limit=2048, needs=("numpy",)),
    memory("bad_alloc", "request-refused", limit=2048, language="cc"),
    memory("null_not_checked", "request-refused", limit=2048, language="cc"),
    memory("shared_memory_full", "shm-full", alone="gone", limit=2048, before=SHM),
    # a device
    memory("device_leak", "device-memory", limit=2048, device=64),
    memory("device_batch", "device-memory", limit=2048, device=64),
    # no death by memory
    other("segfault", "crashed", "gone"),
    other("segfault_told", "crashed", "gone"),
    other("abort", "aborted", "gone"),
    other("assertion", "aborted", "gone", language="cc"),
    other("freed_twice", "aborted", "gone", language="cc"),
    other("divided_by_zero", "crashed", "gone", language="cc"),
    other("illegal_instruction", "crashed", "gone", language="cc"),
    other("stack_overflow", "stack-overflow", "gone", unlogged="crashed", language="cc"),
    other("exit_137", "failed"),
    other("exit_3", "failed"),
    other("traceback", "failed"),
    other("recursion_error", "failed"),
    other("open_files", "failed", finding="open-files-full"),
    other("threads", "failed", pids=40, finding="thread-refused"),
    other("processes", "failed", pids=40, finding="process-refused"),
    other("interrupted", "signal", "gone"),
    other("broken_pipe", "signal", "gone"),
    other("cpu_limit", "time-up", "gone"),
    other("file_limit", "file-size-limit", "gone"),
    other("timed_out_child", "gone"),
    other("killed_by_a_parent", "gone"),
    # one program, ended from outside
    other("timeout_kills", "time-up", alone="gone", function="hold", before=("timeout", "-s", "KILL", "4")),
    other("timeout_ends", "time-up", function="hold", before=("timeout", "2")),
    other("supervisor_ends", "signal", "gone", function="hold", send=signal.SIGTERM),
    other("person_kills", "signal", "gone", function="hold", send=signal.SIGKILL),
    other("filled_later", "signal", "gone", language="cc", send=signal.SIGKILL),
    other("terminal_closes", "signal", "gone", function="hold", send=signal.SIGHUP),
)
ALL = {kind.name: kind for kind in KINDS}


# ---- staging --------------------------------------------------------------------------------------

def lacks(kind):
    """Why it cannot be staged here; None = it can."""
    for name in kind.needs:
        if harness.run([PYTHON, "-c", f"import {name}"]).returncode != 0:
            return f"no {name}"
    if kind.device and not (CUDA / "lib" / "libcuda.so.1").exists():
        return "the driver double is not built: make test-cuda"
    if kind.before == SHM and harness.run([*SHM, "true"]).returncode != 0:
        return "no file system can be mounted here"
    return None


def compiled(folder):
    program = folder / "programs"
    if not program.exists():
        harness.compile_c(HERE / "programs.cc", program, "-std=gnu++17", "-Wno-unused-result", compiler="g++")
    return program


@contextlib.contextmanager
def process_limit(count):
    """A cgroup with so many processes and threads; skips where none can be made. Yields its folder, or None when there is no limit."""
    if count == 0:
        yield None
        return
    group = Path(tempfile.mkdtemp(prefix="kmemshim-test-", dir="/sys/fs/cgroup/pids"))
    try:
        (group / "pids.max").write_text(str(count))
        yield group
    finally:
        group.rmdir()


def environment(kind, way, out, folder):
    more = {"SCRATCH": folder / "scratch", "MALLOC_ARENA_MAX": 2}
    if kind.device:
        more.update(LD_LIBRARY_PATH=f"{CUDA / 'torch2'}:{CUDA / 'lib'}", KMEMDOUBLE_CAPACITY=kind.device * MIB)
    return harness.shim_env(out, KMEMSHIM_VERIFY=0, **more) if way == "preload" else harness.plain_env(KMEMSHIM_OUT=out, **more)


def stage(kind, way, folder):
    """Returns the report of one death."""
    out = folder / "capture"
    program = [compiled(folder.parent)] if kind.language == "cc" else [PYTHON, HERE / "programs.py"]
    argv = [*([harness.KMEMSHIM, "run", "--"] if way == "run" else []), *kind.before, *program, kind.function or kind.name]
    with harness.adopting(), harness.memory_group(kind.limit * MIB) as group, process_limit(kind.pids) as pids:
        enter = 'for group in $GROUPS_; do echo $$ > $group/cgroup.procs; done; unset GROUPS_; exec "$@"'
        env = {**environment(kind, way, out, folder), "GROUPS_": " ".join(str(path) for path in (group, pids) if path)}
        preload = env.pop("LD_PRELOAD", None)
        words = ["sh", "-c", enter, "sh", *(["env", f"LD_PRELOAD={preload}"] if preload else []), *argv]
        process = subprocess.Popen([str(word) for word in words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            if kind.send:
                os.kill(int(process.stdout.readline()), kind.send)
            told = process.communicate(timeout=TIMEOUT)[1]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            with contextlib.suppress(ChildProcessError):
                while True:
                    os.waitpid(-process.pid, 0)
        done = harness.kmemshim("report", out, "--json")
        assert done.returncode == 0, f"{done.stderr}\n{told}"
        return harness.json.loads(done.stdout)


# ---- judging --------------------------------------------------------------------------------------

def culprit(kind):
    if kind.place:
        return kind.place
    file = HERE / f"programs.{kind.language}"
    lines = [number for number, line in enumerate(file.read_text().splitlines(), 1) if line.endswith((f"# {kind.name}", f"// {kind.name}"))]
    assert len(lines) == 1, f"{kind.name}: {len(lines)} lines have the comment"
    return f"{file.name}:{lines[0]}"


def named(verdict):
    """The first line that the verdict tells of; cells are named by their number."""
    return next((finding["where"] for finding in verdict["findings"] if finding["where"]), "no line")


def wrong(kind, way, document):
    """What is not as it must be, in words; "" = nothing. And whether memory was blamed falsely."""
    verdict, faults = document["verdict"], []
    is_logged = LOG in verdict["text"]
    wanted = kind.cause if way == "run" or is_logged and kind.alone == "gone" else kind.alone
    if kind.unlogged and way == "run" and not is_logged:
        wanted = kind.unlogged
    kinds = [finding["kind"] for finding in verdict["findings"]]
    is_false = kind.cause not in MEMORY and (verdict["cause"] in MEMORY or "kernel-kills" in kinds)
    if verdict["cause"] != wanted:
        faults.append(f"cause {verdict['cause']}, not {wanted}")
    if kind.has_line and not os.path.basename(named(verdict)).startswith(culprit(kind) + " "):
        faults.append(f"{named(verdict)}, not {culprit(kind)}")
    if kind.finding and kind.finding not in kinds:
        faults.append(f"no {kind.finding}")
    if way == "preload" and verdict["cause"] in ("container-limit", "machine-memory", "gone", "child-killed"):
        if verdict["confidence"] == "certain" and not is_logged:
            faults.append("certain, though nobody saw the end")
        if not is_logged and not any(reason in verdict["text"] for reason in REASONS):
            faults.append("does not say why it is not certain")
    return "; ".join(faults), is_false


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--verbose", action="store_true", help="print every wrong verdict")
    parser.add_argument("names", nargs="*", metavar="NAME", help="kinds; all when none is given")
    options = parser.parse_args()
    unknown = set(options.names) - set(ALL)
    if unknown:
        parser.error(f"no such kind: {' '.join(sorted(unknown))} (there are: {' '.join(ALL)})")
    right = staged = false_claims = 0

    print(f"{'kind':24} {'is memory':10}" + "".join(f"{way:>10}" for way in WAYS), flush=True)
    with tempfile.TemporaryDirectory() as top:
        for name in options.names or ALL:
            kind = ALL[name]
            if lacks(kind):
                print(f"{name:24} left out: {lacks(kind)}", flush=True)
                continue
            cells, faults = [], {}
            for way in WAYS:
                good = 0
                for turn in range(options.repeat):
                    folder = Path(top) / f"{name}-{way}-{turn}"
                    folder.mkdir()
                    document = stage(kind, way, folder)
                    fault, is_false = wrong(kind, way, document)
                    good += fault == ""
                    false_claims += is_false
                    if fault:
                        faults.setdefault(f"{way}: {fault}", document["verdict"]["text"])
                    subprocess.run(["rm", "-rf", folder], check=True)
                right, staged = right + good, staged + options.repeat
                cells.append(f"{good}/{options.repeat}")
            print(f"{name:24} {'yes' if kind.cause in MEMORY else 'no':10}" + "".join(f"{cell:>10}" for cell in cells), flush=True)
            for fault, text in faults.items():
                print(f"    {fault}\n" + (f"        {text}\n" if options.verbose else ""), end="", flush=True)
    percent = 100 * right / max(1, staged)
    print(f"{right} of {staged} right ({percent:.1f} %), {false_claims} false claims of memory")
    return 0 if percent >= WANTED_PERCENT and false_claims == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
