"""What test_threads.py records. Each place that keeps memory has a size of its own, and a name behind `# at`."""
import atexit
import ctypes
import os
import sys
import threading
import time

pool = ctypes.CDLL(sys.argv[1])  # releases the lock during a call
held = ctypes.PyDLL(sys.argv[1])
for library in (pool, held):
    library.pool_run.argtypes = library.pool_keep.argtypes = [ctypes.c_size_t]
SIZE = {"pool": 300100, "second": 300200, "released": 300300, "held": 300400, "thread": 300500, "callback": 300600,
        "interpreter": 300700, "import": 300800, "child": 300900, "exit": 301000, "daemon": 301100, "teardown": 301200}
kept = []


def keep(name):
    kept.append(bytearray(SIZE[name] - 1))  # and its terminator


def start():
    pool.pool_start()  # at start


def ask():
    """The line is told by what Python itself allocates there."""
    for i in range(3):
        kept.append(bytearray(2000)); pool.pool_run(SIZE["pool"])  # at pool
        kept.append(bytearray(3000)); pool.pool_run(SIZE["second"])  # at second


def in_a_thread():
    kept.append(bytearray(SIZE["thread"] - 1))  # at thread
    pool.pool_keep(SIZE["released"])  # at released
    held.pool_keep(SIZE["held"])  # at held


@ctypes.CFUNCTYPE(None)
def called():
    kept.append(bytearray(SIZE["callback"] - 1))  # at callback


def with_busy_others(work):
    """Two threads that take the lock from each other all the time, and one that is told apart from them."""
    stop = []

    def busy():
        while not stop:
            [bytearray(700) for i in range(20)]

    others = [threading.Thread(target=busy) for i in range(2)]
    for other in others:
        other.start()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    stop.append(True)
    for other in others:
        other.join()


def in_an_interpreter():
    """On a thread of its own, while the main thread runs Python code, too."""
    try:
        import _interpreters as interpreters  # 3.13
        run = interpreters.exec
    except ImportError:
        import _xxsubinterpreters as interpreters
        run = interpreters.run_string
    ready, go = os.pipe()

    def inside():
        run(interpreters.create(), "import os\nkept = bytearray(%d)\nos.read(%d, 1)\n" % (SIZE["interpreter"] - 1, ready))

    thread = threading.Thread(target=inside)
    thread.start()
    kept.extend(bytearray(900) for i in range(100))
    os.write(go, b".")
    thread.join()


def in_a_child():
    child = os.fork()
    if child == 0:
        pool.pool_start_deep()  # at child_start
        for i in range(4):
            kept.append(bytearray(2000)); pool.pool_run(SIZE["child"])  # at child
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def daemon():
    while True:
        pool.pool_keep(10)
        time.sleep(0.0001)


class Late:
    def __del__(self, keep=keep):
        keep("teardown")


def main():
    start()
    ask()
    with_busy_others(in_a_thread)
    pool.pool_call(called)
    sys.path.insert(0, os.path.join(os.path.dirname(sys.argv[1]), "site-packages"))
    import asks_while_imported  # at import
    in_a_child()  # 3.13.0 cannot fork beside an interpreter with a lock of its own
    if "interpreter" in sys.argv[2:]:
        in_an_interpreter()
    ended = threading.Thread(target=sys.exit, args=(7,))
    ended.start()
    ended.join()
    atexit.register(keep, "exit")
    if "daemon" in sys.argv[2:]:
        threading.Thread(target=daemon, daemon=True).start()
    sys.modules["late"] = Late()
    if "_exit" in sys.argv[2:]:
        os._exit(3)
    if "kill" in sys.argv[2:]:
        os.kill(os.getpid(), 9)


main()
