"""A worker collects; the parent waits."""
import multiprocessing


def collect():
    kept = []
    while True:
        kept.append(sample(len(kept)))


def sample(number):
    return (number, number + 0.5)  # culprit


if __name__ == "__main__":
    worker = multiprocessing.get_context("fork").Process(target=collect)
    worker.start()
    worker.join()
