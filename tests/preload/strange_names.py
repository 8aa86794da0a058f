"""Code objects with names that no file has and line tables that no compiler made; run by test_strange_names.py under any interpreter."""
import os
import random
import signal
import sys
import types

keep = []
TABLE = "co_linetable" if sys.version_info >= (3, 10) else "co_lnotab"


def grow(size):
    keep.append(bytearray(size))


def run(size, name, file, **changes):
    if sys.version_info >= (3, 11):
        changes["co_qualname"] = name
    code = grow.__code__.replace(co_name=name, co_filename=file, **changes)
    types.FunctionType(code, globals())(size)


NAMES = ["two\nlines", "\x1b[31mred\x1b[0m\x07", "nul\0nul", "sur\udcff\ud800rogates", "\u202edesrever", "line\u2028separator\u2029",
         "next\x85line", "x" * 1000000, "\u00e9" * 5000, "", '"}], "', "%s%n%d", "\U0001f600", "tab\tand\rreturn", "\x9b31m", "\ufeffmark",
         "</script><b>", "C:\\new\\table.py"]
for number, name in enumerate(NAMES):
    run(100000 + number, name, "/tmp/" + name)
    run(200000 + number, name, name)

rng = random.Random(int(sys.argv[1]))
for number in range(400):
    table = bytes(rng.randrange(256) for _ in range(rng.choice([0, 1, 2, 3, 7, 30, 300, 3000])))
    run(300000 + number, "damaged", "/tmp/damaged%d.py" % (number % 7), **{TABLE: table})
print(len(NAMES))
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
