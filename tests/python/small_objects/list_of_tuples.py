"""Pairs in a list."""
pairs = []


def measure(number):
    return (number, number * 0.25, "unit", None)  # culprit


while True:
    pairs.append(measure(len(pairs)))
