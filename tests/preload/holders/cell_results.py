"""held  global `Out` of module __main__ -> bytearray

IPython keeps the result of each cell under a name of its own.
"""
import sys

Out = {}
for number in range(300):
    globals()["_%d" % number] = bytearray(20000 + number)
print("ready", flush=True)
sys.stdin.readline()
