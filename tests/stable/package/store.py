"""Methods, properties, closures, comprehensions, generators, lambdas, classes with methods of one name."""
import functools

from .sizes import size

KEPT = []


class Store:
    TABLE = bytearray(size(0))

    def __init__(self, number):
        self.first = bytearray(size(number))
        self.second = bytearray(size(number + 1))

    def fill(self, number):
        self.items = [bytearray(size(number))]
        self.more = [bytearray(size(number + 1)) for _ in range(1)]
        self.table = {key: bytearray(size(number + 2)) for key in range(1)}

    @property
    def page(self):
        def inner():
            return bytearray(size(6))
        return inner()

    @staticmethod
    def fixed(number):
        return bytearray(size(number))

    @classmethod
    def made(cls, number):
        store = cls.__new__(cls)
        store.only = bytearray(size(number))
        return store


class Other(Store):
    def fill(self, number):
        super().fill(number)
        self.own = bytearray(size(number + 3))


def decorated(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        KEPT.append(bytearray(size(20)))
        return function(*arguments)
    return wrapper


@decorated
def work(number):
    KEPT.append(bytearray(size(number)))
    KEPT.append(bytearray(size(number + 1)))
    KEPT.append(bytearray(size(number + 2)))


def lazily(number):
    for step in range(2):
        yield bytearray(size(number + step))


def several(number):
    function = lambda: bytearray(size(number))
    KEPT.append(function())
    KEPT.extend(bytearray(size(number + 1)) for _ in range(1))
    KEPT.append({bytes(size(number + 2)) for _ in range(1)})
    KEPT.append(list(map(lambda _: bytearray(size(number + 3)), range(1))))


def run():
    plain, other = Store(1), Other(11)
    plain.fill(3)
    other.fill(13)
    KEPT.extend([plain, other, plain.page, Store.fixed(7), Store.made(8)])
    work(21)
    KEPT.extend(lazily(24))
    several(26)
