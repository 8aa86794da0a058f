"""held  global `head` of module __main__ -> Node .following, one after another -> Node .payload -> bytearray

A list of nodes that is longer than passes go.
"""
import sys


class Node:
    def __init__(self, following):
        self.following = following
        self.payload = bytearray(10000)


head = None
for _ in range(4000):
    head = Node(head)
print("ready", flush=True)
sys.stdin.readline()
while head is not None:  # else it is freed by as many calls of each other
    head = head.following
