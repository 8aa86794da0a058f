"""A line of Python that holds little is one site; one that holds much shows the native ways to its memory. All bytes count."""
import pytest

import harness

pytestmark = pytest.mark.usefixtures("as_users_run_it")

KIB = 1024
LIMIT = 64 * KIB  # or a share of the heap, which is small here
PROGRAM = """\
import ctypes, sys
library, release, count, size = ctypes.PyDLL(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
ways = [library.one_way, library.other_way]
for way in ways:
    way.argtypes, way.restype = [ctypes.c_size_t], ctypes.c_void_p
back = getattr(library, release) if release != "keep" else None
if back:
    back.argtypes = [ctypes.c_void_p]

def ask(number):
    return ways[number % 2](size)

for number in range(count):
    block = ask(number)
    if back:
        back(block)
"""
LINE = 11


@pytest.fixture
def sites_of(programs, tmp_path, out):
    """Runs the program; the sites of the line that asks, each with its native functions, and what they add up to."""
    program = tmp_path / "asks.py"
    program.write_text(PROGRAM)
    library = programs("python_only.c", "-shared", "-fPIC")

    def measure(release, count, size, **settings):
        harness.silent(harness.run(["/usr/bin/python3", program, library, release, count, size], harness.shim_env(out, **settings)))
        document = harness.report("sites", out, "--domain", "heap", "--native", "--top", "100000")
        sites = [site for site in document["sites"] if any(frame["line"] == LINE and frame["function"] == "ask"
                                                            for frame in site["frames"])]
        assert sum(site["allocated_count"] for site in sites) == count
        assert sum(site["allocated_bytes"] for site in sites) == count * size
        assert sum(site["live_bytes"] for site in sites) == (count * size if release == "keep" else 0)
        assert document["verify"]["mismatched"] == 0
        assert document["verify"]["checked"] > 0 or "KMEMSHIM_VERIFY" not in settings
        return {next((frame["function"] for frame in site["frames"] if frame["kind"] == "native"), "brief"): site
                for site in sites}

    return measure


@pytest.mark.parametrize("settings", [{}, {"KMEMSHIM_VERIFY": 1}], ids=["plain", "verify"])
def test_what_holds_little_is_one_site(settings, sites_of):
    assert sites_of("keep", 60, KIB, **settings).keys() == {"brief"}


@pytest.mark.parametrize("release", ["give_back", "give_back_elsewhere"])
def test_what_is_given_back_is_not_held(release, sites_of):
    assert sites_of(release, 200, KIB, KMEMSHIM_EXACT_PEAK=1).keys() == {"brief"}


@pytest.mark.parametrize("settings", [{}, {"KMEMSHIM_VERIFY": 1}], ids=["plain", "verify"])
def test_what_holds_much_shows_the_ways(settings, sites_of):
    sites = sites_of("keep", 400, KIB, **settings)

    assert sites.keys() == {"brief", "one_way", "other_way"}
    assert LIMIT / 2 < sites["brief"]["live_bytes"] < LIMIT
    assert sites["one_way"]["live_bytes"] > 150 * KIB


def test_a_large_request_shows_its_way(sites_of):
    assert sites_of("give_back", 2, LIMIT).keys() == {"one_way", "other_way"}


@pytest.mark.parametrize("native", ["to-python", "all"])
def test_a_setting_keeps_all_ways_apart(native, sites_of):
    assert sites_of("keep", 10, KIB, KMEMSHIM_NATIVE=native).keys() == {"one_way", "other_way"}


MANY = """\
import ctypes, sys
library = ctypes.PyDLL(sys.argv[1])
library.numbered_way.argtypes, library.numbered_way.restype = [ctypes.c_size_t, ctypes.c_uint], ctypes.c_void_p

def ask(number, size=1024):
    library.numbered_way(size, number)

for turn in range(2):
    for number in range(8192):
        ask(number)
ask(8191, 1 << 20)
"""
WAYS_MAX = 4096  # EVENT_SITE_NATIVE_PATHS_MAX


@pytest.mark.parametrize("settings", [{}, {"KMEMSHIM_VERIFY": 1}], ids=["plain", "verify"])
def test_a_line_with_thousands_of_ways_keeps_the_first(settings, programs, tmp_path, out):
    program = tmp_path / "many.py"
    program.write_text(MANY)
    library = programs("python_only.c", "-shared", "-fPIC")
    harness.silent(harness.run(["/usr/bin/python3", program, library], harness.shim_env(out, **settings)))
    document = harness.report("sites", out, "--domain", "heap", "--native", "--top", "100000")
    sites = [site for site in document["sites"] if any(frame["function"] == "ask" for frame in site["frames"])]
    whole = [site for site in sites if any(frame["function"] == "numbered_way" for frame in site["frames"])]
    (brief,) = [site for site in sites if not any(frame["kind"] == "native" for frame in site["frames"])]

    # What ctypes asks for is the line's own, too.
    assert WAYS_MAX * 0.9 < len(whole) <= WAYS_MAX + 1
    assert sum(site["live_bytes"] for site in whole + [brief]) >= 2 * 8192 * KIB + 1024 * KIB
    assert brief["live_bytes"] > 8000 * KIB
    assert any(site["live_bytes"] >= 1024 * KIB for site in whole)  # a large request shows its way whatever came before
    assert document["losses"]["lost_native_paths"] == 1
    assert document["verify"]["mismatched"] == 0


def test_requests_that_are_refused_take_no_ways_from_their_line(programs, tmp_path, out):
    program = tmp_path / "refused.py"
    program.write_text(MANY.partition("for turn")[0] + """
for number in range(5000):
    ask(7, 1 << 60)
for number in range(1000):
    ask(number)
""")
    done = harness.run(["/usr/bin/python3", program, programs("python_only.c", "-shared", "-fPIC")], harness.shim_env(out, KMEMSHIM_VERIFY=1))
    assert (done.returncode, done.stderr) == (0, "")
    document = harness.report("sites", out, "--domain", "heap", "--native", "--top", "100000")
    whole = [site for site in document["sites"] if any(frame["function"] == "numbered_way" for frame in site["frames"])]

    assert 900 < len(whole) <= 1001
    assert document["losses"]["lost_native_paths"] == 0


SHRINKS = """\
import ctypes, sys
library = ctypes.PyDLL(sys.argv[1])
for name in "one_way", "give_back_elsewhere":
    getattr(library, name).argtypes = [ctypes.c_size_t if name == "one_way" else ctypes.c_void_p]
library.one_way.restype = ctypes.c_void_p

def ask():
    return library.one_way(1024)

large = bytearray(512 << 20)
for number in range(12000):
    block = ask()
    if number < 9000:
        library.give_back_elsewhere(block)
    else:
        large = None
"""


def test_a_heap_that_shrank_leaves_a_line_less_room(programs, tmp_path, out):
    program = tmp_path / "shrinks.py"
    program.write_text(SHRINKS)
    done = harness.run(["/usr/bin/python3", program, programs("python_only.c", "-shared", "-fPIC")], harness.shim_env(out, KMEMSHIM_VERIFY=0))
    assert (done.returncode, done.stderr) == (0, "")
    document = harness.report("sites", out, "--domain", "heap", "--native", "--top", "100000")
    sites = [site for site in document["sites"] if any(frame["function"] == "ask" for frame in site["frames"])]
    brief = [site["live_bytes"] for site in sites if not any(frame["kind"] == "native" for frame in site["frames"])]

    assert sum(site["live_bytes"] for site in sites) >= 3000 * KIB
    assert sum(brief) < 4 * LIMIT


TWO_LINES = """\
import queue, threading
space = {}
exec(compile("".join(f"def f{i}(n):\\n    return bytearray(n)\\n" for i in range(3000)), "made.py", "exec"), space)
lines = [space[f"f{i}"] for i in range(3000)]
kept = []

def call(which, size):
    for line in which:
        kept.append(line(size))

class Worker(threading.Thread):
    def __init__(self):
        super().__init__(daemon=True)
        self.asked, self.done = queue.SimpleQueue(), queue.SimpleQueue()
        self.start()

    def run(self):
        while True:
            what, *arguments = self.asked.get()
            what(*arguments)
            self.done.put(None)

    def do(self, *asked):
        self.asked.put(asked)
        self.done.get()

first, second = Worker(), Worker()
first.do(call, lines[:2] * 20, 300000)
second.do(kept.clear)  # of what a thread releases it has a record, too: of the whole stacks
call(lines, 700)       # now there are no more records
for _ in range(40):
    second.do(call, lines[:2], 300000)
"""


def test_lines_that_share_the_record_of_their_caller_keep_their_own_whole_stacks(tmp_path, out):
    """The second thread has no record of the lines, and gets none; of their whole stacks it has one each."""
    program = tmp_path / "two_lines.py"
    program.write_text(TWO_LINES)
    done = harness.run(["/usr/bin/python3", program], harness.shim_env(out, KMEMSHIM_SITES_MAX=1000, KMEMSHIM_VERIFY=1))
    document = harness.report("sites", out, "--domain", "heap", "--top", "100000")

    assert (done.returncode, done.stderr) == (0, "")
    own = [site for site in document["sites"] if site["frames"] and "Worker.run" in [frame["function"] for frame in site["frames"]]]
    live = {site["frames"][0]["function"]: site["live_count"] for site in own if site["live_bytes"] > 40 * 300000 / 2}
    assert set(live) == {"f0", "f1"} and 40 < sum(live.values()) < 80  # the rest is their caller's: it stood for both
