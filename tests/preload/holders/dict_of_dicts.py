"""held  global `sessions` of module __main__ -> dict of 3,000 [*] -> dict ['page'] -> bytearray

A dictionary whose values are dictionaries.
"""
import sys

sessions = {}


def handle(i):
    page = bytearray(2000)
    sessions["user-%d" % i] = {"id": i, "page": page, "score": i * 0.5}


for i in range(3000):
    handle(i)
print("ready", flush=True)
sys.stdin.readline()
