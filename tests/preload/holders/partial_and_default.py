"""held  global `later` of module __main__ -> list of 300 [*] -> functools.partial .args -> tuple [0] -> bytearray

Calls that are to be made later.
"""
import functools
import sys

later = []


def send(body):
    return len(body)


def plan():
    body = bytearray(20000)
    later.append(functools.partial(send, body))


for _ in range(300):
    plan()
print("ready", flush=True)
sys.stdin.readline()
