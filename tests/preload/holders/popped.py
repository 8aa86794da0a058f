"""held  global `done` of module __main__ -> dict of 300 [*] -> bytearray

They were in a list and a deque before; where they stood is not cleared.
"""
import collections
import sys

stack = []
line = collections.deque()
done = {}


def make():
    return bytearray(20000)


for _ in range(300):
    stack.append(make())
line.extend(stack)
for number in range(300):
    done[number] = stack.pop()
    line.pop()
print("ready", flush=True)
sys.stdin.readline()
