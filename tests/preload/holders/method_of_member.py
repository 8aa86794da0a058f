"""held  global `core` of module __main__ -> Core .events -> Store .pages -> dict of 2,000 [*] -> bytearray
What put() has as `self`, the object of a global has as well: that one outlives the call."""
import sys


class Store:
    def __init__(self):
        self.pages = {}

    def put(self, count):
        for n in range(count):
            self.pages[n] = bytearray(2000)
        print("ready", flush=True)
        sys.stdin.readline()


class Core:
    def __init__(self):
        self.events = Store()


core = Core()
core.events.put(2000)
