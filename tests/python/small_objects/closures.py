"""Callbacks that are never taken off a list."""
callbacks = []


def subscribe(number):
    def callback(value):  # culprit
        return value + number
    callbacks.append(callback)


while True:
    subscribe(10**6 + len(callbacks))
