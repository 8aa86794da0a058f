"""A cache without a limit."""
import functools


@functools.lru_cache(maxsize=None)
def title(number):
    return "The life and opinions of number %d, gentleman, in nine volumes" % number  # culprit


number = 0
while True:
    title(number)
    number += 1
