"""A queue whose head is kept."""


class Node:
    __slots__ = ("value", "next")

    def __init__(self, value):
        self.value = value
        self.next = None


def append(tail):
    tail.next = Node(None)  # culprit
    return tail.next


head = tail = Node(None)
while True:
    tail = append(tail)
