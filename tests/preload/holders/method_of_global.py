"""held  global `loader` of module __main__ -> Loader .rows -> list of 3,000 [*] -> bytearray
Methods of the object run, and each has it as `self`.
"""
import sys


class Loader:
    def __init__(self):
        self.rows = []

    def load(self):
        for i in range(3000):
            self.rows.append(self.parse(i))

    def parse(self, i):
        if i == 2999:
            print("ready", flush=True)
            sys.stdin.readline()
        return bytearray(20000)


loader = Loader()
loader.rows.append(bytearray(20000))
loader.load()
