"""Pure Python: a loop that makes small objects and drops them, a window of them alive.   work_churn.py ROUNDS"""
import sys

import steady


class Point:
    __slots__ = ("x", "y", "name")

    def __init__(self, x, y):
        self.x = x
        self.y = y
        self.name = "point %d" % x


def step():
    window = [None] * 64
    total = 0
    for i in range(2000):
        point = Point(i * 1000, i + 0.5)
        record = {"point": point, "number": i + 1000, "words": point.name.split()}
        pairs = [(record["number"] + k, k) for k in range(300, 305)]
        window[i % 64] = (point, record, pairs)
        total += len(record["words"]) + pairs[0][0]
    return total


steady.measure(step, int(sys.argv[1]))
