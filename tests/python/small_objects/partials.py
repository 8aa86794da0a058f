"""Work that waits: functools.partial."""
import functools

waiting = []


def defer(number):
    return functools.partial(print, "job", number, flush=True)  # culprit


while True:
    waiting.append(defer(len(waiting)))
