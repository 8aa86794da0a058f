"""One line, and two that keep what it makes.

The names of both are told, with their shares.
"""
import sys

hot = []
cold = {}


def make():
    return bytearray(20000)


for i in range(300):
    hot.append(make())
    cold[i] = make()
print("ready", flush=True)
sys.stdin.readline()
