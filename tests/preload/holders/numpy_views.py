"""held  global `heads` of module __main__ -> list of 60 [*] -> tuple [1] -> numpy.ndarray .base -> numpy.ndarray

A view of two numbers keeps the whole array.
"""
import sys

import numpy

heads = []


def load(i):
    image = numpy.zeros((300, 100))
    image += i
    heads.append((i, image[0, :2]))


for i in range(60):
    load(i)
print("ready", flush=True)
sys.stdin.readline()
