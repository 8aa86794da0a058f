"""A list is released, and its last item waits: the others are still there."""
import sys


class Last:
    def __del__(self):
        print("ready", flush=True)
        sys.stdin.readline()


kept = [bytearray(100000) for _ in range(300)]
kept.append(Last())
del kept
