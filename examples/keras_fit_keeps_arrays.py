# expect: leaks heap where=keras_fit_keeps_arrays.py:30
"""Keras on the small tabular network of many forum posts (768 rows, 8-12-8-1) with a callback that keeps arrays.

After each epoch the callback asks the model about a whole grid, to draw it later, and keeps every table of answers.
"""
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np

EPOCHS = int(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("EPOCHS", 150))
ROWS, INPUTS, GRID = 768, 8, 65536


class KeepSurface(keras.callbacks.Callback):
    def __init__(self, grid):
        super().__init__()
        self.grid = grid
        self.surfaces = []

    def on_epoch_end(self, epoch, logs=None):
        print(f"epoch {epoch + 1}/{EPOCHS} loss {logs['loss']:.3f}", flush=True)
        surface = self.model.predict_on_batch(self.grid)

        # With its coordinates and in double precision, because the plotting code wants it so.
        self.surfaces.append(np.hstack([self.grid, surface], dtype=np.float64))


def main():
    rng = np.random.default_rng(1)
    x = rng.standard_normal((ROWS, INPUTS)).astype("float32")
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 0).astype("float32")
    grid = rng.uniform(-2, 2, (GRID, INPUTS)).astype("float32")

    model = keras.Sequential([
        keras.Input((INPUTS,)),
        keras.layers.Dense(12, activation="relu"),
        keras.layers.Dense(8, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ])
    model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
    keeper = KeepSurface(grid)
    model.fit(x, y, epochs=EPOCHS, batch_size=32, verbose=0, callbacks=[keeper])
    print(f"kept {len(keeper.surfaces)} surfaces")


main()
