"""held  global `rows` of module __main__ -> list of 400 [*] -> bytearray

The plainest of all: a list at the top of the program.
"""
import sys

rows = []


def load(i):
    rows.append(bytearray(20000 + i))


for i in range(400):
    load(i)
print("ready", flush=True)
sys.stdin.readline()
