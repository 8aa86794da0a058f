"""held  attribute `stats` of class Dataset -> functools._lru_cache_wrapper .cache -> dict of 300 a key -> tuple [0] -> Dataset .data -> bytearray

A cache on a method keeps each `self`.
"""
import functools
import sys


class Dataset:
    def __init__(self, count):
        self.data = bytearray(count)

    @functools.lru_cache(maxsize=None)
    def stats(self, k):
        return sum(self.data[:k])


def main():
    for i in range(300):
        Dataset(20000 + i).stats(10)


main()
print("ready", flush=True)
sys.stdin.readline()
