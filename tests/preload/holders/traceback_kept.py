"""held  global `failures` of module __main__ -> list of 300 [*] -> ValueError .__traceback__ -> traceback .tb_next -> traceback .tb_frame -> frame, local `buffer` of parse() (traceback_kept.py:10) -> bytearray

Errors that are kept have tracebacks, and these have frames.
"""
import sys

failures = []


def parse(count):
    buffer = bytearray(count)
    raise ValueError("bad record of %d" % len(buffer))


def work():
    try:
        parse(20000)
    except ValueError as error:
        failures.append(error)


for _ in range(300):
    work()
print("ready", flush=True)
sys.stdin.readline()
