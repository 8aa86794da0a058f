"""held  global `groups` of module __main__ -> list of 150 [*] -> Group {*} -> Member .photo -> bytearray

Small sets, of a class of their own.
"""
import sys


class Group(set):
    pass


class Member:
    def __init__(self):
        self.photo = bytearray(20000)


groups = []


def meet():
    groups.append(Group((Member(), Member())))


for _ in range(150):
    meet()
print("ready", flush=True)
sys.stdin.readline()
