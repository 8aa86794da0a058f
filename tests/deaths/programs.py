"""
Programs that die, one function each: programs.py KIND. The line that holds the memory, or asks for too much, ends with "# KIND".

They grow for about a second: time for a heartbeat or two, as in real programs, which take longer.
"""
import ctypes
import faulthandler
import functools
import hashlib
import mmap
import os
import resource
import signal
import subprocess
import sys
import threading
import time

MIB = 1 << 20
kept = []


def slowly():
    time.sleep(.008)


# ---- memory: the limit of a container ----

def leak_in_a_loop():
    while True:
        scratch = bytearray(300000)
        kept.append(bytearray(MIB))  # leak_in_a_loop
        del scratch
        slowly()


def whole_data_set():
    time.sleep(1)
    data = b"x" * (1 << 30)  # whole_data_set
    return data


def wider_type():
    import numpy
    pixels = numpy.ones(30 * MIB, dtype=numpy.uint8)
    time.sleep(1)
    return pixels / 255.0  # wider_type


def small_objects():
    for number in range(1 << 30):
        kept.append({"id": number, "name": str(number)})  # small_objects
        if number % 4000 == 0:
            slowly()


def many_strings():
    for number in range(1 << 30):
        kept.append("row %d of a file that is read line by line" % number)  # many_strings
        if number % 10000 == 0:
            slowly()


def cache_without_end():
    @functools.lru_cache(maxsize=None)
    def load(number):
        return bytes(200000) + bytes([number & 255]) * 300000  # cache_without_end
    for number in range(1 << 30):
        load(number)
        slowly()


def kept_tracebacks():
    def work():
        buffer = b"x" * MIB  # kept_tracebacks
        raise ValueError(len(buffer))
    while True:
        try:
            work()
        except ValueError as error:
            kept.append(error)
        slowly()


def reference_cycles():
    class Node:
        def __init__(self):
            self.me = self
            self.buffer = bytearray(MIB)  # reference_cycles
    while True:
        Node()
        slowly()


def threads_results():
    def work():
        for _ in range(1 << 30):
            kept.append(bytearray(MIB // 2))  # threads_results
            slowly()
    for _ in range(2):
        threading.Thread(target=work).start()


def numpy_in_a_loop():
    import numpy
    while True:
        kept.append(numpy.full(MIB // 8, 1.5))  # numpy_in_a_loop
        slowly()


def anonymous_mapping():
    while True:
        kept.append(mmap.mmap(-1, MIB))  # anonymous_mapping
        kept[-1].write(b"x" * MIB)
        slowly()


def cells(texts):
    """What IPython does, as far as a recorder sees: a namespace with _ih and _oh, and code named <ipython-input-N-...>."""
    namespace = {"__name__": "__main__", "_ih": [""], "_oh": {}, "time": time}
    namespace["In"], namespace["Out"] = namespace["_ih"], namespace["_oh"]
    for number, text in enumerate(texts, 1):
        namespace["_ih"].append(text)
        name = "<ipython-input-%d-%s>" % (number, hashlib.sha1(text.encode()).hexdigest()[:12])
        try:
            namespace["_oh"][number] = namespace["_%d" % number] = eval(compile(text, name, "eval"), namespace)
        except SyntaxError:
            exec(compile(text, name, "exec"), namespace)


def results_in_out():
    cells(["import time\ndef table():\n    time.sleep(.02)\n    return b'x' * 3000000"] + ["table()"] * 1000)


# ---- memory, and several processes ----

def fork(work):
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return child


def workers_copy():
    rows = [[number] for number in range(350000)]  # workers_copy

    def read():
        for first in range(0, len(rows), len(rows) // 100):
            mine = rows[first:first + len(rows) // 100]  # a reference to each: its count is written, its page copied
            time.sleep(.04)
            del mine
        time.sleep(5)
    time.sleep(1)
    children = [fork(read) for _ in range(6)]
    sys.exit(max(1 if os.waitpid(child, 0)[1] else 0 for child in children))


def same_in_every_worker():
    code = "import sys; sys.argv = ['', 'load_one']; exec(compile(open(%r).read(), %r, 'exec'))" % (__file__, __file__)
    children = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    sys.exit(max(1 if child.wait() else 0 for child in children))


def load_one():
    for _ in range(50):
        kept.append(b"x" * MIB)  # same_in_every_worker
        time.sleep(.02)
    time.sleep(3)


def child_is_killed():
    def work():
        while True:
            kept.append(bytearray(MIB))  # child_is_killed
            slowly()
    os.waitpid(fork(work), 0)


def pool_breaks():
    from concurrent.futures import ProcessPoolExecutor
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(grow_in_a_pool, range(4)))


def grow_in_a_pool(_):
    while True:
        kept.append(bytearray(MIB))  # pool_breaks
        slowly()


def files_in_memory():
    """They count against the limit, and are no process's."""
    for number in range(300):
        with open(f"/dev/shm/batch-{number}", "wb") as file:
            file.write(b"x" * MIB)
        kept.append(bytearray(1000))
        time.sleep(.01)


def sibling_eats():
    """Another program in the same container takes the memory; this one, small, is chosen."""
    open("/proc/self/oom_score_adj", "w").write("1000")
    other = subprocess.Popen(["/usr/bin/python3", "-S", "-c", "import time\nopen('/proc/self/oom_score_adj', 'w').write('0')\nkeep = []\n"
                              "while True: keep.append(b'x' * 1000000); time.sleep(.03)"],
                             env={})  # so slowly that a beat of this one sees much of it: it has few events, and looks at the clock each 0.7 s
    end = time.monotonic() + 30
    while time.monotonic() < end:
        kept.append(bytearray(1000))
        time.sleep(.01)
    other.kill()


# ---- memory: a request is refused ----

def limit_addresses(more):
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + more, resource.RLIM_INFINITY))


def address_space():
    limit_addresses(300 * MIB)
    while True:
        kept.append(bytes(8 * MIB))  # address_space


def ulimit_v():
    while True:
        kept.append(bytes(8 * MIB))  # ulimit_v


def beyond_the_machine():
    import numpy
    return numpy.empty(1 << 50, dtype=numpy.uint8)  # beyond_the_machine


def refused_at_once():
    limit_addresses(300 * MIB)
    return bytearray(1 << 30)  # refused_at_once


def shared_memory_full():
    with open("/dev/shm/batches", "wb") as file:
        file.truncate(64 * MIB)
    with open("/dev/shm/batches", "r+b") as file:
        batches = mmap.mmap(file.fileno(), 64 * MIB)  # shared_memory_full
    for at in range(0, 64 * MIB, MIB):
        batches[at:at + MIB] = b"x" * MIB
        slowly()


# ---- memory of a device: over the driver double of tests/cuda ----

class Tensor:
    def __init__(self, addr):
        if addr is None:
            raise RuntimeError("CUDA out of memory")
        self.addr = addr


def device():
    ctypes.CDLL("libcuda.so.1").cuInit(0)
    torch = ctypes.CDLL("libc10_cuda.so")
    torch.c10_cuda_allocate.restype = ctypes.c_void_p
    torch.c10_cuda_allocate.argtypes = [ctypes.c_size_t, ctypes.c_int]
    torch.c10_cuda_release.argtypes = [ctypes.c_void_p]
    return torch


def device_leak():
    torch = device()
    while True:
        activations = [Tensor(torch.c10_cuda_allocate(size, 0)) for size in (300000, 100000)]
        loss = torch.c10_cuda_allocate(40960, 0)  # device_leak
        kept.append(Tensor(loss))
        for tensor in activations:
            torch.c10_cuda_release(tensor.addr)


def device_batch():
    torch = device()
    for _ in range(20):
        kept.append(Tensor(torch.c10_cuda_allocate(1000000, 0)))
    batch = torch.c10_cuda_allocate(60 * MIB, 0)  # device_batch
    return Tensor(batch)


# ---- what is no death by memory ----

def hold():
    """Much memory, and no end to it by itself."""
    kept.append(b"x" * (80 * MIB))
    print(os.getpid(), flush=True)
    time.sleep(60)


def segfault():
    kept.append(b"x" * (60 * MIB))
    ctypes.string_at(16)


def segfault_told():
    faulthandler.enable()
    kept.append(b"x" * (60 * MIB))
    ctypes.string_at(16)


def abort():
    kept.append(b"x" * (60 * MIB))
    os.abort()


def exit_137():
    kept.append(b"x" * (60 * MIB))
    os._exit(137)


def traceback():
    kept.append(b"x" * (60 * MIB))
    return {}["missing"]


def exit_3():
    """It recovers from a refused request, works on, and ends for another reason."""
    limit_addresses(300 * MIB)
    try:
        kept.append(bytearray(1 << 30))
    except MemoryError:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        for _ in range(100):
            kept.append(bytearray(300000))
            slowly()
        kept.append(bytearray(1 << 30)[:1000])
    sys.exit(3)


def recursion_error():
    def deeper(number):
        return deeper(number + 1) + 1
    return deeper(0)


def recursion_in_c():
    sys.setrecursionlimit(1 << 30)
    deep = None
    for _ in range(1000000):
        deep = [deep]
    repr(deep) if sys.version_info < (3, 9) else deeply_called()


def deeply_called():
    class Deep:
        def __getattr__(self, name):
            return getattr(self, name + "x")
    return Deep().anything


def cpu_limit():
    kept.append(b"x" * (60 * MIB))
    resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
    while True:
        pass


def file_limit():
    kept.append(b"x" * (60 * MIB))
    resource.setrlimit(resource.RLIMIT_FSIZE, (100 * MIB, 100 * MIB))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    with open(os.environ["SCRATCH"], "wb") as file:
        file.truncate(200 * MIB)


def open_files():
    kept.append(b"x" * (60 * MIB))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    while True:
        kept.append(open("/dev/null"))


def threads():
    """More than the system gives this user, or this container."""
    kept.append(b"x" * (60 * MIB))
    stop = threading.Event()
    started = []
    try:
        for _ in range(60):
            thread = threading.Thread(target=stop.wait)
            thread.start()
            started.append(thread)
    finally:
        stop.set()


def processes():
    """More than the system gives this user, or this container."""
    kept.append(b"x" * (60 * MIB))
    started = []
    try:
        for _ in range(60):
            pid = os.fork()
            if pid == 0:
                time.sleep(60)
                os._exit(0)
            started.append(pid)
    finally:
        for pid in started:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def interrupted():
    kept.append(b"x" * (60 * MIB))
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)


def broken_pipe():
    kept.append(b"x" * (60 * MIB))
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    read, write = os.pipe()
    os.close(read)
    os.write(write, b"x")


def timed_out_child():
    """A child that takes too long is killed, and the exception ends the parent, as subprocess.run() does it. It has begun by then."""
    child = subprocess.Popen([sys.executable, __file__, "hold"], stdout=subprocess.PIPE)
    child.stdout.readline()
    try:
        child.communicate(timeout=1)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
        raise


def killed_by_a_parent():
    """A supervisor that is not recorded: the same with its own signal."""
    child = subprocess.Popen([sys.executable, __file__, "hold"], stdout=subprocess.PIPE)
    child.stdout.readline()
    child.kill()
    sys.exit(1 if child.wait() else 0)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
