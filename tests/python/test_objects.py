"""Small objects of Python, one by one: KMEMSHIM_PYTHON_OBJECTS=1 against what the interpreter says of its objects.

Every interpreter of this machine, every allocator that PYTHONMALLOC can name. Figures are compared exactly.
"""
import glob
import json
import os
import struct
import subprocess
import sys

import pytest

import interpreters

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "preload"))
import harness  # noqa: E402

pytestmark = pytest.mark.usefixtures("as_users_run_it")

PROGRAM = os.path.join(HERE, "objects_program.py")
VERSIONS = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15", "system"]
ALLOCATORS = ["", "pymalloc", "malloc", "debug", "pymalloc_debug", "malloc_debug", "mimalloc"]


def interpreter_of(version):
    if version.endswith("t"):
        return interpreters.get(version).path
    paths = ["/usr/bin/python3"] if version == "system" else sorted(
        glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python3")))
    paths = [path for path in paths if os.access(path, os.X_OK)]
    return paths[-1] if paths else interpreters.get(f"{version}-debian" if version in ("3.14", "3.15") else version).path


def record(out, version, case, end="kill", objects="1", options=(), most=1000, **environment):
    """Runs a case; what it expects, and the report."""
    python = interpreter_of(version)
    allocator = environment.get("PYTHONMALLOC")
    if allocator == "mimalloc" and subprocess.run([python, "-c", ""], env={"PYTHONMALLOC": "mimalloc"},
                                                  capture_output=True).returncode != 0:
        pytest.skip(f"Python {version} has no mimalloc")
    if objects is not None:
        environment["KMEMSHIM_PYTHON_OBJECTS"] = objects
    done = harness.run([python, *options, PROGRAM, case, end],
                       harness.shim_env(out, PYTHONDONTWRITEBYTECODE="1", **environment))
    assert done.returncode == (-9 if end == "kill" else 0), done.stdout + done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout.splitlines()[-1]), sites(out, most)


def sites(out, most=1000):
    """The report, with all lines and not all call sites."""
    document = harness.read_report("sites", out, "--top", most)
    assert len(document["lines"]) < most
    return document


def of_function(document, function, domain="heap"):
    """Sum of the rows of one function of the program, without what a thread that has no frame yet asked for while others were there."""
    rows = [row for row in document["lines"] if row["where"] and row["domain"] == domain and row["where"].get("relation") != "while" and
            row["where"]["function"].split(".")[-1] == function and row["where"]["module"] == "objects_program.py"]
    return [sum(row["live_count"] for row in rows), sum(row["live_bytes"] for row in rows)]


def check(expected, document, version="3.11", others=0):
    """Exactly, but for `others` small blocks; up to 3.10 a function that ran 1,024 times gets a cache, two blocks of it."""
    assert expected
    has_caches = version in ("3.8", "3.9", "3.10")
    others += 2 * has_caches
    for function, wanted in expected.items():
        found = of_function(document, function)
        assert wanted[0] <= found[0] <= wanted[0] + others, function
        assert wanted[1] <= found[1] <= wanted[1] + (256 if has_caches else 64) * (found[0] - wanted[0]), function
    assert document["losses"]["lost_events"] == 0


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_is_counted_once(out, version, allocator):
    environment = {"PYTHONMALLOC": allocator} if allocator else {}
    expected, document = record(out, version, "ledger", **environment)
    check(expected, document, version)
    dropped = [row for row in document["lines"] if row["where"] and row["where"]["function"] == "dropped"]
    assert 3000 <= sum(row["allocated_count"] for row in dropped) <= 3002  # one or two of what the interpreter makes once
    assert document["losses"]["lost_missed_frees"] == 0


@pytest.mark.parametrize("case", ["realloc", "threads", "fork", "tracemalloc"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_in_special_cases(out, version, case):
    expected, document = record(out, version, case, "exit" if case == "fork" else "kill")
    others = 8 * (case == "tracemalloc")  # its own tables
    check(expected, document, version, others)
    assert document["losses"]["lost_missed_frees"] == 0


@pytest.mark.parametrize("end", ["exit", "_exit"])
@pytest.mark.parametrize("version", VERSIONS)
def test_state_before_teardown_is_kept(out, version, end):
    check(*record(out, version, "ledger", end), version)


@pytest.mark.parametrize("version", VERSIONS)
def test_wrappers_that_were_thrown_out_come_back(out, version):
    expected, document = record(out, version, "thrown_out", options=["-X", "tracemalloc"], most=10000)  # lines: it compiles many
    check(expected, document, version)


THROWN_OUT = """
import ctypes, os, sys, threading, time
if sys.argv[1] == "run":
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
else:
    threads = [threading.Thread(target=bytearray, args=(100,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
python, malloc = ctypes.pythonapi, ctypes.PyDLL(None).malloc
for domain in (1, 2):
    top = (ctypes.c_void_p * 5)()
    python.PyMem_GetAllocator(domain, top)
    python.PyMem_SetAllocator(domain, ctypes.c_void_p(top[0]))  # what ours begins with: the one below
for i in range(3000):
    exec(compile("malloc(5000)", "<%d>" % i, "exec"))
def later():
    return [bytes(100) for _ in range(3000)]
kept = later()
os._exit(0)
"""


@pytest.mark.parametrize("threads", ["run", "ended"])
def test_without_a_lock_the_allocators_are_left_alone_while_threads_run(out, threads):
    """Others read the interpreter's table at any moment: what was thrown out stays out, and the report says so. Threads that ended read nothing."""
    harness.silent(harness.run([interpreter_of("3.13t"), "-c", THROWN_OUT, threads], harness.shim_env(out)))
    document = harness.report("report", out)
    notes = [note for process in document["processes"] for note in process["notes"]]
    later = sum(row["live_count"] for row in sites(out, 100000)["lines"] if row["where"] and row["where"]["function"] == "later")
    if threads == "run":
        assert notes == ["small Python objects are not recorded any more: their allocators were replaced while threads run"]
        assert later < 100
    else:
        assert (notes, later >= 3000) == ([], True)


def test_the_table_of_arenas_that_grows_is_no_missed_free(out):
    """It was allocated before the wrappers came, and is moved by the interpreter's allocator itself."""
    program = "import threading\nkeep = []\ndef work():\n    for i in range(72000): keep.append({i: [i]})\n" \
              "for i in range(4):\n    t = threading.Thread(target=work); t.start(); t.join()\n" \
              "keep += [bytes(n) for n in range(500, 3000) for i in range(4)]\n"
    harness.run([interpreter_of("3.8"), "-c", program], harness.shim_env(out, KMEMSHIM_PYTHON_OBJECTS="1", KMEMSHIM_VERIFY="0"))
    assert harness.report("sites", out, "--top", "1")["losses"]["lost_missed_frees"] == 0


WITHOUT_THE_LOCK = """
import ctypes
libc, thread, block = ctypes.CDLL(None), ctypes.c_ulong(), ctypes.c_void_p()
asks = ctypes.cast(ctypes.pythonapi.PyMem_Malloc, ctypes.c_void_p)
assert libc.pthread_create(ctypes.byref(thread), None, asks, ctypes.c_void_p(100)) == 0
assert libc.pthread_join(thread, ctypes.byref(block)) == 0  # nobody has the lock meanwhile
assert block.value
"""


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.11"])  # later ones do not survive it themselves
def test_a_thread_that_asks_without_the_lock_is_served(out, version):
    """It must not, but native code does, and nothing comes of it."""
    harness.silent(harness.run([interpreter_of(version), "-c", WITHOUT_THE_LOCK], harness.shim_env(out, KMEMSHIM_PYTHON_OBJECTS="1")))


def test_mimalloc_needs_no_option(out):
    expected, document = record(out, "3.13", "ledger", objects=None, PYTHONMALLOC="mimalloc")
    check(expected, document)
    assert document["totals"].get("python/arena", {}).get("live_bytes", 0) == 0


def test_switched_off_means_off(out):
    expected, document = record(out, "3.13", "ledger", objects="0", PYTHONMALLOC="mimalloc")
    assert of_function(document, "slots") == [0, 0]


@pytest.mark.parametrize("version, end", [(version, "_exit") for version in VERSIONS] + [("3.11", "kill"), ("3.13", "exit")])
def test_a_leak_of_small_objects_is_named_with_line_and_type(out, version, end):
    def leak():
        return next((row for row in harness.report("leaks", out, "--top", "50")["lines"] if row["leak"]["class"] == "leak"), {"types": []})

    if end == "kill":  # after the first look at its types
        harness.killed_when(lambda: leak()["types"], [interpreter_of(version), PROGRAM, "leak", "goes on"],
                            harness.shim_env(out, PYTHONDONTWRITEBYTECODE="1", KMEMSHIM_PYTHON_OBJECTS="1"))
    else:
        record(out, version, "leak", end)
    row = leak()
    line = next(number for number, text in enumerate(open(PROGRAM), 1) if text == "    one = Slots()\n")
    assert (row["where"]["module"], row["where"]["line"]) == ("objects_program.py", line)
    assert row["live_count"] == 2000 or (end == "kill" and row["live_count"] > 2000)
    assert [kind["name"] for kind in row["types"]] == ["Slots"]
    assert (0 if end == "kill" else 1900) < row["types"][0]["count"] <= 1.05 * row["live_count"]  # at the last look, for a killed one before its end


FREE_LISTS = """
import os, sys
COUNT = int(sys.argv[1])
LENGTHS = range(1, 21)
def first(i):
    return [i * 1.5, [i], {i: i}, *(tuple([i] * n) for n in LENGTHS)]
def second(i):
    return [i * 1.5, [i], {i: i}, *(tuple([i] * n) for n in LENGTHS)]
def table():
    return {}
assert len([first(i) for i in range(3000)]) == 3000
kept = [second(i) for i in range(3000)]
kept += [table() for i in range(COUNT)]
os._exit(0)
"""


@pytest.mark.parametrize("version, count", [("3.11", 1000000), ("3.8", 3000), ("3.13", 3000), ("3.15", 3000)])
def test_free_lists_move_little_to_another_line(out, tmp_path, version, count):
    """What the first line threw away is used again by others and stays the first one's: so much and no more (docs/limits.md). A real leak is far above."""
    program = tmp_path / "lists.py"
    program.write_text(FREE_LISTS)
    harness.silent(harness.run([interpreter_of(version), program, count], harness.shim_env(out, KMEMSHIM_PYTHON_OBJECTS="1")))
    lines = {name: number + 1 for number, text in enumerate(FREE_LISTS.splitlines(), 1)
             for name in ("first", "second", "table") if text.startswith("def " + name)}
    rows = dict.fromkeys(lines.values(), (0, 0))
    for row in sites(out)["lines"]:
        if row["where"] and row["where"]["module"] == "lists.py" and row["domain"] == "heap" and row["where"]["line"] in rows:
            blocks, size = rows[row["where"]["line"]]
            rows[row["where"]["line"]] = (blocks + row["live_count"], size + row["live_bytes"])
    first, second, table = (rows[lines[name]] for name in ("first", "second", "table"))
    assert 0 < first[0] <= 20 * 2000 + 500 and first[1] <= 5500000, rows
    assert first[0] + second[0] >= 3000 * 23, rows
    assert count - 100 <= table[0] <= count + 100, rows
    if count == 1000000:
        first = harness.report("leaks", out, "--top", "1")["lines"][0]
        assert (first["where"]["function"], first["leak"]["class"]) == ("table", "leak")


STACKS_OF_FRAMES = """
import os, threading
ready = threading.Barrier(9)
def down(depth):
    if depth:
        return down(depth - 1)
    ready.wait()
    threading.Event().wait()
for _ in range(8):
    threading.Thread(target=down, args=(300,), daemon=True).start()
ready.wait()
os._exit(0)
"""


def functions_in_module(capture, path):
    """Those of that module in which words of the file lie: in front of its path stands its struct kmem_module."""
    found = capture.index(path.encode()) - 112
    start, end, bias = struct.unpack_from("<QQQ", capture, found + 16)
    assert struct.unpack_from("<I", capture, found + 76) == (len(path),) and 0 < start < end < 1 << 47
    words = struct.unpack_from(f"<{len(capture) // 8}Q", capture)
    addresses = {word - bias for index, word in enumerate(words) if start < word < end and not found <= index * 8 < found + 112}
    rows = [row.split() for row in harness.run(["nm", "-n", path]).stdout.splitlines()]
    symbols = [(int(row[0], 16), row[2].split(".")[0]) for row in rows if len(row) == 3 and row[1] in "tT"]
    return {next(name for start, name in reversed(symbols) if start < address) for address in addresses}


@pytest.mark.parametrize("version", ["3.11", "3.13"])
def test_no_frame_of_ours_is_in_a_stack(out, version):
    """From 3.11 on frames lie in pieces of 16 KiB that the arenas' allocator maps; the first of a thread before it has a frame."""
    harness.silent(harness.run([interpreter_of(version), "-c", STACKS_OF_FRAMES], harness.shim_env(out)))
    document, (capture,) = harness.report("sites", out, "--top", "100000"), out.iterdir()
    assert sum(row["live_bytes"] for row in document["sites"] if row["domain"] == "mmap") >= 8 * 16384
    # The report leaves frames of ours out, the file does not: around the start of `main`, where code objects die, and none of a hook.
    functions = functions_in_module(capture.read_bytes(), str(harness.SHIM))
    assert {"__libc_start_main", "start_program"} <= functions <= {"__libc_start_main", "start_program", "code_died", "code_of_second_died"}


@pytest.mark.parametrize("version", ["3.8", "3.11", "3.13"])
def test_an_object_that_could_not_be_resized_keeps_its_type(out, version):
    expected, document = record(out, version, "refused", "_exit")
    check(expected, document, version)
    kinds = [kind for row in document["lines"] if row["where"] and row["where"]["function"] == "plain" for kind in row["types"]]
    assert [kind["name"] for kind in kinds] == ["object"]
    assert kinds[0]["count"] >= 2900


@pytest.mark.parametrize("version", VERSIONS)
def test_arenas_are_no_lines_fault(out, version):
    """Where nothing is known of what is in them."""
    _, document = record(out, version, "arenas", objects="0")
    arenas = document["totals"]["python/arena"]["live_bytes"]
    assert 20e6 < arenas < 60e6
    rows = [row for row in document["lines"] if row["domain"] == "python/arena" and row["live_bytes"] != 0 and row["leak"]["class"] != "import"]
    assert [row["where"]["function"] for row in rows] == ["arenas of small Python objects"]
    in_program = sum(row["live_bytes"] for row in document["lines"]
                     if row["where"] and row["where"]["module"] == "objects_program.py" and row["domain"] == "mmap")
    assert in_program < 1 << 20


IMPORTS = """
import asyncio, concurrent.futures, email.mime.text, http.server, json, multiprocessing.managers, pydoc, unittest.mock, xml.dom.minidom
kept = [object() for _ in range(1500000)]
import os, signal
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("version", ["3.8", "3.11", "3.13"])
def test_what_imports_fill_arenas_with_is_left_by_imports(out, version):
    """Importing PyTorch takes a hundred arenas: "it accumulates" was said of every program that uses it."""
    script = os.path.join(out, "script.py")
    os.makedirs(out, exist_ok=True)
    with open(script, "w") as file:
        file.write(IMPORTS)
    done = harness.run([interpreter_of(version), script], harness.shim_env(out, KMEMSHIM_PYTHON_OBJECTS="0"))
    assert (done.returncode, done.stderr) == (-9, "")
    rows = [row for row in sites(out)["lines"] if row["domain"] == "python/arena" and row["live_bytes"] != 0]
    of_imports = [row for row in rows if row["leak"]["class"] == "import"]
    assert sum(row["live_bytes"] for row in of_imports) >= 3 << 20, rows
    assert {row["import"] for row in of_imports} & {"asyncio", "unittest", "multiprocessing", "xml", "email"}, rows
    assert all(row["where"] for row in of_imports), rows
    others = [row for row in rows if row["leak"]["class"] not in ("import", "none")]
    assert [row["where"]["function"] for row in others] == ["arenas of small Python objects"]
    assert 24e6 <= others[0]["live_bytes"] <= 30e6


@pytest.mark.parametrize("version", ["3.8", "3.13"])
def test_an_import_that_nobody_called_is_the_import_systems(out, version):
    """A program that embeds Python imports so: there is no frame but the machinery's while the module is read."""
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "constants.py"), "w") as file:
        file.write(f"MANY = {tuple(f'text {i}' for i in range(100000))}")
    done = harness.run([interpreter_of(version), "-c", IMPORT_FROM_NOWHERE, out], harness.shim_env(os.path.join(out, "captures"), KMEMSHIM_PYTHON_OBJECTS="0"))
    assert (done.returncode, done.stderr) == (-9, "")
    rows = [row for row in sites(os.path.join(out, "captures"))["lines"] if row["domain"] == "python/arena"]
    assert sum(row["live_bytes"] for row in rows if row["where"] and "importlib" in row["where"]["file"]) >= 4 << 20, rows
    assert all(row["where"] for row in rows), rows


IMPORT_FROM_NOWHERE = """
import _thread, os, signal, sys, time
sys.path.insert(0, sys.argv[1])
_thread.start_new_thread(__import__, ("constants",))
while not hasattr(sys.modules.get("constants"), "MANY"):
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("version", VERSIONS)
def test_arenas_are_not_counted_beside_the_objects_in_them(out, version):
    _, document = record(out, version, "arenas")
    assert "python/arena" not in document["totals"]
    assert document["totals"]["reserved"]["live_bytes"] > 20e6
    assert of_function(document, "slots")[0] in (400000, 400002)


KINDS = """
import collections, os, shapes
COUNT = 2000
class Node:
    def __init__(self): self.a = self.b = 1
class Slots:
    __slots__ = ("a", "b")
class Table(dict): pass
class Word(str): pass
class Meta(type): pass
class Made(metaclass=Meta): pass
kept = []
def Node_(): kept.append([Node() for _ in range(COUNT)])
def Slots_(): kept.append([Slots() for _ in range(COUNT)])
def Table_(): kept.append([Table() for _ in range(COUNT)])
def Word_(): kept.append([Word("a") for _ in range(COUNT)])
def Made_(): kept.append([Made() for _ in range(COUNT)])
def shapes__Round_(): kept.append([shapes.Round() for _ in range(COUNT)])
def collections__deque_(): kept.append([collections.deque() for _ in range(COUNT)])
def collections__OrderedDict_(): kept.append([collections.OrderedDict() for _ in range(COUNT)])
def dict_(): kept.append([{} for _ in range(COUNT)])
def list_(): kept.append([[] for _ in range(COUNT)])
def set_(): kept.append([set() for _ in range(COUNT)])
def float_(): kept.append([i * 1.5 for i in range(COUNT)])
def int_(): kept.append([i + 1000000 for i in range(COUNT)])
def str_(): kept.append(["%d" % i for i in range(COUNT, 2 * COUNT)])
def bytes_(): kept.append([bytes(9) for _ in range(COUNT)])
def object_(): kept.append([object() for _ in range(COUNT)])
def function_(): kept.append([lambda: COUNT for _ in range(COUNT)])
made = [value for name, value in list(globals().items()) if name.endswith("_") and not name.startswith("_")]
for make in made: make()
os._exit(0)
"""


WITH_LOCK = [(version, allocator) for version in VERSIONS for allocator in ("pymalloc", "malloc", "debug")]
WITHOUT_LOCK = [(version, allocator) for version in ("3.13t", "3.14t") for allocator in ("mimalloc", "debug")]


@pytest.mark.parametrize("version, allocator", WITH_LOCK + WITHOUT_LOCK)
def test_kinds_of_objects(out, tmp_path, version, allocator):
    (tmp_path / "shapes.py").write_text("class Round:\n    pass\n")
    program = tmp_path / "kinds.py"
    program.write_text(KINDS)
    harness.run([interpreter_of(version), program],
                harness.shim_env(out, KMEMSHIM_PYTHON_OBJECTS="1", PYTHONMALLOC=allocator))
    document = sites(out)
    wanted = {text.split()[1].split("_(")[0]: number for number, text in enumerate(KINDS.splitlines(), 1)
              if text.startswith("def ") and "kept.append" in text}
    assert len(wanted) == 17
    for kind, line in wanted.items():
        found = {}
        for row in document["lines"]:
            if row["where"] and (row["where"]["module"], row["where"]["line"]) == ("kinds.py", line):
                for one in row["types"]:
                    found[one["name"]] = found.get(one["name"], 0) + one["count"]
        name = kind.replace("__", ".")
        assert 1800 <= found.get(name, 0) <= 2200, f"line {line}, {name}: {found}"


BUSY = """
import os, threading, time
class Single:
    __slots__ = ("a",)
class Double:
    __slots__ = ("a", "b")
def single():
    return [Single() for _ in range(300)]
def double():
    return [Double() for _ in range(300)]
times = [0] * 4
def work(number):
    kept = []
    while True:
        kept.append((single, double)[number % 2]())
        del kept[:30 * (len(kept) > 60)]
        times[number] += 1
for number in range(len(times)):
    threading.Thread(target=work, args=(number,), daemon=True).start()
while min(times) < 200:
    time.sleep(0.05)
os._exit(0)
"""


@pytest.mark.parametrize("version", ["3.13", "3.13t", "3.14t"])
def test_kinds_while_threads_make_and_drop_objects(out, version):
    """Without a lock they go on while the last look is taken."""
    harness.silent(harness.run([interpreter_of(version), "-c", BUSY], harness.shim_env(out, KMEMSHIM_PYTHON_OBJECTS="1")))
    found = {}
    for row in sites(out)["lines"]:
        function = (row["where"] or {}).get("function", "").split(".")[0]
        if function in ("single", "double"):
            found.setdefault(function, {}).update({one["name"]: one["count"] for one in row["types"]})
    assert all(found[name.lower()].get(name, 0) > 0 for name in ("Single", "Double")), found
    for function, kinds in found.items():
        others = {name: count for name, count in kinds.items() if name not in (function.capitalize(), "list")}
        assert sum(others.values()) * 10 < sum(kinds.values()), found  # of blocks that were not filled yet


def test_arrays_are_named_by_their_type(out, tmp_path):
    python = harness.find_python("numpy")
    if python is None:
        pytest.skip("no interpreter with numpy: apt-get install python3-numpy")
    program = tmp_path / "arrays.py"
    program.write_text("import numpy, os, time\nkept = [numpy.empty(3) for _ in range(3000)]\n"
                       "os._exit(0)\n")
    harness.run([python, program], harness.shim_env(out, KMEMSHIM_PYTHON_OBJECTS="1"))
    rows = [row for row in sites(out)["lines"] if row["where"] and row["where"]["module"] == "arrays.py"]
    assert "numpy.ndarray" in {kind["name"] for row in rows for kind in row["types"]}


def test_an_interpreter_without_the_functions_is_told_once(out, tmp_path):
    """A copy of libpython in whose table of exported names one of them begins with another letter."""
    python = interpreter_of("3.13")
    library = glob.glob(os.path.join(os.path.dirname(python), "..", "lib", "libpython3.13.so.1.0"))
    if not library:
        pytest.skip("this Python 3.13 has no shared library")
    copy = tmp_path / "libpython3.13.so.1.0"
    copy.write_bytes(open(library[0], "rb").read().replace(b"\0PyMem_GetAllocator\0", b"\0QyMem_GetAllocator\0"))
    done = harness.run([python, "-c", "print(len([object() for _ in range(1000)]))"],
                       harness.plain_env(LD_PRELOAD=f"{harness.SHIM}:{copy}", KMEMSHIM_OUT=out,
                                         KMEMSHIM_PYTHON_OBJECTS="1"))
    if "symbol lookup error" in done.stderr:
        pytest.skip("this interpreter calls the function by its exported name")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1000\n", "")
    notes = [note for process in harness.report("report", out, "--top", "1")["processes"] for note in process["notes"]]
    assert notes == ["small Python objects are not recorded: this interpreter does not export PyMem_GetAllocator "
                     "and PyMem_SetAllocator"]


def test_run_has_the_option(out):
    python = interpreter_of("3.11")
    done = harness.ok(harness.kmemshim("run", "--python-objects", "-o", out, python, PROGRAM, "ledger", "exit"))
    expected = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    check(expected, sites(out))


@pytest.fixture
def out(tmp_path):
    return tmp_path / "capture"
