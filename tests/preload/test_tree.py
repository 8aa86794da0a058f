"""kmemshim tree: who called what that held it."""
import re

import pytest

import harness

PYTHON = harness.find_python()
PROGRAM = """
class Cache:
    def __init__(self): self.kept = []
    def fill(self, size):
        for _ in range(50): self.kept.append(bytearray(size))

def load(cache):
    cache.fill(200_000)

def train(cache):
    load(cache)
    cache.fill(100_000)

train(Cache())
"""
ROW = re.compile(r" *([\d.]+ [KMG]?i?B) +([<\d.]+ %)  ((?:[│ ] {2})*)(├─ |└─ )?(.*)")


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree")
    (folder / "program.py").write_text(PROGRAM.replace("train(Cache())", "cache = Cache()\ntrain(cache)"))
    harness.record([PYTHON, folder / "program.py"], folder / "out")
    return folder / "out"


def tree(capture, *options):
    """(heading, [(depth, bytes as text, place)])"""
    done = harness.kmemshim("tree", *options, capture)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    heading, *lines = done.stdout.splitlines()
    rows = [ROW.fullmatch(line) for line in lines]
    assert all(rows), done.stdout
    return heading, [((len(row[3]) + len(row[4] or "")) // 3, row[1], row[5]) for row in rows]


def test_callers_stand_above_what_they_called(capture):
    heading, rows = tree(capture)
    assert re.fullmatch(r"Held at the peak: [\d.]+ MiB of the host's memory", heading)
    places = [(depth, place) for depth, _, place in rows]
    top = places.index((0, "program.py:15 <module>"))
    assert places[top + 1:top + 4] == [(1, "program.py:11 train"), (2, "program.py:8 load"), (3, "program.py:5 Cache.fill")], places
    assert (1, "program.py:12 train") in places[top:]
    held = {place: figure for _, figure, place in rows}
    assert held["program.py:8 load"] in ("9.5 MiB", "9.6 MiB"), held


@pytest.mark.parametrize("value, heading", [("live", "Live at the end"), ("allocated", "Allocated in all"), ("leaked", "Leaked")])
def test_it_is_of_what_was_asked_for(value, heading, capture):
    assert tree(capture, "--value", value)[0].startswith(f"{heading}: ")


def test_one_domain_alone_adds_up(capture):
    heading, rows = tree(capture, "--domain", "heap")
    whole = harness.report("peak", capture)["totals"]["heap"]["peak_bytes"] / (1 << 20)
    assert heading == f"Held at the peak: {whole:.1f} MiB of heap"
    shown = sum(float(figure.split()[0]) * {"MiB": 1, "KiB": 1 / 1024}[figure.split()[1]] for depth, figure, _ in rows if depth == 0)
    assert abs(shown - whole) < 0.02 * whole


def test_native_frames_are_shown_on_request(capture):
    native = [place for _, _, place in tree(capture, "--native")[1]]
    assert any("PyByteArray" in place or "bytearray" in place or "python" in place for place in native), native


@pytest.mark.parametrize("words", [["--value", "some"], ["--domain", "cuda"], ["--top", "3"]])
def test_what_cannot_be_meant_is_one_line(words, capture):
    done = harness.kmemshim("tree", *words, capture)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
