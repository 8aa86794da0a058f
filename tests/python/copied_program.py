"""Forked workers read one of two lists of small objects: that writes their reference counts, and so copies their pages.

What was copied is found out in the worker, page by page: of each object in the list, is its page the worker's alone?
"""
import array
import multiprocessing
import os
import struct
import sys

ROWS = 200_000


def read_by_workers(kind):
    if kind == "dicts":
        return [{"row": row + 1000} for row in range(ROWS)]
    if kind == "tuples":
        return [(row + 1000.5, row + 2000.5, row + 3000.5, None) for row in range(ROWS)]
    if kind == "interned":
        return [sys.intern(str(row + 1000) * 20) for row in range(ROWS)]
    return [str(row + 1000) * 20 for row in range(ROWS)]


def read_by_nobody():
    return [[row] for row in range(ROWS)]


def pages_of(rows):
    """Found before the fork: looking at an object writes its reference count."""
    pages = {id(row) >> 12 for row in rows}
    for row in rows:
        pages.update(id(part) >> 12 for part in (row.values() if isinstance(row, dict) else row if isinstance(row, tuple) else ()))
    return array.array("Q", pages)


def own_bytes(pages):
    with open("/proc/self/pagemap", "rb", buffering=0) as page_map:
        return 4096 * sum(struct.unpack("<Q", os.pread(page_map.fileno(), 8, page * 8))[0] >> 56 & 0x81 == 0x81 for page in pages)


def work(rows, pages, pipe):
    for row in rows:
        row["row"] if isinstance(row, dict) else len(row)
    pipe.send([own_bytes(part) for part in pages])
    pipe.close()


if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    others = read_by_nobody()
    rows = read_by_workers(sys.argv[1])
    pages = pages_of(rows), pages_of(others)
    there = []
    for _ in range(2):
        mine, theirs = context.Pipe(False)
        worker = context.Process(target=work, args=(rows, pages, theirs))
        worker.start()
        theirs.close()
        there.append((worker, mine))
    print([pipe.recv() for worker, pipe in there])
    for worker, pipe in there:
        worker.join()
