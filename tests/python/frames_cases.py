"""The cases of test_frames.py, run inside the interpreter that is examined, each in a process forked for it: python frames_cases.py CASE...

Every case compares what the shim reads from memory with what the interpreter says itself: the chain of
sys._getframe(), code by code (file, function, first line, line table) and line by line. Same table and the first
offset of the same line is the same line. A case ends with "ok N", N frames compared, or with a traceback. Runs on 3.8 and later.
"""
import ctypes
import dis
import functools
import gc
import os
import sys
import threading

FRAMES_MAX = 160
IMPORTLIB, LIBRARY, MODULE_BODY, CUT_TEXT, CELL = 4, 1, 2, 8, 16
LOST_PYTHON_FRAMES, LOST_PYTHON_TEXT = 8, 9
HAS_QUALNAME = sys.version_info >= (3, 11)
HAS_ANCHORS = sys.version_info >= (3, 10)
HAS_SYMBOLS = os.environ.get("HAS_SYMBOLS") == "1"
SLOW = int(os.environ.get("SLOW") or 1)  # of a debug build: how much less of what is only repeated
REPEATS = 20000 // SLOW
EVENTS = int(os.environ.get("EVENTS") or 20000)  # of the oracle


class Frame(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint32), ("offset", ctypes.c_uint32),
                ("code_flags", ctypes.c_uint16), ("anchor_addr", ctypes.c_uint64)]


class Stack(ctypes.Structure):
    _fields_ = [("count", ctypes.c_uint32), ("is_cut", ctypes.c_bool), ("is_scanned", ctypes.c_bool),
                ("frames", Frame * FRAMES_MAX)]


class Code(ctypes.Structure):
    _fields_ = [("checksum", ctypes.c_uint32), ("type", ctypes.c_uint16),
                ("flags", ctypes.c_uint16), ("bytes", ctypes.c_uint32),
                ("previous", ctypes.c_uint32), ("first_line", ctypes.c_uint32),
                ("python_version", ctypes.c_uint32), ("file_bytes", ctypes.c_uint32),
                ("function_bytes", ctypes.c_uint32), ("line_table_bytes", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32)]


def load(kind):
    library = kind(os.environ["LD_PRELOAD"])
    library.probe_code.restype = ctypes.POINTER(Code)
    library.probe_record_bytes.restype = ctypes.c_uint64
    library.probe_lost.restype = ctypes.c_uint64
    library.probe_is_interpreter.argtypes = [ctypes.c_uint64]
    library.probe_walk_ns.restype = ctypes.c_double
    return library


held = load(ctypes.PyDLL)     # calls with the interpreter's lock held
released = load(ctypes.CDLL)  # calls without it


def clean(text):
    return "".join("\ufffd" if 0xd800 <= ord(c) <= 0xdfff else c for c in text)


def describe(code):
    """What must be in the record of a code object."""
    name = code.co_qualname if HAS_QUALNAME else code.co_name
    table = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
    return code.co_filename, clean(name), code.co_firstlineno, bytes(table)


records = {}


def read_record(index):
    """What is in the record. Records never change: each is read once."""
    found = records.get(index)
    if found is None:
        pointer = held.probe_code(index)
        record = pointer.contents
        assert record.type == 2 and record.checksum != 0, (record.type, record.checksum)
        assert record.python_version == sys.version_info[0] << 8 | sys.version_info[1]
        at = ctypes.addressof(record) + ctypes.sizeof(Code)
        file = ctypes.string_at(at, record.file_bytes).decode(errors="surrogateescape")  # the name's own bytes
        at += record.file_bytes
        name = ctypes.string_at(at, record.function_bytes).decode()
        at += record.function_bytes
        table = ctypes.string_at(at, record.line_table_bytes)
        found = records[index] = (file, name, record.first_line, table)
    return found


def chain_of(frame):
    chain = []
    while frame is not None:
        chain.append((frame.f_code, max(frame.f_lasti, 0)))
        frame = frame.f_back
    return chain


def ranges_of(code):
    """(start, end, line) as the interpreter tells them; line None: has none."""
    if hasattr(code, "co_lines"):
        return [each for each in code.co_lines() if each[0] < each[1]]
    starts = list(dis.findlinestarts(code))
    ends = [start for start, _ in starts[1:]] + [len(code.co_code)]
    return [(start, end, line) for (start, line), end in zip(starts, ends)]


lines = {}  # id of code -> (code, {offset: (first offset of its line, line)}); keeps the code alive


def lines_of(code):
    entry = lines.get(id(code))
    if entry is None:
        firsts, offsets = {}, {}
        for start, end, line in ranges_of(code):
            for offset in range(start, end, 2):
                offsets[offset] = (offset if line is None else firsts.setdefault(line, start), line)
        entry = lines[id(code)] = (code, offsets)
    return entry[1]


def first_of(code, offset):
    return lines_of(code).get(offset, (offset, None))[0]


def compare(stack, chain, moving=1):
    """The innermost `moving` frames have gone on since the walk: their offset is not compared."""
    assert stack.is_cut == (len(chain) > FRAMES_MAX), (
        stack.count, stack.is_cut, [read_record(f.code)[:2] for f in stack.frames[:stack.count]],
        [c.co_name for c, _ in chain])
    assert stack.count == min(len(chain), FRAMES_MAX)
    for i in range(stack.count):
        frame = stack.frames[i]
        code, offset = chain[i]
        assert read_record(frame.code) == describe(code), (i, read_record(frame.code), describe(code))
        assert i < moving or frame.offset == first_of(code, offset), (i, code.co_name, frame.offset, offset)
    return stack.count


def check(library=None):
    count = 0
    for each in (held, released) if library is None else (library,):
        stack = Stack()
        each.probe_walk(ctypes.byref(stack))
        count += compare(stack, chain_of(sys._getframe()))
    return count


# --- cases -------------------------------------------------------------------------------------------


def case_nested():
    def one():
        return two()

    def two():
        return (
            [0],
            check(),
        )[1]

    class Body:
        count = check()

        def method(self):
            return one() + self.count

    return Body().method() + (lambda: check())()


def case_generators():
    total = []

    def numbers():
        for i in range(3):
            total.append(check())
            yield i

    def outer():
        total.append(check())
        yield from numbers()
        total.append(check())

    def delegates():
        received = yield 1
        total.append(check())
        yield received

    list(outer())
    sum(x for x in outer() if total.append(check()) is None)
    generator = delegates()
    next(generator)
    generator.send(5)
    generator.close()
    try:
        thrown = delegates()
        next(thrown)
        thrown.throw(ValueError)
    except ValueError:
        total.append(check())
    return sum(total)


def case_coroutines():
    import asyncio
    import contextlib
    total = []

    async def leaf():
        total.append(check())
        await asyncio.sleep(0)
        total.append(check())

    async def stream():
        for _ in range(3):
            await leaf()
            yield check()

    @contextlib.asynccontextmanager
    async def context():
        total.append(check())
        yield
        total.append(check())

    async def main():
        async with context():
            await asyncio.gather(*(leaf() for _ in range(5)))
            total.extend([x async for x in stream()])

    asyncio.run(main())
    return sum(total)


def case_threads():
    counts, failures = [], []

    def work(depth):
        if depth:
            return work(depth - 1)
        return sum(check() for _ in range(300))

    def run(i):
        try:
            counts.append(work(i * 7))
        except BaseException as error:  # a thread's traceback would be lost
            failures.append(repr(error))

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    return sum(counts)


def case_recursion():
    def down(depth):
        return down(depth - 1) if depth else check()

    sys.setrecursionlimit(10000)
    count = 0
    for depth in (100, 155, 170, 170, 500, 501, 900, 1100, 1100, 3000):
        count += down(depth)
    assert held.probe_lost(LOST_PYTHON_FRAMES) == 0
    return count


def case_callbacks():
    total = []

    def note(value):
        total.append(check())
        return value

    sorted([3, 1, 2], key=note)
    sorted([3, 1], key=lambda x: note(x))
    list(map(note, [1, 2]))
    list(filter(note, [1, 2]))
    functools.reduce(lambda a, b: note(a + b), [1, 2, 3])
    [note(x) for x in range(2)]
    {note(x): {note(y) for y in range(2)} for x in range(2)}
    max([1, 2], key=functools.partial(note))
    import re
    re.sub("a", lambda m: str(note(1)), "aaa")

    class Odd:
        def __init__(self):
            note(1)

        def __eq__(self, other):
            return note(True)

        def __hash__(self):
            return note(1)

        @property
        def field(self):
            return note(1)

        def __getattr__(self, name):
            return note(name)

    odd = Odd()
    {odd: 1}[Odd()]
    odd.field, odd.missing
    return sum(total)


def case_greenlets():
    """Stacks that are switched: a greenlet's chain ends at its own function."""
    import greenlet
    total = []

    def down(depth, sort):
        total.append(check())
        if depth == 0:
            greenlet.getcurrent().parent.switch()
        elif sort:
            sorted([2, 1], key=lambda x: down(depth - 1, False) or 0)
        else:
            down(depth - 1, True)
        total.append(check())

    running = [greenlet.greenlet(down) for _ in range(50)]
    for i, each in enumerate(running):
        each.switch(i % 7, i % 2 == 0)
    while running:
        for each in running:
            each.switch()
            total.append(check())
        running = [each for each in running if not each.dead]
    return sum(total)


def case_finalizers():
    import weakref
    total = []

    class Dies:
        def __del__(self):
            total.append(check())

    def local():
        Dies()
        kept = Dies()
        weakref.finalize(kept, lambda: total.append(check()))

    local()
    cycle = Dies()
    cycle.me = cycle
    del cycle
    gc.collect()
    assert len(total) == 4, total
    return sum(total)


def case_native_between():
    """Python, C, Python: through a foreign function's callback, with and without the lock."""
    total = []
    plain = ctypes.PYFUNCTYPE(None)
    attached = ctypes.CFUNCTYPE(None)

    def inner():
        total.append(check())
        if len(total) < 20:
            held.probe_call(plain(inner))
            released.probe_call(attached(inner))

    inner()
    assert len(total) >= 20
    return sum(total)


def walk_native():
    stack = Stack()
    positions = (ctypes.c_int32 * FRAMES_MAX)()
    names = ((ctypes.c_char * 48) * FRAMES_MAX)()
    first = ctypes.c_int32()
    evaluators = held.probe_walk_native(ctypes.byref(stack), positions, names, ctypes.byref(first))
    chain = chain_of(sys._getframe())
    compare(stack, chain)
    for i in range(stack.count if HAS_ANCHORS else 1):  # stripped and split builds have no name for it, or another
        assert positions[i] >= 0 and (names[i].value == b"_PyEval_EvalFrameDefault" or not HAS_SYMBOLS), (
            i, positions[i], names[i].value, hex(stack.frames[i].anchor_addr))
    assert positions[0] == first.value, (positions[0], first.value)
    held_positions = [positions[i] for i in range(stack.count if HAS_ANCHORS else 1)]
    assert held_positions == sorted(held_positions)
    if HAS_ANCHORS and not stack.is_cut:
        assert len(set(held_positions)) == evaluators, (held_positions, evaluators)
    return stack.count


def case_anchors():
    total = []
    plain = ctypes.PYFUNCTYPE(None)

    def deeper(value):
        total.append(walk_native())
        return value

    def generator():
        for x in sorted([2, 1], key=deeper):
            yield deeper(x)

    def callback():
        list(map(deeper, generator()))

    def down(depth):
        return down(depth - 1) if depth else held.probe_call(plain(callback))

    for depth in (0, 5, 40, 200):
        down(depth)

    failures = []

    def in_thread():
        try:
            down(5)
        except BaseException as error:
            failures.append(repr(error))

    thread = threading.Thread(target=in_thread)
    thread.start()
    thread.join()
    assert not failures, failures
    assert len(total) == 5 * 6, len(total)
    return sum(total)


def make_function(i):
    scope = {"check_innermost": check_innermost}
    exec(compile("def function_%d():\n return check_innermost()" % i, "<cell %d>" % i, "exec"), scope)
    return scope["function_%d" % i]


def check_innermost():
    """The name of the caller, from memory."""
    stack = Stack()
    held.probe_walk(ctypes.byref(stack))
    return read_record(stack.frames[1].code)


def case_exec_loop():
    """Code objects die and their addresses are used again."""
    addresses = set()
    misnamed = 0
    for i in range(REPEATS):
        function = make_function(i)
        addresses.add(id(function.__code__))
        misnamed += function() != describe(function.__code__)
        records.clear()  # indices stay right; this only keeps the test's own memory small
        lines.clear()
    assert misnamed == 0, misnamed
    assert held.probe_lost(LOST_PYTHON_TEXT) == 0
    print("reused", REPEATS - len(addresses))
    return REPEATS


def case_same_code_again():
    """A cell that runs again and again does not grow the capture."""
    source = "def cell():\n return check_innermost()\nvalue = cell()"
    scope = {"check_innermost": check_innermost}
    alive = []
    used = None
    for i in range(REPEATS):
        code = compile(source, "<cell>", "exec")
        alive.append(code)
        if i % 100 == 0:
            alive.clear()
        exec(code, scope)
        assert scope["value"][0] == "<cell>"
        if used is None:
            used = held.probe_record_bytes()
    assert held.probe_record_bytes() == used, (used, held.probe_record_bytes())
    return REPEATS


def case_many_codes():
    """More living code objects than the first cache of addresses has room for in many of its buckets."""
    functions = [make_function(i) for i in range(REPEATS)]
    for _ in range(2):
        for function in functions:
            assert function() == describe(function.__code__)
        used = held.probe_record_bytes()
    assert held.probe_record_bytes() == used
    return len(functions)


def case_texts():
    names = ["plain", "\u00e9t\u00e9", "\u0416\u0443\u043a", "\U0001d4d0stral", "\u6f22\u5b57" * 40]
    files = ["<plain>", "/tmp/\u00e9.py", "/tmp/\u6f22\u5b57.py", "/tmp/\U0001f40d" * 60 + ".py",
             "/tmp/broken\udcff.py", "/tmp/" + "long/" * 1000 + "x.py", "/tmp/" + "\u00e9" * 3000]
    count = 0
    for file in files:
        for name in names:
            scope = {"check_innermost": check_innermost}
            exec(compile("def %s():\n\n return check_innermost()" % name, file, "exec"), scope)
            function = [v for k, v in scope.items() if k not in ("check_innermost", "__builtins__")][0]
            wanted = list(describe(function.__code__))
            path = wanted[0].encode(errors="surrogateescape")
            wanted[0] = path[:4096].decode(errors="ignore" if len(path) > 4096 else "surrogateescape")
            assert function() == tuple(wanted), (function(), wanted)
            count += 1
    return count


def flags_of(text, name="f", file="/data/user/x.py"):
    scope = {"Stack": Stack, "held": held, "ctypes": ctypes}
    exec(compile("def %s():\n stack = Stack()\n held.probe_walk(ctypes.byref(stack))\n"
                 " return stack.frames[0].code_flags" % name, text, "exec"), scope)
    return scope[name]()


def case_flags():
    import importlib.abc
    import runpy
    import tempfile
    for file, flags in (("/data/user/x.py", 0), ("<stdin>", 0), ("/tmp/ipykernel_1/2.py", CELL),
                        ("/venv/lib/python3.11/site-packages/numpy/x.py", LIBRARY),
                        ("/usr/lib/python3/dist-packages/x.py", LIBRARY),
                        ("/usr/lib64/python3.9/json/__init__.py", LIBRARY),
                        ("/usr/lib/python3.9/json/__init__.py", LIBRARY),
                        ("/usr/lib/python2.7/json/__init__.py", 0),
                        ("<frozen zipimport>", LIBRARY),
                        ("<frozen importlib._bootstrap>", LIBRARY | IMPORTLIB),
                        ("/x" * 4096, CUT_TEXT)):
        assert flags_of(file) == flags, (file, flags_of(file), flags)

    seen = []

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(self, name, path, target=None):
            stack = Stack()
            held.probe_walk(ctypes.byref(stack))
            seen.append([stack.frames[i].code_flags for i in range(stack.count)])
            return None

    sys.meta_path.insert(0, Finder())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "body.py")
        with open(path, "w") as file:
            file.write("import no_such_module_here")
        try:
            runpy.run_path(path)
        except ImportError:
            pass
    sys.meta_path.pop(0)
    assert any(flags & IMPORTLIB for flags in seen[-1]), seen
    assert MODULE_BODY in seen[-1], seen
    assert any(flags == LIBRARY for flags in seen[-1]), seen
    return len(seen[-1])


def case_subinterpreter():
    script = ("import sys; sys.path.insert(0, %r); import frames_cases\n"
              "def f():\n return frames_cases.check(frames_cases.held)\n"
              "frames_cases.report_to(%%d, f() + f())" % os.path.dirname(os.path.abspath(__file__)))
    reader, writer = os.pipe()
    try:
        import _interpreters as interpreters
        make = functools.partial(interpreters.create, "legacy")
    except ImportError:
        import _xxsubinterpreters as interpreters
        make = (functools.partial(interpreters.create, isolated=False)
                if sys.version_info >= (3, 9) else interpreters.create)
    first, second = make(), make()
    for each in (first, second, first):
        check()
        failure = interpreters.run_string(each, script % writer)
        assert failure is None, failure
        assert int(os.read(reader, 100)) > 0
        check()
    interpreters.destroy(first)
    interpreters.destroy(second)
    return check()


def report_to(descriptor, count):
    os.write(descriptor, b"%d" % count)


def case_fork():
    count = check()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            held.probe_forked()
            records.clear()
            used = held.probe_record_bytes()
            check()
            assert held.probe_record_bytes() > used  # texts were stored again
            used = held.probe_record_bytes()
            check()
            assert held.probe_record_bytes() == used
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    return count + check()


def case_teardown():
    """atexit functions and finalisers of the teardown still have frames; the flag tells them apart."""
    import atexit
    before = held.probe_is_finalizing()
    assert before == 0

    class Last:
        def __del__(self, walk=held.probe_walk, flag=held.probe_is_finalizing, stack=Stack(),
                    byref=ctypes.byref, write=os.write):
            walk(byref(stack))
            write(1, b"teardown %d %d\n" % (flag(), stack.count))

    sys.modules["kept_to_the_end"] = Last()
    atexit.register(lambda: os.write(1, b"atexit %d\n" % (check(),)))
    return check()


def case_daemon_threads():
    """Threads that never end walk without the lock while the interpreter goes down around them."""
    ready = threading.Semaphore(0)

    def forever():
        stack = Stack()
        pointer = ctypes.byref(stack)
        for i in range(1 << 60):
            released.probe_walk(pointer)
            if i == 100:
                ready.release()

    for _ in range(6):
        threading.Thread(target=forever, daemon=True).start()
    for _ in range(6):
        ready.acquire()
    return check()


def case_interpreter_text():
    """Addresses in the interpreter, in a library, and in nothing."""
    api = ctypes.cast(ctypes.pythonapi.PyList_New, ctypes.c_void_p).value
    libc = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value
    assert held.probe_is_interpreter(api) == 1
    assert held.probe_is_interpreter(libc) == 0
    assert held.probe_is_interpreter(0) == 0
    assert held.probe_version() == sys.hexversion, (hex(held.probe_version()), hex(sys.hexversion))
    held.probe_start()  # asking again changes nothing
    return check()


def work():
    """Some of the standard library: generators, closures, classes, exceptions, recursion."""
    import argparse
    import ast
    import collections
    import contextlib
    import copy
    import csv
    import dataclasses
    import difflib
    import enum
    import io
    import json
    import re
    import statistics
    import string
    import textwrap
    import tokenize

    json.loads(json.dumps({"a": [1, {"b": [2.5, None]}]}, indent=2), object_hook=lambda d: d)
    json.JSONDecoder(object_pairs_hook=collections.OrderedDict).decode('{"a": {"b": 1}}')
    getattr(re, "purge")()
    re.compile(r"(a|b)*c(?P<name>[^x]+)?(?:d{2,3}|e)").match("abac")
    text = "def f(a, b=1):\n    return [x for x in range(a) if x > b]\n" * 3
    list(tokenize.generate_tokens(io.StringIO(text).readline))
    ast.literal_eval("{'a': [1, 2, (3, 4)]}")
    for node in ast.walk(ast.parse(text)):
        copy.copy(node)
    point = collections.namedtuple("point", "x y")
    copy.deepcopy({"p": [point(1, 2)] * 3, "q": {1: [2, {3}]}})
    Made = dataclasses.make_dataclass("Made", [("x", int), ("y", list, dataclasses.field(default_factory=list))])
    dataclasses.asdict(Made(1, [Made(2)]))
    list(difflib.unified_diff(text.split(), text.replace("a", "c").split()))
    enum.Enum("Colour", "red green")["red"]
    statistics.stdev([1.5, 2.5, 4])
    textwrap.wrap("the quick brown fox " * 10, 30)
    string.Template("$a ${b}").substitute(a=1, b=2)
    list(csv.DictReader(io.StringIO("a,b\n1,2\n3,4\n")))
    parser = argparse.ArgumentParser(prog="x")
    parser.add_argument("--one", type=int)
    parser.parse_args(["--one", "1"])
    with contextlib.suppress(KeyError), contextlib.ExitStack() as stack:
        stack.callback(lambda: None)
        {}["missing"]
    with contextlib.redirect_stdout(io.StringIO()):
        parser.print_help()

    async def ping(n):
        return await ping(n - 1) if n else 1

    with contextlib.closing(ping(20)) as coroutine:
        with contextlib.suppress(StopIteration):
            coroutine.send(None)

    def tree(n):
        if n:
            yield from tree(n - 1)
            yield n
            yield from tree(n - 1)

    list(tree(6))


def case_oracle():
    """At every event of the profile hook, memory and sys._getframe() agree."""
    described = {}  # id of code -> (code, description); keeps the code alive
    state = {"events": 0, "frames": 0}
    stack = Stack()
    pointer = ctypes.byref(stack)
    walk = held.probe_walk

    def expected(code):
        entry = described.get(id(code))
        if entry is None:
            entry = described[id(code)] = (code, describe(code))
        return entry[1]

    def hook(frame, event, argument):
        if state["events"] == EVENTS:
            return
        walk(pointer)
        count = stack.count
        frames = stack.frames
        position = 1  # 0 is this function
        while frame is not None and position < FRAMES_MAX:
            assert position < count, (event, count, frame.f_code.co_name)
            raw = frames[position]
            code = frame.f_code
            offset = max(frame.f_lasti, 0)
            assert raw.offset == first_of(code, offset), (event, code.co_name, raw.offset, frame.f_lasti)
            assert (records.get(raw.code) or read_record(raw.code)) == expected(code), (event, code)
            frame = frame.f_back
            position += 1
        assert frame is not None or position == count, (event, position, count)
        state["events"] += 1
        state["frames"] += count

    while state["events"] < EVENTS:
        sys.setprofile(hook)
        try:
            work()
        finally:
            sys.setprofile(None)
    assert held.probe_lost(LOST_PYTHON_FRAMES) == 0
    print("events", state["events"])
    return state["frames"]


LINES = """
import contextlib

def decorate(*arguments): return lambda function: function

@decorate(
    1,
    2)
@decorate(3)
def multi_line(a,
               b=[x for x in range(3) if x],
               *rest):
    value = call(
        a,
        b, [y
            for y in rest
            if y
            ],
        call(1), call(2),
    )
    for x in range(3):
        while x > 1:
            x -= 1
            if x == 7: break
            elif x == 8: continue
        else:
            call(x)
    try:
        call(); call(a if b
                     else rest)
    except (ValueError,
            KeyError) as error:
        raise RuntimeError(error) from None
    except Exception: pass
    else:
        return (lambda: call(
            1))
    finally:
        call(0)
    with contextlib.suppress(
            KeyError), contextlib.suppress(
            ValueError) as c:
        call(0)
    assert a, (
        "message"
    )
    return {k: v for k, v in
            zip("ab", "cd")}

def one_liner(a): return call(a) and call(a + 1) or [call(b) for b in a]

async def coroutine(a):
    async for x in a:
        async with x as y:
            yield await y(
                1, 2)

class Body(
        object):
    \"\"\"text\"\"\"
    field = [1,
             2]
    def method(self): pass

def backwards(a, b, c):
    return a(
        b(
            c))(
        1)

def far(a):
    a(1)
%s
    a(2)
%s
    return a(
%s
        3)
""" % ("\n" * 100, "\n" * 300, "\n" * 40000) + """
def wide():
    return [%s]

def wider():
    if wide():
        %s
    return wide(
        )
""" % (", ".join("a.b.c(%d)" % i for i in range(300)), "; ".join("a.b(%d)" % i for i in range(500)))


def codes_in(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield from codes_in(constant)


def record_of_code(code):
    """The index of its record. The code is given a body that walks, its line table stays."""
    found = []

    def here():
        stack = Stack()
        held.probe_walk(ctypes.byref(stack))
        found.append(stack.frames[1].code)

    def body():
        here()

    table = {"co_linetable": code.co_linetable} if hasattr(code, "co_linetable") else {"co_lnotab": code.co_lnotab}
    body.__code__ = body.__code__.replace(co_firstlineno=code.co_firstlineno, co_name=code.co_name,
                                          co_filename=code.co_filename, **table)
    body()
    return found[0]


def case_lines():
    """Every instruction of a line is told as the first one of that line, and that one is read as the same line."""
    import argparse
    import inspect
    import json.decoder
    import typing
    count = 0
    sources = [(LINES, "<lines>")] + [(inspect.getsource(module), module.__name__)
                                      for module in (argparse, inspect, json.decoder, typing)]
    for source, name in sources:
        for code in codes_in(compile(source, "<%s>" % name, "exec")):
            index = record_of_code(code)
            assert read_record(index)[2:] == describe(code)[2:], code
            told = {}
            for offset, (first, line) in lines_of(code).items():
                for _ in range(2):  # read from the table, and remembered
                    assert held.probe_line_first(index, offset) == first, (code, offset, first, line)
                if line is not None:
                    assert held.probe_line_read(index, first) == line, (code, offset, first, line)
                    assert held.probe_line_read(index, offset) == line, (code, offset, first, line)
                    told.setdefault(line, set()).add(first)
                count += 1
            assert all(len(firsts) == 1 for firsts in told.values()), told
        lines.clear()
    return count


def case_hostile_line_tables():
    """Whatever is in a table, the first offset is read as the same line. Prints its seed when it fails."""
    seed = int(os.environ.get("SEED") or 0) or int.from_bytes(os.urandom(3), "little")
    for version in (0x308, 0x309, 0x30a, 0x30b, 0x30d):
        assert held.probe_lines_differ(version, seed, REPEATS) == 0, (version, "SEED=%d" % seed)
    return REPEATS


def case_one_line_is_one_site():
    """One walk from each call of a line: one word."""
    seen = set()

    def note(value=0):
        stack = Stack()
        held.probe_walk(ctypes.byref(stack))
        seen.add((stack.frames[1].code, stack.frames[1].offset))
        return value

    note(note() + note()), [note(), note(), note()], {note(): note()}
    assert len(seen) == 1, seen
    (
        note(),
        note(note(note())),
    )
    assert len(seen) == 3, seen
    return len(seen)


def case_speed():
    """Not a test: prints what one walk costs."""
    def down(depth):
        if depth:
            return down(depth - 1)
        stack = Stack()
        held.probe_walk(ctypes.byref(stack))
        return stack.count, held.probe_walk_ns(5000)

    base = down(0)[0]
    for depth in (10, 50, 100):
        print("%d frames: %.0f ns" % down(depth - base))
    return 0


if __name__ == "__main__":
    import frames_cases  # so that a subinterpreter and this one run the same file

    if not held.probe_available():
        note = ctypes.create_string_buffer(300)
        held.probe_note(note, 300)
        sys.exit("not available: %s" % note.value.decode())
    for name in sys.argv[1:]:
        print("case", name, flush=True)
        child = os.fork() if len(sys.argv) > 2 else 0
        if child == 0:
            compared = getattr(frames_cases, "case_" + name)()
            print("ok", compared, flush=True)
            break
        print("status", os.waitpid(child, 0)[1], flush=True)
