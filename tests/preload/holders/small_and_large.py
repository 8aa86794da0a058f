"""One line that makes many small objects and one large block, which another name keeps.

Of small objects a sample is known, and each stands for many: they are the memory.
"""
import sys

rows = []
one = {}


def make(i):
    return (str(i), float(i)) if i else bytearray(1 << 20)


one[0] = make(0)
for i in range(1, 300000):
    rows.append(make(i))
print("ready", flush=True)
sys.stdin.readline()
