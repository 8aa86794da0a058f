"""make_core.py BUILD FOLDER: for fuzz_core.c, FOLDER/core of a small recorded program of Python, and FOLDER/capture of it. None where cores go elsewhere."""
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """
import collections, os, threading, weakref
class Cache:
    def __init__(self):
        self.pages, self.list, self.line, self.names = {}, [], collections.deque(), set()
class Slotted:
    __slots__ = ("kept", "__weakref__")
cache, slotted, ready = Cache(), Slotted(), threading.Event()
for i in range(40):
    cache.pages["page%d" % i] = bytearray(60000)
    cache.list.append((bytearray(60000), i))
    cache.line.append([bytearray(60000)])
    cache.names.add(str(i) * 20000)
slotted.kept = weakref.ref(cache), bytearray(600000)
def wait(block):
    ready.set()
    threading.Event().wait()
threading.Thread(target=wait, args=(bytearray(600000),)).start()
ready.wait()
os.abort()
"""

build, folder = (Path(path).resolve() for path in sys.argv[1:])
with tempfile.TemporaryDirectory() as there:
    subprocess.run([build / "kmemshim", "run", "-q", "-o", "out", "--", "python3", "-S", "-c", PROGRAM], cwd=there, stderr=subprocess.DEVNULL,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2))
    found = list(Path(there).glob("core*")) + list(Path(there, "out").glob("*.kmem"))
    if len(found) == 2:
        os.makedirs(folder, exist_ok=True)
        for path, name in zip(found, ("core", "capture")):
            subprocess.run(["cp", "--sparse=always", path, folder / name], check=True)
    else:
        print("no core was written (/proc/sys/kernel/core_pattern): fuzz_core tries nothing", file=sys.stderr)
