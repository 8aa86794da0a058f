"""held  local `parts` of load() (copied_list.py:14) -> list of 300 [*] -> bytearray

The function that is called has a list of the same blocks, as NumPy's do: who calls it has them longer.
"""
import sys


def join(relevant):
    print("ready", flush=True)
    sys.stdin.readline()
    return relevant


def load():
    parts = []
    for _ in range(300):
        parts.append(bytearray(20000))
    return join(list(parts))


load()
