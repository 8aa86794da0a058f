"""A shell starts the interpreter that grows."""
import os
import sys

if len(sys.argv) == 1:
    os.execv("/bin/sh", ["sh", "-c", '"$0" "$1" child; exit $?', sys.executable, __file__])

kept = []


def entry(number):
    return "entry %d of the protocol of the child" % number  # culprit


while True:
    kept.append(entry(len(kept)))
