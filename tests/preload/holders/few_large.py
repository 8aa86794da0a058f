"""One line that makes a few large blocks and many small ones, which another name keeps.

The large ones are the memory: their holder is told.
"""
import sys

large = []
small = {}


def make(size):
    return bytearray(size)


for i in range(4):
    large.append(make(20 << 20))
for i in range(20):
    small[i] = make(1000)
print("ready", flush=True)
sys.stdin.readline()
