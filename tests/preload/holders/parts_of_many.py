"""The blocks of one line hang on an index in many ways that begin alike."""
import sys


class Part:
    pass


class Index:
    def __init__(self):
        self.modules = {}


index = Index()
for number in range(400):
    part = index.modules[number] = Part()
    setattr(part, f"member_{number % 8}", bytearray(4000))
del part
print("ready", flush=True)
sys.stdin.readline()
