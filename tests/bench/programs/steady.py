"""What did the measured phase of a Python workload cost? Prints the line that steady.h prints for C.

    steady.measure(step, units)           warms up, then runs step() units times
    steady.report(start, units)           when the workload has its own loop; start = steady.now()

CPU is that of this process, user and system, all threads; imports and warm-up come before the first clock.
"""
import json
import os
import time


def allocations():
    """How many so far, when the preload that counts is there (floor_shadow.c) and the driver asks; else 0."""
    if "BENCH_COUNT" not in os.environ:
        return 0
    import ctypes
    count = ctypes.CDLL(None).bench_allocations
    count.restype = ctypes.c_ulonglong
    return count()


def now():
    return allocations(), time.process_time(), time.perf_counter()


def resident_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def report(start, units):
    cpu, wall = time.process_time(), time.perf_counter()
    print("bench: " + json.dumps({"units": units, "cpu_s": cpu - start[1], "wall_s": wall - start[2],
                                  "rss_kib": resident_kib(), "pairs": allocations() - start[0] if start[0] else 0}))


def measure(step, units):
    for _ in range(max(20, units // 10)):
        step()
    start = now()
    for _ in range(units):
        step()
    report(start, units)
