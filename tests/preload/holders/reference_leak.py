"""unseen  bytearray with 1 reference, of which 0 were found

What an extension does that forgets to give a reference back.
"""
import ctypes
import sys

take = ctypes.pythonapi.Py_IncRef
take.argtypes = [ctypes.py_object]
take.restype = None


def leak():
    take(bytearray(20000))


for _ in range(300):
    leak()
print("ready", flush=True)
sys.stdin.readline()
