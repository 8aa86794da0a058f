"""Threads that run Python, but no line of ours: each makes a string of a size of its own. Each line makes something itself when it asks."""
import asyncio
import concurrent.futures
import functools
import html
import json
import multiprocessing.pool
import threading

SIZES = {"submit": 301000, "second": 302000, "map": 303000, "own": 304000, "thread": 305000, "threadpool": 306000,
         "asyncio": 307000, "callback": 308000}
TEXTS = {name: '["' + "x" * size for name, size in SIZES.items()}
kept = []


def own(text):
    kept.append(json.loads(text))  # at own


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
    future = pool.submit(gate.wait)
    future.add_done_callback(functools.partial(html.escape, "<" * (SIZES["callback"] // 4)))
    gate.set()
    future.result()
    pool.shutdown()


main()
