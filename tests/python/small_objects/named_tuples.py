"""Events as named tuples."""
from collections import namedtuple

Event = namedtuple("Event", "time kind source target size flags")
events = []


def event(time):
    return Event(time, "read", "disk", "cache", 4096, 0)  # culprit


while True:
    events.append(event(len(events)))
