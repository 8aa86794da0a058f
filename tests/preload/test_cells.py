"""Cells of notebooks: by their number and line, with their text, runs of one text together."""
import glob
import os
import signal
import subprocess

import pytest

from harness import BUILD, HERE, ROOT, kmemshim, ok, record, report, run, shim_env

VERSIONS = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13"]


def interpreter_of(version):
    paths = sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python3")))
    if not paths:
        pytest.skip(f"no Python {version} on this machine")
    return paths[-1]


def rows(capture, domain="heap"):
    """What stands in cells: label, line -> sum of live bytes, text."""
    found = {}
    for line in report("peak", capture, "--domain", domain)["lines"]:
        where = line["where"] or {"file": ""}
        if where["file"].startswith("cell "):
            bytes_, _ = found.get((where["file"], where["line"]), (0, None))
            found[where["file"], where["line"]] = (bytes_ + line["live_bytes"], where["source"])
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_cells_have_numbers_and_texts_on_every_interpreter(version, out, tmp_path):
    done = record([interpreter_of(version), HERE / "cells.py", tmp_path], out)
    assert done.returncode == -signal.SIGKILL, done.stderr
    found = rows(out)
    big = {place: row for place, row in found.items() if row[0] >= 300000}
    hashed = [place for place in big if place[0].startswith("cell #")]
    assert len(hashed) == 1 and hashed[0][1] == 2  # too long to be kept: known by its hash, and no wrong text
    assert big.pop(hashed[0])[1] is None
    assert {place: (bytes_ // 1000, text) for place, (bytes_, text) in big.items()} == {
        ("cell In[4]", 2): (2400, "keep.append(bytearray(300000))"),  # and In[2]: the same text
        ("cell In[1]", 3): (500, "keep.append(bytearray(size))  # gr\u00f6\u00dfer \U0001f600"),
        ("cell In[6]", 1): (900, "keep.append(bytearray(900001))"),
    }
    text = kmemshim("peak", out).stdout
    assert "cell In[1] line 3 grow\n" in text and "from cell In[3] line 2\n" in text, text


def test_the_same_cells_of_two_processes_are_one(tmp_path):
    for _ in range(2):
        done = run(["/usr/bin/python3", HERE / "cells.py", tmp_path],
                   shim_env(tmp_path / "out", KMEMSHIM_SESSION="both"))
        assert done.returncode == -signal.SIGKILL, done.stderr
    document = report("peak", tmp_path / "out", "--domain", "heap")
    assert len(document["processes"]) == 2
    found = rows(tmp_path / "out")
    assert found["cell In[4]", 2][0] // 1000 == 4800
    assert len([place for place in found if place[1] == 2 and place[0] == "cell In[4]"]) == 1


NOTEBOOK = """
import nbformat, sys
from nbclient import NotebookClient
for kernel in range(2):
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in (
        "keep = []\\ndef grow(size):\\n    keep.append(bytearray(size))",
        "%time x = 1\\nfor i in range(10):\\n    grow(1000003)\\n",
        "for i in range(10):\\n    keep.append(bytearray(2000003))",
        "for i in range(10):\\n    keep.append(bytearray(2000003))")]
    NotebookClient(notebook, timeout=100, kernel_name="python3").execute()
"""


@pytest.fixture(scope="session")
def jupyter():
    made = subprocess.run([ROOT / "tools" / "venv", "jupyter"], env={**os.environ, "BUILD": str(BUILD)},
                          capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip(f"no IPython and ipykernel from PyPI: {made.stderr.strip().splitlines()[-1]}")
    return made.stdout.strip()


@pytest.mark.framework
def test_a_real_kernel_names_its_cells(jupyter, out, tmp_path):
    (tmp_path / "notebook.py").write_text(NOTEBOOK)
    ok(record([jupyter, tmp_path / "notebook.py"], out, cwd=tmp_path))
    lines = {(line["where"]["file"], line["where"]["line"], line["where"]["source"]): line["peak_bytes"]
             for line in report("peak", out, "--domain", "heap")["lines"] if line["where"] and "relation" not in line["where"]}
    assert lines["cell In[1]", 3, "keep.append(bytearray(size))"] >= 20 * 1000003  # two kernels
    assert lines["cell In[4]", 2, "keep.append(bytearray(2000003))"] >= 40 * 2000003  # and two runs in each
    text = kmemshim("peak", out).stdout
    assert "cell In[1] line 3 grow\n" in text and "from cell In[2] line 3\n" in text, text


@pytest.mark.framework
def test_ipython_at_a_prompt(jupyter, out, tmp_path):
    """Without the thread that saves what was typed: what it takes while a cell runs is that cell's."""
    typed = "keep = []\nfor i in range(9): keep.append(bytearray(1000003))\n\nimport os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
    done = subprocess.run([jupyter, "-m", "IPython", "--simple-prompt", "--HistoryManager.enabled=False"], input=typed, text=True, capture_output=True, timeout=120,
                          env={**shim_env(out), "IPYTHONDIR": str(tmp_path)})
    assert done.returncode == -signal.SIGKILL, done.stderr
    live_bytes, text = rows(out)["cell In[2]", 1]
    assert 9 * 1000003 <= live_bytes < 9 * 1000003 + 10000
    assert text == "for i in range(9): keep.append(bytearray(1000003))"
