"""
Somebody cuts the capture of a running program: it goes on as if nothing had happened, and its own SIGBUS stay its own. The numbers are
the invariants of shim/hooks/hooks_signal.c.
"""
import signal
from pathlib import Path

import pytest

import harness

HERE = Path(__file__).resolve().parent
HANDLERS = ["default", "sent", "ignore", "plain", "info", "reset", "jump"]


@pytest.fixture(scope="session")
def cut(tmp_path_factory):
    return harness.compile_c(HERE / "cut.c", tmp_path_factory.mktemp("cut") / "cut")


@pytest.mark.parametrize("handler", HANDLERS)
def test_a_capture_that_is_cut_short_ends_the_recording_and_nothing_else(handler, cut, out):
    """B1 to B3 too: what the program asks about its handler, and what its own SIGBUS does, are as without us."""
    plain = harness.run([cut, "none", handler])
    done = harness.record([cut, "truncate", handler], out)

    assert plain.returncode in (-signal.SIGBUS, 40, 41, 42)
    if handler == "ignore":  # nothing of ours stands before it: not covered, and said so
        assert done.returncode == -signal.SIGBUS
        return
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.stderr
    assert done.stderr.count("was cut short") == 1, done.stderr
    told = [line for line in done.stderr.splitlines() if "was cut short" not in line]
    assert len(told) <= 1 and all("cannot grow" in line for line in told), done.stderr  # another thread, at the same moment


@pytest.mark.parametrize("handler", HANDLERS)
def test_without_a_cut_the_programs_own_signals_are_the_same(handler, cut, out):
    """B1, B2, B3."""
    plain = harness.run([cut, "none", handler])
    done = harness.record([cut, "none", handler], out)

    assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_a_forked_child_of_a_program_whose_capture_was_cut_is_recorded(cut, out):
    harness.record([cut, "truncate", "plain"], out)
    usable = [file for file in out.glob("*.kmem") if harness.kmemshim("report", file).returncode == 0]

    assert len(usable) == 1  # the child held 2 MiB: it keeps its file
