"""held  global `memo` of module __main__ -> dict of 60,000 a key -> tuple

As it is while it moves to larger storage: the entries are there, their number is not written yet.
"""
import ctypes
import sys

memo = {}
def add():
    for number in range(60000):
        memo[(number,) * 100] = None

add()
keys = ctypes.c_size_t.from_address(id(memo) + object.__basicsize__ + 16).value
count = ctypes.c_ssize_t.from_address(keys + (24 if sys.version_info >= (3, 11) else 32))
kept, count.value = count.value, 0
print("ready", flush=True)
sys.stdin.readline()
count.value = kept
