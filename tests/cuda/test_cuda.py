"""
Device memory, reached every way there is, over our own driver double. What the shim has recorded must be what the double
says it gave out, byte for byte, however the program ends.
"""
import collections
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
INTERPOSER = DOUBLES / "libinterposer.so"

# include/kmem_format.h: the domain table, one row of 128 bytes per domain, starts with two peak words (48 bits each); a site
# with two peak words, four counters, and has its domain in its byte 62; a directory entry with its chunk's section, 1 for
# sites. double_ledger.h: six counters per row; rows 0 to 2 stand for 56 to 58.
DOMAINS_OFFSET, DOMAIN_BYTES = 53248, 128
DIRECTORY_OFFSET, CHUNKS_MAX = 69632, 8192
CHUNKS_OFFSET, CHUNK_BYTES = 135168, 65536
SITES, SITE_BYTES = 1, 64
MANAGED, PINNED, DEVICE_ROWS = 6, 5, range(8, 16)
REGISTERED, IMPORTED, GRAPH = 56, 57, 58
BITS_48 = (1 << 48) - 1
Books = collections.namedtuple("Books", "allocated_bytes freed_bytes allocated_count freed_count peak_bytes")

DRIVER_ROUTES = ["linked", "dlsym", "asked", "asked_old_form", "asked_newer"]
RUNTIME_ROUTES = ["runtime_shared", "runtime_static", "plugin"]
ROUTES = DRIVER_ROUTES + RUNTIME_ROUTES
# ctypes; cudaGetDriverEntryPoint; another library in front of the runtime, or of the driver, before us or behind us (there the
# driver's functions are called by their address).
SPECIAL_ROUTES = ["ctypes", "entry_point", "runtime_behind", "runtime_before", "plugin_behind", "plugin_before", "linked_before"]
ONE_THREAD = ["leak", "zero", "pinned", "devices", "async", "pool", "arrays", "registered", "reset", "reset_one", "imports",
              "imports_reset", "graphs", "forked"]
DRIVERS_ALONE = ["physical", "reset_physical", "contexts", "primary", "imported_handles", "no_context", "graph_nodes_old", "green"]
# What each workload is run over. asked_newer gets newer forms of cuCtxCreate and cuGraphAddNode than the workload calls.
MATRIX = [
    *((route, workload, "exit") for workload in [*ONE_THREAD, "recorded", "graph_nodes"] for route in ROUTES),
    *((route, workload, "exit") for workload in DRIVERS_ALONE for route in DRIVER_ROUTES
      if (route, workload) not in (("asked_newer", "contexts"), ("asked_newer", "graph_nodes_old"))),
    *((route, "solid", "exit") for route in RUNTIME_ROUTES),
    *((route, "leak", ending) for route in SPECIAL_ROUTES for ending in ("exit", "kill")),
    ("ctypes", "imports", "exit"), ("entry_point", "physical", "exit"),
    *((route, "leak", "kill") for route in ROUTES),
    *(("linked", workload, ending) for workload in [*ONE_THREAD, *DRIVERS_ALONE] if workload != "leak" for ending in ("kill", "_exit")),
]


class Double:
    """The ledger of one run."""

    def __init__(self, path):
        words = struct.unpack("<101Q", path.read_bytes())
        rows = [words[6 * row:6 * row + 6] for row in range(16)]
        self.books = {row + REGISTERED if row < 3 else row: Books(*words[:5]) for row, words in enumerate(rows) if any(words)}
        self.refused_count = sum(words[5] for words in rows)
        self.lookups, self.lookups_by_shim, self.reused_addrs, self.inner_bytes, self.questions = words[96:]


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
    for row in (PINNED, MANAGED, *DEVICE_ROWS, REGISTERED, IMPORTED, GRAPH):
        mark = struct.unpack_from("<2Q", data, DOMAINS_OFFSET + DOMAIN_BYTES * row)[1] & BITS_48
        if row in sums or mark:
            allocated_bytes, freed_bytes, *counts = sums[row]
            books[row] = Books(allocated_bytes, freed_bytes, *counts, max(allocated_bytes - freed_bytes, mark))
    return books


def run_under_shim(tmp_path, route, *words, libraries=DOUBLES, preload=harness.SHIM, **more):
    program = [PROGRAMS / route]
    if route.startswith("plugin"):
        more.update(PLUGIN_FILE=PROGRAMS / "plugin_user13.so")
    if route in ("asked_old_form", "asked_newer"):
        program = [PROGRAMS / "asked"]
        more.update({"ASK_OLD_FORM": 1} if route == "asked_old_form" else {"ASK_VERSION": 99000})
    elif route == "ctypes":
        program = [sys.executable, "-S", HERE / "route_ctypes.py", PROGRAMS / "workload.so"]
    elif route.endswith(("_behind", "_before")):
        program = [PROGRAMS / {"runtime": "runtime_shared"}.get(route[:-7], route[:-7])]
        preload = ":".join(map(str, [harness.SHIM, INTERPOSER] if route.endswith("behind") else [INTERPOSER, harness.SHIM]))
    env = harness.shim_env(tmp_path / "out", LD_PRELOAD=preload, LD_LIBRARY_PATH=libraries, KMEMDOUBLE_LEDGER=tmp_path / "ledger", **more)
    done = harness.run([*program, *words], env)
    if preload != harness.SHIM and "interposer" in str(preload) and done.returncode >= 0:
        assert int(done.stdout) >= 100  # the other library was called, too
        done.stdout = ""
    return done


def check_run(done, status=0):
    assert (done.returncode, done.stdout, done.stderr) == (status, "", "")


def line_of(text):
    lines = (HERE / "workload.c").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def without_peaks(books):
    return {row: book._replace(peak_bytes=0) for row, book in books.items()}


@pytest.mark.parametrize("route,workload,ending", MATRIX)
def test_books_are_the_ledger(route, workload, ending, tmp_path):
    """Every way to reach CUDA, every kind of memory, every end."""
    done = run_under_shim(tmp_path, route, workload, ending, KMEMDOUBLE_DEVICES=2)

    check_run(done, -signal.SIGKILL if ending == "kill" else 0)
    double = Double(tmp_path / "ledger")
    assert double.books and recorded(tmp_path / "out") == double.books


@pytest.mark.parametrize("route", DRIVER_ROUTES)
def test_physical_memory_of_several_threads(route, tmp_path):
    """Handles that come back as numbers while their memory is still mapped."""
    check_run(run_under_shim(tmp_path, route, "physical_threads"))

    assert without_peaks(recorded(tmp_path / "out")) == without_peaks(Double(tmp_path / "ledger").books)


@pytest.mark.parametrize("route, more", [("linked", {}), ("runtime_shared", {}), ("runtime_shared", {"KMEMDOUBLE_HIDDEN_DRIVER": 1})],
                         ids=str)
def test_threads_that_open_what_others_close(route, more, tmp_path):
    check_run(run_under_shim(tmp_path, route, "imports_threads", **more))

    assert without_peaks(recorded(tmp_path / "out")) == without_peaks(Double(tmp_path / "ledger").books)


@pytest.mark.parametrize("route, workload, nth, call", [
    ("linked", "physical", 3, "release_handle(handle)"), ("linked", "imports", 2, "close_shared(addr)"),
    ("runtime_shared", "imports", 2, "close_shared(addr)")])
def test_a_handle_that_could_not_be_released_is_alive(route, workload, nth, call, tmp_path):
    done = run_under_shim(tmp_path, route, workload, KMEMDOUBLE_FAIL_FREE_NTH=nth)
    assert done.returncode == 2 and done.stderr.endswith(f"api->{call} = 700\n")

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
    failed = document["refused_requests"]
    assert len(failed) == min(double.refused_count, 16)
    for request in failed:
        assert (request["domain"], request["bytes"], request["error"]) == ("cuda:0", 1000000, 2)
        # The static double is code of the program, with its lines.
        assert request["where"]["function"] in ("failing", "cudaMalloc" if route == "runtime_static" else "")


@pytest.mark.parametrize("route, more", [("linked", {}), ("asked", {}), ("runtime_shared", {}),
                                         ("runtime_shared", {"KMEMDOUBLE_HIDDEN_DRIVER": 1})], ids=str)
def test_a_pool_that_refuses_is_its_devices(route, more, tmp_path):
    """Made by the program, or the device's own. Where only the runtime is seen it is the device's own alone that is known."""
    check_run(run_under_shim(tmp_path, route, "pools_refuse", KMEMDOUBLE_DEVICES=2, **more))

    failed = [request for request in harness.report("sites", tmp_path / "out")["refused_requests"] if request["domain"].startswith("cuda")]
    assert [request["bytes"] >> 45 for request in failed] == [1, 2, 3, 4, 5, 6, 7, 8]
    domains = [request["domain"] for request in failed]
    if more:
        assert domains == ["cuda:0"] * 5 + ["cuda:1", "cuda:0", "cuda:0"]
    else:
        assert domains == ["cuda:1", "cuda:0", "cuda/pinned", "cuda/managed", "cuda:0", "cuda:1", "cuda:0", "cuda:1"]
    for request in failed: # the driver speaks of the current device only
        assert ("total_bytes" in request and request["total_bytes"] is not None) == (request["domain"] in ("cuda:0", "cuda/managed"))


@pytest.mark.parametrize("route", ["linked", "asked"])
def test_a_stream_that_is_refused_is_its_devices(route, tmp_path):
    """Not the current one's, of which the driver would speak; and that one is the current one afterwards."""
    check_run(run_under_shim(tmp_path, route, "streams_refuse", KMEMDOUBLE_DEVICES=2, KMEMDOUBLE_OTHERS=1 << 20))

    document = harness.report("sites", tmp_path / "out")
    failed = document["refused_requests"]
    assert document["totals"]["cuda:0"]["live_bytes"] == Double(tmp_path / "ledger").books[8].allocated_bytes == 1000
    assert [(request["bytes"] >> 45, request["domain"]) for request in failed] == [(1, "cuda:1"), (2, "cuda:1"), (3, "cuda:1"), (4, "cuda:0")]
    assert all(request["total_bytes"] for request in failed)


@pytest.mark.parametrize("route", ["runtime_shared", "runtime_static", "plugin"])
def test_a_driver_before_cuda_12(route, tmp_path):
    """Without cuGetProcAddress_v2 the runtime asks dlsym for every exported name."""
    check_run(run_under_shim(tmp_path, route, "async", libraries=f"{DRIVER_11}:{DOUBLES}"))

    double = Double(tmp_path / "ledger")
    assert double.lookups == 0
    assert recorded(tmp_path / "out") == double.books


@pytest.mark.parametrize("workload", [*ONE_THREAD, "solid"])
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


@pytest.mark.parametrize("route", ["linked", "runtime_shared"])
def test_our_own_functions_are_in_no_stack(route, tmp_path):
    """The driver has bookkeeping in the heap: malloc is called inside our hooks."""
    check_run(run_under_shim(tmp_path, route, "leak"))

    modules = set()
    for site in harness.report("sites", tmp_path / "out")["sites"]:
        functions = [frame["function"] for frame in site["frames"]]
        if site["domain"] == "heap" and "leak" in functions:
            modules.update(frame["module"] for frame in site["frames"][:functions.index("leak")])
    assert modules - {"libcudart.so.13", "libc.so.6", "ld-linux-x86-64.so.2"} == {"libcuda.so.1"}


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


def test_what_is_not_the_devices_is_shown_apart(tmp_path):
    """Others' memory and that of graphs: named, by their lines, and in no figure of the device."""
    def totals_of(workload):
        check_run(run_under_shim(tmp_path / workload, "linked", workload))
        totals = harness.report("sites", tmp_path / workload / "out", "--domain", "cuda")["totals"]
        return {name: total["live_bytes"] for name, total in totals.items() if name.startswith("cuda")}

    (tmp_path / "imports").mkdir()
    (tmp_path / "graphs").mkdir()
    assert totals_of("imports") == {"cuda/imported": (3 << 20) + (2 << 20) + 123456, "cuda:0": 1000}
    assert totals_of("graphs") == {"cuda/graph": 9000, "cuda:0": 16000}
    lines = harness.report("sites", tmp_path / "imports" / "out", "--domain", "cuda/imported")["lines"]
    assert {line["where"]["function"] for line in lines} == {"workload_imports"}


def test_a_plugin_that_goes_past_us_is_told_of(tmp_path):
    """RTLD_DEEPBIND: the plugin's calls are bound to its own libraries. Nothing is recorded, and the report says why."""
    check_run(run_under_shim(tmp_path, "plugin", "leak", PLUGIN_DEEPBIND=1))

    assert Double(tmp_path / "ledger").books and recorded(tmp_path / "out") == {}
    notes = harness.report("sites", tmp_path / "out")["processes"][0]["notes"]
    assert [note for note in notes if "RTLD_DEEPBIND" in note]


def test_a_plugin_that_does_not_is_not_told_of(tmp_path):
    check_run(run_under_shim(tmp_path, "plugin", "leak"))
    check_run(run_under_shim(tmp_path, "plugin", "leak", KMEMDOUBLE_HIDDEN_DRIVER=1))

    for capture in (tmp_path / "out").glob("*.kmem"):
        assert harness.report("sites", capture)["processes"][0]["notes"] == []


def test_late_destructors_are_told_that_cuda_is_gone(tmp_path):
    """Releases that answer "deinitialized" took the memory with them."""
    check_run(run_under_shim(tmp_path, "linked", "failing", KMEMDOUBLE_UNLOADING=3))

    double = Double(tmp_path / "ledger")
    assert double.books[8].freed_count == 21 and recorded(tmp_path / "out") == double.books


def test_a_driver_that_comes_late(tmp_path):
    """Calls before there is a driver fail as without one, those after it work and are recorded; odd lookups are the driver's affair."""
    env = {"LD_LIBRARY_PATH": DOUBLES, "KMEMDOUBLE_LEDGER": tmp_path / "ledger"}
    plain = harness.run([PROGRAMS / "late"], harness.plain_env(**env))
    done = harness.run([PROGRAMS / "late"], harness.shim_env(tmp_path / "out", **env))

    assert plain.returncode == 0 and plain.stdout.count("\n") == 1
    assert (done.returncode, done.stdout, done.stderr) == (0, "100 3\n0\n" + plain.stdout, "")
    assert recorded(tmp_path / "out")[8].allocated_bytes == 100000


@pytest.mark.parametrize("driver", [{}, {"KMEMDOUBLE_CARELESS": 1}, {"KMEMDOUBLE_RESULT": 12345}, {"KMEMDOUBLE_RESULT": -7}],
                         ids=["strict", "careless", "unknown_error", "negative_error"])
def test_senseless_requests_are_passed_on_as_they_are(driver, tmp_path):
    """No place for an answer, sizes that overflow, results that nobody knows: what the driver says is what the program sees."""
    plain = run_under_shim(tmp_path, "linked", "senseless", preload="", **driver)
    (tmp_path / "ledger").unlink()
    done = run_under_shim(tmp_path, "linked", "senseless", **driver)

    assert plain.returncode == 0 and plain.stdout
    assert (done.returncode, done.stdout, done.stderr) == (0, plain.stdout, "")
    ours, double = recorded(tmp_path / "out"), Double(tmp_path / "ledger")
    assert {row: book.allocated_bytes for row, book in ours.items()} == {
        row: book.allocated_bytes for row, book in double.books.items() if book.allocated_bytes}
    assert harness.report("sites", tmp_path / "out")["losses"]["lost_events"] == (3 if "KMEMDOUBLE_CARELESS" in driver else 0)


def test_a_newer_form_of_a_function_is_left_alone_and_told_of(tmp_path):
    check_run(run_under_shim(tmp_path, "asked_newer", "leak", KMEMDOUBLE_NEWER=1))

    assert Double(tmp_path / "ledger").books[8].allocated_count == 100
    assert recorded(tmp_path / "out") == {}
    notes = harness.report("sites", tmp_path / "out")["processes"][0]["notes"]
    assert [note for note in notes if "newer form of cuMemAlloc" in note]


@pytest.mark.parametrize("route, workload", [
    *(("linked", workload) for workload in ["pool", "recorded", "reset", "primary", "contexts", "imports", "green", "failing"]),
    *(("runtime_shared", workload) for workload in ["reset", "imports"])])
def test_nothing_is_asked_when_nothing_is_recorded(route, workload, tmp_path):
    """A program of our command's name is not recorded."""
    more = {"KMEMDOUBLE_QUESTIONS": 1, "KMEMDOUBLE_DEVICES": 2, "KMEMDOUBLE_CAPACITY": 10500000}
    check_run(run_under_shim(tmp_path, route, workload, **more))
    assert Double(tmp_path / "ledger").questions > 0

    (tmp_path / "ledger").unlink()
    shutil.copy(PROGRAMS / route, tmp_path / "kmemshim")
    check_run(run_under_shim(tmp_path, str(tmp_path / "kmemshim"), workload, **more))
    double = Double(tmp_path / "ledger")
    assert double.books and double.questions == 0


def test_the_end_of_green_contexts_is_cheap(tmp_path):
    """Of devices where nothing was given out nobody asks, and nobody goes through all blocks for them."""
    check_run(run_under_shim(tmp_path, "linked", "green_often", KMEMDOUBLE_QUESTIONS=1, KMEMDOUBLE_DEVICES=2))
    double = Double(tmp_path / "ledger")
    assert recorded(tmp_path / "out") == double.books
    assert 50 <= double.questions < 100  # is there still a primary context on the first device?


def test_contexts_without_a_place_are_told_of(tmp_path):
    check_run(run_under_shim(tmp_path, "linked", "contexts_many"))
    document = harness.report("sites", tmp_path / "out")
    assert document["losses"]["lost_contexts"] == 70 - 64
    assert document["totals"]["cuda:0"]["live_bytes"] == 6000 and Double(tmp_path / "ledger").books[8].freed_bytes == 70000
    assert "contexts beyond the 64" in harness.unwrapped(harness.kmemshim("report", tmp_path / "out").stdout)


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
    assert plain == {"next": "2", "invented": "0", "error_says_name": "1", "explicit": "2", "own_driver": "42", "own_runtime": "52",
                     "missing_cu": "0", "missing_empty": "0", "default": "1", "puts": "1", "errno": "77"}
    watched = lines(LD_PRELOAD=harness.SHIM, KMEMSHIM_OUT=tmp_path / "out")
    assert watched == plain | {"weak_runtime": "100", "weak_driver": "3"}
