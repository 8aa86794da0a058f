"""
What keeps the memory of this program alive? Asked of the kmemshim command, which looks from outside.

When failing  recording.Unavailable, with one line; the program goes on.
"""
import ctypes
import json
import os
import subprocess

from . import recording
from .program import is_recorded

_PR_SET_PTRACER = 0x59616D61  # whom Yama (ptrace_scope 1) lets trace us


def _allow(pid):
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PTRACER, ctypes.c_ulong(pid), 0, 0, 0)
    except (AttributeError, OSError):
        pass


def holders(top=10, stop="1s"):
    """
    The lines that hold most, at most 10, and what keeps their blocks alive: a list of what `kmemshim holders --json` has in "holders".
    The program, all its threads, stands still for up to `stop`. None where nothing is recorded.
    """
    if not is_recorded():
        return None
    room = recording.room_bytes()
    if room is not None and room < recording.ROOM_BYTES:
        raise recording.Unavailable("too little memory is left to look")
    words = [recording.command(), "holders", str(os.getpid()), "--json", "--top", str(top), "--stop", stop]
    with subprocess.Popen(words, env=recording._plain_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as look:
        _allow(look.pid)
        said, why = look.communicate()
        _allow(0)
    if look.returncode != 0:
        raise recording.Unavailable(why.decode("utf-8", "replace").strip() or "kmemshim holders ended with %d" % look.returncode)
    return json.loads(said.decode("utf-8"))["holders"]
