"""Observers of one subject; the references outlive them."""
import weakref

observers = []


class Subject:
    pass


class Reference(weakref.ref):
    __slots__ = ("name", "group")


subject = Subject()


def observe():
    return Reference(subject)  # culprit


while True:
    observers.append(observe())
