"""Futures of a pool, kept with their results."""
import concurrent.futures

TEXT = ["%d;%d" % (n, n) for n in range(300)]


def parse(lines):
    return [line.split(";") for line in lines]  # culprit


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    kept = []
    while True:
        future = pool.submit(parse, TEXT)
        future.result()
        kept.append(future)
