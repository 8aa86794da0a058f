"""held  global `waiting` of module __main__ -> list of 300 [*] -> coroutine, local `body` of fetch() (coroutines.py:15) -> bytearray

Coroutines that wait for ever.
"""
import sys

waiting = []


class Never:
    def __await__(self):
        yield


async def fetch(count):
    body = bytearray(count)
    await Never()
    return len(body)


for _ in range(300):
    waiting.append(fetch(20000))
    waiting[-1].send(None)
print("ready", flush=True)
sys.stdin.readline()
for coroutine in waiting:
    coroutine.close()
