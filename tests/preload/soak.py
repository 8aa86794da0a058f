"""Functions that are compiled, called once and dropped, until SIGTERM: soak.py LIBRARY. Prints how many calls of each there were."""
import collections
import ctypes
import json
import os
import signal
import sys
import threading
import _ctypes

NAMES = 200
KEPT = 100  # per thread
THREADS = 3

is_over = threading.Event()
kept = [collections.deque(maxlen=KEPT) for _ in range(THREADS)]
calls = [collections.Counter() for _ in range(THREADS)]


def make(thread):
    turn = 0
    while not is_over.is_set():
        turn += 1
        name = f"made_{turn % NAMES}"
        space = {}
        exec(compile(f"def {name}():\n    return bytes({4096 + turn % NAMES})\n", f"<{name}>", "exec"), space)
        kept[thread].append(space[name]())
        calls[thread][name] += 1


def visit():
    while not is_over.is_set():
        library = ctypes.CDLL(sys.argv[1])
        _ctypes.dlclose(library._handle)
        child = os.fork()
        if child == 0:
            bytes(100000)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0


signal.signal(signal.SIGTERM, lambda *_: is_over.set())
threads = [threading.Thread(target=make, args=(number,)) for number in range(THREADS)] + [threading.Thread(target=visit)]
for each in threads:
    each.start()
while not is_over.wait(0.05):  # another thread may get the signal, and this one would never see to it
    pass
for each in threads:
    each.join()
print(json.dumps({"calls": sum(calls, collections.Counter()), "kept": sum(len(each) for each in kept)}))
