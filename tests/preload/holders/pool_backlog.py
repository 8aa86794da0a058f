"""The queue of a pool is held by a local variable of the user, and is an argument of the workers, whose function is a library's. It is an object of C."""
import concurrent.futures
import sys
import threading


def main():
    pool = concurrent.futures.ThreadPoolExecutor(2)
    for i in range(500):
        pool.submit(wait, bytearray(10000))
    print("ready", flush=True)
    sys.stdin.readline()
    go_on.set()


def wait(data):
    go_on.wait()


go_on = threading.Event()
main()
