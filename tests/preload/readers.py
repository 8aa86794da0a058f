"""Two forked workers read what the parent built: Python objects, whose reference counts that writes, or one array of bytes."""
import multiprocessing
import sys

ROWS, BYTES = 100_000, 600


def build(kind):
    if kind == "objects":
        return [bytes(BYTES) for row in range(ROWS)]
    return bytearray(ROWS * BYTES)


def work(data):
    total = 0
    for row in range(ROWS):
        total += data[row][0] if isinstance(data, list) else data[row * BYTES]
    assert total == 0


if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    everything = build(sys.argv[1])
    workers = [multiprocessing.Process(target=work, args=(everything,)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print([worker.exitcode for worker in workers])
