"""One of two readers never reads: what the other took is kept."""
import itertools


def source():
    number = 0
    while True:
        yield "line %d of a long log file, with a time and a level" % number  # culprit
        number += 1


fast, slow = itertools.tee(source())
for line in fast:
    pass
