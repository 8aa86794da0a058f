"""What exit handlers and destructors release was held until then: figures are those of the moment when the end began."""
import re
import signal
import subprocess

import pytest

import harness

SOURCE = harness.HERE / "ends.cc"
HELD = 4000 * 2048  # with the nodes of its map
LATE = 4000 * 3000

# scene: status, what is live of the cache, how much of that is said to have been released
SCENES = {
    "returns": (0, HELD, HELD),
    "exit": (2, HELD, HELD),
    "exit_in_a_thread": (4, HELD, HELD),
    "exit_in_a_handler": (3, HELD, HELD),
    "quick_exit": (5, HELD, HELD),
    "exit_inside_libc": (7, HELD, HELD),
    "err": (8, HELD, HELD),
    "errx": (8, HELD, HELD),
    "verr": (8, HELD, HELD),
    "verrx": (8, HELD, HELD),
    "error": (8, HELD, HELD),
    "error_at_line": (8, HELD, HELD),
    "pthread_exit": (0, HELD, HELD),
    "return_after_dlopen": (0, HELD, HELD),
    "many_handlers": (8, HELD, HELD),
    "_exit": (8, HELD, 0),
    "_Exit": (8, HELD, 0),
    "abort": (-signal.SIGABRT, HELD, 0),
    "assert": (-signal.SIGABRT, HELD, 0),
    "without_handlers": (6, HELD, 0),
    "orderly": (0, 0, 0),
    "handler_that_works_and_releases": (0, HELD, HELD),
    "fork_in_a_handler": (0, HELD, HELD),
    "threads_that_run_on": (0, HELD, HELD),
    "killed_in_a_handler": (-signal.SIGKILL, 0, 0),
}


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return harness.compile_c(SOURCE, tmp_path_factory.mktemp("ends") / "ends", "-std=gnu++17", compiler="g++")


def line_of(mark):
    return next(number for number, line in enumerate(SOURCE.read_text().splitlines(), 1) if line.endswith(f"// {mark}"))


def at(document, mark):
    """Live and released bytes of a line, and its class; zeros when it is in no row."""
    lines = [line for line in document["lines"] if harness.place(line) == f"ends.cc:{line_of(mark)}"]
    return (sum(line["live_bytes"] for line in lines), sum(line["released_at_exit_bytes"] for line in lines),
            next((line["leak"]["class"] for line in lines), "none"))


def record(program, scene, out):
    done = harness.record([program, scene], out)
    plain = harness.run([program, scene])
    assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    return done.returncode


@pytest.mark.parametrize("scene", SCENES)
def test_what_the_end_releases_was_held(scene, program, out):
    status, held, released = SCENES[scene]

    assert record(program, scene, out) == status
    document = harness.report("leaks", out)
    live, freed, kind = at(document, "cache")
    assert (live, freed) == (held, released)
    assert document["is_at_exit"] == (released != 0)
    assert all(process["losses"]["lost_unknown_frees"] == 0 for process in document["processes"])  # libc's own lists
    if scene == "threads_that_run_on":  # how much they have done by then, and so the class, is up to the scheduler
        return
    assert kind == ("leak" if held else "swept" if scene == "orderly" else "none")  # which lets go of it as main() returns
    if released and status == 0:
        verdict = harness.unwrapped(harness.kmemshim("why", out).stdout)
        assert "no action is needed" not in verdict and "When it began to exit" in verdict, verdict
        assert re.search(r"Exit handlers or destructors released 7\.8 MiB of ", verdict), verdict


def test_static_objects_of_functions_are_held_too(program, out):
    assert record(program, "static_of_a_function", out) == 0
    assert at(harness.report("leaks", out), "owner")[:2] == (HELD, HELD)


def test_what_is_done_in_an_exit_handler_counts(program, out):
    """A program may do all its work there: then its end is when that is over."""
    assert record(program, "work_in_a_handler", out) == 0
    document = harness.report("leaks", out)
    assert at(document, "late")[:2] == (LATE, 0)
    assert not document["is_at_exit"]


def test_what_a_killed_handler_held_counts(program, out):
    assert record(program, "killed_in_a_handler", out) == -signal.SIGKILL
    assert at(harness.report("leaks", out), "late")[:2] == (LATE, 0)


def test_the_peak_may_be_in_an_exit_handler(program, out):
    """It is of the whole run, and so is what was allocated."""
    assert record(program, "handler_that_works_and_releases", out) == 0
    line = next(line for line in harness.report("peak", out)["lines"] if harness.place(line) == f"ends.cc:{line_of('late')}")
    assert (line["peak_bytes"], line["allocated_bytes"], line["live_bytes"]) == (LATE, LATE, 0)
    assert "11.4 MiB was" in harness.unwrapped(harness.kmemshim("report", out).stdout)


def test_the_gate_sees_a_cache_that_grew(program, out, tmp_path):
    base = tmp_path / "base"
    record(program, "orderly", base)
    assert harness.kmemshim("baseline", base, "-o", tmp_path / "base.json").returncode == 0
    record(program, "exit_in_a_handler", out)
    done = subprocess.run([harness.KMEMSHIM, "check", out, "--baseline", tmp_path / "base.json"], capture_output=True, text=True)
    assert done.returncode in (1, 4), done.stdout + done.stderr
    assert f"ends.cc:{line_of('cache')}" in done.stdout, done.stdout
