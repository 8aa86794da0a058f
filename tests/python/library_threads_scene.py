"""Threads that run Python, but no line of ours: each makes a string of a size of its own. Each line makes something itself when it asks."""
import asyncio
import concurrent.futures
import functools
import html
import json
import multiprocessing.pool
import threading

SIZES = {"submit": 301000, "second": 302000, "map": 303000, "own": 304000, "thread": 305000, "threadpool": 306000,
         "asyncio": 307000, "callback": 308000, "early": 309000, "late": 310000, "handed": 311000, "spread": 312000,
         "to_thread": 313000}
TEXTS = {name: '["' + "x" * size for name, size in SIZES.items()}
kept = []


def own(text):
    kept.append(json.loads(text))  # at own


def several():
    """Three lines give work to one thread, and wait for nothing; the fourth to two, of another kind of pool."""
    gate = threading.Event()
    pool = concurrent.futures.ThreadPoolExecutor(1)
    pool.submit(gate.wait)
    early = [pool.submit(json.loads, TEXTS["early"] + '"]') for _ in range(20)]  # at early
    late = [pool.submit(json.loads, TEXTS["late"] + '"]') for _ in range(30)]  # at late
    handed = pool.map(json.loads, [TEXTS["handed"] + '"]'] * 10)  # at handed
    gate.set()
    kept.append([future.result() for future in early + late] + list(handed))
    with multiprocessing.pool.ThreadPool(2) as workers:
        asked = workers.map_async(json.loads, [TEXTS["spread"] + '"]'] * 8)  # at spread
        own('["' + "y" * 100000 + '"]')
        kept.append(asked.get())

    async def ask():
        if hasattr(asyncio, "to_thread"):  # 3.9
            kept.append(await asyncio.to_thread(json.loads, TEXTS["to_thread"] + '"]'))  # at to_thread
        else:
            kept.append(await asyncio.get_running_loop().run_in_executor(None, json.loads, TEXTS["to_thread"] + '"]'))  # at to_thread_3.8

    asyncio.run(ask())


def main():
    pool = concurrent.futures.ThreadPoolExecutor(1)
    kept.append(pool.submit(json.loads, TEXTS["submit"] + '"]').result())  # at submit
    kept.append(pool.submit(json.loads, TEXTS["second"] + '"]').result())  # at second
    kept.extend(pool.map(json.loads, [TEXTS["map"] + '"]'] * 4))  # at map
    pool.submit(own, TEXTS["own"] + '"]').result()

    thread = threading.Thread(target=json.loads, args=(TEXTS["thread"] + '"]',))
    thread.start()  # at thread
    thread.join()

    with multiprocessing.pool.ThreadPool(1) as workers:
        kept.extend(workers.map(json.loads, [TEXTS["threadpool"] + '"]']))  # at threadpool

    async def ask():
        loop = asyncio.get_running_loop()
        kept.append(await loop.run_in_executor(None, json.loads, TEXTS["asyncio"] + '"]'))  # at asyncio

    asyncio.run(ask())

    gate = threading.Event()
    future = pool.submit(gate.wait)  # at callback
    future.add_done_callback(functools.partial(html.escape, "<" * (SIZES["callback"] // 4)))
    gate.set()
    future.result()
    pool.shutdown()
    several()


main()
