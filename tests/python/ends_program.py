"""Programs that release in Python's exit handlers what they held all along, for test_python_ends.py.

    ends_program.py SCENE
"""
import atexit
import functools
import os
import sys
import threading
import types

COUNT, BYTES = 400, 20000
cache = {}


def remember(i):
    cache[i] = bytearray(BYTES)  # cache


@functools.lru_cache(maxsize=None)
def computed(i):
    return bytearray(BYTES)  # computed


class Kept:
    def __init__(self):
        self.blocks = []

    def fill(self):
        for _ in range(COUNT):
            self.blocks.append(bytearray(BYTES))  # kept

    def clear(self):
        self.blocks.clear()


def fill():
    for i in range(COUNT):
        remember(i)
        for _ in range(10):
            bytearray(BYTES)


def late():
    return [bytearray(BYTES) for _ in range(3 * COUNT)]  # late


def late_and_clear():
    late()
    cache.clear()


def worker():
    fill()
    sys.exit(3)  # ends this thread alone


def atexit_method():
    kept = Kept()
    kept.fill()
    atexit.register(kept.clear)


def atexit_function():
    fill()
    atexit.register(lambda: cache.clear())


def atexit_builtin():
    fill()
    atexit.register(cache.clear)


def lru_cache():
    for i in range(COUNT):
        computed(i)
    atexit.register(computed.cache_clear)


def sys_exit():
    atexit_builtin()
    sys.exit(4)


def sys_exit_in_a_function_that_holds():
    held = dict.fromkeys(range(10))
    atexit_builtin()
    sys.exit(len(held) - 6)


def sys_exit_in_a_thread():
    atexit.register(cache.clear)
    thread = threading.Thread(target=worker)
    thread.start()
    thread.join()


def os_exit_in_a_handler():
    fill()
    atexit.register(os._exit, 5)
    atexit.register(cache.clear)


def handler_that_works():
    fill()
    atexit.register(late_and_clear)


def pool():
    import concurrent.futures
    executor = concurrent.futures.ThreadPoolExecutor(2)
    list(executor.map(remember, range(COUNT)))
    atexit.register(cache.clear)


def threads_that_run_on():
    """They are waited for, and what they did is what the program did."""
    threading.Thread(target=fill).start()


def runs_code():
    """What ends here is code of a module, but not the program's."""
    exec(compile("x = 1", "made.py", "exec"), types.ModuleType("made").__dict__)
    fill()
    exec(compile("x = 2", "made.py", "exec"), types.ModuleType("made").__dict__)
    cache.clear()


def killed():
    """Before the end: nothing was released by it."""
    import signal
    runs_code()
    fill()
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
