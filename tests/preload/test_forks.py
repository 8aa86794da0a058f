"""
Ordinary programs fork beside threads that allocate, all on one core: each child ends by itself. So a fork meets the recorder in the
middle of an event, and no child waits for what a thread of its parent held then. FORKS=200 asks for more of them.
"""
import os

import pytest

import harness

FORKS = int(os.environ.get("FORKS", 30))
CORE = min(os.sched_getaffinity(0))
SCRIPT = harness.HERE / "forks.py"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "KMEMSHIM_VERIFY": "0"}  # verified, a child walks with libunwind, too


def check_all_end(command, out):
    done = harness.run(["taskset", "-c", CORE, *command, FORKS], harness.shim_env(out, **QUIET), timeout=4 * harness.TIMEOUT)

    assert (done.returncode, done.stdout) == (0, f"{FORKS} of {FORKS}\n"), done.stderr
    parent = harness.kmemshim("report", out)
    assert parent.returncode == 0, parent.stderr


def test_children_of_c_plus_plus_end(tmp_path, out):
    check_all_end([harness.compile_cc(tmp_path, "forks")], out)


@pytest.mark.framework
@pytest.mark.parametrize("kind, environment", [("torch", "torch"), ("keras", "keras"), ("jax", "jax"), ("sklearn", "sklearn"), ("joblib", "sklearn")])
def test_children_of_frameworks_end(kind, environment, out):
    check_all_end([harness.venv(environment), SCRIPT, kind], out)
