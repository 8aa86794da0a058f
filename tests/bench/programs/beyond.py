"""What does an event cost when there are many functions, or calls inside calls?   beyond.py functions|innermost|levels N EVENTS

functions   N functions, each allocates a block that malloc serves; one after the other
innermost   the same allocation again and again, N calls deep
levels      two blocks at each of N levels, one of which stays until the level returns
"""
import sys

import steady

kind, size, events = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sys.setrecursionlimit(10 ** 6)
WARM_UP = 3


def made_functions():
    names = {}
    for first in range(0, size, 1000):
        exec("".join(f"def f{i}():\n    return bytearray(700)\n" for i in range(first, min(first + 1000, size))), names)
    return [names[f"f{i}"] for i in range(size)]


def deep(level, work):
    return deep(level - 1, work) if level else work()


def two_blocks(level):
    first = bytes(600)
    if level:
        two_blocks(level - 1)
    bytes(600)
    return first


def run(step, events_a_step):
    """All steps from one place: from another one they would be other stacks."""
    steps = max(1, events // events_a_step)
    for number in range(WARM_UP + steps):
        if number == WARM_UP:
            start = steady.now()
        step()
    steady.report(start, steps * events_a_step)


if kind == "functions":
    functions = made_functions()
    run(lambda: any(function() is None for function in functions), size)
elif kind == "innermost":
    deep(size, lambda: run(lambda: bytearray(700), 1))
else:
    run(lambda: two_blocks(size), 2 * size)
