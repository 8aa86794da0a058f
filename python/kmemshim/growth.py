"""How much did the last cells add to the memory that this process occupies? One look at /proc before each cell."""
import collections
import contextlib
import os

from .cells import number_of_cell

WORTH_BYTES = 1 << 20


def resident_bytes():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Growth:
    def __init__(self):
        self.own_bytes = 0  # what our own magics added: no cell's
        self.looks = collections.deque(maxlen=20)  # number of a cell, bytes in memory before it ran without these

    def before_cell(self, shell, info):
        if info.store_history:
            self.looks.append((number_of_cell(shell), resident_bytes() - self.own_bytes))
        return True

    @contextlib.contextmanager
    def own(self):
        """What is added meanwhile is ours."""
        before = resident_bytes()
        try:
            yield
        finally:
            self.own_bytes += resident_bytes() - before

    def last(self):
        """The last cell that added something: its number and bytes; None where there is none."""
        looks = list(self.looks)
        for (number, before), (_, after) in reversed(list(zip(looks, looks[1:]))):
            if after - before >= WORTH_BYTES:
                return number, after - before
        return None

    def failed(self, error):
        return "growth of cells is not known: %s" % error
