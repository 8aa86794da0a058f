"""The recorders that are compared: how each is started, and why it cannot be, when it cannot.

Used by bench.py. A new recorder is one entry in all_variants().
"""
import glob
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Variant:
    """environment and prefix may name {out}, the folder of this run's files."""
    name: str
    about: str
    environment: dict = field(default_factory=dict)
    prefix: list = field(default_factory=list)  # words between the interpreter and the script: memray's command
    needs: str = ""         # why it cannot run here; empty when it can
    python_only: bool = False
    is_memray: bool = False  # python_only, and memray lies beside the interpreter
    slow: int = 1           # the C workloads do this many times fewer units; whole-run figures are then left out
    in_callgrind: bool = True


def library(*patterns):
    """The first library that one of the patterns finds, and a reason when there is none."""
    for pattern in patterns:
        found = sorted(glob.glob(pattern))
        if found:
            return found[0], ""
    return "", f"no {os.path.basename(patterns[0])}"


def jemalloc_complaint(path):
    """A build without profiling says so on stderr when asked to profile."""
    done = subprocess.run(["/bin/true"], env={"LD_PRELOAD": path, "MALLOC_CONF": "prof:true"},
                          capture_output=True, text=True)
    return "this jemalloc is built without profiling" if "Invalid conf pair" in done.stderr else ""


def memray_folder(bench_folder, python):
    """Where --install puts memray for this interpreter: outside its environment, which stays as it is."""
    version = subprocess.run([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                             capture_output=True, text=True)
    return bench_folder / f"memray-{version.stdout.strip()}"


def all_variants(shim, built):
    """shim: path of libkmemshim.so; built: what runner.build() gave."""
    heaptrack, no_heaptrack = library("/usr/lib/heaptrack/libheaptrack_preload.so",
                                      "/usr/lib*/*/heaptrack/libheaptrack_preload.so",
                                      "/usr/lib64/heaptrack/libheaptrack_preload.so")
    tcmalloc, no_tcmalloc = library("/usr/lib/*/libtcmalloc.so.4", "/usr/lib64/libtcmalloc.so.4")
    jemalloc, no_jemalloc = library("/usr/lib/*/libjemalloc.so.2", "/usr/lib64/libjemalloc.so.2")
    no_profiling = no_jemalloc or jemalloc_complaint(jemalloc)

    def floor(name, about):
        return Variant(name, about, {"LD_PRELOAD": str(built.get(f"{name}.so", ""))},
                       needs="" if f"{name}.so" in built else "gcc is missing")

    def jemalloc_with(conf):
        return {"LD_PRELOAD": jemalloc, "MALLOC_CONF": f"prof:true,prof_final:true,prof_prefix:{{out}}/jeprof{conf}"}

    def memray(name, about, *options):
        return Variant(name, about, {}, ["-m", "memray", "run", "-q", *options, "-o", "{out}/memray.bin"],
                       python_only=True, is_memray=True)

    return [
        Variant("none", "the program alone"),
        floor("floor-forward", "a preload that only forwards"),
        floor("floor-shadow", "a preload with the address shadow and one counter"),
        kmemshim("kmemshim", shim),
        python_objects(kmemshim("kmemshim-unsampled", shim, {"KMEMSHIM_PYTHON_OBJECTS": "0"})),
        python_objects(kmemshim("kmemshim-objects", shim, {"KMEMSHIM_PYTHON_OBJECTS": "1"})),
        Variant("heaptrack", "its preload, raw stream to a file, no interpreter beside it",
                {"LD_PRELOAD": heaptrack, "DUMP_HEAPTRACK_OUTPUT": "{out}/heaptrack.raw"}, needs=no_heaptrack,
                in_callgrind=False),  # 1.4 records nothing under valgrind: its file stays empty
        Variant("tcmalloc", "gperftools' allocator alone, to compare the next with", {"LD_PRELOAD": tcmalloc},
                needs=no_tcmalloc),
        Variant("gperftools", "its heap profiler", {"LD_PRELOAD": tcmalloc, "HEAPPROFILE": "{out}/profile"},
                needs=no_tcmalloc, slow=20, in_callgrind=False),
        Variant("jemalloc", "the allocator alone, to compare the next two with", {"LD_PRELOAD": jemalloc},
                needs=no_jemalloc),
        Variant("jemalloc-prof", "its profiler, one sample in 512 KiB", jemalloc_with(""), needs=no_profiling),
        Variant("jemalloc-prof-all", "its profiler, every event", jemalloc_with(",lg_prof_sample:0"),
                needs=no_profiling, slow=20, in_callgrind=False),
        memray("memray", "Python stacks"),
        memray("memray-native", "Python and native stacks", "--native"),
        memray("memray-aggregate", "Python stacks, summed in memory", "--aggregate"),
        memray("memray-objects", "Python stacks, small objects too", "--trace-python-allocators"),
        Variant("tracemalloc", "the interpreter's own, one frame", {}, ["-X", "tracemalloc"], python_only=True),
    ]


def kmemshim(name, path, settings=None):
    """A build of the shim, with KMEMSHIM_* settings when given."""
    about = f"{path}" + "".join(f" {one}={value}" for one, value in (settings or {}).items())
    environment = {"LD_PRELOAD": str(path), "KMEMSHIM_OUT": "{out}", "KMEMSHIM_LOG": "quiet", **(settings or {})}
    return Variant(name, about, environment, needs="" if Path(path).exists() else f"{path} is missing: run make")


def python_objects(variant):
    variant.python_only = True
    return variant


def kmemshim_from_text(text):
    """NAME=LIBRARY[,SETTING=VALUE...], as --lib takes it."""
    name, _, rest = text.partition("=")
    path, *settings = rest.split(",")
    if not name or not path or not all("=" in one for one in settings):
        raise ValueError(f"\"{text}\": wanted NAME=LIBRARY[,SETTING=VALUE...]")
    return kmemshim(name, Path(path).resolve(), dict(one.split("=", 1) for one in settings))


def install(bench_folder, pythons):
    """What --install does: Debian's packages through tools/install-deps, memray beside each interpreter."""
    if shutil.which("apt-get"):
        subprocess.run([ROOT / "tools" / "install-deps", "bench"], check=True)
    for python in pythons:
        folder = memray_folder(bench_folder, python)
        if not (folder / "memray").is_dir():
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                            "--target", folder, "memray"], check=True)
