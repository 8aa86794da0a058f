"""held  global `_active` of module threading -> dict of 41 [*] -> threading.Timer .args -> tuple [0] -> bytearray

Each thread runs in a frame of a library, whose `self` ends with it. A module has all of them by a name.
"""
import sys
import threading
import time

for i in range(40):
    timer = threading.Timer(600, print, [bytearray(10000)])
    timer.args = (bytearray(100000),)
    timer.daemon = True
    timer.start()
del timer
while len(threading._active) < 41:  # start() returns before the thread is there
    time.sleep(.01)
print("ready", flush=True)
sys.stdin.readline()
