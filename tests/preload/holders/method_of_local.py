"""held  local `loader` of main() (method_of_local.py:22) -> Loader .rows -> list of 3,000 [*] -> bytearray
Methods of the object run, and each has it as `self`.
"""
import sys


class Loader:
    def __init__(self):
        self.rows = [bytearray(20000)]

    def load(self):
        for i in range(3000):
            self.rows.append(self.parse(i))

    def parse(self, i):
        if i == 2999:
            print("ready", flush=True)
            sys.stdin.readline()
        return bytearray(20000)


def main():
    loader = Loader()
    loader.load()


main()
