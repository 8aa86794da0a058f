"""
Which text does a cell have? Written down before it runs: after a death an unsaved notebook has no other copy.

cells.jsonl in the folder of the kernel's life has one object a line for each run:
    {"file": the name under which the cell is compiled, "execution_count": 12, "text": its lines, "began_ns": of the monotonic clock}
The text is "" where it is long, and there already. A line is written by one call, so that a death leaves whole lines. The file does not grow beyond FILE_BYTES_MAX; later cells are then
known as far as the recorder itself knows them.
"""
import json
import os
import stat
import time

NAME = "cells.jsonl"
TEXT_BYTES_MAX = 64 << 10  # of one cell
TEXT_CHARS_SHORT = 60  # written each time: it may be the last that ran
FILE_BYTES_MAX = 8 << 20


def open_file(life):
    """None where nothing is to be written: no recorded kernel, or texts are private."""
    if not life or os.environ.get("KMEMSHIM_PRIVATE", "").lower() not in ("", "0", "no", "off", "false"):
        return None
    return Cells(os.path.join(life, NAME))


class Cells:
    def __init__(self, path):
        self.path = path
        self.bytes = 0
        self.known = set()

    def before_cell(self, shell, info):
        """False: no more."""
        name = getattr(shell.compile, "get_code_name", None)  # ipykernel 6 and later
        if name is None:
            return False
        number = number_of_cell(shell)
        text = "\n".join(after_empty_lines(info.raw_cell)[1])  # IPython drops the empty lines before it numbers them
        return self.write(name(info.raw_cell, info.raw_cell, number), number if info.store_history else 0, text)

    def write(self, file, count, text):
        """Too long a text is left out, not cut: its lines would be wrong."""
        kept = "" if (file in self.known and len(text) > TEXT_CHARS_SHORT) or len(text) > TEXT_BYTES_MAX else text
        kept = kept.encode("utf-8", "replace").decode("utf-8")  # half a surrogate is no text
        data = (json.dumps({"file": file, "execution_count": count, "text": kept, "began_ns": time.monotonic_ns()}) + "\n").encode("ascii")
        if self.bytes + len(data) > FILE_BYTES_MAX:
            return False
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        try:
            there = os.fstat(descriptor)
            if not stat.S_ISREG(there.st_mode) or there.st_uid != os.geteuid() or there.st_mode & 0o077:
                raise OSError("others can read or change it")
            written = os.write(descriptor, data)
        finally:
            os.close(descriptor)
        if written != len(data):
            raise OSError("no room")
        self.bytes += written
        self.known.add(file)
        return True

    def failed(self, error):
        return "%s: texts of cells are not written down: %s" % (self.path, getattr(error, "strerror", None) or error)


def number_of_cell(shell):
    """12 of the cell In[12] that runs, or is about to; from IPython 9 on, shell.execution_count is that of the next one by then."""
    return shell.displayhook.prompt_count


def after_empty_lines(text):
    """How many empty lines are in front, and the rest."""
    lines = text.split("\n")
    count = 0
    while count < len(lines) and not lines[count].strip():
        count += 1
    return count, lines[count:]
