"""held  global `listeners` of module __main__ -> list of 300 [*] -> method .__self__ -> Widget .pixels -> bytearray

A list of callbacks that are methods of instances.
"""
import sys

listeners = []


class Widget:
    def __init__(self):
        self.pixels = bytearray(20000)
        listeners.append(self.draw)

    def draw(self):
        return len(self.pixels)


for _ in range(300):
    Widget()
print("ready", flush=True)
sys.stdin.readline()
