"""Like leak_classes.c, in Python: leak_classes.py SCENE; the class is asked of the line in kept()."""
import sys

held = []
cache = {}


def kept(size):
    return bytearray(size)  # kept


def work(size, count):
    for _ in range(count):
        bytearray(size)


def leak_in_a_list():
    for _ in range(5000):
        held.append(kept(1000))
        work(2000, 3)


def leak_after_a_pool():
    held.append(bytearray(256 << 20))
    for _ in range(5000):
        held.append(kept(1000))
        work(700, 2)


def leak_before_a_large_block():
    for _ in range(4000):
        held.append(kept(600))
        work(5000, 2)
    bytearray(256 << 20)


def leak_after_large_buffers():
    work(32 << 20, 100)
    for _ in range(20000):
        held.append(kept(600))


def control_cache():
    for i in range(20000):
        cache[i % 300] = kept(3000)
        work(1000, 2)


def control_data_set():
    for _ in range(5000):
        held.append(kept(3000))
    for _ in range(20000):
        work(3000, 2)


def control_large_data_set():
    for _ in range(12):
        held.append(kept(8 << 20))
    for _ in range(20000):
        work(3000, 2)


globals()[sys.argv[1]]()
