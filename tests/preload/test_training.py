"""The NumPy training scripts, killed at a random moment of their second half: each answer is right; three kills, ten with make test-long."""
import pytest

import harness

pytestmark = pytest.mark.usefixtures("as_users_run_it")

KILLS = [pytest.param(kill, marks=[] if kill < 3 else pytest.mark.long) for kill in range(10)]


@pytest.mark.parametrize("kill", KILLS)
@pytest.mark.parametrize("script, epochs", [("train_numpy_keeps_predictions.py", 60), ("whole_dataset_float64.py", 24)])
def test_killed_training_names_the_line(script, epochs, kill, numpy_python, out):
    source = harness.EXAMPLES / script
    harness.kill_in_second_half([numpy_python, source], out, epochs, harness.seeded_random())

    harness.check_expectations(source, out)
    for command in ("why", "report"):
        done = harness.ok(harness.kmemshim(command, out))
    assert script in done.stdout


@pytest.mark.parametrize("script, epochs", [("train_numpy_keeps_predictions.py", 6), ("whole_dataset_float64.py", 2)])
def test_finished_training_prints_the_same(script, epochs, numpy_python, out):
    source = harness.EXAMPLES / script
    plain = harness.run([numpy_python, source], harness.plain_env(EPOCHS=epochs))
    watched = harness.run([numpy_python, source], harness.shim_env(out, EPOCHS=epochs))

    assert (watched.returncode, watched.stdout, watched.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_frames_are_the_scripts_functions_between_native_ones(numpy_python, out):
    source = harness.EXAMPLES / "whole_dataset_float64.py"
    harness.run([numpy_python, source], harness.shim_env(out, EPOCHS=1))
    site = harness.report("peak", out, "--domain", "heap")["sites"][0]
    python = [(frame["function"], frame["line"]) for frame in site["frames"] if frame["kind"] == "python"]

    assert [function for function, _ in python] == ["load_dataset", "main", "<module>"]
    assert all(line for _, line in python)
