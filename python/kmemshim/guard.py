"""
Did the guard stop the cell? Python says KeyboardInterrupt and nothing else, so it is said below the cell.

No other process is started for it: what is left is little.
"""
import ctypes
import sys

from .panel import size
from .program import find


class Guard:
    def __init__(self):
        self.ask = find("kmemshim_recorder_guard", ctypes.c_void_p)
        if self.ask is not None:
            self.ask.restype = ctypes.c_uint
        self.bytes = (ctypes.c_uint64 * 3)()
        self.passings = 0 if self.ask is None else self.ask(self.bytes)

    def after_cell(self, result):
        if self.ask is None:
            return
        passings = self.ask(self.bytes)
        if passings != self.passings and isinstance(result.error_in_exec, KeyboardInterrupt):
            used, _, limit = self.bytes
            print("kmemshim: the guard stopped this cell: %s of the limit of %s were in use or asked for. Variables are kept. "
                  "Delete what you do not need before you go on; %%kmem shows which lines hold most." % (size(used), size(limit)),
                  file=sys.stderr)
        self.passings = passings
