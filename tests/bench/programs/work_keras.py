"""Keras fit on TensorFlow, one thread: 8-12-8-1, 768 rows, batch 10, after 4 epochs.   work_keras.py BATCHES"""
import sys

import numpy
import tensorflow

tensorflow.config.threading.set_intra_op_parallelism_threads(1)
tensorflow.config.threading.set_inter_op_parallelism_threads(1)
import keras  # noqa: E402 - after the thread counts

import steady  # noqa: E402

keras.utils.set_random_seed(1)
ROWS, BATCH = 768, 10
random = numpy.random.default_rng(1)
features = random.standard_normal((ROWS, 8)).astype("float32")
labels = (features.sum(axis=1) > 0).astype("float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(12, "relu"), keras.layers.Dense(8, "relu"),
                          keras.layers.Dense(1, "sigmoid")])
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])

by_epoch = -(-ROWS // BATCH)
epochs = max(1, round(int(sys.argv[1]) / by_epoch))
model.fit(features, labels, epochs=4, batch_size=BATCH, verbose=0)
for _ in steady.turns():
    start = steady.now()
    model.fit(features, labels, epochs=epochs, batch_size=BATCH, verbose=0)
    steady.report(start, epochs * by_epoch)
