# needs: numpy
"""Scalars of numpy, kept one by one."""
import numpy

values = numpy.arange(1000.0)
kept = []


def scalars():
    return [value for value in values]  # culprit


while True:
    kept.append(scalars())
