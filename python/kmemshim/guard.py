"""
Did the guard stop the cell? Python says KeyboardInterrupt and nothing else, so it is said below the cell.

No other process is started for it: what is left is little.
"""
import ctypes
import sys

from . import recording
from .panel import size
from .program import find


def _where_to_look():
    """What is left may be too little to read the capture."""
    try:
        if recording.has_room(recording.own_capture()):
            return "%kmem shows which lines hold most"
    except (recording.Unavailable, OSError):
        pass
    return "then %kmem shows which lines hold most: until then, too little memory is left to read the recording"


def _client(shell):
    """Who asked for the cell that runs; None outside of a notebook."""
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    return parent.get("header", {}).get("session")


class Guard:
    def __init__(self):
        self.ask = find("kmemshim_recorder_guard", ctypes.c_void_p)
        if self.ask is not None:
            self.ask.restype = ctypes.c_uint
        self.bytes = (ctypes.c_uint64 * 3)()
        self.passings = 0 if self.ask is None else self.ask(self.bytes)
        self.said = None  # last: the text, and which client ran the cell

    def before_cell(self, shell, info):
        """A page that was closed meanwhile did not show the text: a new one is another client."""
        if self.said is not None and info.store_history and self.said[1] != _client(shell):
            print("kmemshim: the guard stopped the last cell: " + self.said[0], file=sys.stderr)
        if info.store_history:
            self.said = None
        return True

    def failed(self, error):
        return "what the guard did is not told: %s" % error

    def after_cell(self, shell, result):
        if self.ask is None:
            return
        passings = self.ask(self.bytes)
        if passings != self.passings and isinstance(result.error_in_exec, KeyboardInterrupt):
            used, _, limit = self.bytes
            text = "%s of the limit of %s were in use or asked for. Variables are kept. Delete what you do not need before you go on; %s." % (
                size(used), size(limit), _where_to_look())
            print("kmemshim: the guard stopped this cell: " + text, file=sys.stderr)
            self.said = text, _client(shell)
        self.passings = passings
