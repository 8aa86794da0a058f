"""lost  

A number that a class keeps in a word of its own looks like the address of a block.
"""
import ctypes
import sys

ITEM_SIZE = object.__basicsize__ + 24  # where a type keeps it
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p


class Table:
    pass


def lose():
    made = type("Made", (Table,), {})
    ctypes.c_ssize_t.from_address(id(made) + ITEM_SIZE).value = libc.malloc(20000)
    return made


kept = [lose() for _ in range(300)]
print("ready", flush=True)
sys.stdin.readline()
