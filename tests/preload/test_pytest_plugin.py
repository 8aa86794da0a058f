"""pytest --kmemshim: is each test measured, are limits judged as people know them, and does the text say which line it was?"""
import json
import os
import re
import signal
import xml.etree.ElementTree

import pytest

from harness import BUILD, ROOT, ok, plain_env, run, venv

PACKAGE = ROOT / "python"

HEAD = """
import ctypes, pytest, threading
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
kept = []
def work(size):
    return bytearray(size)
def lose(size):
    libc.malloc(size)
"""


def pytest_of(folder, *words, python="/usr/bin/python3", module=None, **environment):
    paths = [str(PACKAGE)] + ([str(module)] if module else [])
    return run([python, "-m", "pytest", "-p", "kmemshim.pytest_plugin", "-p", "no:memray", "-p", "no:hypothesispytest", *words],
               plain_env(PYTHONPATH=os.pathsep.join(paths), KMEMSHIM_COMMAND=BUILD / "kmemshim", **environment), cwd=folder)


def outcomes(done):
    """Of each test by its name, from -rA. pytest-memray has a word of its own for limits."""
    found = re.findall(r"^(PASSED|FAILED|ERROR|XFAIL|XPASS|SKIPPED|MEMORY PROBLEMS) (\S+::\S+)", done.stdout, re.M)
    return {name.split("::")[-1]: what.replace("MEMORY PROBLEMS", "FAILED") for what, name in found}


@pytest.fixture
def tests(tmp_path):
    def write(text, name="test_it.py"):
        (tmp_path / name).write_text(HEAD + text)
        return tmp_path
    return write


LIMITS = """
@pytest.mark.limit_memory("2KB")
@pytest.mark.parametrize("size", [5120, 2048, 2047, 1024])
def test_small(size):
    libc.free(libc.malloc(size))

@pytest.mark.limit_memory("24 MB")
def test_over():
    work(30 << 20)

@pytest.mark.limit_memory("24 mb")
def test_under():
    work(20 << 20)

@pytest.fixture
def large():
    return work(50 << 20)

@pytest.mark.limit_memory("24 MB")
def test_a_fixture_is_not_the_test(large):
    work(20 << 20)

@pytest.mark.limit_memory("1 KB")
def test_that_fails_by_itself():
    work(1 << 20)
    assert 1 == 2

@pytest.mark.xfail
@pytest.mark.limit_memory("1 KB")
def test_that_is_expected_to_fail():
    work(1 << 20)
    assert 1 == 2

@pytest.mark.limit_memory("1 KB")
def test_that_skips():
    work(1 << 20)
    pytest.skip("not here")

@pytest.mark.limit_leaks("10 KB")
@pytest.mark.parametrize("size", [10239, 10240])
def test_one_stack(size):
    lose(size)

@pytest.mark.limit_leaks("10 KB")
def test_each_stack_by_itself():
    lose(6000)
    lose(6000)

@pytest.mark.limit_leaks("10 KB")
def test_a_loop_is_one_stack():
    for _ in range(2):
        lose(6000)

@pytest.mark.limit_leaks("10 KB", filter_fn=lambda stack: not any(frame.function == "lose" and frame.filename.endswith("test_it.py") for frame in stack.frames))
def test_filtered():
    lose(20000)

@pytest.mark.limit_leaks("10 KB", filter_fn=lambda stack: True)
def test_not_filtered():
    lose(20000)

@pytest.mark.limit_leaks("1 MB")
def test_what_comes_and_goes_is_no_leak():
    for _ in range(50):
        work(2 << 20)

cache = {}
@pytest.mark.limit_leaks("1 MB", warmups=1)
def test_a_cache_that_a_round_has_filled():
    if "all" not in cache:
        cache["all"] = work(5 << 20)

@pytest.mark.limit_leaks("1 MB")
def test_a_thread_leaks():
    thread = threading.Thread(target=lambda: [kept.append(work(20000)) for _ in range(100)])
    thread.start()
    thread.join()
"""
EXPECTED = {
    "test_small[5120]": "FAILED", "test_small[2048]": "FAILED", "test_small[2047]": "PASSED", "test_small[1024]": "PASSED",
    "test_over": "FAILED", "test_under": "PASSED", "test_a_fixture_is_not_the_test": "PASSED", "test_that_fails_by_itself": "FAILED",
    "test_that_is_expected_to_fail": "XFAIL",
    "test_one_stack[10239]": "PASSED", "test_one_stack[10240]": "FAILED", "test_each_stack_by_itself": "PASSED",
    "test_a_loop_is_one_stack": "FAILED", "test_filtered": "PASSED", "test_not_filtered": "FAILED",
    "test_what_comes_and_goes_is_no_leak": "PASSED", "test_a_cache_that_a_round_has_filled": "PASSED", "test_a_thread_leaks": "FAILED",
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """(what pytest said of LIMITS, its JUnit file)"""
    folder = tmp_path_factory.mktemp("judged")
    (folder / "test_it.py").write_text(HEAD + LIMITS)
    return pytest_of(folder, "--kmemshim", "-rA", "-q", "--junit-xml", "out.xml"), folder / "out.xml"


def test_limits_are_judged_as_documented(judged):
    done, _ = judged
    assert done.returncode == 1, done.stdout + done.stderr
    assert outcomes(done) == EXPECTED, done.stdout
    assert "limit_memory('24 MB'): the test held 30.0 MiB at its peak; less than 24.0 MiB is allowed." in done.stdout
    assert re.search(r"30\.0 MiB .*test_it\.py:9 work  return bytearray\(size\)\n +at test_it\.py:9 work\n +at test_it\.py:\d+ test_over\n",
                     done.stdout), done.stdout
    assert re.search(r"1 call stack kept 10\.0 KiB or more; less is allowed\.\nKept:\n +11\.7 KiB .*test_it\.py:11 lose", done.stdout), done.stdout
    assert done.stdout.count("limit_memory('") == 3 and "1 == 2" in done.stdout  # a test that fails by itself is not judged


LEAKY = """
#include <Python.h>
#include <stdlib.h>
static void *volatile latest;
static PyObject *
leak(PyObject *self, PyObject *number)
{
	latest = malloc(PyLong_AsSize_t(number));
	Py_RETURN_NONE;
}
static PyMethodDef methods[] = { { "leak", leak, METH_O, "" }, { 0 } };
static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "leaky", 0, -1, methods };
PyMODINIT_FUNC
PyInit_leaky(void)
{
	return PyModule_Create(&module);
}
"""


def test_a_leak_in_a_c_extension_is_found(tests, tmp_path):
    (tmp_path / "leaky.c").write_text(LEAKY)
    include = run(["/usr/bin/python3", "-c", "import sysconfig; print(sysconfig.get_paths()['include'])"]).stdout.strip()
    if not os.path.exists(include + "/Python.h"):
        pytest.skip("Python.h is missing: tools/install-deps")
    ok(run(["gcc", "-O1", "-g", "-shared", "-fPIC", f"-I{include}", tmp_path / "leaky.c", "-o", tmp_path / "leaky.so"]))
    folder = tests("""
import leaky
@pytest.mark.limit_leaks("1 MB")
def test_leaks():
    for i in range(100):
        leaky.leak(20000)
@pytest.mark.limit_leaks("1 MB")
def test_keeps_little():
    for i in range(100):
        leaky.leak(2000)
""")
    done = pytest_of(folder, "--kmemshim", "-rA", "-q", module=tmp_path)
    assert outcomes(done) == {"test_leaks": "FAILED", "test_keeps_little": "PASSED"}, done.stdout + done.stderr
    assert re.search(r"1\.[89] MiB .*leaky\.c:8 leak  latest = malloc\(.*\n +at leaky\.c:8 leak\n +at test_it\.py:\d+ test_leaks\n", done.stdout), done.stdout


PARTS = """
data = work(200 << 20)
@pytest.mark.limit_leaks("5 MB")
def test_keeps():
    for _ in range(60):
        kept.append(bytearray(100_000))
"""


def test_a_call_stack_is_judged_as_a_whole(tests):
    """Its first blocks were booked without native frames: to the report these are two stacks, to a person one."""
    done = pytest_of(tests(PARTS), "--kmemshim", "-rA", "-q")
    assert outcomes(done) == {"test_keeps": "FAILED"} and "1 call stack kept 5.0 MiB or more" in done.stdout and " 5.7 MiB " in done.stdout, done.stdout


SIZES = """
@pytest.mark.parametrize("mib", [3, 30, 20])
def test_of(mib):
    work(mib << 20)
def test_keeps():
    kept.append(work(7 << 20))
@pytest.mark.parametrize("n", range(12))
def test_one(n):
    work(1 << 20)
def test_nothing():
    pass
def test_next_to_nothing():
    pass
"""


def rows(done):
    return re.findall(r"^ +([\d.]+ \w+) +(\S+ \w+)  \S+::(\S+)$", done.stdout, re.M)


def test_the_ten_that_held_most_are_listed(tests):
    folder = tests(SIZES)
    done = pytest_of(folder, "--kmemshim", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    found = rows(done)
    assert len(found) == 10 and "6 more tests: --kmemshim-top 0\n2 other tests held less than 64.0 KiB\n" in done.stdout
    assert found[:4] == [("30.0 MiB", "0 B", "test_of[30]"), ("20.0 MiB", "0 B", "test_of[20]"), ("7.0 MiB", "7.0 MiB", "test_keeps"),
                         ("3.0 MiB", "0 B", "test_of[3]")], done.stdout
    every = pytest_of(folder, "--kmemshim", "-q", "--kmemshim-top", "0")
    assert len(rows(every)) == 18 and "other test" not in every.stdout


SMALL = """
def keep():
    for _ in range(300):
        kept.append([(float(k),) for k in range(2000)])

@pytest.mark.limit_memory("14 MB")
def test_first():
    keep()

@pytest.mark.limit_memory("14 MB")
def test_second():
    keep()

@pytest.mark.limit_leaks("6 MB")
def test_third():
    keep()

def test_comes_and_goes():
    [(float(k),) for k in range(600000)]

@pytest.mark.limit_memory("8 MB")
def test_where_others_were():
    keep()
"""


def test_small_objects_count_wherever_they_lie(tests):
    """
    They fill arenas that were free: after a test that was judged, and after one that held as much. Each test keeps 41 MiB of them, and 4.6
    MiB of lists that are below each limit: the estimate of 165 samples would have to be off by ten times its error to be below one.
    """
    done = pytest_of(tests(SMALL), "--kmemshim", "-rA")
    assert outcomes(done) == {"test_first": "FAILED", "test_second": "FAILED", "test_third": "FAILED", "test_comes_and_goes": "PASSED",
                              "test_where_others_were": "FAILED"}, done.stdout
    assert done.stdout.count("kept.append([(float(k),) for k in range(2000)])") >= 4, done.stdout


@pytest.fixture(scope="module")
def python_with_plugins():
    """A Python with pytest-xdist and pytest-memray from PyPI."""
    return venv("pytest")


@pytest.mark.framework
def test_workers_of_xdist_are_measured(tests, python_with_plugins):
    done = pytest_of(tests(SIZES + LIMITS), "--kmemshim", "-n", "2", "-rA", "-q", python=python_with_plugins)
    found = outcomes(done)
    assert {name: found[name] for name in EXPECTED} == EXPECTED, done.stdout
    assert ("30.0 MiB", "0 B", "test_of[30]") in rows(done) and ("7.0 MiB", "7.0 MiB", "test_keeps") in rows(done), done.stdout


# It does not see what ctypes calls: these are its own allocators.
HEAD_FOR_BOTH = """
import pytest, threading
from memray._test import MemoryAllocator
kept = []
class libc:
    def malloc(size):
        block = MemoryAllocator()
        block.malloc(size)
        return block
    def free(block):
        block.free()
def work(size):
    return bytearray(size)
def lose(size):
    kept.append(libc.malloc(size))
"""


@pytest.mark.framework
def test_pytest_memray_says_the_same_of_the_same_tests(tmp_path, python_with_plugins):
    """Its documented limits; all but the warm-up, which it does not know."""
    text = LIMITS.replace(', warmups=1', '').replace("test_a_cache_that_a_round_has_filled", "test_one_time")
    (tmp_path / "test_it.py").write_text(HEAD_FOR_BOTH + text)
    ours = outcomes(pytest_of(tmp_path, "--kmemshim", "-rA", "-q", python=python_with_plugins))
    done = run([python_with_plugins, "-m", "pytest", "--memray", "-rA", "-q"], plain_env(), cwd=tmp_path)
    theirs = outcomes(done)
    assert set(ours) == set(theirs) and len(ours) == len(EXPECTED), (ours, theirs)
    assert ours == theirs, done.stdout


def test_a_class_of_unittest_and_a_method_are_measured(tests):
    done = pytest_of(tests("""
import unittest
class TestOld(unittest.TestCase):
    @pytest.mark.limit_memory("4 MB")
    def test_over(self):
        work(5 << 20)
    @pytest.mark.limit_memory("8 MB")
    def test_under(self):
        work(5 << 20)
class TestMethods:
    @pytest.mark.limit_memory("4 MB")
    def test_method(self):
        work(5 << 20)
"""), "--kmemshim", "-rA", "-q")
    assert outcomes(done) == {"test_over": "FAILED", "test_under": "PASSED", "test_method": "FAILED"}, done.stdout


def test_junit_has_the_text(judged):
    _, path = judged
    failure = next(case.find("failure") for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase") if case.get("name") == "test_over")
    assert "less than 24.0 MiB is allowed" in failure.text and "test_it.py:9 work" in failure.text


NO_LIMITS = ('limit_memory("24")', 'limit_memory("many MB")', "limit_memory()", 'limit_leaks("1 MB", level=3)', 'limit_memory("-1 MB")')


def test_a_limit_that_is_none_is_an_error_of_its_test(tests):
    text = "".join(f"@pytest.mark.{marker}\ndef test_it_{number}():\n    pass\n" for number, marker in enumerate(NO_LIMITS))
    done = pytest_of(tests(text), "--kmemshim", "-rA", "-q")
    assert outcomes(done) == {f"test_it_{number}": "ERROR" for number in range(len(NO_LIMITS))}, done.stdout
    texts = re.split(r"^_+ ERROR at \w+ of (\w+) _+$", done.stdout.split("== short test summary")[0], flags=re.M)
    assert texts[1::2] == [f"test_it_{number}" for number in range(len(NO_LIMITS))], done.stdout
    assert all("ValueError: kmemshim: " in one for one in texts[2::2]), done.stdout


def test_without_the_option_nothing_is_recorded_and_limits_are_told(tests):
    folder = tests(LIMITS)
    done = pytest_of(folder, "-q", "-k", "test_over or test_under or test_one_stack")
    assert done.returncode == 0 and "limits of memory were not judged in 4 tests: run pytest --kmemshim" in done.stdout, done.stdout
    assert not list(folder.rglob("*.kmem"))


def test_the_option_may_stand_in_the_configuration(tests):
    folder = tests(LIMITS)
    (folder / "pytest.ini").write_text("[pytest]\nkmemshim = true\n")
    assert outcomes(pytest_of(folder, "-rA", "-q", "-k", "test_over")) == {"test_over": "FAILED"}


def test_the_status_and_the_output_are_those_of_pytest(tests):
    folder = tests("import os, sys\ndef test_it():\n    print('said')\n    os.write(2, b'and written')\n    assert sys.stdin is not None\n    assert 0\n")
    plain, ours = pytest_of(folder, "-q"), pytest_of(folder, "--kmemshim", "-q")
    assert (plain.returncode, ours.returncode) == (1, 1)
    assert "said" in ours.stdout and "and written" in ours.stdout and ours.stderr == plain.stderr == ""
    assert pytest_of(folder, "--kmemshim", "-q", "-k", "nothing").returncode == 5


def test_a_conftest_is_imported_once(tests):
    folder = tests("def test_it():\n    pass\n")
    (folder / "conftest.py").write_text("import os\nopen('imported', 'a').write('once\\n')\n")
    assert pytest_of(folder, "--kmemshim", "-q").returncode == 0
    assert (folder / "imported").read_text() == "once\n"


def test_captures_of_runs_that_are_over_are_removed(tests):
    folder = tests("def test_it():\n    pass\n")
    for _ in range(3):
        assert pytest_of(folder, "--kmemshim", "-q").returncode == 0
    assert len(list((folder / ".pytest_cache" / "d" / "kmemshim").iterdir())) == 1


def test_after_a_death_the_capture_says_why(tests):
    folder = tests("import os, signal\ndef test_it():\n    block = work(50 << 20)\n    os.kill(os.getpid(), signal.SIGKILL)\n")
    done = pytest_of(folder, "--kmemshim", "-q")
    assert done.returncode == 128 + signal.SIGKILL
    capture, = (folder / ".pytest_cache" / "d" / "kmemshim").iterdir()
    assert "50.0 MiB" in run([BUILD / "kmemshim", "peak", capture]).stdout


@pytest.mark.parametrize("command, words", [
    (None, "the command kmemshim is not in PATH"), ("/nowhere/kmemshim", "/nowhere/kmemshim cannot be run")])
def test_without_the_command_one_line_says_so(tests, command, words):
    folder = tests("def test_it():\n    pass\n")
    environment = plain_env(PYTHONPATH=PACKAGE, PATH="/usr/bin:/bin", **({"KMEMSHIM_COMMAND": command} if command else {}))
    done = run(["/usr/bin/python3", "-m", "pytest", "-p", "kmemshim.pytest_plugin", "--kmemshim", "-q"], environment, cwd=folder)
    assert done.returncode == 4 and words in done.stderr and "Traceback" not in done.stderr, done.stderr


def test_pytest_that_a_program_calls_is_not_started_again(tests):
    folder = tests("def test_it():\n    pass\n")
    (folder / "runs.py").write_text("import pytest, sys\nprint('started')\nsys.exit(pytest.main(['-q', '-p', 'kmemshim.pytest_plugin', '--kmemshim']))\n")
    environment = plain_env(PYTHONPATH=PACKAGE, KMEMSHIM_COMMAND=BUILD / "kmemshim")
    done = run(["/usr/bin/python3", "runs.py"], environment, cwd=folder)
    assert done.returncode == 4 and done.stdout.count("started") == 1 and "start the program with `kmemshim run`" in done.stderr
    done = run([BUILD / "kmemshim", "run", "--quiet", "--", "/usr/bin/python3", "runs.py"], environment, cwd=folder)
    assert done.returncode == 0 and "1 passed" in done.stdout, done.stdout + done.stderr


def test_the_plugin_is_light_to_import():
    """It is imported in every run of pytest: nothing of ours behind it, and nothing that pytest has not."""
    done = run(["/usr/bin/python3", "-c", "import json, sys; before = set(sys.modules); import kmemshim.pytest_plugin; "
                "print(json.dumps(sorted(set(sys.modules) - before)))"], plain_env(PYTHONPATH=PACKAGE))
    assert json.loads(done.stdout) == ["kmemshim", "kmemshim.pytest_plugin"], done.stdout + done.stderr


def test_the_package_names_it_and_needs_nothing():
    text = (PACKAGE / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\nkmemshim = "kmemshim.pytest_plugin"\n' in text
    assert "\ndependencies" not in text and 'notebook = ["ipython>=7.31"]' in text
