"""Notebooks that a program runs: nbclient and papermill only say "Kernel died"; the kernel's stderr says why, and where that is written."""
import re
import subprocess
import sys

import pytest

from notebooks import GROW

RUNNERS = {
    "nbclient": ["-m", "jupyter", "execute", "--allow-errors"],
    "papermill": ["-m", "papermill", "--no-progress-bar"],
}


def run_notebook(place, runner, path):
    words = [sys.executable, *RUNNERS[runner], path] + ([place.folder / "done.ipynb"] if runner == "papermill" else [])
    return subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200,
                          cwd=place.folder)


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_death_is_told_on_stderr_and_in_a_file(place, small_group, runner):
    place.add_kernel(small_group)
    done = run_notebook(place, runner, place.write("eats.ipynb", GROW, "grow(1000)", "print('never')"))
    assert done.returncode != 0 and "DeadKernelError" in done.stderr, done.stderr
    folder, life = place.life()
    assert life["is_death"] and life["cause"] == "container-limit"
    assert "container's memory limit of 300 MiB was reached" in " ".join(done.stderr.split())
    assert re.search(r"cell In\[1\] line 4 grow +\(leak\?\)  keep\.append\(bytearray\(1 << 20\)\)", done.stderr), done.stderr
    assert f"this verdict is also in {folder}/verdict.txt" in done.stderr
    assert "cell In[1] line 4 grow" in (folder / "verdict.txt").read_text()


@pytest.mark.parametrize("runner", RUNNERS)
def test_a_notebook_that_ends_well_says_nothing(place, runner):
    done = run_notebook(place, runner, place.write("ends.ipynb", GROW, "grow(30)"))
    assert done.returncode == 0 and "kmemshim" not in done.stderr, done.stderr
    assert not place.life()[1]["is_death"]
