"""held  global `bus` of module __main__ -> Bus .handlers -> dict ['message'] -> list of 300 [*] -> function .__closure__ -> tuple [0] -> cell .cell_contents -> bytearray

A list of callbacks, and each has a closure.
"""
import sys


class Bus:
    def __init__(self):
        self.handlers = {}

    def on(self, name, call):
        self.handlers.setdefault(name, []).append(call)


bus = Bus()


def connect():
    session = bytearray(20000)

    def on_message(letter):
        session[0] = letter

    bus.on("message", on_message)


for _ in range(300):
    connect()
print("ready", flush=True)
sys.stdin.readline()
