"""Runs one program once and says what it cost; builds the programs that are run.

Used by bench.py. Children run in a session of their own with a plain environment, their output in the scratch folder.
A run that fails gives a sample with only "round" and "error": the table shows a dash, the error is printed once.
"""
import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE / "programs"

COMMON = ["-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-pthread"]
PRELOAD = ["-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden"]
PAGES = ["-std=gnu++17", "-shared", "-fPIC", "-fno-toplevel-reorder"]
CUDA = HERE.parent / "cuda"
DOUBLE = ["-std=gnu11", "-shared", "-fPIC", "-Wl,-Bsymbolic"]
OVER_DOUBLES = ["-L{built}", "-l:libcudart.so.13", "-Wl,--no-as-needed", "-l:libcuda.so.1", "-Wl,-rpath,$ORIGIN"]
BUILT = {  # program: compiler, source, flags; {built} is the folder of those before it
    "pairs": ("gcc", "pairs.c", ["-std=gnu11", "-fno-optimize-sibling-calls"]),
    "spawns": ("gcc", "spawns.c", ["-std=gnu11"]),
    "recursion": ("gcc", "recursion.c", ["-std=gnu11"]),
    "allocators": ("gcc", "allocators.c", ["-std=gnu11"]),
    "containers": ("g++", "containers.cc", ["-std=gnu++17"]),
    "loops": ("gcc", "loops.c", ["-std=gnu11"]),
    "beyond": ("gcc", "beyond.c", ["-std=gnu11", "-O1"]),
    "beyond-library.so": ("gcc", "beyond_library.c", PRELOAD),
    "pages-near.so": ("g++", "pages.cc", [*PAGES, "-DDISTANCE=0x100000"]),
    "pages-far.so": ("g++", "pages.cc", [*PAGES, "-DDISTANCE=0x1000000"]),
    "libcuda.so.1": ("gcc", CUDA / "double_driver.c", [*DOUBLE, "-Wl,-soname,libcuda.so.1"] + [
        str(CUDA / f"double_{part}.c") for part in ("contexts", "memory", "objects")]),
    "libcudart.so.13": ("gcc", CUDA / "double_runtime.c", [*DOUBLE, "-Wl,-soname,libcudart.so.13", "-Wl,-rpath,$ORIGIN"]),
    # The driver is loaded with the program: behind a recorder that stands before dlopen, the runtime's own path is not looked at.
    "cuda_pairs": ("gcc", "cuda_pairs.c", ["-std=gnu11", *OVER_DOUBLES]),
    "beyond-cuda": ("gcc", "beyond.c", ["-std=gnu11", "-O1", "-DCUDA", *OVER_DOUBLES]),
    "dense-heap.so": ("gcc", "dense_heap.c", PRELOAD),
    "still-clock.so": ("gcc", "still_clock.c", PRELOAD),
    "floor-forward.so": ("gcc", "floor_forward.c", PRELOAD),
    "floor-shadow.so": ("gcc", "floor_shadow.c", PRELOAD),
}
# One thread in every library that would start its own, no device, the same hashes in each run.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "NUMEXPR_NUM_THREADS": "1",
    "TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1", "TF_CPP_MIN_LOG_LEVEL": "3",
    "KERAS_BACKEND": "tensorflow",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1", "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8",
}
RECORDERS = ("KMEMSHIM_", "LD_PRELOAD", "MALLOC_CONF", "HEAPPROFILE", "DUMP_HEAPTRACK", "MAKE", "MFLAGS", "PYTHON")


def build(folder):
    """Compiles what is older than its sources. Returns {program: path}, without those whose compiler is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    newest_header = max(header.stat().st_mtime for header in PROGRAMS.glob("*.h"))
    built = {}
    for name, (compiler, source, flags) in BUILT.items():
        target, origin = folder / name, PROGRAMS / source
        sources = [origin] + [Path(flag) for flag in flags if flag.endswith(".c")]
        if not target.exists() or target.stat().st_mtime < max(newest_header, *(file.stat().st_mtime for file in sources)):
            if shutil.which(compiler) is None:
                continue
            fresh = folder / f"{name}.{os.getpid()}"
            flags = [flag.replace("{built}", str(folder)) for flag in flags]
            subprocess.run([compiler, *COMMON, "-o", fresh, origin, *flags], check=True)
            fresh.replace(target)  # a run that has the old one open keeps it
        built[name] = target
    return built


def environment(extra):
    plain = {name: value for name, value in os.environ.items() if not name.startswith(RECORDERS)}
    return {**plain, **ENVIRONMENT, **{name: str(value) for name, value in extra.items()}}


def folder_bytes(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def last_line(text):
    return (text.strip().splitlines() or [""])[-1][:200]


def execute(argv, extra, folder, cpus, timeout):
    """Runs argv; returns (error or None, output, rusage, wall seconds). The tree is ended when the time is up."""
    with open(folder / "stdout", "w+b") as output, open(folder / "stderr", "w+b") as errors:
        # While the program is started nobody would end it: an interrupt waits until then. Whatever thread the signal comes to.
        noted = []
        before = signal.getsignal(signal.SIGINT)
        is_told = callable(before) and threading.current_thread() is threading.main_thread()  # no other thread is interrupted
        if is_told:
            signal.signal(signal.SIGINT, lambda *_: noted.append(True))
        begin = time.monotonic()
        try:
            child = subprocess.Popen([str(word) for word in argv], env=environment(extra), cwd=folder,
                                     stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True,
                                     preexec_fn=(lambda: os.sched_setaffinity(0, cpus)) if cpus else None)
        except BaseException:
            if is_told:
                signal.signal(signal.SIGINT, before)
            raise

        def end_tree():
            with contextlib.suppress(ProcessLookupError):  # it ended in this very moment
                os.killpg(child.pid, signal.SIGKILL)

        try:
            ended = os.pidfd_open(child.pid)
            if is_told:
                signal.signal(signal.SIGINT, before)
            if noted:
                raise KeyboardInterrupt
            # One second at a time: an interrupt between Python's look at it and the system call does not end the call.
            while (left := begin + timeout - time.monotonic()) > 0 and not select.select([ended], [], [], min(left, 1))[0]:
                pass
            if left <= 0:
                end_tree()
            _, status, usage = os.wait4(child.pid, 0)
            os.close(ended)
        except BaseException:  # interrupted: a session of its own would run on without us
            end_tree()
            child.wait()
            raise
        child.returncode = os.waitstatus_to_exitcode(status)
        wall = time.monotonic() - begin
        output.seek(0)
        errors.seek(0)
        text, complaint = output.read().decode(errors="replace"), errors.read().decode(errors="replace")
    if left <= 0:
        return f"ended after {timeout} s", text, usage, wall
    if child.returncode != 0:
        return f"exit {child.returncode}: {last_line(complaint)}", text, usage, wall
    return None, text, usage, wall


def run_once(argv, extra, scratch, cpus=None, timeout=600):
    """One run in the empty folder `scratch`/run; recorders write into its folder out: {out} in argv and extra."""
    folder = scratch / "run"
    shutil.rmtree(folder, ignore_errors=True)
    out = folder / "out"
    out.mkdir(parents=True)
    argv = [str(word).replace("{out}", str(out)) for word in argv]
    extra = {name: str(value).replace("{out}", str(out)) for name, value in extra.items()}
    error, text, usage, wall = execute(argv, extra, folder, cpus, timeout)
    try:
        if error:
            return {"error": error}
        lines = re.findall(r"^bench: (\{.*\})$", text, re.MULTILINE)
        if not lines:
            return {"error": "the workload printed no figures"}
        steady = json.loads(lines[-1])
        return {
            "cpu_ns": steady["cpu_s"] * 1e9 / steady["units"],
            "wall_ns": steady["wall_s"] * 1e9 / steady["units"],
            "units": steady["units"],
            "pairs_per_unit": steady["pairs"] / steady["units"],
            "rss_kib": steady["rss_kib"],
            "total_cpu_s": usage.ru_utime + usage.ru_stime,
            "total_wall_s": wall,
            "file_bytes": folder_bytes(out),
        }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Turns:
    """A program that is started once and does its measured phase each time it is told to (steady.turns). One processor for all of
    several such programs: while one works, the others wait."""

    def __init__(self, argv, extra, folder, cpus, timeout=600):
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "out").mkdir(parents=True)
        self.timeout, self.text, self.folder = timeout, b"", folder
        extra = {name: str(value).replace("{out}", str(folder / "out")) for name, value in extra.items()}
        with open(folder / "stderr", "wb") as errors:
            self.child = subprocess.Popen([str(word) for word in argv], env=environment({**extra, "BENCH_TURNS": 1}), cwd=folder,
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0,
                                          start_new_session=True, preexec_fn=lambda: cpus and os.sched_setaffinity(0, cpus))

    def __enter__(self):
        try:
            self.read("ready")
        except BaseException as error:
            self.__exit__(error)
            raise
        return self

    def read(self, wanted):
        """The rest of the next line that begins with "bench: "."""
        while not (found := re.search(rb"^bench: (.*)\n", self.text, re.MULTILINE)):
            part = os.read(self.child.stdout.fileno(), 65536) if select.select([self.child.stdout], [], [], self.timeout)[0] else b""
            if not part:
                raise RuntimeError(f"no {wanted}: {last_line((self.folder / 'stderr').read_text(errors='replace'))}")
            self.text += part
        self.text = self.text[found.end():]
        return found.group(1).decode()

    def turn(self):
        """CPU nanoseconds a unit."""
        self.child.stdin.write(b"\n")
        steady = json.loads(self.read("figures"))
        return steady["cpu_s"] * 1e9 / steady["units"]

    def __exit__(self, *failure):
        self.child.stdin.close()
        if failure[0] is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.child.pid, signal.SIGKILL)
        self.child.stdout.close()
        self.child.wait()


def instructions(argv_for, extra, scratch, counts, timeout=600, cpus=None, of_processes=max, without=None):
    """Instructions for one more in the count under callgrind, a slope: (value or None, error or None).

    of_processes: of the workload's processes the one that did most (max), or all of them (sum). A forked process begins with the
    count of its parent, and one that was exec'ed with 0. without: a function whose instructions do not count, nor those of its callees.
    """
    totals = []
    for count in counts:
        folder = scratch / "callgrind"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "out").mkdir(parents=True)
        result = folder / "callgrind.out"
        here = {name: str(value).replace("{out}", str(folder / "out")) for name, value in extra.items()}
        # Through env, so that valgrind itself does not run under the preload.
        assignments = [f"{name}={value}" for name, value in here.items()]
        argv = ["valgrind", "-q", "--tool=callgrind", "--trace-children=yes", f"--callgrind-out-file={result}.%p",
                *([f"--toggle-collect={without}", "--collect-atstart=yes"] if without else []),
                "/usr/bin/env", *assignments, *argv_for(count)]
        error, _, _, _ = execute(argv, {}, folder, cpus, timeout)
        if error:
            return None, f"callgrind: {error}"
        # env and what it becomes are one process, and have one file.
        found = [re.search(r"^(?:summary|totals): (\d+)", path.read_text(errors="replace"), re.MULTILINE)
                 for path in folder.glob("callgrind.out.*")]
        totals.append(of_processes(int(match.group(1)) for match in found if match))
        shutil.rmtree(folder, ignore_errors=True)
    return (totals[1] - totals[0]) / (counts[1] - counts[0]), None
