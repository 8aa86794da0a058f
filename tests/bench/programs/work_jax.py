"""JAX on the CPU, one thread.   work_jax.py jit|eager STEPS

jit     one compiled training step of a small network: what remains is the call of it
eager   a dozen operations, each dispatched by itself
"""
import sys

import jax
import jax.numpy as jnp

import steady

keys = jax.random.split(jax.random.PRNGKey(1), 4)
params = {"first": jax.random.normal(keys[0], (20, 64)) * 0.1, "second": jax.random.normal(keys[1], (64, 1)) * 0.1,
          "bias": jnp.zeros(64)}
inputs, targets = jax.random.normal(keys[2], (32, 20)), jax.random.normal(keys[3], (32, 1))


def loss_of(params, inputs, targets):
    hidden = jnp.tanh(inputs @ params["first"] + params["bias"])
    return ((hidden @ params["second"] - targets) ** 2).mean()


@jax.jit
def trained(params, inputs, targets):
    loss, gradient = jax.value_and_grad(loss_of)(params, inputs, targets)
    return jax.tree.map(lambda value, slope: value - 0.01 * slope, params, gradient), loss


def jit_step():
    global params
    params, loss = trained(params, inputs, targets)
    loss.block_until_ready()


def eager_step():
    hidden = jnp.tanh(inputs @ params["first"] + params["bias"])
    error = hidden @ params["second"] - targets
    return float((error * error).mean() + jnp.abs(error).max() - hidden.sum() / 64)


steady.measure({"jit": jit_step, "eager": eager_step}[sys.argv[1]], int(sys.argv[2]))
