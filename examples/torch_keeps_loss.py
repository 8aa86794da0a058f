# expect: leaks heap where=torch_keeps_loss.py:40
"""PyTorch: the validation loss is kept as a tensor, instead of loss.item(), and with it its whole graph.

Nothing frees the activations that the graph holds for a backward pass that never comes.
"""
import os
import sys

import torch
from torch import nn

EPOCHS = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("EPOCHS", 300))
INPUTS, HIDDEN, BATCH = 32, 128, 256


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    x = torch.randn(2048, INPUTS)
    y = (x[:, :1] * x[:, 1:2]).sin()
    x_validation, y_validation = x[:1024], y[:1024]

    model = nn.Sequential(
        nn.Linear(INPUTS, HIDDEN), nn.ReLU(),
        nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
        nn.Linear(HIDDEN, 1),
    )
    optimizer = torch.optim.Adam(model.parameters())
    loss_of = nn.MSELoss()
    losses = []

    for epoch in range(1, EPOCHS + 1):
        for start in range(1024, 2048, BATCH):
            optimizer.zero_grad()
            loss = loss_of(model(x[start:start + BATCH]), y[start:start + BATCH])
            loss.backward()
            optimizer.step()

        # No torch.no_grad(), no .item(): four layers of activations stay with each of these numbers.
        validation = loss_of(model(x_validation), y_validation)
        losses.append(validation)
        print(f"epoch {epoch}/{EPOCHS} loss {validation:.4f}", flush=True)

    print(f"kept {len(losses)} losses")


main()
