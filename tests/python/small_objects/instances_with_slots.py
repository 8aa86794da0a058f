"""Instances without a dictionary."""
points = []


class Point:
    __slots__ = ("x", "y", "z", "label", "next")


def point():
    return Point()  # culprit


while True:
    points.append(point())
