"""Packets in a queue that nobody empties."""
from collections import deque

packets = deque()


def receive(number):
    return b"%064d" % number  # culprit


number = 0
while True:
    packets.append(receive(number))
    number += 1
