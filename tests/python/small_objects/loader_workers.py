"""Workers of a loader: each keeps what it read, as a data set with a cache does."""
import os
import time


class Dataset:
    def __init__(self):
        self.cache = {}

    def __getitem__(self, index):
        if index not in self.cache:
            self.cache[index] = [str(index + part) for part in range(20)]  # culprit
        return self.cache[index]


def worker(dataset, first):
    for index in range(first, 10**9, 2):
        dataset[index]


dataset = Dataset()
children = []
for first in range(2):
    child = os.fork()
    if child == 0:
        worker(dataset, first)
    children.append(child)
while True:
    time.sleep(1)
