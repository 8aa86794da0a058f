"""Tasks that wait for ever."""
import asyncio

tasks = []


async def handle(event):
    await event.wait()


async def main():
    event = asyncio.Event()
    while True:
        for _ in range(1000):
            tasks.append(asyncio.create_task(handle(event)))  # culprit
        await asyncio.sleep(0)


asyncio.run(main())
