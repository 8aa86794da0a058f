"""held  global `cache` of module settings -> dict of 300 [*] -> bytearray

A module that is no file of its own, as plug-ins make them.
"""
import sys
import types

settings = sys.modules["settings"] = types.ModuleType("settings")
settings.__spec__ = None
settings.cache = {}
del settings


def remember(i):
    sys.modules["settings"].cache["key-%d" % i] = bytearray(20000)


for i in range(300):
    remember(i)
print("ready", flush=True)
sys.stdin.readline()
