"""held  global `jobs` of module __main__ -> list of 500 [*] -> Job .__class__ -> type .weights -> bytearray

A class that its instances alone keep.
"""
import sys


def job(number):
    class Job:
        weights = bytearray(10000)

        def __init__(self):
            self.number = number

    return Job()


jobs = [job(i) for i in range(500)]
print("ready", flush=True)
sys.stdin.readline()
