"""held  global `local` of module __main__ -> _thread._local .buffers -> dict of 300 [*] -> bytearray

Each thread has a cache of its own, and a thread waits.
"""
import sys
import threading

local = threading.local()


def fill():
    local.buffers = {}
    for number in range(300):
        local.buffers[number] = bytearray(20000)


def work():
    fill()
    started.set()
    done.wait()


started = threading.Event()
done = threading.Event()
thread = threading.Thread(target=work)
thread.start()
started.wait()
print("ready", flush=True)
sys.stdin.readline()
done.set()
thread.join()
