"""held  global `jobs` of module __main__ -> queue.Queue .queue -> collections.deque of 20,000 {*} -> tuple [1] -> bytearray

A queue of which one end is far away. Some of its blocks were another's before: the interpreter has not forgotten where.
"""
import collections
import queue
import sys

jobs = queue.Queue()


def put(i):
    data = bytearray(2000)
    jobs.put((i, data))


for i in range(20000):
    if i == 10000:
        collections.deque(range(500)).clear()
    put(i)
print("ready", flush=True)
sys.stdin.readline()
