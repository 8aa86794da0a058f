"""held  global `heads` of module __main__ -> list of 300 [*] -> memoryview .obj -> bytearray

A view of a few bytes keeps the whole buffer.
"""
import sys

heads = []
for _ in range(300):
    heads.append(memoryview(bytearray(20000))[:10])
print("ready", flush=True)
sys.stdin.readline()
