"""held  global `Out` of module __main__ -> bytearray

IPython keeps the result of each cell under a name of its own.
"""
import sys

Out = {}
for number in range(300):  # the storage of the names is a block of this line, and not of the next one
    globals()["_%d" % number] = None
for number in range(300):
    globals()["_%d" % number] = bytearray(20000 + number)
print("ready", flush=True)
sys.stdin.readline()
