"""What IPython does with cells, as far as the shim looks: cells.py FOLDER, run under any interpreter by test_cells.py."""
import os
import signal
import sys
import threading


def murmur(text):
    """ipykernel's names: MurmurHash2 of what was typed."""
    data, factor, bits = text.encode(), 0x5BD1E995, 0xFFFFFFFF
    value = 0xC70F6907 ^ len(data)
    for at in range(0, len(data), 4):
        word = int.from_bytes(data[at:at + 4], "little")
        if at + 4 <= len(data):
            word = word * factor & bits
            word = (word ^ word >> 24) * factor & bits
            value = value * factor & bits ^ word
        else:
            value = (value ^ word) * factor & bits
    value = (value ^ value >> 13) * factor & bits
    return value ^ value >> 15


namespace = {"__name__": "__main__", "_ih": [""], "_oh": {}}
namespace["In"] = namespace["_ih"]


def run_cell(typed, compiled=None):
    namespace["In"].append((compiled or typed).rstrip("\n"))
    namespace["_i%d" % (len(namespace["In"]) - 1)] = typed.rstrip("\n")
    name = "%s/ipykernel_%d/%d.py" % (sys.argv[1], os.getpid(), murmur(typed))
    exec(compile(compiled or typed, name, "exec"), namespace)


again = "for i in range(4):\n    keep.append(bytearray(300000))"
run_cell("keep = []\ndef grow(size):\n    keep.append(bytearray(size))  # gr\u00f6\u00dfer \U0001f600\n")
run_cell(again)
run_cell("\n\n%magic\ngrow(500001)", "pass\ngrow(500001)\n")
for i in range(300):  # what a person leaves in a namespace
    namespace["x%d" % i] = i
run_cell(again)
run_cell("#" * 70000 + "\nkeep.append(bytearray(700001))")
thread = threading.Thread(target=run_cell, args=("keep.append(bytearray(900001))",))
thread.start()
thread.join()
os.kill(os.getpid(), signal.SIGKILL)
