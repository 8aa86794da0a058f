"""held  local `tasks` of main() (asyncio_tasks.py:15) -> list of 300 [*] -> _asyncio.Task ._coro -> coroutine, local `body` of answer() (asyncio_tasks.py:9) -> bytearray

Tasks that wait for an event that never comes.
"""
import asyncio
import sys


async def answer(event):
    body = bytearray(20000)
    await event.wait()
    return len(body)


async def main():
    event = asyncio.Event()
    tasks = [asyncio.ensure_future(answer(event)) for _ in range(300)]
    await asyncio.sleep(0)
    print("ready", flush=True)
    sys.stdin.readline()
    event.set()
    await asyncio.gather(*tasks)


asyncio.run(main())
