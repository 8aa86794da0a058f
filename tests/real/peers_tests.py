"""heaptrack's and memray's own test programs under the shim: the sums that their tests expect, in our report.

    peers_tests.py [--heaptrack DIR] [--memray DIR]

DIR is a folder with the project's sources, for the programs that must be compiled; they are not part of this repository, and what is
not given is skipped by name. memray's allocators (memray._test) come from PyPI, through tools/venv. Adds its table to RESULTS.md.
"""
import argparse
import ctypes
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import real_programs
from real_programs import BUILD, ROOT

PAGE = os.sysconf("SC_PAGE_SIZE")


class Skip(Exception):
    pass


class Known(Exception):
    """Other than the peer expects, for a reason that docs/limits.md tells."""


def shim_environment(capture, **more):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KMEMSHIM_", "LD_PRELOAD", "MAKE"))}
    environment.update(LD_PRELOAD=str(BUILD / "libkmemshim.so"), KMEMSHIM_OUT=str(capture), KMEMSHIM_NATIVE="to-python", KMEMSHIM_EXACT_PEAK="1",
                       KMEMSHIM_VERIFY="64", PYTHONHASHSEED="0", **more)
    return environment


def recorded(argv, folder, status=0, interrupt=False, **more):
    """The report of a program that ended with this status; captures of its children included."""
    capture = folder / "capture"
    process = subprocess.Popen([str(word) for word in argv], env=shim_environment(capture, **more), cwd=folder,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if interrupt:
        process.stderr.readline()  # "Started"
        process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=300)[1]
    assert process.returncode == status, f"status {process.returncode}: {errors[-300:]}"
    assert "kmemshim:" not in errors, errors
    done = subprocess.run([BUILD / "kmemshim", "leaks", capture, "--json", "--native", "--top", "1000000"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["verify"]["mismatched"] == 0, document["verify"]
    return document


def sums(document, wanted, domain=None):
    """(calls, bytes, live blocks, live bytes) of the sites that `wanted` takes."""
    sites = [site for site in document["sites"] if (domain is None or site["domain"].startswith(domain)) and wanted(site)]
    return tuple(sum(site[field] for site in sites) for field in ("allocated_count", "allocated_bytes", "live_count", "live_bytes"))


def name_of(frame):
    """Without arguments, and without the functions that a Python function is nested in."""
    return frame["function"].rpartition(".")[2] if frame["kind"] == "python" else frame["function"].split("(")[0]


def through(*functions, without=()):
    """Sites whose stack has all of these functions."""
    def wanted(site):
        names = [name_of(frame) for frame in site["frames"]]
        return all(name in names for name in functions) and not any(name.startswith(prefix) for name in names for prefix in without)
    return wanted


def made_by(program, function):
    """Sites whose innermost frame in the program is this function: below it are operator new and the like."""
    def wanted(site):
        own = [name_of(frame) for frame in site["frames"] if os.path.basename(frame["module"] or "") == program.name]
        return own[:1] == [function]
    return wanted


def same(found, expected):
    assert found == expected, f"found {found}, expected {expected}"


# --- heaptrack: tests/manual ----------------------------------------------------------------------

class Heaptrack:
    def __init__(self, sources, folder):
        self.folder = folder
        self.manual = Path(sources) / "tests" / "manual" if sources else None

    def built(self, source, *flags, name=None):
        if self.manual is None:
            raise Skip("give heaptrack's sources: make peers-tests HEAPTRACK=DIR")
        program = self.folder / (name or Path(source).stem)
        (self.folder / "util").mkdir(exist_ok=True)
        (self.folder / "util" / "config.h").touch()
        compiler = "g++" if source.endswith("pp") else "gcc"
        flags = flags if any(flag.startswith("-O") for flag in flags) else ("-O0", *flags)
        dialect = ["-fgnu89-inline"] if compiler == "gcc" else []  # its C programs define inline functions in headers
        done = subprocess.run([compiler, "-g", "-w", "-pthread", *dialect, f"-I{self.folder}", f"-I{self.manual.parent}", *flags,
                               self.manual / source, "-o", program, *(["-L" + str(self.folder)] if "-shared" not in flags else []), "-ldl"],
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-300:]
        return program

    def test_c(self):
        rand = ctypes.CDLL(None)
        rand.srand(0)
        sizes = [rand.rand() % 1000 for _ in range(10000)]
        document = recorded([self.built("test.c")], self.folder)
        same(sums(document, through("main", without=["_IO_", "__GI__IO"])), (10001, sum(sizes) + 1, 10000, sum(sizes)))

    def test_cpp(self):
        document = recorded([self.built("test.cpp")], self.folder)
        wanted = through(without=["_IO_", "__GI__IO"])
        own = lambda site: wanted(site) and any(os.path.basename(frame["module"] or "") == "test" for frame in site["frames"])  # noqa: E731
        same(sums(document, own), (25, 3 * 4 + 8 + 14 * 4 + 1000 + 100 + 200 + 25 + 160 + 32 + 64, 14, 56))

    def peak(self):
        document = recorded([self.built("peak.c")], self.folder)
        same(sums(document, through("main")), (5, 275, 0, 0))
        same(document["totals"]["heap"]["peak_bytes"], 125)
        at_peak = {name: sum(site["peak_bytes"] for site in document["sites"] if through(name)(site)) for name in ("foo", "bar")}
        same(at_peak, {"foo": 100, "bar": 25})

    def threaded(self):
        document = recorded([self.built("threaded.cpp")], self.folder)
        program = self.folder / "threaded"
        same(sums(document, made_by(program, "alloc")), (400 * 1001, 400 * (8000 + 4000), 0, 0))

    def callgraph(self):
        program = self.built("callgraph.cpp")
        document = recorded([program], self.folder)
        for function, count, size in (("asdf", 16, 1), ("foo", 8, 12), ("bar", 7, 123), ("recurse", 6, 2)):
            same(sums(document, made_by(program, function)), (count, count * size, count, count * size))

    def test_aggregation(self):
        program = self.built("test_aggregation.cpp")
        document = recorded([program], self.folder)
        for function, count, size in (("foo", 2, 1), ("bar", 2, 2), ("asdf", 2, 3), ("main", 1, 4), ("foobar", 1, 5)):
            same(sums(document, made_by(program, function)), (count, count * size, count, count * size))

    def inlining(self):
        document = recorded([self.built("inlining.cpp", "-O2")], self.folder)
        same(sums(document, through("asdf", "bar", "foo", "main")), (1, 1234, 1, 1234))

    def test_lib(self):
        self.built("lib.cpp", "-shared", "-fPIC", name="libtestlib.so")
        program = self.built("test_lib.cpp", f"-Wl,-rpath,{self.folder}", "-Wl,--no-as-needed", str(self.folder / "libtestlib.so"))
        document = recorded([program], self.folder, status=subprocess.run([program]).returncode)
        same(sums(document, through("main")), (10 * (1 + 15), 10 * (24 + 8 * (2**15 - 1)), 0, 0))

    def libc_leaks(self):
        recorded([self.built("libc_leaks.c")], self.folder)

    def embedded_lsan_suppressions(self):
        program = self.built("embedded_lsan_suppressions.c")
        document = recorded([program], self.folder)
        for size, function in enumerate(("foobar", "leak", "leakFoo", "leakFooSupp"), 1):
            same(sums(document, made_by(program, function)), (1, size, 1, size))

    def signals(self):
        document = recorded([self.built("signals.cpp")], self.folder, interrupt=True)
        same(sums(document, through("main", without=["pthread_create", "__pthread_create"])), (1, 1000, 0, 0))

    def test_linkage(self):
        for linker in ("bfd", "gold"):
            for flags in ([], ["-Wl,-z,now"], ["-DTAKE_ADDR"], ["-DUSE_FREEPTR"]):
                document = recorded([self.built("test_linkage.c", f"-fuse-ld={linker}", *flags)], self.folder)
                same(sums(document, through("main")), (10, 2560, 0, 0))
                for file in (self.folder / "capture").iterdir():
                    file.unlink()

    def dlopen(self):
        library = self.built("libindirect.cpp", "-shared", "-fPIC", name="libindirect.so")
        document = recorded([self.built("dlopen.cpp", f'-DLIB_PATH="{library}"')], self.folder)
        found = sums(document, through("main", without=["_IO_", "__GI__IO", "dlopen", "__dlopen"]))[:2]
        if found == (2, 10 + 35):
            raise Known("a plugin opened with RTLD_DEEPBIND calls libc's malloc itself: 2 of 3 calls are seen")
        same(found, (3, 10 + 35 + 10))


# --- memray: tests/integration --------------------------------------------------------------------

PRELUDE = """
import os, signal, sys, threading, mmap
from memray._test import (MemoryAllocator, MmapAllocator, PymallocDomain, PymallocMemoryAllocator, _cython_allocate_in_two_places,
    allocate_cpp_vector)
PAGE = mmap.PAGESIZE
kept = []
def valloc(size):
    kept.append(MemoryAllocator()); kept[-1].valloc(size); return kept[-1]
def case():
"""


class Memray:
    """Each case is the body of memray's test of that name; blocks are told by the line that asked for them."""
    def __init__(self, sources, folder):
        self.folder = folder
        self.integration = Path(sources) / "tests" / "integration" if sources else None

    python = None

    def interpreter(self):
        if Memray.python is None:
            done = subprocess.run([ROOT / "tools" / "venv", "memray"], capture_output=True, text=True, env={**os.environ, "BUILD": str(BUILD)})
            if done.returncode != 0:
                raise Skip("memray cannot be installed from PyPI")
            Memray.python = done.stdout.strip()
        return Memray.python

    def run(self, body, ending="os._exit(0)", **more):
        """Blocks that live at the end are seen so: the process ends before Python takes itself down."""
        script = self.folder / "case.py"
        lines = [line for line in body.strip().splitlines()]
        script.write_text(PRELUDE + "".join(f"    {line}\n" for line in lines) + f"case()\n{ending}\n")
        return recorded([self.interpreter(), script], self.folder, **more)

    @staticmethod
    def of_size(size):
        return lambda site: through("case")(site) and site["allocated_count"] and site["allocated_bytes"] == size * site["allocated_count"]

    def simple_allocation(self):
        for name in ("malloc", "valloc", "pvalloc", "calloc", "memalign", "posix_memalign", "aligned_alloc", "realloc"):
            document = self.run(f"a = MemoryAllocator()\nassert a.{name}(984)\na.free()", PYTHONMALLOC="pymalloc")
            same(sums(document, self.of_size(984)), (1, 984, 0, 0))

    def free_sized(self):
        same(sums(self.run("a = MemoryAllocator()\na.valloc(984)\na.free_sized(984) or a.free()"), self.of_size(984)), (1, 984, 0, 0))

    def free_aligned_sized(self):
        same(sums(self.run("a = MemoryAllocator()\na.aligned_alloc(984)\na.free_aligned_sized(984) or a.free()"), self.of_size(984)), (1, 984, 0, 0))

    def cpp_vector(self):
        same(sums(self.run("allocate_cpp_vector(984)"), self.of_size(984)), (1, 984, 0, 0))

    def pymalloc_domains(self):
        for domain in ("RAW", "MEM", "OBJECT"):
            for name in ("malloc", "calloc", "realloc"):
                document = self.run(f"a = PymallocMemoryAllocator(PymallocDomain.PYMALLOC_{domain})\na.{name}(984)\na.free()",
                                    KMEMSHIM_PYTHON_OBJECTS="1")
                same(sums(document, self.of_size(984)), (1, 984, 0, 0))

    def mmap_of_python(self):
        document = self.run("with mmap.mmap(-1, length=2048, access=mmap.ACCESS_WRITE) as m: m[0:100] = b'a' * 100")
        same(sums(document, self.of_size(2048), "shared"), (1, 2048, 0, 0))

    def pthread(self):
        document = self.run("a = MemoryAllocator()\ndef tracking(): a.valloc(984); a.free()\na.run_in_pthread(tracking)")
        wanted = lambda site: through("tracking")(site) and site["allocated_bytes"] == 984  # noqa: E731
        same(sums(document, wanted), (1, 984, 0, 0))

    def sigkill(self):
        document = self.run("a = MemoryAllocator()\nfor i in range(1000): a.valloc(1024)", status=-9, ending="os.kill(os.getpid(), 9)")
        same(sums(document, self.of_size(1024)), (1000, 1024000, 1000, 1024000))

    def no_allocations(self):
        same(sums(self.run("os._exit(0)"), self.of_size(984)), (0, 0, 0, 0))

    def spiky_peak(self):
        """55 units in all, 31 at the peak, reached twice: as 10 + 8 + 6 + 4 + 3 (the first, ours) and with 2 + 1 at its end (the last,
        memray's). In units of 1 MiB, which the process's own blocks do not hide."""
        document = self.run("""
def recursive(n):
    if not n: return
    a = MemoryAllocator()
    a.valloc(n << 20)
    if n % 2: a.free(); recursive(n - 1)
    else: recursive(n - 1); a.free()
recursive(10)""")
        wanted = lambda site: through("recursive")(site) and site["allocated_bytes"] >= 1 << 20  # noqa: E731
        same(sums(document, wanted), (10, 55 << 20, 0, 0))
        same(sorted(site["peak_bytes"] >> 20 for site in document["sites"] if wanted(site) and site["peak_bytes"]), [3, 4, 6, 8, 10])

    def high_watermarks(self):
        big, small = 8 << 20, 4 << 20
        for body, at_peak in ((f"for _ in range(2): valloc({big}).free()", {big: big}),
                              (f"valloc({small}).free()\nvalloc({big}).free()", {small: 0, big: big}),
                              (f"valloc({big}).free()\nvalloc({small}).free()", {small: 0, big: big}),
                              (f"valloc({small}).free()\nvalloc({big})", {small: 0, big: big})):
            document = self.run(body)
            same({size: sum(site["peak_bytes"] for site in document["sites"] if self.of_size(size)(site)) for size in at_peak}, at_peak)

    def partial_munmaps(self):
        """What is left of each mapping; memray's tests sum it up at the peak, which is the end here."""
        for name, body, pages in (
                ("partial", "a = MmapAllocator(2 * PAGE); a.munmap(PAGE); MmapAllocator(10 * PAGE)", 11),
                ("gap", "a = MmapAllocator(4 * PAGE); a.munmap(PAGE); a.munmap(PAGE, 3 * PAGE); MmapAllocator(10 * PAGE)", 12),
                ("several", "b = MmapAllocator(8 * PAGE); b.munmap(8 * PAGE); a = MmapAllocator(4 * PAGE, b.address)\n"
                            "MmapAllocator(4 * PAGE, a.address + 4 * PAGE); a.munmap(8 * PAGE); MmapAllocator(10 * PAGE)", 10),
                ("several twice", "b = MmapAllocator(8 * PAGE); b.munmap(8 * PAGE); a = MmapAllocator(2 * PAGE, b.address)\n"
                                  "for i in (2, 4, 6): MmapAllocator(2 * PAGE, b.address + i * PAGE)\n"
                                  "a.munmap(4 * PAGE); a.munmap(4 * PAGE, 4 * PAGE); MmapAllocator(10 * PAGE)", 10),
                ("split twice", "a = MmapAllocator(5 * PAGE); a.munmap(PAGE, PAGE); a.munmap(PAGE, 3 * PAGE); MmapAllocator(10 * PAGE)", 13),
                ("split", "a = MmapAllocator(8 * PAGE); a.munmap(PAGE, 4 * PAGE); MmapAllocator(10 * PAGE)", 17)):
            found = sums(self.run(body), through("case"), "shared")
            assert found[3] == pages * PAGE, f"{name}: {found[3] // PAGE} pages left, expected {pages}"

    def leaks(self):
        same(sums(self.run("valloc(1024)"), self.of_size(1024)), (1, 1024, 1, 1024))
        same(sums(self.run("for _ in range(3): valloc(1024).free()"), self.of_size(1024)), (3, 3072, 0, 0))
        same(sums(self.run("valloc(1024).free()\na = valloc(1024)\nvalloc(2048)\na.free()\nvalloc(1024).free()"), self.of_size(2048)), (1, 2048, 1, 2048))
        same(sums(self.run("def foo(): valloc(1024)\nfor _ in range(10): foo()"), self.of_size(1024)), (10, 10240, 10, 10240))
        document = self.run("_cython_allocate_in_two_places(984)")
        same(sums(document, self.of_size(984)), (2, 1968, 0, 0))

    def threads(self):
        document = self.run("""
def work():
    for _ in range(100): valloc(1234).free()
threads = [threading.Thread(target=work) for _ in range(10)]
for thread in threads: thread.start()
for thread in threads: thread.join()""")
        wanted = lambda site: through("work")(site) and site["allocated_bytes"] == 1234 * site["allocated_count"]  # noqa: E731
        same(sums(document, wanted), (1000, 1234000, 0, 0))

    def extension(self, source, name):
        if self.integration is None:
            raise Skip("give memray's sources: make peers-tests MEMRAY=DIR")
        python = self.interpreter()
        include = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"], capture_output=True, text=True)
        compiler = "g++" if source.endswith("cpp") else "gcc"
        done = subprocess.run([compiler, "-g", "-O1", "-w", "-shared", "-fPIC", "-pthread", f"-I{include.stdout.strip()}", self.integration / source,
                               "-o", self.folder / f"{name}.so"], capture_output=True, text=True)
        if done.returncode != 0:
            raise Skip(f"{source} does not compile: {done.stderr[-100:]}")

    def native_extension(self):
        self.extension("native_extension/native_ext.c", "native_ext")
        for call, count in (("run_simple()", 1), ("run_in_thread()", 1), ("run_deep(100)", 1)):
            document = self.run(f"import native_ext; native_ext.{call}")
            same(sums(document, through("baz", "bar", "foo")), (count, 1234, 0, 0))
        document = self.run("import native_ext; native_ext.run_deep(100)")
        site = next(site for site in document["sites"] if through("baz")(site))
        same(sum(frame["function"] == "deep_call" for frame in site["frames"]), 101)
        same(sums(self.run("import native_ext; native_ext.run_inline()"), through("baz_inline", "bar_inline", "foo_inline")), (1, 1234, 0, 0))
        document = self.run("import native_ext\ndef back(n): return native_ext.run_recursive(n, back)\nnative_ext.run_recursive(5, back)")
        same(sums(document, through("baz", "bar", "foo", "back")), (1, 1234, 0, 0))

    def multithreaded_extension(self):
        self.extension("multithreaded_extension/testext.cpp", "testext")
        document = self.run("import testext; testext.run()")
        same(sums(document, through("allocate_memory")), (10000, 100 * 8 * 5050, 0, 0))
        document = self.run("import testext; testext.run_valloc_at_exit()")
        wanted = lambda site: any("cleanup_handler" in frame["function"] for frame in site["frames"])  # noqa: E731
        same(sums(document, wanted), (1, 4, 0, 0))

    def misbehaving_extension(self):
        self.extension("misbehaving_extension/misbehaving.cpp", "misbehaving")
        for call in ("dlopen_self", "call_fn", "call_fn_no_thread"):
            document = self.run(f"import misbehaving\ndef foo(): valloc(1234).free()\nmisbehaving.{call}(foo)")
            wanted = lambda site: through("foo")(site) and site["allocated_bytes"] == 1234 * site["allocated_count"]  # noqa: E731
            same(sums(document, wanted), (1, 1234, 0, 0))


def cases_of(peer):
    return [name for name, value in vars(peer).items()
            if callable(value) and not name.startswith("_") and name not in ("built", "interpreter", "run", "of_size", "extension")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--heaptrack", metavar="DIR")
    parser.add_argument("--memray", metavar="DIR")
    parser.add_argument("names", nargs="*", metavar="NAME", help="peer.case; all otherwise")
    options = parser.parse_args()
    rows, failed = [], 0
    for peer, sources in ((Heaptrack, options.heaptrack), (Memray, options.memray)):
        for case in cases_of(peer):
            title = f"{peer.__name__.lower()}.{case}"
            if options.names and title not in options.names:
                continue
            with tempfile.TemporaryDirectory(prefix="kmemshim-peer") as folder:
                try:
                    getattr(peer(sources, Path(folder).resolve()), case)()
                    outcome = "as expected"
                except Known as reason:
                    outcome = f"known limit: {reason}"
                except Skip as reason:
                    outcome = f"skipped: {reason}"
                except (AssertionError, subprocess.TimeoutExpired, StopIteration) as reason:
                    outcome, failed = f"DIFFERS: {reason}"[:300].replace("\n", " "), failed + 1
            rows.append([title, outcome])
            print(f"{title:40} {outcome}", flush=True)
    if not options.names:
        text = f"{real_programs.system()}\n\n{real_programs.table(['peer and test', 'sums in our report'], rows)}\n"
        real_programs.write_section("Test programs of other recorders", text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
