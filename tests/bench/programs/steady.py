"""What did the measured phase of a Python workload cost? Prints the line that steady.h prints for C.

    steady.measure(step, units)           warms up, then runs step() units times
    for _ in steady.turns():              when the workload has its own loop; start = steady.now()
        steady.report(start, units)

With BENCH_TURNS set the measured phase is repeated, once for each line of the standard input: runner.Turns.

CPU is that of this process, user and system, all threads, and of its children that have ended; imports and warm-up come before the first clock.
"""
import json
import os
import resource
import sys
import time


def allocations():
    """How many so far, when the preload that counts is there (floor_shadow.c) and the driver asks; else 0."""
    if "BENCH_COUNT" not in os.environ:
        return 0
    import ctypes
    count = ctypes.CDLL(None).bench_allocations
    count.restype = ctypes.c_ulonglong
    return count()


def cpu():
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def now():
    return allocations(), cpu(), time.perf_counter()


def resident_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def report(start, units):
    spent, wall = cpu(), time.perf_counter()
    print("bench: " + json.dumps({"units": units, "cpu_s": spent - start[1], "wall_s": wall - start[2],
                                  "rss_kib": resident_kib(), "pairs": allocations() - start[0] if start[0] else 0}), flush=True)


def turns():
    if "BENCH_TURNS" not in os.environ:
        yield
        return
    print("bench: ready", flush=True)
    for _ in sys.stdin:
        yield


def measure(step, units, warm_up=None):
    for _ in range(max(20, units // 10) if warm_up is None else warm_up):
        step()
    for _ in turns():
        start = now()
        for _ in range(units):
            step()
        report(start, units)
