"""An index: a list for each word."""
from collections import defaultdict

index = defaultdict(list)


def add(word, place):
    index[word].append(place)  # culprit


number = 0
while True:
    add(number, None)
    number += 1
