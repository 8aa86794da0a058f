"""
Device memory, reached every way there is, over our own driver double. What the shim has recorded must be what the double
says it gave out, byte for byte, however the program ends.
"""
import collections
import os
import shutil
import signal
import struct
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "preload"))
import harness  # noqa: E402

HERE = Path(__file__).resolve().parent
PROGRAMS = harness.BUILD / "tests" / "cuda"
DOUBLES = PROGRAMS / "lib"
DRIVER_11 = PROGRAMS / "driver11"
CUDA_HOME = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))

# include/kmem_format.h: the domain table, one row of 128 bytes per domain, starts with two peak words (48 bits each); a site
# with two peak words, four counters, and has its domain in its byte 62; a directory entry with its chunk's section, 1 for
# sites. double_ledger.h: six counters per row.
DOMAINS_OFFSET, DOMAIN_BYTES = 16384, 128
DIRECTORY_OFFSET, CHUNKS_MAX = 32768, 8192
CHUNKS_OFFSET, CHUNK_BYTES = 98304, 65536
SITES, SITE_BYTES = 1, 64
MANAGED, PINNED, DEVICE_ROWS = 6, 5, range(8, 16)
BITS_48 = (1 << 48) - 1
Books = collections.namedtuple("Books", "allocated_bytes freed_bytes allocated_count freed_count peak_bytes")

ROUTES = ["linked", "dlsym", "asked", "asked_old_form", "asked_newer", "runtime_shared", "runtime_static", "plugin"]
DRIVER_ROUTES = ["linked", "dlsym", "asked", "asked_old_form", "asked_newer"]
DRIVERS_ALONE = ["pool", "arrays", "physical", "reset", "reset_one"]
ONE_THREAD = ["leak", "zero", "pinned", "devices", "async"]


class Double:
    """The ledger of one run."""

    def __init__(self, path):
        words = struct.unpack("<100Q", path.read_bytes())
        rows = [words[6 * row:6 * row + 6] for row in range(16)]
        self.books = {row: Books(*words[:5]) for row, words in enumerate(rows) if any(words)}
        self.refused_count = sum(words[5] for words in rows)
        self.lookups, self.lookups_by_shim, self.reused_addrs, self.inner_bytes = words[96:]


def recorded(folder):
    """Books of every device domain in the one capture of `folder`."""
    captures = list(folder.glob("*.kmem"))
    assert len(captures) == 1, captures
    data = captures[0].read_bytes()
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])
    for chunk in range(CHUNKS_MAX):
        if data[DIRECTORY_OFFSET + 8 * chunk] != SITES:
            continue
        start = CHUNKS_OFFSET + CHUNK_BYTES * chunk
        for at in range(start, start + CHUNK_BYTES, SITE_BYTES):
            counters = struct.unpack_from("<4Q", data, at + 16)
            if any(counters):
                sums[data[at + 62]] = [sum(pair) for pair in zip(sums[data[at + 62]], counters)]
    books = {}
    for row in (PINNED, MANAGED, *DEVICE_ROWS):
        mark = struct.unpack_from("<2Q", data, DOMAINS_OFFSET + DOMAIN_BYTES * row)[1] & BITS_48
        if row in sums or mark:
            allocated_bytes, freed_bytes, *counts = sums[row]
            books[row] = Books(allocated_bytes, freed_bytes, *counts, max(allocated_bytes - freed_bytes, mark))
    return books


def run_under_shim(tmp_path, route, *words, libraries=DOUBLES, preload=harness.SHIM, **more):
    program = route
    if route in ("asked_old_form", "asked_newer"):
        program = "asked"
        more.update({"ASK_OLD_FORM": 1} if route == "asked_old_form" else {"ASK_VERSION": 99000})
    elif route == "plugin":
        more.update(PLUGIN_FILE=PROGRAMS / "plugin_user13.so")
    env = harness.plain_env(LD_PRELOAD=preload, KMEMSHIM_OUT=tmp_path / "out", LD_LIBRARY_PATH=libraries,
                            KMEMDOUBLE_LEDGER=tmp_path / "ledger", **more)
    return harness.run([PROGRAMS / program, *words], env)


def check_run(done, status=0):
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


def line_of(text):
    lines = (HERE / "workload.c").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def without_peaks(books):
    return {row: book._replace(peak_bytes=0) for row, book in books.items()}


@pytest.mark.parametrize("ending", ["exit", "kill"])
@pytest.mark.parametrize("workload", ONE_THREAD)
@pytest.mark.parametrize("route", ROUTES)
def test_books_are_the_ledger(route, workload, ending, tmp_path):
    done = run_under_shim(tmp_path, route, workload, ending, KMEMDOUBLE_DEVICES=2)

    check_run(done, 0 if ending == "exit" else -signal.SIGKILL)
    double = Double(tmp_path / "ledger")
    assert double.books and recorded(tmp_path / "out") == double.books


@pytest.mark.parametrize("ending", ["exit", "kill"])
@pytest.mark.parametrize("workload", DRIVERS_ALONE)
@pytest.mark.parametrize("route", DRIVER_ROUTES)
def test_books_of_what_only_the_driver_has(route, workload, ending, tmp_path):
    """Pools, rows with a pitch, arrays, physical memory and its mappings, resets."""
    done = run_under_shim(tmp_path, route, workload, ending, KMEMDOUBLE_DEVICES=2)

    check_run(done, 0 if ending == "exit" else -signal.SIGKILL)
    double = Double(tmp_path / "ledger")
    assert double.books and recorded(tmp_path / "out") == double.books


@pytest.mark.parametrize("route", DRIVER_ROUTES)
def test_physical_memory_of_several_threads(route, tmp_path):
    """Handles that come back as numbers while their memory is still mapped."""
    check_run(run_under_shim(tmp_path, route, "physical_threads"))

    assert without_peaks(recorded(tmp_path / "out")) == without_peaks(Double(tmp_path / "ledger").books)


def test_a_handle_that_could_not_be_released_is_alive(tmp_path):
    done = run_under_shim(tmp_path, "linked", "physical", KMEMDOUBLE_FAIL_FREE_NTH=3)
    assert done.returncode == 2 and done.stderr.endswith("api->release_handle(handle) = 700\n")

    assert recorded(tmp_path / "out") == Double(tmp_path / "ledger").books


def test_registered_memory_is_shown_beside_the_heap_that_it_is_in(tmp_path):
    check_run(run_under_shim(tmp_path, "linked", "registered"))

    totals = harness.report("sites", tmp_path / "out")["totals"]
    assert (totals["cuda/registered"]["live_bytes"], totals["cuda/registered"]["allocated_bytes"]) == (300000, 700000)
    assert totals["heap"]["live_bytes"] >= 300000


@pytest.mark.parametrize("ending", ["exit", "kill"])
@pytest.mark.parametrize("route", ROUTES)
def test_threads_that_free_each_others_blocks(route, ending, tmp_path):
    done = run_under_shim(tmp_path, route, "threads", ending)

    check_run(done, 0 if ending == "exit" else -signal.SIGKILL)
    double = Double(tmp_path / "ledger")
    assert double.reused_addrs > 1000
    assert without_peaks(recorded(tmp_path / "out")) == without_peaks(double.books)


@pytest.mark.parametrize("knob", [{"KMEMDOUBLE_CAPACITY": 10500000}, {"KMEMDOUBLE_FAIL_NTH": 7},
                                  {"KMEMDOUBLE_FAIL_FREE_NTH": 5}, {}], ids=str)
@pytest.mark.parametrize("route", ROUTES)
def test_failures_change_no_books(route, knob, tmp_path):
    """Refused requests, releases of what was never given out, releases that fail: put back, released twice."""
    check_run(run_under_shim(tmp_path, route, "failing", **knob))

    double = Double(tmp_path / "ledger")
    assert recorded(tmp_path / "out") == double.books
    document = harness.report("sites", tmp_path / "out")
    failed = document["failed_requests"]
    assert len(failed) == min(double.refused_count, 16)
    for request in failed:
        assert (request["domain"], request["bytes"], request["error"]) == ("cuda:0", 1000000, 2)
        # The static double is code of the program, with its lines.
        assert request["where"]["function"] in ("failing", "cudaMalloc" if route == "runtime_static" else "")


@pytest.mark.parametrize("route", ["runtime_shared", "runtime_static", "plugin"])
def test_a_driver_before_cuda_12(route, tmp_path):
    """Without cuGetProcAddress_v2 the runtime asks dlsym for every exported name."""
    check_run(run_under_shim(tmp_path, route, "async", libraries=f"{DRIVER_11}:{DOUBLES}"))

    double = Double(tmp_path / "ledger")
    assert double.lookups == 0
    assert recorded(tmp_path / "out") == double.books


@pytest.mark.parametrize("workload", ONE_THREAD)
@pytest.mark.parametrize("route", ["runtime_shared", "plugin"])
def test_the_runtime_level_alone(route, workload, tmp_path):
    """Where the driver's functions are found in a way that nobody sees, the runtime's hooks book."""
    check_run(run_under_shim(tmp_path, route, workload, KMEMDOUBLE_HIDDEN_DRIVER=1, KMEMDOUBLE_DEVICES=2))

    double = Double(tmp_path / "ledger")
    assert double.lookups > 0 and double.lookups_by_shim == 0
    assert recorded(tmp_path / "out") == double.books


def test_each_of_two_runtimes_gets_its_own_calls(tmp_path):
    """leak makes 150 calls; the plugin over 12 is closed and runs twice."""
    done = run_under_shim(tmp_path, "two_runtimes", PROGRAMS / "plugin_user12.so", PROGRAMS / "plugin_user13.so")

    assert (done.returncode, done.stdout, done.stderr) == (0, "300 150\n", "")
    assert recorded(tmp_path / "out") == Double(tmp_path / "ledger").books


@pytest.mark.parametrize("first", [{}, {"ALLOCATE_FIRST": 1}], ids=["init_first", "allocate_first"])
@pytest.mark.parametrize("workload", ["leak", "threads", "zero"])
def test_trampolines_are_no_circle(workload, first, tmp_path):
    check_run(run_under_shim(tmp_path, "trampoline", workload, **first))

    double = Double(tmp_path / "ledger")
    assert without_peaks(recorded(tmp_path / "out")) == without_peaks(double.books)


@pytest.mark.parametrize("route", ["linked", "dlsym", "asked", "runtime_shared", "plugin"])
def test_a_stack_begins_at_the_call_the_program_made(route, tmp_path):
    check_run(run_under_shim(tmp_path, route, "leak"))

    document = harness.report("leaks", tmp_path / "out", "--domain", "cuda:0")
    sites = document["sites"]
    assert [site["frames"][0]["function"] for site in sites] == ["leak"]
    # Nested hooks must not look for a block that the outer one has taken: there are 50 releases.
    assert document["losses"]["lost_unknown_frees"] < 10 and document["losses"]["lost_missed_frees"] == 0
    assert harness.place(sites[0]) == f"workload.c:{line_of('api->device(&addr, i * 1000)')}"


def test_a_static_runtime_shows_itself_below_the_program(tmp_path):
    check_run(run_under_shim(tmp_path, "runtime_static", "leak"))

    sites = harness.report("leaks", tmp_path / "out", "--domain", "cuda:0")["sites"]
    functions = [frame["function"] for frame in sites[0]["frames"]]
    assert functions[:2] == ["cudaMalloc", "leak"]


def test_the_drivers_own_mappings_are_not_the_programs(tmp_path):
    """It reserves 64 GiB of addresses and maps pinned memory: the first is nobody's, the second is in cuda/pinned."""
    check_run(run_under_shim(tmp_path, "linked", "pinned"))
    check_run(run_under_shim(tmp_path, "linked", "leak"))

    for capture in (tmp_path / "out").glob("*.kmem"):
        totals = harness.report("sites", capture)["totals"]
        assert totals.get("reserved", {}).get("allocated_bytes", 0) == 0
        assert totals.get("mmap", {}).get("allocated_bytes", 0) < 1 << 20
    assert Double(tmp_path / "ledger").inner_bytes > 0


def test_programs_behave_the_same_without_the_shim(tmp_path):
    for route in ("linked", "runtime_shared", "plugin"):
        check_run(run_under_shim(tmp_path, route, "failing", preload="", KMEMDOUBLE_CAPACITY=10500000))


def test_dlsym_keeps_its_meaning(tmp_path):
    """RTLD_NEXT is next after its caller; names are found or not as ever; without a driver nothing crashes."""
    def lines(**more):
        done = harness.run([PROGRAMS / "lookup", DOUBLES / "liblookup2.so"],
                           harness.plain_env(LD_LIBRARY_PATH=DOUBLES, **more))
        assert done.returncode == 0 and done.stderr == ""
        return dict(line.split() for line in done.stdout.splitlines())

    plain = lines()
    assert plain == {"next": "2", "invented": "0", "error_says_name": "1", "explicit": "2", "missing_cu": "0",
                     "missing_empty": "0", "default": "1", "puts": "1", "errno": "77"}
    watched = lines(LD_PRELOAD=harness.SHIM, KMEMSHIM_OUT=tmp_path / "out")
    assert watched == plain | {"weak_runtime": "100", "weak_driver": "3"}


# --- where a toolkit is installed -----------------------------------------------------------------

def toolkit(*names):
    for name in names:
        if not (CUDA_HOME / name).exists():
            pytest.skip(f"no CUDA toolkit: {CUDA_HOME / name} (CUDA_HOME=)")
    return CUDA_HOME


@pytest.mark.parametrize("streams", [(), ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",)], ids=["legacy", "per_thread"])
def test_prototypes_are_the_toolkits(streams):
    home = toolkit("include/cuda.h", "include/cuda_runtime_api.h")
    done = harness.run(["g++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", *streams,
                        "-isystem", home / "include", HERE / "abi_check.cc"])
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def nvcc(tmp_path_factory):
    home = toolkit("bin/nvcc")
    folder = tmp_path_factory.mktemp("nvcc")

    def build(source, cudart):
        program = folder / f"{source.stem}_{cudart}"
        done = harness.run([home / "bin" / "nvcc", "-g", "-cudart", cudart, "-o", program, source])
        assert done.returncode == 0, done.stdout + done.stderr
        return program

    return build


@pytest.mark.parametrize("program", ["shared", "static"])
def test_the_real_runtime_binds_to_our_hooks(program, nvcc, tmp_path):
    """
    The real runtime stops at a driver that is not NVIDIA's, but only after it has looked everything up: all of it must
    have passed our cuGetProcAddress.
    """
    program = nvcc(harness.EXAMPLES / "cuda_leak.cu", program)
    driver = tmp_path / "driver"
    driver.mkdir()
    shutil.copy(DOUBLES / "libcuda.so.1", driver)
    libraries = f"{driver}:{CUDA_HOME / 'lib64'}"
    harness.run([program], harness.plain_env(
        LD_PRELOAD=harness.SHIM, KMEMSHIM_OUT=tmp_path / "out", LD_LIBRARY_PATH=libraries,
        KMEMDOUBLE_LEDGER=tmp_path / "ledger", KMEMDOUBLE_GENERIC=1))

    double = Double(tmp_path / "ledger")
    assert double.lookups > 300
    assert double.lookups_by_shim == double.lookups


def test_the_cuda_example_reports_its_line(nvcc, tmp_path):
    """Built by nvcc over the real headers and library, run over the doubles."""
    source = harness.EXAMPLES / "cuda_leak.cu"
    program = nvcc(source, "shared")
    done = harness.run([program], harness.plain_env(
        LD_PRELOAD=harness.SHIM, KMEMSHIM_OUT=tmp_path / "out", LD_LIBRARY_PATH=DOUBLES,
        KMEMDOUBLE_LEDGER=tmp_path / "ledger"))

    assert (done.returncode, done.stdout, done.stderr) == (0, "2000 steps\n", "")
    assert recorded(tmp_path / "out") == Double(tmp_path / "ledger").books
    harness.check_expectations(source, tmp_path / "out")
