"""Threads that put what they made into one list."""
import threading

results = []


def work():
    while True:
        results.append("result of thread %s, item %d" % (threading.get_ident(), len(results)))  # culprit


threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
