"""unseen  bytearray with 1 reference, of which 0 were found

An extension takes a reference and forgets to give it back. TEST_LIBRARY: library.c.
"""
import ctypes
import os
import sys

library = ctypes.PyDLL(os.environ["TEST_LIBRARY"])
library.library_forget.argtypes = [ctypes.py_object]


def leak():
    library.library_forget(bytearray(20000))


for _ in range(300):
    leak()
print("ready", flush=True)
sys.stdin.readline()
