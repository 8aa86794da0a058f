"""held  local `buffers` of work() (thread_local.py:9) -> list of 300 [*] -> bytearray

A local variable of a thread that waits.
"""
import sys
import threading


def work():
    buffers = []
    for _ in range(300):
        buffers.append(bytearray(20000))
    started.set()
    done.wait()


started = threading.Event()
done = threading.Event()
threading.Thread(target=work, daemon=True).start()
started.wait()
print("ready", flush=True)
sys.stdin.readline()
done.set()
