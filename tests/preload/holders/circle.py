"""lost  Node .payload -> bytearray

Circles, and the collector is off.
"""
import gc
import sys

gc.disable()


class Node:
    def __init__(self):
        self.me = self
        self.payload = bytearray(20000)


for _ in range(300):
    Node()
print("ready", flush=True)
sys.stdin.readline()
