"""One case of test_object_samples.py: python samples_program.py CASE END. Runs on 3.8 and later.

Keeps objects of known sizes, and prints what must be alive: one JSON line with {function: bytes}. END says how the program ends: kill or exit;
or it goes on until it is killed, and makes objects that give the recorder a reason to look.

Only kinds without a free list are counted: what such a list gives out is no event of the allocator.
"""
import json
import os
import signal
import sys
import threading

expected = {}
kept = []
HEAD = sys.getsizeof(b"")  # of a bytes object, with the terminator


class Slots:
    __slots__ = ("a", "b", "c", "d")


def done(function, nbytes):
    expected[function] = expected.get(function, 0) + nbytes


def mixed(count, into):
    """Sizes from 33 to 433."""
    total = 0
    for i in range(count):
        n = i * 7919 % 400 + 1
        into[i] = bytes(n)
        total += HEAD + n
    return total


def whole(count=60000):
    rows = [None] * count
    total = mixed(count, rows)
    kept.append(rows)
    done("mixed", total)


def halves(count=120000):
    """Every second one is released again."""
    rows = [None] * count
    for i in range(count):
        rows[i] = bytes(167)
    for i in range(0, count, 2):
        rows[i] = None
    kept.append(rows)
    done("halves", count // 2 * (HEAD + 167))


def tables(count=40000):
    """bytearrays whose memory grows by realloc: the last one counts."""
    rows = [None] * count
    for i in range(count):
        one = bytearray(20)
        one.extend(bytes(100))
        one.extend(bytes(200))
        rows[i] = one
    kept.append(rows)
    done("tables", sum(sys.getsizeof(one) for one in rows))


def dropped(count=200000):
    for i in range(count):
        bytes(167)


def ledger():
    whole()
    halves()
    tables()
    dropped()


def many_lines():
    count = 60000
    body = "".join("    rows = [None] * %d\n    for i in range(%d): rows[i] = bytes(72)\n    kept.append(rows)\n" % (count, count)
                   for _ in range(24))
    names = {"kept": kept}
    exec(compile("def many_lines():\n" + body, __file__, "exec"), names)
    names["many_lines"]()
    done("many_lines", 24 * count * (HEAD + 72))


def threads():
    def work():
        whole(15000)

    all_threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in all_threads:
        thread.start()
    for thread in all_threads:
        thread.join()


def little():
    kept.append([None] * 100)
    for i in range(100):
        kept[-1][i] = bytes(72)


def many_threads():
    for _ in range(400):
        thread = threading.Thread(target=little)
        thread.start()
        thread.join()
    done("little", 400 * 100 * (HEAD + 72))


def fork():
    halves()
    child = os.fork()
    if child != 0:
        os._exit(os.waitpid(child, 0)[1] != 0)
    expected.clear()
    kept.clear()  # what the parent made is none of the child's
    whole()


def childs_own():
    rows = [None] * 160000
    for i in range(160000):
        rows[i] = bytes(72)
    kept.append(rows)


def siblings():
    children = []
    for _ in range(8):
        child = os.fork()
        if child == 0:
            childs_own()
            os.kill(os.getpid(), signal.SIGKILL)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def tracemalloc():
    """Comes and goes on top of the wrappers."""
    import tracemalloc as tool
    whole(20000)
    tool.start()
    halves(60000)
    tool.stop()
    tables(20000)


SUB = """
def subs():
    rows = [None] * 30000
    for i in range(30000):
        rows[i] = bytes(i * 7919 % 400 + 1)
    return rows
"""


def subinterpreters(has_own_lock=False):
    """Six, what two of them made goes with them. Each has a thread, as of 3.12; with locks of their own they run at the same time."""
    try:
        import _interpreters as module
        create = lambda: module.create("isolated" if has_own_lock else "legacy")  # noqa: E731
    except ImportError:
        import _xxsubinterpreters as module
        options = {"isolated": has_own_lock} if sys.version_info >= (3, 12) else {}
        create = lambda: module.create(**options)  # noqa: E731
    script = "exec(compile(%r, %r, 'exec'), globals())\nkept = subs()\n" % (SUB, __file__)
    all_of_them = [create() for _ in range(6)]
    kept.append(all_of_them)  # up to 3.12 an interpreter goes with its number
    running = [threading.Thread(target=module.run_string, args=(one, script)) for one in all_of_them]
    for thread in running:
        (thread.start if sys.version_info >= (3, 12) else thread.run)()  # docs/limits.md says what is told up to 3.11
    for thread in running:
        if sys.version_info >= (3, 12):
            thread.join()
    for one in all_of_them[:2]:
        module.destroy(one)
    done("subs", 4 * sum(HEAD + i * 7919 % 400 + 1 for i in range(30000)))
    whole()


def subinterpreters_with_locks():
    subinterpreters(True)


def two_lines():
    whole(40000)
    halves(int(os.environ["COUNT"]))


def kinds():
    rows = [None] * 400000
    for i in range(400000):
        rows[i] = Slots()
    kept.append(rows)
    done("kinds", 400000 * sys.getsizeof(rows[0]))


class Answers:
    def __getattr__(self, name):
        return 1


def looked_up(target, count=300000):
    """Names made anew for each look: the cache of attributes keeps some of them."""
    for _ in range(count):
        getattr(target, "".join(("a_name_of_an_attribute_", "that_is_made_", "anew")))


def names():
    kept_names = [None] * 100000
    target = Answers()
    looked_up(target)
    total = 0
    for i in range(100000):
        kept_names[i] = name = "name_%d_that_is_looked_up_and_kept" % i
        getattr(target, name)
        total += sys.getsizeof(name)
    kept.append(kept_names)
    done("names", total)
    looked_up(target)


def value_of(number):
    return "".join(("a_value_", "_" * 400, "of_%06d" % number))


def values():
    """What the cache of attributes finds, not what it looks up: it has no reference to it, and the class has the only one."""
    classes = [type("C", (), {"name": value_of(i)}) for i in range(20000)]
    kept.append(classes)
    done("value_of", sum(sys.getsizeof(one.name) for one in classes))
    for _ in range(100):
        for one in classes:
            one.name
            bytes(400)


def before():
    rows = [None] * 100000
    for i in range(100000):
        rows[i] = bytes(167)
    return rows


def released_at_exit():
    import atexit
    rows = [None] * 200000
    for i in range(200000):
        rows[i] = bytes(72)
    done("released_at_exit", 200000 * (HEAD + 72))
    atexit.register(rows.clear)


def put_back():
    """Somebody puts the interpreter's own allocator back; it is looked after a while."""
    import ctypes
    rows = before()
    replaced = (ctypes.c_void_p * 5)()
    for domain in (1, 2):
        ctypes.pythonapi._PyMem_SetDefaultAllocator(domain, replaced)
    rows.clear()
    for i in range(3000):
        exec(compile("bytearray(5000)", "<%d>" % i, "exec"))
    whole()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
    print(json.dumps(expected))
    sys.stdout.flush()
    if sys.argv[2] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    while sys.argv[2] == "goes on":
        bytes(400), bytes(600)  # a small object, and an event of malloc
