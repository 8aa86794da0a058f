"""Current PyTorch, Keras on TensorFlow and JAX from PyPI, in private environments below build/ (make test-frameworks)."""
import json
import re
from pathlib import Path

import pytest

import harness

pytestmark = pytest.mark.framework
KILLS = [pytest.param(kill, marks=[] if kill < 3 else pytest.mark.long) for kill in range(10)]


@pytest.mark.parametrize("kill", KILLS)
@pytest.mark.parametrize("framework, script, epochs", [
    ("torch", "torch_keeps_loss.py", 60),
    ("keras", "keras_fit_keeps_arrays.py", 60),
])
def test_killed_training_names_the_line(framework, script, epochs, kill, out):
    source = harness.EXAMPLES / script
    harness.kill_in_second_half([harness.venv(framework), source], out, epochs, harness.seeded_random())

    harness.check_expectations(source, out)
    assert script in harness.kmemshim("report", out).stdout


def test_a_list_of_tensors_is_named_by_their_type(out, tmp_path):
    program = tmp_path / "tensors.py"
    program.write_text("import os, torch\nkept = []\nfor i in range(3000):\n    kept.append(torch.ones(4))\nos._exit(0)\n")
    harness.ok(harness.run([harness.venv("torch"), program], harness.shim_env(out, KMEMSHIM_PYTHON_OBJECTS="1", KMEMSHIM_VERIFY="0")))
    lines = json.loads(harness.kmemshim("sites", out, "--json", "--top", "1000000").stdout)["lines"]
    kinds = {kind["name"]: kind["count"] for row in lines if harness.place(row) == "tensors.py:4" for kind in row["types"]}
    assert 2900 <= kinds.get("torch.Tensor", 0) <= 3100, kinds


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
    python = harness.venv("jax")
    plain = harness.run([python, program])
    watched = harness.record([python, program], out)

    assert plain.returncode == 0, plain.stderr
    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout)
    lines = harness.report("leaks", out, "--domain", "heap", "--top", "50")["lines"]
    assert "train_jax.py:7" in [harness.place(line) for line in lines[:3]]  # jax's own caches may grow, too
    assert harness.kmemshim("report", out).returncode == 0


POOLS = {
    "torch": """\
import torch
torch.set_num_threads(4)
def work():
    for i in range(20):
        torch.nn.functional.conv2d(torch.randn(8, 16, 64, 64), torch.randn(32, 16, 3, 3))
        torch.randn(500, 500) @ torch.randn(500, 500)
work()
""",
    "keras": """\
import numpy as np
import keras
model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(256, activation="relu"), keras.layers.Dense(10)])
model.compile("adam", "mse")
model.fit(np.ones((4000, 64), "float32"), np.ones((4000, 10), "float32"), epochs=2, batch_size=256, verbose=0)
""",
    "jax": """\
import jax
import jax.numpy as jnp
step = jax.jit(lambda w, x: w - 0.01 * jax.grad(lambda v: jnp.mean((x @ v) ** 2))(w))
w = jnp.ones((512, 64))
for epoch in range(10):
    w = step(w, jnp.full((1024, 512), 0.5))
""",
}


@pytest.mark.parametrize("framework", POOLS)
def test_worker_pools_carry_a_line_of_the_script(framework, out, tmp_path):
    """OpenMP's, TensorFlow's and XLA's threads have no Python frames; all they allocate is told by the script's line."""
    program = tmp_path / "pools.py"
    program.write_text(POOLS[framework] + "import os\nos._exit(0)\n")
    harness.ok(harness.run([harness.venv(framework), program], harness.shim_env(out, OMP_NUM_THREADS=4)))

    with_line = without = 0
    lines = set()
    done = harness.kmemshim("sites", out, "--json", "--domain", "heap", "--top", "1000000") # too large for the schema's check
    for site in json.loads(done.stdout)["sites"]:
        frames = site["frames"]
        if any(frame["kind"] == "python" and "relation" not in frame for frame in frames):
            continue
        # A line that holds little is brief: the frames that it was given alone, without those of its own thread.
        given = any("relation" in frame for frame in frames)
        if not given and not any(frame["function"] in ("start_thread", "clone3") for frame in frames):
            continue  # the main thread, before there is Python
        if site["where"].get("relation") == "while" and harness.place(site).startswith("pools.py:"):
            with_line += site["allocated_bytes"]
            lines.add(site["where"]["line"])
        else:
            without += site["allocated_bytes"]
    print(framework, "pools:", with_line, "bytes with a line of the script,", without, "without; lines", sorted(lines))
    assert with_line > 1 << 20
    assert without < with_line / 100
    assert len(lines) < 20


LOADER = """\
import torch
from torch.utils.data import DataLoader, Dataset
class Texts(Dataset):
    def __init__(self, rows):
        self.rows = [b"%08d" % row + bytes(600) for row in range(rows)]
    def __len__(self):
        return len(self.rows)
    def __getitem__(self, index):
        return self.rows[index][7]
texts = Texts(100000)
for epoch in range(2):
    for batch in DataLoader(texts, batch_size=1000, num_workers=2, shuffle=True):
        pass
print("done")
"""


def test_workers_of_a_data_loader_that_copy_the_data_set_are_named(out, tmp_path, as_users_run_it):
    """Each epoch has new workers: four processes, two at the same time."""
    program = tmp_path / "loader.py"
    program.write_text(LOADER)
    done = harness.record([harness.venv("torch"), program], out)

    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
    document = harness.report("sites", out)
    copied = [process["copied_bytes"] for process in document["processes"] if process["copied_bytes"] != 0]
    assert len(copied) == 4
    assert all(60_000_000 < bytes_ < 120_000_000 for bytes_ in copied), copied
    assert "4 child processes copied at least 1" in document["verdict"]["text"]
    assert "loader.py:5 " in document["verdict"]["text"].split("had built before it forked")[1]
    assert "NumPy array" in document["verdict"]["next"]


def test_the_page_shows_what_the_doctor_says_of_a_training(tmp_path):
    """The second session of docs/limits.md, where PyTorch is installed and no GPU is there; figures and folders aside."""
    if harness.run(["sh", "-c", "ldconfig -p | grep -q libcuda.so.1"]).returncode == 0:
        pytest.skip("a driver of CUDA is here")
    shown = re.search(r"^\$ kmemshim doctor -- python3 train.py\n(.*?)^```", (harness.ROOT / "docs" / "limits.md").read_text(), re.M | re.S)[1]
    (tmp_path / "train.py").write_text("")
    env = harness.plain_env(PATH=f"{Path(harness.venv('torch')).parent}:/usr/bin:/bin")
    done = harness.run(["bash", "-c", 'ulimit -l 8192; exec "$0" doctor -- python3 train.py', harness.KMEMSHIM.resolve()], env, cwd=tmp_path)

    def plain(text):
        """Words alone: without figures, and of a path its last part."""
        return re.sub(r"\d[\d.]*( [KMG]iB)?", "#", re.sub(r"/\S*/", "/", text))
    wanted = [re.escape(plain(row)).replace(r"\.\.\.", ".*") for row in shown.splitlines()]
    rows = [plain(row) for row in done.stdout.splitlines()]
    assert len(rows) == len(wanted), done.stdout
    for row, pattern in zip(rows, wanted):
        assert re.fullmatch(pattern, row), (row, pattern)
