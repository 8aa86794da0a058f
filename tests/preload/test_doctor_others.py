"""What kmemshim doctor says of others: what else is preloaded, another installation, the notebook's kernels."""
import json
import os
import shutil
import subprocess

import pytest

import harness
from test_doctor import OK, PROBLEM, findings
from test_doctor_machine import mounted, one
from test_jupyter import SPEC, Place

VERSION = harness.kmemshim("--version").stdout.split()[1]


@pytest.fixture
def other(tmp_path):
    """Another installation."""
    folder = tmp_path / "other"
    folder.mkdir()
    for file in (harness.KMEMSHIM, harness.SHIM):
        shutil.copy(file, folder)
    return folder


# --- preloads -----------------------------------------------------------------------------------

def test_the_library_of_another_installation(other, tmp_path):
    env = harness.plain_env(LD_PRELOAD=other / "libkmemshim.so")
    row = one(findings("/bin/ls", status=OK, env=env, cwd=tmp_path), "LD_PRELOAD", "note")
    assert row["what"] == f"{other}/libkmemshim.so is the library of another installation, version {VERSION}: kmemshim run leaves it out, other programs get it"
    assert row["next"] == "unset LD_PRELOAD"


def test_a_library_that_does_not_say_its_version(other, tmp_path):
    harness.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", other / "libkmemshim.so"])
    env = harness.plain_env(LD_PRELOAD=other / "libkmemshim.so")
    row = one(findings("/bin/ls", status=OK, env=env, cwd=tmp_path), "LD_PRELOAD", "note")
    assert "is the library of another installation: kmemshim run" in row["what"]


def test_an_allocator_before_the_program(tmp_path):
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True).stdout
    library = next((line.split("=> ")[1] for line in listed.splitlines() if "libjemalloc.so.2 " in line), None)
    if library is None:
        pytest.skip("no jemalloc")
    row = one(findings("/bin/ls", status=OK, env=harness.plain_env(LD_PRELOAD=library), cwd=tmp_path), "LD_PRELOAD")
    assert row["level"] == "ok" and "is an allocator" in row["what"]


@pytest.mark.parametrize("name, levels, said", [
    ("libtcmalloc_minimal.so.4", ["ok"], "is an allocator"), ("_filpreload.abi3.so", ["problem"], "records allocations too"),
    ("libmemusage.so", ["problem"], "records allocations too"), ("libprofiler.so.0", [], ""), ("libfaketime.so.1", [], ""),
])
def test_libraries_are_known_by_their_names(name, levels, said, tmp_path):
    harness.run(["gcc", "-shared", "-x", "c", "/dev/null", "-o", tmp_path / name])
    found = findings("/bin/ls", status=PROBLEM if "problem" in levels else OK, env=harness.plain_env(LD_PRELOAD=tmp_path / name), cwd=tmp_path)
    rows = [row for row in found if row["where"] == "LD_PRELOAD"]
    assert [row["level"] for row in rows] == levels and all(said in row["what"] for row in rows), found


OF_ALL = """cd {folder}
cp -a /etc etc
printf '# a comment\\n%s\\n' "{library}" >etc/ld.so.preload
mount --bind etc /etc"""


@pytest.mark.parametrize("which, level, said", [
    ("own", "note", "every program is recorded"), ("other", "problem", "each block would be recorded twice"),
    ("gone", "note", "cannot be read"),
])
def test_what_is_preloaded_into_all_programs(which, level, said, other, tmp_path):
    library = {"own": harness.SHIM, "other": other / "libkmemshim.so", "gone": "/nonexistent/libgone.so"}[which]
    (tmp_path / "here").mkdir()
    found = mounted(OF_ALL.format(folder=tmp_path / "here", library=library), "/bin/ls")
    row = one(found, "/etc/ld.so.preload")
    assert row["level"] == level and str(library) in row["what"] and said in row["what"] and row["next"]


def test_another_command_in_path(other, tmp_path):
    env = harness.plain_env(PATH=f"{other}:{os.environ['PATH']}")
    row = one(findings("/bin/ls", status=OK, env=env, cwd=tmp_path), "PATH", "note")
    assert f"another installation, {other}/kmemshim; this one is {os.path.realpath(harness.KMEMSHIM)}" in row["what"]
    env = harness.plain_env(PATH=f"{harness.BUILD}:{os.environ['PATH']}")
    assert not [row for row in findings("/bin/ls", status=OK, env=env, cwd=tmp_path) if row["where"] == "PATH"]


# --- kernels ------------------------------------------------------------------------------------

@pytest.fixture
def jupyter(tmp_path):
    place = Place(tmp_path)
    place.activate()
    place.add()
    return place


def kernel(jupyter, name, status=OK, words=()):
    return one(findings("-o", jupyter.folder / "out", *words, status=status, env=jupyter.env), f"kernel {name}")


def test_kernels_that_are_recorded_and_that_are_not(jupyter, tmp_path):
    jupyter.add(name="julia", spec={**SPEC, "argv": ["julia"]})
    assert jupyter("install").returncode == 0
    found = findings("-o", tmp_path / "out", status=OK, env=jupyter.env)
    assert one(found, "kernel python3-kmemshim")["what"] == "is recorded"
    assert one(found, "kernel julia") == {"level": "note", "where": "kernel julia", "what": "is not recorded",
                                          "next": "kmemshim jupyter install --wrap julia"}
    assert not [row for row in found if row["where"] == "kernel python3"]  # its recorded one is beside it
    assert not [row for row in findings("-o", tmp_path / "out", "/bin/ls", status=OK, env=jupyter.env) if row["where"].startswith("kernel ")]


def test_kernels_for_who_starts_jupyter(jupyter):
    program = jupyter.venv / "bin" / "jupyter-lab"
    program.write_text("#!/usr/bin/python3\n")
    program.chmod(0o755)
    assert kernel(jupyter, "python3", words=[program])["next"] == "kmemshim jupyter install --wrap python3"


@pytest.mark.parametrize("lost, said", [
    ("kmemshim", "is gone or does not run"), ("rights", "is gone or does not run"), ("libkmemshim.so", "is gone"),
    ("nothing", None), ("interpreter", "its interpreter"), ("argv", "changed by hand")])
def test_a_kernel_whose_installation_is_gone(lost, said, other, jupyter):
    assert harness.run([other / "kmemshim", "jupyter", "install"], jupyter.env).returncode == 0
    path = jupyter.kernels / "python3-kmemshim" / "kernel.json"
    if lost == "rights":
        (other / "kmemshim").chmod(0o644)
    elif lost == "interpreter":
        (jupyter.venv / "bin" / "python").unlink()
    elif lost == "argv":
        path.write_text(json.dumps({**json.loads(path.read_text()), "argv": ["python"]}))
    elif said:
        (other / lost).unlink()
    level = {"nothing": "ok", "argv": "note"}.get(lost, "problem")
    row = kernel(jupyter, "python3-kmemshim", status=PROBLEM if level == "problem" else OK)
    assert row["level"] == level
    if not said:
        assert row["what"] == f"is recorded, by {other}/kmemshim"
        return
    assert said in row["what"] and row["next"] == "kmemshim jupyter install --wrap python3 --name python3-kmemshim"
    jupyter.env["VIRTUAL_ENV"] = str(jupyter.venv)
    if lost == "libkmemshim.so":  # what is said mends it
        assert harness.run([harness.KMEMSHIM, *row["next"].split()[1:]], jupyter.env).returncode == 0
        assert kernel(jupyter, "python3-kmemshim")["what"] == "is recorded"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_kernel_that_preloads_the_library(is_there, jupyter):
    library = harness.SHIM if is_there else "/nonexistent/libkmemshim.so"
    jupyter.add(name="c", spec={**SPEC, "argv": ["c-kernel"], "env": {"LD_PRELOAD": f"libm.so.6 {library}"}})
    row = kernel(jupyter, "c", status=OK if is_there else PROBLEM)
    assert row["level"] == ("ok" if is_there else "problem")
    assert is_there or str(library) in row["what"] and "c/kernel.json" in row["next"]


def test_names_that_steer_a_terminal_or_a_shell(jupyter, tmp_path):
    """Of a kernel: Jupyter does not take it, and it would be copied with the command. Of a file: without what steers."""
    jupyter.add(name="$(touch x)")
    folder = tmp_path / "new\nproblem \x1b[31mred"
    found = findings("-o", folder, status=PROBLEM, env={**jupyter.env, "LD_PRELOAD": "/nonexistent/\x1b[31m.so"})
    assert not [row for row in found if "touch" in row["where"] + row["next"]]
    assert not [row for row in found for text in row.values() if set(text) & set("\n\x1b")]
    assert one(found, f"{tmp_path}/new?problem ?[31mred", "ok")
