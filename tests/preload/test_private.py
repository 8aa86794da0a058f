"""KMEMSHIM_PRIVATE=1: what says more of the user than of the code is not in the capture; what is left suffices."""
import shutil

import pytest

import harness

SECRETS = ["SecretArgument", "SecretFolder", "SecretCell", "SecretPlace"]

SCRIPT = """import json, os, sys
from pkg import keeper
kept = keeper.keep()
namespace = {"__name__": "__main__", "_ih": ["", "x = 1  # SecretCell\\nkept.append(bytearray(3000000))"], "_oh": {}, "kept": kept}
namespace["In"] = namespace["_ih"]
namespace["_i1"] = namespace["_ih"][1]
exec(compile(namespace["_i1"], "/tmp/SecretFolder/ipykernel_%d/123.py" % os.getpid(), "exec"), namespace)
decoded = json.loads(json.dumps(["a" * 50] * 40000))
if os.fork() == 0:
    os.chdir("/")
    os.execv(sys.executable, [sys.executable, "-c", "kept = bytearray(5 << 20)", "SecretArgument"])
os.wait()
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "SecretFolder"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "__init__.py").write_text("def make(n):\n    return bytearray(n)\n")
    (folder / "pkg" / "keeper.py").write_text("from pkg import make\ndef keep():\n    return [make(2000) for i in range(2000)]\n")
    (folder / "train.py").write_text(SCRIPT)
    (tmp_path / "SecretPlace").mkdir()
    return folder


def record(project, out, **more):
    done = harness.ok(harness.run([harness.find_python(), project / "train.py", "--password", "SecretArgument"], harness.shim_env(out, **more),
                                  cwd=project.parent / "SecretPlace"))
    assert "kmemshim" not in done.stderr, done.stderr
    return list(out.glob("*.kmem"))


def test_secrets_are_in_no_byte_of_the_captures(project, out, tmp_path):
    private = record(project, out, KMEMSHIM_PRIVATE=1)
    usual = record(project, tmp_path / "usual")

    assert len(private) == len(usual) == 2
    for secret in SECRETS:
        assert not [path for path in private if secret.encode() in path.read_bytes()], secret
        assert [path for path in usual if secret.encode() in path.read_bytes()], secret  # the test finds what is there


def test_lines_functions_and_symbols_are_as_ever(project, out):
    record(project, out, KMEMSHIM_PRIVATE=1)
    document = harness.report("peak", out)
    places = {(line["where"]["file"], line["where"]["line"], line["where"]["function"]) for line in document["lines"] if line["where"]}
    page = harness.kmemshim("report", out).stdout

    assert ("pkg/__init__.py", 2, "make") in places
    assert ("train.py", 8, "<module>") in places
    assert any(file.startswith("cell #123") and line == 2 for file, line, _ in places), places
    assert any(site["frames"] for site in document["sites"])
    assert "left by imports" in page and "recorded with KMEMSHIM_PRIVATE=1" in harness.unwrapped(page)


def test_a_gate_of_private_runs_names_the_line(project, out, tmp_path):
    record(project, out, KMEMSHIM_PRIVATE=1)
    base = tmp_path / "base.json"
    made = harness.kmemshim("baseline", out, "-o", base)
    keeper = project / "pkg" / "keeper.py"
    keeper.write_text(keeper.read_text().replace("range(2000)", "range(6000)"))
    record(project, tmp_path / "now", KMEMSHIM_PRIVATE=1)
    check = harness.kmemshim("check", tmp_path / "now", "--baseline", base)

    assert made.returncode == 0 and not any(secret in base.read_text() for secret in SECRETS)
    assert check.returncode == 1 and "__init__.py:2 make" in check.stdout, check.stdout


def test_a_program_that_is_no_interpreter_keeps_its_names(programs, tmp_path, out):
    """Its folder is needed to find its symbols, and is kept."""
    program = shutil.copy(programs("gate.c"), tmp_path / "server")
    harness.run([program, "leak", "SecretArgument"], harness.shim_env(out, KMEMSHIM_PRIVATE=1))
    document = harness.report("leaks", out)

    assert b"SecretArgument" not in next(out.glob("*.kmem")).read_bytes()
    assert document["processes"][0]["name"] == "server" and document["processes"][0]["command"] == ""
    assert document["lines"][0]["where"]["function"] == "take_block"


@pytest.mark.parametrize("value", ["true", "yes", "on", "TRUE", "2", "y"])
def test_all_but_what_says_no_is_on(value, programs, out):
    """It failed open: a word that was not known was off."""
    done = harness.run([programs("gate.c"), "leak", "SecretArgument"], harness.shim_env(out, KMEMSHIM_PRIVATE=value))

    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert b"SecretArgument" not in next(out.glob("*.kmem")).read_bytes()


@pytest.mark.parametrize("value", ["", "0", "no", "Off", "FALSE"])
def test_what_says_no_is_off(value, programs, out):
    harness.run([programs("gate.c"), "leak", "SecretArgument"], harness.shim_env(out, KMEMSHIM_PRIVATE=value))

    assert b"SecretArgument" in next(out.glob("*.kmem")).read_bytes()


@pytest.mark.parametrize("words", [["run", "-q", "-o"], None])
def test_a_child_that_lost_the_variable_is_private_too(words, programs, out):
    program = ["env", "-u", "KMEMSHIM_PRIVATE", programs("gate.c"), "leak", "SecretArgument"]
    done = harness.kmemshim(*words, out, "--", "env", *program, env=harness.plain_env(KMEMSHIM_PRIVATE="yes")) if words else \
        harness.run(["env", *program], harness.shim_env(out, KMEMSHIM_PRIVATE="yes"))
    captures = list(out.glob("*.kmem"))

    assert done.returncode == 0 and captures
    assert not [path for path in captures if b"SecretArgument" in path.read_bytes()]
    assert len({process["pid"] for process in harness.report("report", out)["processes"]}) == len(captures)  # one session
