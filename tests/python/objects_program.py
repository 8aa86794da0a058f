"""One case of test_objects.py: python objects_program.py CASE END. Runs on 3.8 and later.

Makes objects of known sizes on lines of their own, keeps some, and prints what must be alive: one JSON line with
{function: [blocks, bytes]}. END says how the program ends: kill, exit, or _exit; or it goes on with `leak` until it is killed.

Only kinds without a free list are counted: what such a list gives out is no event of the allocator.
"""
import json
import os
import signal
import sys
import threading

COUNT = 3000
WORD = "\u00e9"
expected = {}


class Slots:
    __slots__ = ("a", "b", "c", "d")


class Plain:
    __slots__ = ("a",)


def slots():
    return Slots()


def plain():
    return object()


def small_bytes():
    return bytes(7)


def middle_bytes():
    return bytes(300)


def large_bytes():
    return bytes(3000)


def text():
    return WORD * 60


def dropped():
    return Slots()


def keep(make, count=COUNT):
    """One block each, of the size that the interpreter says."""
    kept = [None] * count
    for i in range(count):
        kept[i] = make()
    blocks, size = expected.get(make.__name__, [0, 0])
    expected[make.__name__] = [blocks + count, size + sum(map(sys.getsizeof, kept))]
    return kept


def case_ledger():
    kept = [keep(make) for make in (slots, plain, small_bytes, middle_bytes, large_bytes, text)]
    for _ in range(COUNT):
        dropped()
    expected["dropped"] = [0, 0]
    return kept


def grow(items):
    items.append(None)


def case_realloc():
    """Tables of lists: one block that grows through all sizes, from the interpreter's arenas into malloc's heap."""
    lists = [[] for _ in range(50)]
    for items in lists:
        for _ in range(400):
            grow(items)
    empty = sys.getsizeof([])
    expected["grow"] = [len(lists), sum(sys.getsizeof(items) - empty for items in lists)]
    return lists


def case_threads():
    threading.Thread(target=int).start()
    while len(os.listdir("/proc/self/task")) != 1:
        pass  # up to 3.8 the first thread that ends loads libgcc_s: that memory is given to the line that another thread is at
    kept = []
    threads = [threading.Thread(target=lambda: kept.append(keep_in_thread())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for part in kept:
        del part[::2]  # given back by another thread
    expected["slots"] = [sum(map(len, kept)), sum(sys.getsizeof(one) for part in kept for one in part)]
    return kept


def keep_in_thread():
    kept = [None] * COUNT
    for i in range(COUNT):
        kept[i] = slots()
    return kept


def case_fork():
    before = keep(slots)
    child = os.fork()
    if child != 0:
        before.clear()
        os.waitpid(child, 0)
        os._exit(0)
    expected.clear()
    before.clear()  # not the child's
    return [keep(slots, 1000), keep(large_bytes, 1000)]


def case_tracemalloc():
    """Somebody wraps the allocators on top, and leaves again."""
    import tracemalloc
    kept = [keep(slots)]
    tracemalloc.start()
    kept.append(keep(middle_bytes))
    tracemalloc.stop()
    kept.append(keep(text))
    return kept


def case_thrown_out():
    """-X tracemalloc came before us: when it stops, the wrappers are gone until they are missed."""
    import tracemalloc
    tracemalloc.stop()
    for i in range(3000):  # new stacks, which are walked
        exec(compile("bytearray(5000)\n" * 3, "<%d>" % i, "exec"))
    return [keep(slots), keep(large_bytes)]


step_kept = []


def step(i):
    for _ in range(50):
        dropped()
    one = Slots()
    if i % 10 == 0:
        step_kept.append(one)


def case_leak():
    for i in range(20000):
        step(i)
    return step_kept


def case_refused():
    """Each object is to become larger than any memory, and stays what it is."""
    import ctypes
    resize = ctypes.pythonapi.PyObject_Realloc
    resize.restype, resize.argtypes = ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_size_t)
    kept = keep(plain)
    for one in kept:
        assert resize(id(one), 1 << 46) is None
    return kept


def case_arenas():
    return [slots() for _ in range(400000)]  # 25 MB and more


def main(case, end):
    kept = globals()["case_" + case]()
    print(json.dumps(expected), flush=True)
    while end == "goes on":
        case_leak()
    if end == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if end == "_exit":
        os._exit(0)
    sys.kept = kept


main(*sys.argv[1:])
