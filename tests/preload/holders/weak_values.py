"""held  attribute `kept` of class Page -> list of 300 [*] -> Page .body -> bytearray

Weak references hold nothing: the list does.
"""
import sys
import weakref

pages = weakref.WeakValueDictionary()


class Page:
    kept = []

    def __init__(self, number):
        self.body = bytearray(20000)
        self.kept.append(self)
        pages[number] = self


for i in range(300):
    Page(i)
print("ready", flush=True)
sys.stdin.readline()
