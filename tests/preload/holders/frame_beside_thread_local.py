"""held  local `pages` of deep() (frame_beside_thread_local.py:21) -> list of 300 [*] -> bytearray

The kernel makes one mapping of the frame and the thread-local memory of a thread: they stand side by side.
"""
import ctypes
import sys
import threading

CHUNK, STACK = 16384, 1 << 20  # CPython from 3.11 on puts frames into chunks
libc = ctypes.CDLL(None)
mmap, munmap = libc.mmap, libc.munmap
mmap.restype, mmap.argtypes = ctypes.c_size_t, [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_size_t]
munmap.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
may_go_on = threading.Event()


def map_memory(size):
    return mmap(0, size, 3, 0x22, -1, 0)


def deep(level):
    if level:
        return deep(level - 1)
    pages = []
    for _ in range(300):
        pages.append(bytearray(70000))
    print("ready", flush=True)
    sys.stdin.readline()


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def run_thread(_):
    may_go_on.wait()
    deep(140)  # 14 KiB of frames and more: they need another chunk


# The kernel takes the highest hole that is large enough: the small ones are filled, and one is left above the stack.
filled = [map_memory(CHUNK) for _ in range(1000)]
stack = map_memory(STACK + CHUNK)
thread, attributes = ctypes.c_ulong(), ctypes.create_string_buffer(64)
libc.pthread_attr_init(attributes)
libc.pthread_attr_setstack(attributes, ctypes.c_void_p(stack), ctypes.c_size_t(STACK))
libc.pthread_create(ctypes.byref(thread), attributes, run_thread, None)
munmap(stack + STACK, CHUNK)
may_go_on.set()
libc.pthread_join(thread, None)
