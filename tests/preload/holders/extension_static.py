"""held  static variable `kept_objects` of library.so -> bytearray

An extension has a table of the objects that were registered with it. TEST_LIBRARY: library.c.
"""
import ctypes
import os
import sys

library = ctypes.PyDLL(os.environ["TEST_LIBRARY"])
library.library_register.argtypes = [ctypes.py_object]


def register():
    library.library_register(bytearray(20000))


for _ in range(300):
    register()
print("ready", flush=True)
sys.stdin.readline()
