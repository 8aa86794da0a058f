"""held  global `heads` of module __main__ -> list of 300 [*] -> memoryview .obj -> bytearray

A view of a few bytes keeps the whole buffer.
"""
import sys

heads = []


def view():
    buffer = bytearray(20000)
    heads.append(memoryview(buffer)[:10])


for _ in range(300):
    view()
print("ready", flush=True)
sys.stdin.readline()
