"""held  local `running` of fit\(\) \(torch_graphs\.py:\d+\) -> torch\.Tensor \+\d+\? -> block \(TensorImpl, AutogradMeta, AddBackward0\) of torch_graphs\.py:\d+ fit, one after another, grad_fn chain of [\d,]+ nodes -> block .*

The sum of the losses keeps the graph of each step: a chain of many nodes, from which each step's graph hangs.
"""
import sys

import torch


def step(net, x, y):
    loss = torch.nn.functional.cross_entropy(net(x), y)
    loss.backward(retain_graph=True)
    return loss


def fit():
    net = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))
    running = 0.0
    for _ in range(300):
        running = running + step(net, torch.randn(128, 256), torch.randint(0, 10, (128,)))
    print("ready", flush=True)
    sys.stdin.readline()


fit()
