"""Stops a program of small_objects/ at a place that recording does not move: after so many turns of its culprit line.

small_objects_estimates.py puts `__import__("small_objects_stop").due(); ` in front of that line. Each process counts for itself; a child
of fork goes on from its parent's count. A stopped process waits for SIGKILL. Of the environment:
    STOP_AFTER    the turn
    STOP_BYTES    instead: stop when the process has grown by so much, and write the turn into the file STOP_FILE
"""
import contextlib
import itertools
import os
import signal

AFTER = int(os.environ.get("STOP_AFTER", 0))
BYTES = int(os.environ.get("STOP_BYTES", 0))
LOOK_EACH = 16
turns = itertools.count(1)


def resident_bytes():
    with open("/proc/self/statm") as sums:
        return int(sums.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


START = resident_bytes() if BYTES else 0


def due():
    turn = next(turns)
    if BYTES and turn % LOOK_EACH == 0 and resident_bytes() - START >= BYTES:
        with contextlib.suppress(FileExistsError):  # another thread or process was first
            with open(os.environ["STOP_FILE"], "x") as result:
                result.write(str(turn))
        if os.path.getsize(os.environ["STOP_FILE"]):  # else it has not written yet: a thread must not stop it before
            os.kill(os.getpid(), signal.SIGSTOP)
    elif turn == AFTER:
        os.kill(os.getpid(), signal.SIGSTOP)
