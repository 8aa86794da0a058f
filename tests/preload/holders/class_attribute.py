"""held  attribute `registry` of class Event -> list of 500 [*] -> Event .payload -> bytearray

Each instance enters itself into a list of its class. Instances have slots.
"""
import sys


class Event:
    registry = []
    __slots__ = ("payload", "number")

    def __init__(self, number):
        self.number = number
        self.payload = bytearray(10000)
        Event.registry.append(self)


def main():
    for i in range(500):
        Event(i)


main()
print("ready", flush=True)
sys.stdin.readline()
