"""A list of strings that forked workers copy by reading it: counters of references are written."""
import os
import time

kept = ["file number %d of the data set, with its path" % number for number in range(300000)]  # culprit
for _ in range(4):
    if os.fork() == 0:
        while True:
            for start in range(0, len(kept), 1000):
                part = [len(text) for text in kept[start:start + 1000]]
                time.sleep(0.001)
while True:
    time.sleep(1)
