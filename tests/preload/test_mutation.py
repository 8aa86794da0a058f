"""
One damaged byte of a capture: the right answer, or a message that names the section (tests/mutate/mutate.c).

MUTATE_EVERY=1 tries every byte of the small captures (make mutate); else a few thousand, drawn by a seed that is printed.
"""
import os
import signal
import sys

import pytest

import harness
from test_holders_kept import CACHE, guarded

MUTATE = harness.BUILD / "tests" / "mutate" / "mutate"
EVERY = int(os.environ.get("MUTATE_EVERY", 0))
KILLED = """
import os, signal
import argparse, asyncio, decimal, email.message, http.client, sqlite3, ssl, unittest, urllib.request, xml.dom.minidom
class Row:
    def __init__(self, number):
        self.number, self.text = number, str(number) * 40
rows = [Row(i) for i in range(20000)]
buffers = [bytearray(2000 + i) for i in range(2000)]
os.kill(os.getpid(), signal.SIGKILL)
"""


def mutate(capture, every, *options):
    if not MUTATE.exists():
        pytest.skip(f"{MUTATE} is missing: make {MUTATE.relative_to(harness.ROOT)}")
    file, = capture.glob("*.kmem")
    done = harness.run([MUTATE, file, "--every", every, *options], timeout=7200)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    return done.stdout


def test_no_damaged_byte_of_a_closed_capture_goes_unseen(programs, out):
    assert harness.record([programs("mutated.c", "-ldl")], out).returncode == 0
    mutate(out, EVERY or 211)


def test_damage_in_the_capture_of_a_killed_program_is_seen_but_for_counters(programs, out):
    assert harness.record([programs("mutated.c", "-ldl"), "kill"], out).returncode == -signal.SIGKILL
    size = next(out.glob("*.kmem")).stat().st_size
    mutate(out, EVERY or max(211, size // 250), "--allow-counters")


def test_damage_in_the_capture_of_a_killed_python_takes_no_more_memory_than_promised(out):
    """A larger file, and Python's records."""
    assert harness.record([sys.executable, "-c", KILLED], out).returncode == -signal.SIGKILL
    size = next(out.glob("*.kmem")).stat().st_size
    mutate(out, max(EVERY, size // 200), "--allow-counters")


def test_damage_in_what_the_launcher_has_kept_is_seen(out, tmp_path):
    """Who held what, when the guard was passed (test_holders_kept.py)."""
    program = tmp_path / "cache.py"
    program.write_text(CACHE)
    assert guarded(["/usr/bin/python3", program, "go on"], out).returncode == 0
    size = next(out.glob("*.kmem")).stat().st_size
    assert "holders" in mutate(out, max(EVERY, size // 200))
