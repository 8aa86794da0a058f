# expect: peak heap where=whole_dataset_float64.py:29
"""A data set of bytes is read into float64 before the training begins: eight times its size, all at once.

Each batch needs a thousandth of it. Nothing leaks; the peak report names the line that made it.
"""
import os
import sys
import tempfile

import numpy as np

EPOCHS = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("EPOCHS", 200))
ROWS, PIXELS, CLASSES, BATCH = 16384, 784, 10, 128
RATE = 0.1


def write_dataset(file):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, CLASSES, ROWS)
    images = rng.integers(0, 64, (ROWS, PIXELS), dtype=np.uint8)
    images[np.arange(ROWS), labels * 40] = 255
    np.savez(file, images=images, labels=labels)
    file.seek(0)


def load_dataset(file):
    dataset = np.load(file)
    labels = np.eye(CLASSES)[dataset["labels"]]
    images = dataset["images"].astype(np.float64) / 255
    return images, labels


def main():
    with tempfile.TemporaryFile() as file:
        write_dataset(file)
        images, labels = load_dataset(file)
    weights = np.zeros((PIXELS, CLASSES))

    for epoch in range(1, EPOCHS + 1):
        for start in range(0, ROWS, BATCH):
            x, y = images[start:start + BATCH], labels[start:start + BATCH]
            scores = np.exp(x @ weights)
            chance = scores / scores.sum(axis=1, keepdims=True)
            weights -= RATE * x.T @ (chance - y) / BATCH
        loss = -np.log((chance * y).sum(axis=1)).mean()
        print(f"epoch {epoch}/{EPOCHS} loss {loss:.3f}", flush=True)


main()
