"""
What keeps the memory of this program alive? Asked of the kmemshim command, which looks from outside.

When failing  recording.Unavailable, with one line; the program goes on.
"""
import ctypes
import json
import os
import subprocess

from . import recording
from .program import find, is_recorded

_let_look = find("kmemshim_recorder_let_look", ctypes.c_ulong)  # not where the program has named who may trace it


def holders(top=10, stop="1s"):
    """
    The lines that hold most, at most 10, and what keeps their blocks alive: a list of what `kmemshim holders --json` has in "holders".
    The program, all its threads, stands still for up to `stop`. None where nothing is recorded.
    """
    if not is_recorded():
        return None
    if not recording.has_room(recording.own_capture()):
        raise recording.Unavailable("too little memory is left to look")
    words = [recording.command(), "holders", str(os.getpid()), "--json", "--top", str(top), "--stop", stop]
    with subprocess.Popen(words, env=recording._plain_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as look:
        if _let_look is not None:
            _let_look(look.pid)
        said, why = look.communicate()
        if _let_look is not None:
            _let_look(0)
    if look.returncode != 0:
        raise recording.Unavailable(why.decode("utf-8", "replace").strip() or "kmemshim holders ended with %d" % look.returncode)
    return json.loads(said.decode("utf-8"))["holders"]
