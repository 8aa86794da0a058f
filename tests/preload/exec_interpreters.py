"""exec_many.py's functions, made in as many interpreters of one process: exec_interpreters.py COUNT INTERPRETERS."""
import os
import sys
import threading

try:
    import _interpreters as interpreters  # 3.13
except ImportError:
    import _xxsubinterpreters as interpreters

COUNT, INTERPRETERS = int(sys.argv[1]), int(sys.argv[2])
WORK = """
for number in range({first}, {count}, {step}):
    text = "\\n" * (number % 7) + "def function_%d(size):\\n    return bytearray(size)\\n" % number
    namespace = {{}}
    exec(compile(text, "made_%d.py" % number, "exec"), namespace)
    namespace["function_%d" % number](2000 + number % 50000)
"""


def work(first):
    failed = interpreters.run_string(interpreters.create(), WORK.format(first=first, count=COUNT, step=INTERPRETERS))
    assert not failed, failed


threads = [threading.Thread(target=work, args=(first,)) for first in range(INTERPRETERS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
os._exit(0)
