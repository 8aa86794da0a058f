"""held  global `index` of module __main__ -> Index .recent -> dict of 3,000 [*] -> list [0] -> str
What stood before where a list has its items now was an object: behind the first item is the address of its type.
"""
import sys


class Index:
    def __init__(self):
        self.recent = {}

    def add(self, key, text):
        self.recent.setdefault(key, []).append(text * 50)


index = Index()
for n in range(3000):
    index.add("session-%d" % n, "some text of a request, 200 characters long......." * 4)
print("ready", flush=True)
sys.stdin.readline()
