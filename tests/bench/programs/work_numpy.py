"""NumPy churn: temporaries of all sizes, from a few bytes to what the allocator maps.   work_numpy.py ROUNDS"""
import sys

import numpy

import steady

random = numpy.random.default_rng(1)
table = random.standard_normal((400, 300))
weights = random.standard_normal((300, 100))


def step():
    hidden = numpy.maximum(table @ weights + 0.5, 0.0)
    total = float((hidden - hidden.mean(axis=0)).std())
    for size in range(1, 120):
        part = table[:size, :20] * 2.0 + 1.0
        total += float(numpy.concatenate([part, part[::-1]]).sum())
    return total + float(numpy.sort(table, axis=1)[:, ::7].sum())


steady.measure(step, int(sys.argv[1]))
