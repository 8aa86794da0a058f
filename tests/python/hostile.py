"""What nobody writes, but a program may contain: run by test_hostile.py under the shim. Runs on 3.8 and later."""
import os
import random
import sys
import threading

KEPT = []
SIZE = 1 << 20


def damaged_tables(seed):
    """Code objects whose line tables are anything; nothing here asks the interpreter for their lines."""
    rng = random.Random(seed)
    field = "co_linetable" if hasattr((lambda: 0).__code__, "co_linetable") else "co_lnotab"
    for i in range(300):
        def function():
            KEPT.append(bytearray(5000))

        table = bytes(rng.randrange(256) for _ in range(rng.choice((0, 1, 2, 7, 40, 3000))))
        function.__code__ = function.__code__.replace(co_firstlineno=rng.choice((0, 1, 1 << 30)), **{field: table})
        function()
    for text in (b"", b"\xff" * 100, b"\x80" * (3 << 20), bytes(100000)):
        function.__code__ = function.__code__.replace(co_firstlineno=1, **{field: text})
        function()


def texts():
    names = ["plain", "n" * (1 << 20), "\u6f22" * (1 << 19), "\U0001f40d" * 5000, "new\nINJECTED", "\x1b[31mred", "nul\0nul",
             "\udcff\ud800", "quote\"\\", "\u202ebackwards", "\x7f\x85\u2028"]
    for file in names:
        for name in names:
            def function():
                KEPT.append(bytearray(SIZE))

            KEPT.clear()
            more = {"co_qualname": name} if hasattr(function.__code__, "co_qualname") else {}
            function.__code__ = function.__code__.replace(co_filename=file, co_name=name, **more)
            function()


def long_chain():
    def down(depth):
        return down(depth - 1) if depth else bytearray(SIZE + 1000)

    def generators(depth):
        if depth:
            yield from generators(depth - 1)
        else:
            yield bytearray(SIZE + 2000)

    sys.setrecursionlimit(20000)
    threading.stack_size(512 << 20)
    for work in (lambda: KEPT.append(down(6000)), lambda: KEPT.append(list(generators(3000)))):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()


if __name__ == "__main__":
    damaged_tables(int(sys.argv[1]))
    texts()
    long_chain()
    os._exit(0)  # what was held shows as live
