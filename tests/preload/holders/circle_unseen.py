"""lost  numpy.ndarray .data -> block of circle_unseen.py:12 Node.__init__ -> Node .payload -> bytearray

Circles through arrays, which the collector does not see.
"""
import sys

import numpy


class Node:
    def __init__(self):
        self.around = numpy.empty(1, dtype=object)
        self.around[0] = self
        self.payload = bytearray(20000)


for _ in range(300):
    Node()
print("ready", flush=True)
sys.stdin.readline()
