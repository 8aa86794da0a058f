"""
Forks a training loop for each line of its input, which names the loop's ledger; a line `wait` waits for its end and prints how it was.

The ledger is four counters in a shared mapping: tensors that are about to be taken, that were taken, about to be given back, given back.
"""
import collections
import mmap
import os
import sys

import torch

FLOATS = 1 << 20  # of a kept tensor: what Python and PyTorch need besides is less than one of them in all
KEPT = 20


def keep():
    return torch.empty(FLOATS)


def train(ledger):
    kept = collections.deque()
    while True:
        step()
        ledger[0] += 1
        kept.append(keep())
        ledger[1] += 1
        if len(kept) > KEPT:
            ledger[2] += 1
            kept.popleft()
            ledger[3] += 1


def step():
    optimizer.zero_grad()
    model(torch.randn(16, 64)).square().mean().backward()
    optimizer.step()


def open_ledger(path):
    with open(path, "r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 32)).cast("Q")


torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters())
step()  # what is imported at the first time is there before the forks
child = 0
for line in sys.stdin:
    word = line.strip()
    if word == "unit":
        print(FLOATS * 4, flush=True)
    elif word == "wait":
        print(os.waitpid(child, 0)[1], flush=True)
    else:
        child = os.fork()
        if child == 0:
            train(open_ledger(word))
        print(child, flush=True)
