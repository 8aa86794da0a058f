"""Functions made by exec and dropped again, each allocating a size of its own: exec_many.py COUNT THREADS, run by test_code_identity.py."""
import os
import sys
import threading

COUNT, THREADS = int(sys.argv[1]), int(sys.argv[2])


def make(number):
    text = "\n" * (number % 7) + "def function_%d(size):\n    return bytearray(size)\n" % number
    namespace = {}
    exec(compile(text, "made_%d.py" % number, "exec"), namespace)
    return namespace["function_%d" % number]


addresses = set()


def work(first):
    for number in range(first, COUNT, THREADS):
        function = make(number)
        addresses.add(id(function.__code__))
        function(2000 + number % 50000)


threads = [threading.Thread(target=work, args=(first,)) for first in range(THREADS)]
for thread in threads[1:]:
    thread.start()
work(0)
for thread in threads[1:]:
    thread.join()
print(len(addresses))
sys.stdout.flush()
with open("/proc/self/status") as status:
    print([int(line.split()[1]) for line in status if line.startswith("VmHWM")][0])
sys.stdout.flush()
os._exit(0)
