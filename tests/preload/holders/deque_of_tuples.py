"""held  global `queue` of module __main__ -> collections.deque of 600 {*} -> tuple [1] -> bytearray

A queue that nobody empties.
"""
import collections
import sys

queue = collections.deque()


def put(i):
    queue.append((i, bytearray(10000)))


for i in range(600):
    put(i)
print("ready", flush=True)
sys.stdin.readline()
