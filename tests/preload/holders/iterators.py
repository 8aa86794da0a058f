"""held  global `waiting` of module __main__ -> list of 300 [*] -> zip .iterables -> tuple [0] -> map .iterables -> tuple [0] -> list_iterator .list -> list [0] -> bytearray

Iterators that are not at their end: zip over map over a list.
"""
import sys

waiting = []
for number in range(300):
    waiting.append(zip(map(len, [bytearray(20000)]), range(3)))
print("ready", flush=True)
sys.stdin.readline()
