"""Current PyTorch, Keras on TensorFlow and JAX from PyPI, in private environments below build/ (make test-frameworks)."""
import functools

import pytest

import harness

pytestmark = pytest.mark.framework
KILLS = 10


@functools.lru_cache
def interpreter(framework):
    done = harness.run([harness.ROOT / "tools" / "venv", framework], harness.plain_env(BUILD=harness.BUILD), timeout=1500)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("kill", range(KILLS))
@pytest.mark.parametrize("framework, script, epochs", [
    ("torch", "torch_keeps_loss.py", 60),
    ("keras", "keras_fit_keeps_arrays.py", 60),
])
def test_killed_training_names_the_line(framework, script, epochs, kill, out):
    source = harness.EXAMPLES / script
    harness.kill_in_second_half([interpreter(framework), source], out, epochs, harness.seeded_random())

    harness.check_expectations(source, out)
    assert script in harness.kmemshim("report", out).stdout


JAX_PROGRAM = """\
import jax
import jax.numpy as jnp
step = jax.jit(lambda w, x: w - 0.01 * jax.grad(lambda v: jnp.mean((x @ v) ** 2))(w))
w, kept = jnp.ones((256, 64)), []
for epoch in range(40):
    w = step(w, jnp.full((512, 256), 0.5))
    kept.append(jax.device_get(w).copy())
print(len(kept), float(w.sum()))
"""


def test_jax_runs_the_same_and_reports(out, tmp_path):
    program = tmp_path / "train_jax.py"
    program.write_text(JAX_PROGRAM)
    python = interpreter("jax")
    plain = harness.run([python, program])
    watched = harness.record([python, program], out)

    assert plain.returncode == 0, plain.stderr
    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout)
    places = [harness.place(site) for site in harness.report("leaks", out, "--domain", "heap", "--top", "50")["sites"]]
    assert "train_jax.py:7" in places
    assert harness.kmemshim("report", out).returncode == 0
