"""Threads of real interpreters under the shim: whose line is it, and what is recorded when Python comes late or goes?

The scene runs once for each interpreter; each test looks for the sizes of its own. Interpreters as interpreters.py has them.
"""
import os
import re
import signal
import subprocess
import sys

import pytest

import interpreters

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "preload"))
import harness  # noqa: E402

pytestmark = pytest.mark.usefixtures("as_users_run_it")

VERSIONS = interpreters.PYENV + ["3.14-debian", "3.15-debian", "system"]
SCENE = os.path.join(HERE, "threads_scene.py")
LINES = {name: number for number, line in enumerate(open(SCENE), 1)
         for name in re.findall(r"# at (\w+)$", line)}
SIZE = {name: int(number) for name, number in re.findall(r'"(\w+)": (30\d\d00)', open(SCENE).read())}


def interpreter_of(version):
    return interpreters.get(version).path


@pytest.fixture(scope="session")
def pool(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pool")
    (folder / "site-packages").mkdir()
    (folder / "site-packages" / "asks_while_imported.py").write_text(
        "import sys\nmain = sys.modules['__main__']\n"
        "for i in range(4):\n    main.kept.append(bytearray(2000)); main.pool.pool_run(main.SIZE['import'])\n")
    path = str(folder / "libpool.so")
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-pthread", "-o", path, os.path.join(HERE, "pool.c")], check=True)
    return path


@pytest.fixture(scope="session")
def embedded(tmp_path_factory):
    return harness.compile_c(os.path.join(HERE, "embedded.c"), str(tmp_path_factory.mktemp("embedded") / "embedded"), "-ldl")


def report_of(out):
    return harness.read_report("sites", out, "--domain", "heap")


@pytest.fixture(scope="session")
def scene(pool, tmp_path_factory):
    """scene(version): the sites of that interpreter's scene."""
    known = {}

    def record(version):
        path = interpreter_of(version)
        if version not in known:
            out = tmp_path_factory.mktemp("scene") / "capture"
            done = harness.record([path, SCENE, pool, "interpreter", "_exit"], out)
            assert done.returncode == 3, done.stderr
            known[version] = report_of(out)["sites"]
        return known[version]

    return record


def of_size(sites, name):
    """Those of that size, with a bytearray's header; several where the same line has several stacks."""
    found = [site for site in sites if site["domain"] == "heap" and site["allocated_count"] != 0 and
             0 <= site["allocated_bytes"] / site["allocated_count"] - SIZE[name] < 90]
    assert found, name
    return found


def count_of(sites):
    return sum(site["allocated_count"] for site in sites)


def line_of(site):
    return harness.place(site), site["where"].get("relation")


def at(name):
    return "threads_scene.py:%d" % LINES[name]


def lines_started_by(site):
    return [frame["line"] for frame in site["frames"] if frame.get("relation") == "started by"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pool_allocates_while_a_line_asks(scene, version):
    for name in ("pool", "second"):
        sites = of_size(scene(version), name)
        assert {line_of(site) for site in sites} == {(at(name), "while")}
        assert count_of(sites) == 3
        assert all(LINES["start"] in lines_started_by(site) for site in sites)
        assert all(site["frames"][0]["kind"] == "native" for site in sites)


@pytest.mark.parametrize("version", VERSIONS)
def test_threads_have_lines_of_their_own(scene, version):
    """With and without the lock, beside others that run Python code all the time."""
    for name in ("thread", "released", "held", "callback"):
        sites = of_size(scene(version), name)
        assert {line_of(site) for site in sites} == {(at(name), None)}, name
        assert count_of(sites) == (2 if name == "callback" else 1)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_subinterpreters_line(scene, version):
    (site,) = of_size(scene(version), "interpreter")
    own = [frame for frame in site["frames"] if frame["kind"] == "python" and "relation" not in frame]
    assert own[0]["line"] == 2 and own[0]["file"].startswith("<"), own


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_pool_does_for_an_import_is_the_imports(scene, version):
    sites = of_size(scene(version), "import")
    assert {line_of(site) for site in sites} == {(at("import"), "while")}
    assert {site["leak"]["class"] for site in sites} == {"import"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_forked_childs_pool(scene, version):
    sites = of_size(scene(version), "child")
    assert {line_of(site) for site in sites} == {(at("child"), "while")}
    assert count_of(sites) == 4
    assert all(LINES["child_start"] in lines_started_by(site) for site in sites)  # through a thread of C11


@pytest.mark.parametrize("version", VERSIONS)
def test_the_state_before_the_teardown_is_kept(pool, out_of, version):
    """Exit functions belong to the program; what finalisers do in the teardown does not count."""
    done = harness.record([interpreter_of(version), SCENE, pool, "daemon"], out_of)
    assert done.returncode == 0 and "Error" not in done.stderr, done.stderr
    document = report_of(out_of)
    sites = document["sites"]
    for name in ("pool", "thread", "callback", "exit"):
        assert sum(site["live_count"] for site in of_size(sites, name)) == count_of(of_size(sites, name)), name
    assert not [site for site in sites if 0 <= site["allocated_bytes"] - SIZE["teardown"] < 90]
    assert document["is_at_python_shutdown"]


@pytest.mark.parametrize("version", ["3.8", "3.12"])
def test_killed_with_daemons(pool, out_of, version):
    done = harness.record([interpreter_of(version), SCENE, pool, "daemon", "kill"], out_of)
    assert done.returncode == -signal.SIGKILL
    assert {line_of(site) for site in of_size(report_of(out_of)["sites"], "pool")} == {(at("pool"), "while")}


@pytest.fixture
def out_of(tmp_path):
    return tmp_path / "capture"


# --- Python for a while -----------------------------------------------------------------------------------------


def python_library(version):
    path = interpreter_of(version)
    prefix = os.path.dirname(os.path.dirname(path))
    library = os.path.join(prefix, "lib", "libpython%s.so.1.0" % version)
    if not os.path.exists(library):
        pytest.skip("this Python %s has no shared library" % version)
    return [library, prefix]


def run_embedded(embedded, out, what, *arguments, **settings):
    done = harness.run([embedded, what, *arguments], harness.shim_env(out, **settings))
    killed = what in ("goes_on", "pool", "closes")
    assert done.returncode == (-signal.SIGKILL if killed else 0), done.stdout + done.stderr
    document = report_of(out)
    assert document["is_at_python_shutdown"] == (what == "ends")
    return [site for site in document["sites"] if site["domain"] == "heap"]


def live_at(sites, function, bytes_each):
    """Blocks of that size alive at that function."""
    return sum(site["live_count"] for site in sites if site["live_count"] != 0 and (site["where"] or {}).get("function") == function
               and site["live_bytes"] == site["live_count"] * bytes_each)


EMBEDDING = ["3.8", "3.11", "3.12", "3.13"]
EMBEDDING_FEW = ["3.8", "3.13"]


@pytest.mark.parametrize("version", EMBEDDING)
@pytest.mark.parametrize("what, alive", [
    ("stays", {("f", 10001): 300}),                            # loaded late, and for itself alone
    ("ends", {("f", 10001): 300, ("keep_native", 8003): 0}),   # judged before the teardown: exit handlers are not going on
    ("again", {("f", 10001): 0, ("again", 30001): 100}),       # a second life
], ids=["stays", "ends", "again"])
def test_an_embedded_interpreter(embedded, out_of, what, alive, version):
    sites = run_embedded(embedded, out_of, what, *python_library(version))
    assert {place: live_at(sites, *place) for place in alive} == alive


@pytest.mark.parametrize("versions", [("3.8", "3.12"), ("3.13", "3.9")])
def test_two_pythons_in_one_process(embedded, out_of, versions):
    sites = run_embedded(embedded, out_of, "two", *python_library(versions[0]), *python_library(versions[1]))
    assert live_at(sites, "f", 10001) == 300
    assert live_at(sites, "g", 20001) == 200


@pytest.mark.parametrize("version", EMBEDDING)
def test_a_program_that_goes_on_is_recorded_again(embedded, out_of, version):
    sites = run_embedded(embedded, out_of, "goes_on", *python_library(version))
    assert live_at(sites, "f", 10001) == 0  # the teardown freed them
    assert live_at(sites, "keep_native", 5003) > 2000 - 220  # all but the MiB that showed that it goes on


@pytest.mark.parametrize("version", EMBEDDING_FEW)
def test_small_objects_are_gone_after_the_teardown(embedded, out_of, version):
    sites = run_embedded(embedded, out_of, "goes_on", *python_library(version), KMEMSHIM_PYTHON_OBJECTS="1")
    made = [site for site in sites if (site["where"] or {}).get("function") == "f"]
    assert sum(site["allocated_count"] for site in made) >= 600  # each bytearray and what it holds
    assert sum(site["live_count"] for site in made) < 10


@pytest.mark.parametrize("version", EMBEDDING_FEW)
def test_a_pool_that_outlives_python_says_who_started_it(embedded, pool, out_of, version):
    sites = run_embedded(embedded, out_of, "pool", *python_library(version), pool)
    (site,) = [site for site in sites if site["live_bytes"] == 5 * 400001]
    assert (site["where"]["line"], site["where"].get("relation")) == (2, "started by")


@pytest.mark.parametrize("version", EMBEDDING_FEW)
def test_a_library_that_is_closed_stays_readable(embedded, out_of, version):
    """What we ask at each event must not be unloaded."""
    sites = run_embedded(embedded, out_of, "closes", *python_library(version))
    assert live_at(sites, "keep_native", 5003) > 2000 - 220


STRANGER = """
#include <stdlib.h>
void *volatile kept;
void EXPORTED(void) { kept = malloc(1000); }
"""


@pytest.mark.parametrize("name, exported, says", [
    ("libpypy3.9-c.so", "rpython_startup_code", "PyPy"),
    ("libpythonvm.so", "graal_create_isolate", "GraalPy"),
])
def test_other_pythons_are_told(out_of, tmp_path, name, exported, says):
    (tmp_path / "stranger.c").write_text(STRANGER)
    (tmp_path / "main.c").write_text("void %s(void);\nint main(void) { %s(); return 0; }\n" % (exported, exported))
    subprocess.run(["gcc", "-shared", "-fPIC", "-DEXPORTED=" + exported, "-o", str(tmp_path / name),
                    str(tmp_path / "stranger.c")], check=True)
    subprocess.run(["gcc", "-w", "-o", str(tmp_path / "main"), str(tmp_path / "main.c"), str(tmp_path / name),
                    "-Wl,-rpath," + str(tmp_path)], check=True)
    assert harness.record([tmp_path / "main"], out_of).returncode == 0
    notes = report_of(out_of)["processes"][0]["notes"]
    assert notes == [says + ": only the frames of CPython are read; stacks are native only"]


def test_an_interpreter_without_symbols_is_told(out_of, tmp_path):
    (tmp_path / "main.c").write_text(
        'static long _PyRuntime[100] __attribute__((section(".PyRuntime"), used));\n'
        "#include <stdlib.h>\nvoid *volatile kept;\nint main(void) { kept = malloc(1000); return 0; }\n")
    subprocess.run(["gcc", "-s", "-o", str(tmp_path / "main"), str(tmp_path / "main.c")], check=True)
    assert harness.record([tmp_path / "main"], out_of).returncode == 0
    notes = report_of(out_of)["processes"][0]["notes"]
    assert notes == ["Python: its symbols are hidden; stacks are native only"]


LIBRARY_SCENE = os.path.join(HERE, "library_threads_scene.py")
LIBRARY_LINES = {name: number for number, line in enumerate(open(LIBRARY_SCENE), 1)
                 for name in re.findall(r"# at ([\w.]+)$", line)}
LIBRARY_SIZES = {name: int(number) for name, number in re.findall(r'"(\w+)": (3\d\d000)', open(LIBRARY_SCENE).read())}


@pytest.fixture(scope="session")
def library_scene(tmp_path_factory):
    """library_scene(version): the sites of that interpreter's scene of threads that run libraries."""
    known = {}

    def record(version):
        path = interpreter_of(version)
        if version not in known:
            out = tmp_path_factory.mktemp("library_scene") / "capture"
            environment = harness.shim_env(out, KMEMSHIM_VERIFY="1")  # what is remembered is compared with a walk
            harness.ok(harness.run([path, LIBRARY_SCENE], environment))
            known[version] = report_of(out)["sites"]
        return known[version]

    return record


def made_by(sites, function, name):
    """The sites at which that function of a library made the strings of that size."""
    found = [site for site in sites if site["domain"] == "heap" and site["allocated_count"] != 0 and
             0 <= site["allocated_bytes"] / site["allocated_count"] - LIBRARY_SIZES[name] < 90 and
             any(frame["kind"] == "python" and frame["function"].endswith(function) for frame in site["frames"])]
    assert found, name
    return found


def python_frames(site):
    return [frame for frame in site["frames"] if frame["kind"] == "python"]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pool_that_runs_a_library_has_the_line_that_waits(library_scene, version):
    """Two lines that use one pool, one after the other, each get their own. The queue is noted from the first thread on, which comes after
    the first item: that one has the line that was last, and behind it stands what made the pool's thread."""
    for name in ("submit", "second", "map", "threadpool", "asyncio"):
        sites = made_by(library_scene(version), "raw_decode", name)
        assert {(site["where"]["line"], site["where"].get("relation")) for site in sites} == \
            {(LIBRARY_LINES[name], "while" if name == "submit" else "started by")}, name
        assert count_of(sites) == (4 if name == "map" else 1)
        for site in sites:
            own = [frame for frame in python_frames(site) if "relation" not in frame]
            assert own[-1]["function"].endswith("_bootstrap") and not any(frame["file"] == LIBRARY_SCENE for frame in own)
            assert lines_started_by(site), name


@pytest.mark.parametrize("version", VERSIONS)
def test_lines_that_do_not_wait_for_a_pool_each_have_what_they_submitted(library_scene, version):
    """An executor's items, those of a ThreadPool, which go through two queues, and those of asyncio."""
    to_thread = "to_thread_3.8" if version == "3.8" else "to_thread"
    for name, line, count in (("early", "early", 20), ("late", "late", 30), ("handed", "handed", 10), ("spread", "spread", 8),
                              ("to_thread", to_thread, 1)):
        sites = made_by(library_scene(version), "raw_decode", name)
        assert {(site["where"]["line"], site["where"].get("relation")) for site in sites} == \
            {(LIBRARY_LINES[line], "started by")}, name
        assert count_of(sites) == count, name


@pytest.mark.parametrize("version", VERSIONS)
def test_a_thread_of_ours_that_runs_a_library_has_the_line_that_started_it(library_scene, version):
    (site,) = made_by(library_scene(version), "raw_decode", "thread")
    assert (site["where"]["line"], site["where"]["relation"]) == (LIBRARY_LINES["thread"], "started by")
    assert "while" not in {frame.get("relation") for frame in site["frames"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_librarys_callback_has_the_line_whose_work_is_done(library_scene, version):
    for site in made_by(library_scene(version), "escape", "callback"):
        assert (site["where"]["line"], site["where"].get("relation")) == (LIBRARY_LINES["callback"], "started by")


ITEMS = """
import concurrent.futures, json, os, threading
kept = []
def work(count, size):
    pool = concurrent.futures.ThreadPoolExecutor(1)
    gate = threading.Event()
    pool.submit(gate.wait)
    text = '["' + "z" * size + '"]'
    first = [pool.submit(json.loads, text) for _ in range(count)]  # first
    second = [pool.submit(json.loads, text) for _ in range(count)]  # second
    gate.set()
    kept.extend(future.result() for future in first + second)
"""
ITEM_LINES = {name: number for number, line in enumerate(ITEMS.splitlines(), 1) for name in re.findall(r"# (\w+)$", line)}


def items_by_line(out, tmp_path, end, size, version="system"):
    """{(line, relation): texts of that size that are kept} of a program that ends in this way."""
    program = tmp_path / "items.py"
    program.write_text(ITEMS + end)
    harness.silent(harness.run([interpreter_of(version), "-W", "ignore", program], harness.shim_env(out)))
    counts = {}
    for capture in sorted(out.glob("*.kmem")):
        for site in harness.report("sites", capture)["sites"]:
            if site["domain"] == "heap" and any(frame["function"].endswith("raw_decode") for frame in python_frames(site)):
                key = (site["where"]["line"], site["where"].get("relation"))
                counts[key] = counts.get(key, 0) + site["live_bytes"] // size
    return counts


@pytest.mark.parametrize("version", ["system", "3.13t", "3.14t"])
def test_a_forked_child_knows_its_own_work_items(tmp_path, version):
    """And nothing of its parent's: what it numbers lines by is its own."""
    counts = items_by_line(tmp_path / "out", tmp_path, """
work(3, 5000)
child = os.fork()
if child == 0:
    kept.clear()
    work(40, 5000)
    os._exit(0)
os.waitpid(child, 0)
kept.clear()
""", 5000, version)
    for name in ("first", "second"):
        assert 40 <= counts[ITEM_LINES[name], "started by"] <= 46, counts


def test_more_work_items_than_there_is_room_for(tmp_path):
    """16,384 wait at a time: of 30,000 the others have the line that the program was at last."""
    counts = items_by_line(tmp_path / "out", tmp_path, "work(15000, 600)\nos._exit(0)\n", 600)
    assert counts[ITEM_LINES["second"], "started by"] >= 9000, counts
    assert sum(counts.values()) >= 30000 and all(line >= 5 for line, _ in counts), counts


@pytest.mark.parametrize("version", VERSIONS)
def test_a_pools_own_line_of_ours_stays(library_scene, version):
    (site,) = made_by(library_scene(version), "raw_decode", "own")
    assert (site["where"]["line"], site["where"].get("relation")) == (LIBRARY_LINES["own"], None)
    assert not any("relation" in frame for frame in site["frames"])
