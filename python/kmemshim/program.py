"""
What a program says of itself: where it is, and what is worth keeping. Nothing happens in a program that is not recorded.

When failing  nothing is said; the program runs on.
"""
import ctypes


def _find(name, *arguments):
    try:
        function = getattr(ctypes.PyDLL(None), name)
    except (AttributeError, OSError):
        return None
    function.argtypes = list(arguments)
    function.restype = None
    return function


_step = _find("kmemshim_recorder_step")
_mark = _find("kmemshim_recorder_mark", ctypes.c_char_p)
_snapshot = _find("kmemshim_recorder_snapshot", ctypes.c_char_p)


def _bytes(name):
    """Any text: a surrogate is not worth an exception in somebody's training run, nor is a zero byte."""
    return str(name)[:256].encode("utf-8", "replace").replace(b"\0", b"?")


def step():
    """A step begins: a batch, a request. The report then counts what is kept in each."""
    if _step is not None:
        _step()


def mark(name):
    """Gives this moment a name, such as "epoch 3". Its first 55 bytes are kept."""
    if _mark is not None:
        _mark(_bytes(name))


def snapshot(name=""):
    """The same, and keeps what each line holds now."""
    if _snapshot is not None:
        _snapshot(_bytes(name))
