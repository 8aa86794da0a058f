"""What Python's exit handlers release was held until then: figures are those of the moment when the program's own code ended."""
import json
import os
import sys

import pytest

import interpreters

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "preload"))
import harness  # noqa: E402

pytestmark = pytest.mark.usefixtures("as_users_run_it")

PROGRAM = os.path.join(HERE, "ends_program.py")
HELD = 400 * 20001

# scene: status, the line that holds, what is live of it, how much of that is said to have been released
SCENES = {
    "atexit_builtin": (0, "cache", HELD, HELD),
    "atexit_function": (0, "cache", HELD, HELD),
    "atexit_method": (0, "kept", HELD, HELD),
    "lru_cache": (0, "computed", HELD, HELD),
    "sys_exit": (4, "cache", HELD, HELD),
    "sys_exit_in_a_function_that_holds": (4, "cache", HELD, HELD),
    "sys_exit_in_a_thread": (0, "cache", HELD, HELD),
    "os_exit_in_a_handler": (5, "cache", HELD, HELD),
    "handler_that_works": (0, "cache", HELD, HELD),
    "pool": (0, "cache", HELD, HELD),
    "threads_that_run_on": (0, "cache", HELD, 0),
    "runs_code": (0, "cache", 0, 0),
    "killed": (-9, "cache", HELD, 0),
}
WAYS = {"file": [PROGRAM], "module": ["-m", "ends_program"], "text": ["-c", "import sys, ends_program as p; getattr(p, sys.argv[1])()"]}


def line_of(mark):
    with open(PROGRAM, encoding="utf-8") as lines:
        return next(number for number, line in enumerate(lines, 1) if line.endswith("# %s\n" % mark))


def report(command, out):
    """Not held against the schema: that takes longer than the program."""
    done = harness.ok(harness.kmemshim(command, out, "--json"))
    return json.loads(done.stdout)


def end(out, name, scene, way="file"):
    """Of the row of the scene's line: live and released bytes; and the document."""
    python = interpreters.get(name)
    status, mark = SCENES[scene][:2]
    done = harness.run([python.path, *WAYS[way], scene],
                       harness.shim_env(out, **{**python.environment, "PYTHONPATH": HERE, "PYTHONDONTWRITEBYTECODE": "1"}))
    assert done.returncode == status, done.stdout + done.stderr
    document = report("leaks", out)
    rows = [row for row in document["lines"] if row["where"] and row["domain"] == "heap" and row["where"]["file"].endswith("ends_program.py") and row["where"]["line"] == line_of(mark)]
    return sum(row["live_bytes"] for row in rows), sum(row["released_at_exit_bytes"] for row in rows), document


def check(found, scene):
    """A bytearray asks for a byte more; from 3.15 on for a header too."""
    live, released, document = found
    wanted, swept = SCENES[scene][2:]
    assert wanted <= live <= wanted * 1.01 and swept <= released <= swept * 1.01, (live, released)
    assert document["is_at_exit"] == (swept != 0)


@pytest.mark.parametrize("scene", SCENES)
def test_what_exit_handlers_release_was_held(scene, tmp_path):
    check(end(tmp_path, "system", scene), scene)


# Not in free-threaded ones, in which code lives on until the collector comes: docs/limits.md.
@pytest.mark.parametrize("name", [name for name in interpreters.PYENV + ["3.14-debian", "3.15-debian"] if name in interpreters.NAMES])
def test_in_every_interpreter(name, tmp_path):
    for scene in ("atexit_builtin", "sys_exit"):
        check(end(tmp_path / scene, name, scene), scene)


@pytest.mark.parametrize("way", WAYS)
def test_however_it_was_started(way, tmp_path):
    check(end(tmp_path, "system", "atexit_builtin", way), "atexit_builtin")


def test_what_an_exit_handler_allocates_counts_for_the_peak(tmp_path):
    end(tmp_path, "system", "handler_that_works")
    rows = report("peak", tmp_path)["lines"]
    late = next(row for row in rows if row["where"] and row["where"]["line"] == line_of("late"))
    assert late["peak_bytes"] >= 3 * HELD and late["live_bytes"] == 0, late


def test_the_verdict_tells_of_it(tmp_path):
    end(tmp_path, "system", "atexit_builtin")
    verdict = harness.unwrapped(harness.kmemshim("why", tmp_path).stdout)
    assert "no action is needed" not in verdict and "Exit handlers or destructors released 7.6 MiB of " in verdict, verdict
