"""held  global `activations` of module __main__ -> list of 40 \[\*\] -> torch\.Tensor \+\d+\? -> block \(TensorImpl, StorageImpl\) of torch_hooks\.py:\d+ step, one after another

A forward hook keeps the output of each call.
"""
import sys

import torch

activations = []
model = torch.nn.Sequential(torch.nn.Linear(1000, 1000), torch.nn.ReLU())


def keep(module, inputs, output):
    activations.append(output)


def step():
    with torch.no_grad():
        model(torch.randn(100, 1000))


model[0].register_forward_hook(keep)
for _ in range(40):
    step()
print("ready", flush=True)
sys.stdin.readline()
