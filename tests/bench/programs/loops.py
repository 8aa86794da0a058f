"""What does one more of something cost that Python does?   loops.py small|large|eval|kept COUNT

small   objects that Python's own allocator serves, dropped at once
large   objects that malloc serves, dropped at once
eval    an expression is compiled, run and dropped
kept    objects that malloc serves, alive until the interpreter has ended
"""
import sys

import steady


class Empty:
    __slots__ = ()


def small():
    return Empty()


def large():
    return bytearray(600)


def evaluate():
    return eval("2 + len(kind)")


kind, count = sys.argv[1], int(sys.argv[2])
kept = []
start = steady.now()
if kind == "kept":
    kept.extend(bytearray(600) for _ in range(count))
else:
    step = {"small": small, "large": large, "eval": evaluate}[kind]
    for _ in range(count):
        step()
steady.report(start, count)
