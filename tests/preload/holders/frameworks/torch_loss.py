"""held  global `total_loss` of module __main__ -> torch\.Tensor \+\d+\? -> block \(TensorImpl, AutogradMeta, AddBackward0\) of torch_loss\.py:\d+ step.*

The total of the losses is a tensor: it keeps the graph of each step, and each step's activations.
"""
import sys

import torch

total_loss = 0
model = torch.nn.Linear(2000, 2000)


def step():
    global total_loss
    data = torch.randn(200, 2000)
    total_loss = total_loss + model(data).relu().pow(2).sum()


for _ in range(20):
    step()
print("ready", flush=True)
sys.stdin.readline()
