"""held  global `jobs` of module __main__ -> queue.Queue .queue -> collections.deque of 20,000 {*} -> tuple [1] -> bytearray

A queue of which one end is far away.
"""
import queue
import sys

jobs = queue.Queue()


def put(i):
    jobs.put((i, bytearray(2000)))


for i in range(20000):
    put(i)
print("ready", flush=True)
sys.stdin.readline()
