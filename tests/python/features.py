"""What a program of Python does, each thing once: run by test_matrix.py under the shim, inside the interpreter that is examined.
BESIDE=cProfile|bdb|coverage|tracemalloc|torch: while that watches the program too, and sees what it would see.

Every case takes one block of a size of its own, on the line that is marked with its name, and notes there what the
interpreter says about the stack. `python features.py FILE` writes what the report must say to FILE. Runs on 3.8 and later.
"""
import atexit
import ctypes
import functools
import gc
import json
import os
import re
import sys
import sysconfig
import tempfile
import threading
import weakref

with open(__file__, encoding="utf-8") as source:
    SOURCE = source.read()
NAMES = re.findall(r"#@ (\w+)$", SOURCE, re.M)
SIZE = {name: (1 << 20) + 4096 * i + 640 for i, name in enumerate(NAMES)}
FILE = sys._getframe().f_code.co_filename
HAS_QUALNAME = sys.version_info >= (3, 11)

expected = {}  # name -> [[file, line, function], ...], innermost first
skipped = {}   # name -> why


def released(name):
    """malloc() called by a foreign function call, with the interpreter's lock or without."""
    function = getattr(name(None), "malloc")
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_size_t]
    return function


malloc = released(ctypes.CDLL)
# Where blocks of the interpreter do not come from malloc, a foreign function gets them.
is_blind = bool(sysconfig.get_config_var("Py_GIL_DISABLED")) or os.environ.get("PYTHONMALLOC", "").startswith("mimalloc")
take = released(ctypes.PyDLL) if is_blind else bytearray


def note(name, frame=None):
    frame = frame or sys._getframe(1)
    chain = []
    while frame is not None:
        code = frame.f_code
        chain.append([code.co_filename, frame.f_lineno, code.co_qualname if HAS_QUALNAME else code.co_name])
        frame = frame.f_back
    expected[name] = chain


def case_functions():
    def outer():
        return inner(3)

    def inner(depth):
        if depth:
            return inner(depth - 1)
        return take(SIZE["plain"]), note("plain")  #@ plain

    outer()
    (lambda: (take(SIZE["lambda"]), note("lambda")))()  #@ lambda
    [(take(SIZE["comprehension"]), note("comprehension")) for _ in range(1)]  #@ comprehension

    class Body:
        field = take(SIZE["class_body"]), note("class_body")  #@ class_body

        def method(self):
            return take(SIZE["method"]), note("method")  #@ method

        @property
        def asked(self):
            return take(SIZE["property"]), note("property")  #@ property

    Body().method()
    Body().asked


def case_multi_line():
    def call(*arguments):
        return arguments

    note("multi_line")
    call(
        1,
        call(2,
             3),
        take(SIZE["multi_line"]),  #@ multi_line
        4,
    )


def decorate(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper


def case_decorators():
    @decorate
    @functools.lru_cache(maxsize=None)
    @decorate
    def decorated():
        return take(SIZE["decorated"]), note("decorated")  #@ decorated

    decorated()


def case_init():
    class Made:
        def __init__(self, last):
            if last:
                self.block = take(SIZE["init"]), note("init")  #@ init

    for i in range(200):  # until the call is specialised
        Made(i == 199)


def case_finalizers():
    class Dies:
        def __init__(self, name):
            self.name = name

        def __del__(self):
            if self.name == "local_destroyed":
                take(SIZE["local_destroyed"]), note("local_destroyed")  #@ local_destroyed
            else:
                take(SIZE["cycle_collected"]), note("cycle_collected")  #@ cycle_collected

    def function():
        local = Dies("local_destroyed")
        return local.name

    function()
    cycle = Dies("cycle_collected")
    cycle.me = cycle
    del cycle
    gc.collect()

    def watched():
        pass

    weakref.finalize(watched, lambda: (take(SIZE["weak_callback"]), note("weak_callback")))  #@ weak_callback
    del watched
    gc.collect()


def case_generators():
    def numbers():
        yield 1
        yield take(SIZE["generator"]), note("generator")  #@ generator

    def inner():
        yield take(SIZE["yield_from"]), note("yield_from")  #@ yield_from

    def outer():
        yield from inner()

    list(numbers())
    list(outer())
    list(x for x in range(1) if (take(SIZE["generator_expression"]), note("generator_expression")))  #@ generator_expression


def case_coroutines():
    import asyncio
    import contextlib

    async def leaf():
        await asyncio.sleep(0)
        return take(SIZE["coroutine"]), note("coroutine")  #@ coroutine

    async def middle():
        return await leaf()

    async def stream():
        yield 1
        await asyncio.sleep(0)
        yield take(SIZE["async_generator"]), note("async_generator")  #@ async_generator

    @contextlib.asynccontextmanager
    async def context():
        yield take(SIZE["async_context"]), note("async_context")  #@ async_context

    async def main():
        async with context():
            await asyncio.gather(middle())
            [x async for x in stream()]

    asyncio.run(main())


def case_callbacks():
    sorted([2, 1], key=lambda x: x == 1 and (take(SIZE["sort_key"]), note("sort_key")) is None)  #@ sort_key
    list(map(lambda x: (take(SIZE["map"]), note("map")), [1]))  #@ map
    re.sub("a", lambda match: (take(SIZE["regex"]), note("regex")) and "", "a")  #@ regex
    functools.reduce(lambda a, b: (take(SIZE["reduce"]), note("reduce")), [1, 2])  #@ reduce

    class Odd:
        def __eq__(self, other):
            take(SIZE["equality"]), note("equality")  #@ equality
            return True

        def __hash__(self):
            return 1

    {Odd(): 1}[Odd()]

    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    def compare(a, b):
        take(SIZE["foreign_callback"]), note("foreign_callback")  #@ foreign_callback
        return 0

    ctypes.CDLL(None).qsort((ctypes.c_int * 2)(1, 2), 2, 4, compare)


def case_lock_released():
    import zlib
    packed = zlib.compress(bytes(1 << 20), 1)

    malloc(SIZE["ctypes_released"]), note("ctypes_released")  #@ ctypes_released
    if is_blind:
        skipped["zlib"] = "its blocks do not come from malloc"
    else:
        zlib.decompress(packed, bufsize=SIZE["zlib"]), note("zlib")  #@ zlib

    busy = threading.Event()
    stop = threading.Event()

    def spin():
        busy.set()
        while not stop.is_set():
            pass

    thread = threading.Thread(target=spin)
    thread.start()
    busy.wait()
    malloc(SIZE["released_beside_another"]), note("released_beside_another")  #@ released_beside_another
    stop.set()
    thread.join()


def case_threads():
    def work():
        take(SIZE["thread"]), note("thread")  #@ thread

    def pooled(_):
        take(SIZE["thread_pool"]), note("thread_pool")  #@ thread_pool

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(1) as pool:
        list(pool.map(pooled, [1]))

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    def entered(_):
        take(SIZE["c_thread"]), note("c_thread")  #@ c_thread
        return None

    pthread = ctypes.c_ulong()
    libc = ctypes.CDLL(None)
    assert libc.pthread_create(ctypes.byref(pthread), None, entered, None) == 0
    libc.pthread_join(pthread, None)


def case_greenlets():
    try:
        import greenlet
    except ImportError as error:
        skipped["greenlet"] = str(error)
        return

    def first():
        sorted([2, 1], key=lambda x: other.switch() or 0)

    def second():
        main.switch()
        take(SIZE["greenlet"]), note("greenlet")  #@ greenlet

    main = greenlet.getcurrent()
    other = greenlet.greenlet(second)
    one = greenlet.greenlet(first)
    one.switch()
    other.switch()


def case_gevent():
    try:
        import gevent
    except ImportError as error:
        skipped["gevent"] = str(error)
        return

    def sleeps():
        gevent.sleep(0)
        take(SIZE["gevent"]), note("gevent")  #@ gevent

    gevent.joinall([gevent.spawn(sleeps), gevent.spawn(lambda: gevent.sleep(0))])


def case_texts():
    text = "def %s():\n\n take(SIZE[%r]), note(%r)\n"
    for name, file, function in (("not_ascii", "/tmp/gr\u00f6\u00dfe.py", "gr\u00f6\u00dfe"),  #@ not_ascii
                                 ("wide", "/tmp/\u6f22\u5b57.py", "\u6f22\u5b57"),  #@ wide
                                 ("astral", "/tmp/\U0001f40d.py", "\U0001d4d0stral")):  #@ astral
        scope = {"take": take, "SIZE": SIZE, "note": note}
        exec(compile(text % (function, name, name), file, "exec"), scope)
        [value for key, value in scope.items() if getattr(value, "__code__", None) and key not in ("take", "note")][0]()


def case_exec_loop():
    """Many functions that die: the last one is told from all those that had its address."""
    for i in range(3000):
        scope = {"take": take, "note": note, "size": SIZE["exec_loop"]}  #@ exec_loop
        exec(compile("def function_%d():\n last = %d\n if last: take(size), note('exec_loop')\n else: take(7000)"
                     % (i, i == 2999), "<cell %d>" % i, "exec"), scope)
        scope["function_%d" % i]()


def case_recursion():
    def down(depth):
        if depth:
            return down(depth - 1)
        return take(SIZE["deep"]), note("deep")  #@ deep

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10000)
    threading.stack_size(256 << 20)
    thread = threading.Thread(target=down, args=(5000,))
    thread.start()
    thread.join()
    threading.stack_size(0)
    sys.setrecursionlimit(limit)


def case_modules():
    with tempfile.TemporaryDirectory() as folder:
        sys.path.insert(0, folder)
        for module in ("plain_module", "m\u00f6dul"):
            with open(os.path.join(folder, module + ".py"), "w", encoding="utf-8") as file:
                file.write("import __main__ as m\n\n\ndef function():\n"
                           "    m.take(m.SIZE['module_function']), m.note('module_function')\n"
                           "\n\nif __name__ == 'plain_module':\n"
                           "    m.take(m.SIZE['module_body']), m.note('module_body')\n")
        import plain_module  #@ module_body
        getattr(__import__("m\u00f6dul"), "function")()  #@ module_function
        sys.path.remove(folder)
        assert plain_module


def case_subinterpreter():
    try:
        import _interpreters as interpreters
        make = functools.partial(interpreters.create, "legacy")
    except ImportError:
        import _xxsubinterpreters as interpreters
        make = functools.partial(interpreters.create, **({"isolated": False} if sys.version_info >= (3, 9) else {}))
    if is_blind:
        skipped["subinterpreter"] = "its blocks do not come from malloc"
        return
    if os.environ.get("BESIDE") == "tracemalloc":
        skipped["subinterpreter"] = "a new interpreter and tracemalloc wait for each other, without us too"  # 3.11
        return
    other = make()
    interpreters.run_string(other, "\n\ndef inside():\n bytearray(%d)\ninside()" % SIZE["subinterpreter"])  #@ subinterpreter
    interpreters.destroy(other)
    file = "<script>" if sys.version_info >= (3, 14) else "<string>"
    expected["subinterpreter"] = [[file, 4, "inside"], [file, 5, "<module>"]]


def case_fork():
    if not hasattr(os, "fork"):
        return
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        take(SIZE["fork"]), note("fork")  #@ fork
        os.write(writer, json.dumps(expected["fork"]).encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    expected["fork"] = json.loads(os.read(reader, 100000))


class Beside:
    """Another watcher for as long as the cases run. Afterwards it must still have been the one, and have seen something."""

    def __init__(self, kind):
        self.kind = kind

    def __enter__(self):
        if self.kind == "cProfile":
            import cProfile
            self.profile = cProfile.Profile()
            self.profile.enable()
        elif self.kind == "bdb":
            import bdb
            self.lines = lines = []

            class Debugger(bdb.Bdb):
                def user_line(self, frame):
                    lines.append(frame.f_lineno)
                    self.set_step()

            self.debugger = Debugger()
            self.debugger.reset()
            self.debugger._set_stopinfo(None, None)
            sys.settrace(self.debugger.trace_dispatch)
        elif self.kind == "coverage":
            import coverage
            self.coverage = coverage.Coverage(data_file=None, include=[FILE])
            self.coverage.start()
        elif self.kind == "tracemalloc":
            import tracemalloc
            tracemalloc.start(20)
        elif self.kind == "torch":
            import torch
            self.torch = torch
            self.profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], with_stack=True,
                                                  profile_memory=True)
            self.profile.__enter__()

    def __exit__(self, *failure):
        if self.kind == "cProfile":
            self.profile.disable()
            seen = {entry.code.co_name for entry in self.profile.getstats() if hasattr(entry.code, "co_name")}
            assert {"case_functions", "case_exec_loop", "note"} <= seen, seen
        elif self.kind == "bdb":
            assert sys.gettrace() == self.debugger.trace_dispatch
            sys.settrace(None)
            assert len(self.lines) > 1000, len(self.lines)
        elif self.kind == "coverage":
            self.coverage.stop()
            missing = self.coverage.analysis2(FILE)[3]
            assert not [line for line in missing if "take(SIZE[\"plain" in SOURCE.split("\n")[line - 1]], missing
        elif self.kind == "tracemalloc":
            import tracemalloc
            assert tracemalloc.get_traced_memory()[1] > 1 << 20 or is_blind
            tracemalloc.stop()
        elif self.kind == "torch":
            kept = self.torch.zeros(SIZE["tensor"] // 4), note("tensor")  #@ tensor
            assert len(kept) == 2
            self.profile.__exit__(*failure)
            assert any("zeros" in event.key for event in self.profile.key_averages())


def write():
    if os.environ.get("BESIDE") != "torch":
        skipped["tensor"] = "no torch"
    for name in NAMES:
        if name in expected and expected[name][0][0] == FILE:  # the line is the marked one, not that of note()
            expected[name][0][1] = [i for i, line in enumerate(SOURCE.split("\n"), 1) if line.endswith("#@ " + name)][0]
    with open(sys.argv[1], "w") as file:
        json.dump({"expected": expected, "skipped": skipped, "sizes": SIZE, "version": sys.version.split()[0]}, file)


def last():
    take(SIZE["atexit"]), note("atexit")  #@ atexit
    write()


if __name__ == "__main__":
    atexit.register(last)
    with Beside(os.environ.get("BESIDE")):
        for function in [value for key, value in list(globals().items()) if key.startswith("case_")]:
            function()
