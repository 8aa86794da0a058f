"""Generators that were begun and never ended."""
begun = []


def counter(start):
    while True:
        yield start
        start += 1


def begin(start):
    generator = counter(start)  # culprit
    next(generator)
    return generator


while True:
    begun.append(begin(len(begun)))
