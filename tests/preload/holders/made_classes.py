"""held  global `MODELS` of module __main__ -> dict of 500 [*] -> type .weights -> bytearray

Classes that are made while the program runs: no module has them.
"""
import sys

MODELS = {}
for i in range(500):
    weights = bytearray(10000)
    MODELS[i] = type("Model", (), {"weights": weights})
del weights
print("ready", flush=True)
sys.stdin.readline()
