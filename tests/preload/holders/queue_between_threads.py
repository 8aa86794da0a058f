"""held  local `jobs` of work() (queue_between_threads.py:10) -> queue.Queue .queue -> collections.deque of 300 {*} -> tuple [1] -> bytearray

A queue between two threads, and the one that takes is slower.
"""
import queue
import sys
import threading


def work(jobs):
    while jobs.get() is not None:
        slow.wait()


def make(jobs):
    for number in range(300):
        jobs.put((number, bytearray(20000)))
    jobs.put(None)


def main():
    jobs = queue.Queue()
    worker = threading.Thread(target=work, args=(jobs,))
    make(jobs)
    worker.start()
    while jobs.qsize() != 300:
        pass
    del jobs
    print("ready", flush=True)
    sys.stdin.readline()
    slow.set()
    worker.join()


slow = threading.Event()
main()
