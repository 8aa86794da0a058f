"""held  attribute `known` of class Model -> dict of 500 [*] -> Model .weights -> bytearray

A dictionary as an attribute of a class; instances have an ordinary dictionary of attributes.
"""
import sys


class Model:
    known = {}

    def __init__(self, number):
        self.number = number
        self.weights = bytearray(10000)
        Model.known[number] = self


for i in range(500):
    Model(i)
print("ready", flush=True)
sys.stdin.readline()
