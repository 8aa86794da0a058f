"""
Forks beside threads that allocate, as test_forks.py asks: forks.py KIND COUNT prints how many of COUNT children ended by themselves.
What a child does is safe in the plain program, too: no runtime that has threads of its own (TensorFlow, XLA, autograd) is used there.
An alarm ends a child that hangs. It comes after so long that no busy machine takes it for one.
"""
import multiprocessing
import os
import signal
import sys
import threading

import numpy

ALARM_S = 120
HANGS_MAX = 3  # more say nothing new


def use_numpy():
    kept = [numpy.arange(i % 900 + 1) * 1.5 for i in range(50)]
    rows = {i: (bytearray(i * 40), [str(i)] * 9) for i in range(200)}
    return len(kept) + len(rows)


def torch_kind():
    import torch
    torch.set_num_threads(1)
    x, y = torch.randn(8, 16), torch.randn(8, 4)

    def made():
        model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
        optimizer = torch.optim.SGD(model.parameters(), lr=.01)

        def train():
            optimizer.zero_grad()
            ((model(x) - y) ** 2).mean().backward()
            optimizer.step()
        return train

    def use_torch():
        with torch.no_grad():
            made_here = torch.nn.Linear(16, 4)
            return [float(made_here(torch.ones(8, 16)).sum()) for _ in range(10)]
    return made, use_torch


def keras_kind():
    import tensorflow

    def made():
        weights = tensorflow.ones((16, 4))

        def step():
            return tensorflow.reduce_mean((tensorflow.ones((8, 16)) @ weights) ** 2) + tensorflow.reduce_sum(tensorflow.range(9.))
        return step
    return made, use_numpy


def jax_kind():
    import jax
    import jax.numpy as jnp
    step = jax.jit(lambda w, x: w - 0.01 * jax.grad(lambda v: jnp.mean((x @ v) ** 2))(w))

    def made():
        weights = [jnp.ones((16, 4))]

        def train():
            weights[0] = step(weights[0], jnp.full((8, 16), .5)) * 1.0
            return numpy.asarray(weights[0]).copy()
        return train
    return made, use_numpy


def use_sklearn():
    from sklearn.linear_model import Ridge
    from sklearn.tree import DecisionTreeClassifier
    x = numpy.random.default_rng(1).normal(size=(60, 5))
    Ridge().fit(x, x[:, 0]).predict(x)
    return DecisionTreeClassifier(max_depth=4).fit(x, x[:, 0] > 0).predict(x)


def sklearn_kind():
    use_sklearn()  # what it imports is there before anybody forks
    return (lambda: use_sklearn), use_sklearn


def joblib_kind():
    global both
    multiprocessing.set_start_method("fork")
    both = multiprocessing.Barrier(2, timeout=ALARM_S)
    return sklearn_kind()


def use_sklearn_both():
    both.wait()  # or one worker might do all the work, while the other one hangs
    return use_sklearn()


def forked(child):
    pid = os.fork()
    if pid == 0:
        child()
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    assert status in (0, signal.SIGALRM), status
    return status == 0, 1


def forked_by_joblib(_):
    """Two workers, which the pool ends."""
    import joblib
    try:
        workers = joblib.Parallel(n_jobs=2, backend="multiprocessing", batch_size=1)
        return len(workers(joblib.delayed(use_sklearn_both)() for _ in range(2))), 2
    except threading.BrokenBarrierError:
        return 0, 2


def main(kind, count):
    made, child = globals()[f"{kind}_kind"]()
    fork = forked_by_joblib if kind == "joblib" else forked
    stop, works = threading.Event(), [made() for _ in range(2)]
    working = [threading.Event() for _ in works]

    def busy(work, is_working):
        while not stop.is_set():
            work()
            is_working.set()

    threads = [threading.Thread(target=busy, args=pair, daemon=True) for pair in zip(works, working)]
    for thread in threads:
        thread.start()
    os.register_at_fork(after_in_child=lambda: signal.alarm(ALARM_S))
    ended = asked = 0
    while asked < count and asked - ended < HANGS_MAX:
        for is_working in working:  # each has worked since the last fork
            is_working.clear()
            is_working.wait()
        more_ended, more = fork(child)
        ended += more_ended
        asked += more
    stop.set()
    for thread in threads:
        thread.join()
    print(f"{ended} of {asked}")
    sys.stdout.flush()
    os._exit(0)


main(sys.argv[1], int(sys.argv[2]))
