"""held  global `frames` of module __main__ -> list of 40 \[\*\] -> pandas\.DataFrame \._mgr -> pandas\.core\.internals\.managers\.BlockManager \.blocks -> tuple \[[01]\] -> pandas\.core\.internals\.blocks\.NumpyBlock \.values -> numpy\.ndarray.*

A chain of operations, of which the results are kept.
"""
import sys

import numpy
import pandas

frames = []


def load(i):
    frame = pandas.DataFrame({"a": numpy.arange(20000.0), "b": numpy.arange(20000.0) + i})
    frames.append(frame[frame.a > 10].assign(c=lambda f: f.a + 1))


for number in range(40):
    load(number)
print("ready", flush=True)
sys.stdin.readline()
