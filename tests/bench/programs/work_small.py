"""Pure Python that does nothing but make small objects, 1,000 a round.   work_small.py kept|temporaries|containers|strings ROUNDS"""
import sys

import steady

OBJECTS = 1000
WINDOW = 20 * OBJECTS  # what is kept is replaced after so many


class Instance:
    def __init__(self, number):
        self.number = number


class Empty:
    __slots__ = ()


kept = [None] * WINDOW
start = 0


def keep(make):
    """Each object stays until its place comes round again."""
    global start
    for place in range(start, start + OBJECTS):
        kept[place] = make(place)
    start = (start + OBJECTS) % WINDOW


def temporaries():
    for _ in range(OBJECTS):
        Empty()


STEPS = {
    "kept": lambda: keep(Instance),
    "temporaries": temporaries,
    "containers": lambda: keep(lambda number: {"number": number, "parts": [number]}),
    "strings": lambda: keep(lambda number: "customer number %09d of the northern region" % number),
}
steady.measure(STEPS[sys.argv[1]], int(sys.argv[2]))
