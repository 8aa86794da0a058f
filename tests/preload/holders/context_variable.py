"""held  Python's state of a thread -> Context .variables -> hamt .root -> hamt_bitmap_node +40? -> list of 300 [*] -> bytearray

A context variable of a task that waits.
"""
import contextvars
import sys

request = contextvars.ContextVar("request")


def handle():
    request.set([bytearray(20000) for _ in range(300)])


handle()
print("ready", flush=True)
sys.stdin.readline()
