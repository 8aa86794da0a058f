# expect: leaks heap where=train_numpy_keeps_predictions.py:37
"""A small network trained with NumPy; the loop keeps the predictions of every epoch.

Two MiB more in each epoch: nothing to see at first, and the out-of-memory killer after some hundreds.
"""
import os
import sys

import numpy as np

EPOCHS = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("EPOCHS", 400))
ROWS, BATCH, INPUTS, HIDDEN = 262144, 8192, 8, 16
RATE = 0.5


def train():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((ROWS, INPUTS))
    y = (x[:, :1] * x[:, 1:2] + x[:, 2:3] > 0).astype(float)
    w1 = rng.standard_normal((INPUTS, HIDDEN)) * 0.5
    w2 = rng.standard_normal((HIDDEN, 1)) * 0.5
    history = []

    for epoch in range(1, EPOCHS + 1):
        start = (epoch * BATCH) % ROWS
        batch_x, batch_y = x[start:start + BATCH], y[start:start + BATCH]
        hidden = np.tanh(batch_x @ w1)
        output = 1 / (1 + np.exp(-(hidden @ w2)))
        error = (output - batch_y) / len(batch_x)
        w2_gradient = hidden.T @ error
        hidden_error = (error @ w2.T) * (1 - hidden ** 2)
        w2 -= RATE * w2_gradient
        w1 -= RATE * (batch_x.T @ hidden_error)

        # Every epoch: how well does it do on everything? Only the mean is needed, all of it is kept.
        scores = np.tanh(x @ w1) @ w2
        predictions = 1 / (1 + np.exp(-scores))
        history.append(predictions)
        accuracy = ((predictions > 0.5) == y).mean()
        print(f"epoch {epoch}/{EPOCHS} accuracy {accuracy:.3f}", flush=True)

    print(f"kept {len(history)} arrays of predictions")


train()
