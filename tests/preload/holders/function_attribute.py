"""held  global `load` of module __main__ -> function .known -> dict of 300 [*] -> bytearray

Objects that a function has as attributes: the cache that a decorator leaves there.
"""
import functools
import sys


def remember(function):
    @functools.wraps(function)
    def wrapper(key):
        if key not in wrapper.known:
            wrapper.known[key] = function(key)
        return wrapper.known[key]
    wrapper.known = {}
    return wrapper


@remember
def load(key):
    return bytearray(20000 + key)


for key in range(300):
    load(key)
print("ready", flush=True)
sys.stdin.readline()
