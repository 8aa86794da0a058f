"""held  global `total_loss` of module __main__ -> torch\.Tensor \+\d+\? -> block \(TensorImpl\b.*\) of torch_chain\.py:\d+ step, one after another, grad_fn chain of 41 nodes

Each step makes one node, which keeps its tensor; the first one leads to where gradients are gathered.
"""
import sys

import torch

total_loss = torch.zeros(100, 1000, requires_grad=True)


def step():
    global total_loss
    total_loss = total_loss * total_loss


for _ in range(40):
    step()
print("ready", flush=True)
sys.stdin.readline()
