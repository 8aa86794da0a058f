"""
Like leaks.c, in Python, and Python with C: leaks.py SCENE STEPS. LEAKS_LIBRARY names leaks.c as a library.

A line that leaks ends with the name of its scene behind a number sign. RSS_OF_STEPS names a file that gets the resident set of each step,
TRACEMALLOC one that gets what tracemalloc's diff of a quarter of the steps and the last one puts first. STEP_MS is how long the program sleeps
after each step.
"""
import ctypes
import os
import sys
import threading
import time

KIB, MIB = 1 << 10, 1 << 20
kept = []
cache = {}


def work():
    for _ in range(20):
        bytearray(20000)


def noted_in_a_file(count):
    """The numbers of the steps; between them, figures for the methods that these programs are compared with."""
    if "RSS_OF_STEPS" in os.environ:
        with open(os.environ["RSS_OF_STEPS"], "w", buffering=1) as figures, open("/proc/self/statm", "rb", buffering=0) as statm:
            for i in range(count):
                yield i
                statm.seek(0)
                figures.write(f"{int(statm.read().split()[1]) * 4096}\n")
    else:
        import tracemalloc
        for i in range(count):
            yield i
            if i == count // 4:
                first = tracemalloc.take_snapshot()
        grown = [each for each in tracemalloc.take_snapshot().compare_to(first, "lineno") if each.size_diff > 0]
        with open(os.environ["TRACEMALLOC"], "w") as figures:
            for each in grown[:1]:
                figures.write(f"{each.size_diff} {each.traceback[0].filename}:{each.traceback[0].lineno}\n")


def with_pauses(count):
    seconds = int(os.environ["STEP_MS"]) / 1000
    for i in range(count):
        yield i
        time.sleep(seconds)


def each_step(count):
    if "STEP_MS" in os.environ:
        return with_pauses(count)
    return noted_in_a_file(count) if "RSS_OF_STEPS" in os.environ or "TRACEMALLOC" in os.environ else range(count)


def import_much():
    import asyncio, decimal, email.mime.text, http.server, logging.config, multiprocessing, sqlite3, unittest.mock, xml.dom.minidom  # noqa: E401
    try:
        import numpy.testing  # noqa: F401
    except ImportError:
        pass
    return asyncio, decimal, email, http, logging, multiprocessing, sqlite3, unittest, xml


# --- leaks --------------------------------------------------------------------------------------

def leak_list(steps):
    for _ in each_step(steps):
        work()
        kept.append(bytearray(20000))  # leak_list


def leak_after_imports(steps):
    import_much()
    for _ in each_step(steps):
        kept.append(bytearray(MIB))  # leak_after_imports


def keep_a_block():
    kept.append(bytearray(100000))  # leak_after_imports_in_function


def leak_after_imports_in_function(steps):
    import_much()
    for _ in each_step(steps):
        work()
        keep_a_block()


def leak_after_much_work(steps):
    for _ in range(200):
        bytearray(16 * MIB)
    for _ in each_step(steps):
        work()
        kept.append(bytearray(50000))  # leak_after_much_work


def leak_dict(steps):
    for i in each_step(steps):
        for k in range(20):
            cache[i, k] = bytes(3000 + k)  # leak_dict
        work()


def leak_small_objects(steps):
    for i in each_step(steps):
        kept.append([(i, k, i + k + 1000) for k in range(10000)])  # leak_small_objects
        work()


class Session:
    def __init__(self, number):
        self.name = f"session {number}"  # leak_instances
        self.buffer = bytearray(30000)  # leak_instances
        self.peers = {}


def leak_instances(steps):
    for i in each_step(steps):
        kept.append(Session(i))
        work()


def make_handler(payload):
    return lambda: len(payload)


def leak_closures(steps):
    for _ in each_step(steps):
        kept.append(make_handler(bytes(40000)))  # leak_closures
        work()


def fails(size):
    data = bytearray(size)  # leak_tracebacks
    raise ValueError(len(data))


def leak_tracebacks(steps):
    for _ in each_step(steps):
        try:
            fails(60000)
        except ValueError as error:
            kept.append(error)
        work()


def leak_unbounded_lru_cache(steps):
    import functools

    @functools.lru_cache(maxsize=None)
    def transform(key):
        return bytes(25000 + key)  # leak_unbounded_lru_cache

    kept.append(transform)
    for i in each_step(steps):
        transform(i)
        transform(i // 2)
        work()


def collect(value, into=[]):  # noqa: B006
    into.append(bytearray(value))  # leak_default_argument


def leak_default_argument(steps):
    for _ in each_step(steps):
        collect(30000)
        work()


def leak_one_in_ten(steps):
    for _ in each_step(steps):
        for k in range(50):
            block = bytearray(1000 + k * 10)  # leak_one_in_ten
            if k % 10 == 0:
                kept.append(block)


def leak_in_churn(steps):
    for _ in each_step(steps):
        for k in range(2000):
            block = bytearray(2000)  # leak_in_churn
            if k % 1000 == 0:
                kept.append(block)


def leak_in_bursts(steps):
    for i in each_step(steps):
        work()
        for _ in range(30 if i % 5 == 0 else 0):
            kept.append(bytearray(4000))  # leak_in_bursts


def leak_late(steps):
    for _ in range(300):
        work()
    for _ in each_step(steps):
        work()
        kept.append(bytearray(30000))  # leak_late


def leak_of_short_threads(steps):
    def serve():
        work()
        kept.append(bytearray(30000))  # leak_of_short_threads

    for _ in each_step(steps):
        thread = threading.Thread(target=serve)
        thread.start()
        thread.join()


def leak_of_waiting_threads(steps):
    never = threading.Event()

    def wait():
        own = bytearray(50000)  # leak_of_waiting_threads
        never.wait()
        return own

    for _ in each_step(steps):
        threading.Thread(target=wait, daemon=True).start()  # leak_of_waiting_threads
        work()


def leak_of_tasks(steps):
    import asyncio
    tasks = []

    async def handle(never):
        own = bytearray(400000)  # leak_of_tasks
        await never.wait()
        return own

    async def serve():
        never = asyncio.Event()
        for _ in each_step(steps):
            tasks.append(asyncio.ensure_future(handle(never)))
            await asyncio.sleep(0)
            work()
        for task in tasks:
            task.cancel()

    asyncio.run(serve())


def leak_of_generators(steps):
    def rows():
        buffer = bytearray(30000)  # leak_of_generators
        while True:
            yield len(buffer)

    for _ in each_step(steps):
        reader = rows()
        next(reader)
        kept.append(reader)
        work()


def leak_of_cycles(steps):
    import gc
    gc.disable()
    for _ in each_step(steps):
        node = {"data": bytearray(40000)}  # leak_of_cycles
        node["self"] = node
        work()


def leak_of_records(steps):
    import logging
    import logging.handlers
    log = logging.getLogger("leak")
    log.addHandler(logging.handlers.MemoryHandler(1 << 30, flushLevel=100))
    log.propagate = False
    for i in each_step(steps):
        log.warning("%s", bytes(20000 + i))  # leak_of_records
        work()


def leak_queue_without_consumer(steps):
    import queue
    waiting = queue.Queue()  # goes when the function returns
    for _ in each_step(steps):
        waiting.put(bytearray(250000))  # leak_queue_without_consumer
        work()


def leak_numpy(steps):
    import numpy as np
    weights = np.ones((200, 200))
    for _ in each_step(steps):
        out = np.tanh(weights @ weights)  # leak_numpy
        kept.append(out)


def leak_numpy_views(steps):
    """A small piece keeps the whole array."""
    import numpy as np
    for _ in each_step(steps):
        batch = np.ones(100000)  # leak_numpy_views
        kept.append(batch[:10])
        work()


def leak_swept_by_atexit(steps):
    import atexit
    atexit.register(kept.clear)
    for _ in each_step(steps):
        work()
        kept.append(bytearray(400000))  # leak_swept_by_atexit


def leak_swept_by_main(steps):
    history = []
    for _ in each_step(steps):
        work()
        history.append(bytearray(400000))  # leak_swept_by_main


def leak_in_child(steps):
    child = os.fork()
    if child == 0:
        for _ in each_step(steps):
            work()
            kept.append(bytearray(40000))  # leak_in_child
        sys.exit(0)
    os.waitpid(child, 0)


def leak_together(steps):
    for i in each_step(steps):
        node = {"name": "n" * 2000 + str(i)}
        node["data"] = bytearray(60000)  # leak_together
        node["index"] = list(range(300, 500))
        kept.append(node)
        work()


def leak_of_mappings(steps):
    import mmap
    for _ in each_step(steps):
        area = mmap.mmap(-1, 256 * KIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # leak_of_mappings
        area[:] = bytes(256 * KIB)
        kept.append(area)
        work()


def library():
    loaded = ctypes.CDLL(os.environ["LEAKS_LIBRARY"])
    loaded.leak_from_c.restype = ctypes.c_void_p
    loaded.cached_in_c.restype = ctypes.c_void_p
    return loaded


def leak_in_extension(steps):
    loaded = library()
    for _ in each_step(steps):
        loaded.leak_from_c(20000)  # leak_in_extension
        work()


def leak_in_extension_threads(steps):
    loaded = library()
    for _ in each_step(steps):
        thread = threading.Thread(target=loaded.leak_from_c, args=(20000,))
        thread.start()  # leak_in_extension_threads
        thread.join()
        work()


def leak_in_extension_swept(steps):
    import atexit
    loaded = library()
    blocks = []
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    atexit.register(lambda: [free(block) for block in blocks])
    for _ in each_step(steps):
        blocks.append(loaded.leak_from_c(30000))  # leak_in_extension_swept
        work()


def leak_of_xml(steps):
    import xml.etree.ElementTree as tree
    text = "<a>" + "<b c='d'>text of it</b>" * 3000 + "</a>"
    for _ in each_step(steps):
        kept.append(tree.fromstring(text))  # leak_of_xml


def leak_of_json(steps):
    import json
    text = json.dumps([{"name": f"n{i}", "values": [i, i + 1, i / 3]} for i in range(2000)])
    for _ in each_step(steps):
        kept.append(json.loads(text))  # leak_of_json


def leak_of_cursors(steps):
    import sqlite3
    for _ in each_step(steps):
        link = sqlite3.connect(":memory:")
        link.execute("create table t (a)")
        link.executemany("insert into t values (?)", [("x" * 500,)] * 200)  # leak_of_cursors
        kept.append(link)


def leak_of_compressors(steps):
    import zlib
    for _ in each_step(steps):
        kept.append(zlib.compressobj())  # leak_of_compressors
        work()


# What IPython does with cells: each run is code of its own, in a file of no disk; that calls it is no code of the user's.
RUNNER = """
def murmur(text):
    data, factor, bits = text.encode(), 0x5BD1E995, 0xFFFFFFFF
    value = 0xC70F6907 ^ len(data)
    for at in range(0, len(data), 4):
        word = int.from_bytes(data[at:at + 4], "little")
        if at + 4 <= len(data):
            word = word * factor & bits
            word = (word ^ word >> 24) * factor & bits
            value = value * factor & bits ^ word
        else:
            value = (value ^ word) * factor & bits
    value = (value ^ value >> 13) * factor & bits
    return value ^ value >> 15

namespace = {"__name__": "__main__", "_ih": [""], "_oh": {}}
namespace["In"] = namespace["_ih"]

def run_cell(typed, pid):
    namespace["In"].append(typed)
    namespace["_i%d" % (len(namespace["In"]) - 1)] = typed
    exec(compile(typed, "/tmp/ipykernel_%d/%d.py" % (pid, murmur(typed)), "exec"), namespace)

def run_cells(cells, pid):
    for typed in cells:
        run_cell(typed, pid)
"""


def run_cells(*cells):
    space = {}
    exec(compile(RUNNER, "/usr/lib/python3/dist-packages/IPython/runner.py", "exec"), space)
    space["run_cells"](cells, os.getpid())


def leak_same_cell(steps):
    import_much()
    same = ["keep.append(bytearray(1000000))"] * steps
    run_cells("keep = []", *same)  # line 1 of a cell: leak_same_cell


def leak_function_of_cell(steps):
    import_much()
    cells = ["keep = []\n\ndef load(size):\n    keep.append(bytearray(size))", *["load(400000)"] * steps]
    run_cells(*cells)  # line 4 of a cell: leak_function_of_cell


# Unseen: leaks that begin late, or that the program's end sweeps away, written before the rules for them (leakset.py, UNSEEN).

def begin_late():
    for _ in range(300):
        work()


def leak_late_of_instances(steps):
    class Request:
        def __init__(self, size):
            self.body = bytearray(size)  # leak_late_of_instances

    begin_late()
    for i in each_step(steps):
        kept.append(Request(25000 + i))
        work()


def leak_late_buffer(steps):
    """One block, longer and longer."""
    log = bytearray()
    begin_late()
    for _ in each_step(steps):
        log.extend(bytes(30000))  # leak_late_buffer
        work()
    kept.append(log)


def leak_swept_dict(steps):
    seen = {}
    for i in each_step(steps):
        work()
        for k in range(100):
            seen[i, k] = bytes(4000 + k)  # leak_swept_dict


def leak_beside_sessions(steps):
    """Most sessions are closed after a while; of one in twenty that is forgotten."""
    sessions = []
    for i in each_step(steps):
        work()
        for k in range(40):
            session = bytearray(10000)  # leak_beside_sessions
            sessions.append(session)
            if (i * 40 + k) % 20 == 0:
                kept.append(session)
        del sessions[:-300]


def leak_swept_buffer(steps):
    """One block, longer and longer."""
    log = bytearray()
    for _ in each_step(steps):
        work()
        log.extend(bytes(300000))  # leak_swept_buffer


# --- controls -----------------------------------------------------------------------------------

def control_warm_up(steps):
    for i in each_step(steps):
        if i < steps // 4:
            kept.append(bytearray(50000))
        work()


def control_cache_that_fills(steps):
    import random
    keys = random.Random(1)
    for _ in each_step(steps):
        for _ in range(4):
            key = keys.randrange(100)
            if key not in cache:
                cache[key] = bytearray(30000)
        work()


def control_lru_cache(steps):
    import functools

    @functools.lru_cache(maxsize=64)
    def transform(key):
        return bytes(20000 + key)

    for i in each_step(steps):
        for k in range(3):
            transform(i * 3 + k)
        work()


def control_full_cache(steps):
    """It takes out what comes, not what is oldest: blocks of each time stay."""
    import random
    keys = random.Random(1)
    for _ in each_step(steps):
        for _ in range(12):
            key = keys.randrange(4000)
            if key not in cache:
                if len(cache) >= 300:
                    del cache[keys.choice(list(cache))]
                cache[key] = bytearray(10000)
        work()


def control_sawtooth(steps):
    for i in each_step(steps):
        kept.append(bytearray(100000))
        work()
        if i % 25 == 24:
            kept.clear()


def control_lazy_imports(steps):
    import importlib
    names = ("decimal", "email.message", "json", "http.client", "logging", "sqlite3", "unittest", "xml.dom.minidom", "csv", "difflib", "argparse",
             "asyncio", "fractions", "html.parser", "mailbox", "optparse", "pdb", "pickle", "plistlib", "pydoc", "smtplib", "statistics", "tarfile",
             "zipfile", "uuid", "wave", "xmlrpc.client", "ftplib")
    for i in each_step(steps):
        if i % 5 == 0 and i // 5 < len(names):
            importlib.import_module(names[i // 5])
        work()


def control_table_by_comprehension(steps):
    table = [bytearray(2000) for _ in range(5000)]
    for i in each_step(steps):
        table[i % 5000][0] = 1
        work()


def control_table_then_end(steps):
    """Nothing else is done: the whole program builds it, and looks at it once."""
    table = [bytearray(20000) for _ in range(steps * 20)]
    print(sum(row[0] for _ in range(20) for row in table))


def control_table_after_imports(steps):
    import_much()
    table = [bytearray(20000) for _ in range(2000)]
    print(sum(row[0] for _ in range(20) for row in table))


def control_table_of_calls(steps):
    """Each row takes work that is given back."""
    table = [len(work_for(i)) * bytearray(200) for i in range(3000)]
    for i in each_step(steps):
        table[i % 3000][0] = 1
        work()


def work_for(number):
    return bytes(bytearray(100 + number % 7))


def control_table_of_objects(steps):
    table = {f"key {i}": (i, str(i), [i]) for i in range(60000)}
    for i in each_step(steps):
        work()
        table[f"key {i}"][2][0] += 1


def control_table_by_loop(steps):
    rows = []
    for i in range(2000):
        rows.append(bytearray(3000 + i % 100))
    for i in each_step(steps):
        rows[i % 2000][0] = 1
        work()


def control_batches_of_varying_size(steps):
    import random
    sizes = random.Random(2)
    for _ in each_step(steps):
        batch = [bytearray(10000) for _ in range(sizes.randrange(5, 200))]
        work()
        del batch


def control_file_scan(steps):
    with open(sys.executable, "rb") as file:
        for _ in each_step(steps):
            file.seek(0)
            for _ in range(10):
                file.read(200000)


def control_mapping_that_fills(steps):
    import mmap
    area = mmap.mmap(-1, 64 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    piece = 64 * MIB // steps
    for i in each_step(steps):
        area[i * piece:(i + 1) * piece] = bytes(piece)
        work()


def control_mapped_file(steps):
    import mmap
    with open(sys.executable, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as area:
        for i in each_step(steps):
            area[i * 20000:(i + 1) * 20000].count(b"x")
            work()


def control_array_that_fills(steps):
    """One large array, of which each step writes a part."""
    import numpy as np
    results = np.zeros((steps, 50000))
    for i in each_step(steps):
        results[i] = np.arange(50000)
        work()


def control_pool(steps):
    pool = [bytearray(100000) for _ in range(50)]
    for i in each_step(steps):
        pool[i % 50][0] = 1
        work()


def control_ring(steps):
    import collections
    ring = collections.deque(maxlen=20)
    for _ in each_step(steps):
        ring.append(bytearray(200000))
        work()


def control_cycles(steps):
    for _ in each_step(steps):
        for _ in range(30):
            node = {"data": bytearray(3000)}
            node["self"] = node
        work()


def control_patterns(steps):
    import re
    for i in each_step(steps):
        for k in range(10):
            re.compile(f"a{i}(b|c{k})*d+[e-h]{{2,5}}")
        work()


def control_thread_pool(steps):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(4) as pool:
        for _ in each_step(steps):
            list(pool.map(lambda _: work(), range(4)))


def control_small_objects(steps):
    for i in each_step(steps):
        rows = [(k, str(k), [k]) for k in range(5000)]
        del rows


def control_json(steps):
    import json
    text = json.dumps([{"name": f"n{i}", "values": [i, i + 1, i / 3]} for i in range(3000)])
    for _ in each_step(steps):
        json.loads(text)


def control_double_buffer(steps):
    last = None
    for _ in each_step(steps):
        now = bytearray(2 * MIB)
        last, now = now, last
        work()


def control_high_then_done(steps):
    largest = [bytearray(MIB) for _ in range(40)]
    del largest
    for _ in each_step(steps):
        work()


def control_extension_cache(steps):
    import random
    loaded, keys = library(), random.Random(3)
    for _ in each_step(steps):
        for _ in range(2):
            loaded.cached_in_c(keys.randrange(50), 30000)
        work()


def control_cells(steps):
    import_much()
    run_cells("data = [bytearray(20000) for _ in range(200)]", *["result = bytearray(1000000)"] * steps)


def control_different_cells(steps):
    """A variable of each: nothing that one line keeps doing."""
    import_much()
    run_cells(*[f"result_{i} = bytearray(100000 + {i})" for i in range(min(steps, 60))])


def control_history_that_is_cut(steps):
    for _ in each_step(steps):
        kept.append(bytearray(50000))
        if len(kept) > 30:
            del kept[:20]
        work()


# Unseen: the same two kinds.

def control_late_pool(steps):
    begin_late()
    for _ in range(50):
        kept.append(bytearray(100000))
    for i in each_step(steps):
        kept[i % 50][0] = 1
        work()


def control_late_cache_that_evicts(steps):
    import collections
    newest = collections.OrderedDict()
    begin_late()
    for i in each_step(steps):
        newest[i] = bytearray(50000)
        if len(newest) > 20:
            newest.popitem(last=False)
        work()


def stage_of(count):
    history = []
    for _ in range(count):
        work()
        history.append(bytearray(400000))


def control_stages_then_end(steps):
    """The last one ends with the program."""
    for _ in each_step(4):
        stage_of(steps // 4)


def control_read_then_process(steps):
    rows = []
    for _ in range(40):
        work()
        rows.append(bytearray(400000))
    for i in each_step(steps):
        rows[i % 40][0] = 1
        work()


def control_buffer_that_is_cleared(steps):
    log = bytearray()
    for i in each_step(steps):
        work()
        log.extend(bytes(300000))
        if i % 20 == 19:
            log.clear()


if __name__ == "__main__":
    if "TRACEMALLOC" in os.environ:
        import tracemalloc
        tracemalloc.start()
    globals()[sys.argv[1]](int(sys.argv[2]))
