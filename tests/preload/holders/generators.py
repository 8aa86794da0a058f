"""held  global `pool` of module __main__ -> Pool .open -> set of 300 {*} -> generator, local `chunk` of rows() (generators.py:8) -> bytearray

Generators that nobody ends.
"""
import sys


def rows(count):
    chunk = bytearray(count)
    for i in range(count):
        yield chunk[i]


class Pool:
    def __init__(self):
        self.open = set()

    def start(self):
        generator = rows(20000)
        next(generator)
        self.open.add(generator)


pool = Pool()
for _ in range(300):
    pool.start()
print("ready", flush=True)
sys.stdin.readline()
