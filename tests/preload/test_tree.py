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
    done = harness.silent(harness.kmemshim("tree", *options, capture))
    heading, *lines = done.stdout.splitlines()
    if lines and lines[0].startswith("(kinds of memory had their peaks at different moments: "):
        lines = lines[1:]  # by which allocation of them small objects had their samples is chance
    rows = [ROW.fullmatch(line) for line in lines]
    assert all(rows), done.stdout
    return heading, [((len(row[3]) + len(row[4] or "")) // 3, row[1], row[5]) for row in rows]


def test_callers_stand_above_what_they_called(capture):
    heading, rows = tree(capture)
    _, heap = tree(capture, "--domain", "heap")  # exact: in the sum of all, a sample of small objects may fall on any line
    assert re.fullmatch(r"Held at the peak: [\d.]+ MiB of the host's memory", heading)
    places = [(depth, place) for depth, _, place in rows]
    top = places.index((0, "program.py:15 <module>"))
    assert places[top + 1:top + 4] == [(1, "program.py:11 train"), (2, "program.py:8 load"), (3, "program.py:5 Cache.fill")], places
    assert (1, "program.py:12 train") in places[top:]
    held = {place: figure for _, figure, place in heap}
    assert held["program.py:8 load"] in ("9.5 MiB", "9.6 MiB"), held


@pytest.mark.parametrize("value, heading", [("live", "Held at the end"), ("allocated", "Allocated in all"), ("leaked", "Held by leaks")])
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


def test_start_up_is_with_what_imports_left(capture):
    """As in the report, whose rows are all that has no line of the program. Of small objects it is chance which lines have a sample."""
    _, rows = tree(capture, "--domain", "heap")
    figure = next(figure for _, figure, place in rows if place == "left by imports and the interpreter")
    lines = [line for line in harness.report("peak", capture)["lines"] if line["domain"] == "heap" and
             (line["where"] is None or not line["where"]["file"].endswith("/program.py"))]
    assert lines and not any(place.startswith(("python3", "<frozen")) for _, _, place in rows), rows
    assert float(figure.split()[0]) * {"MiB": 1 << 20, "KiB": 1 << 10}[figure.split()[1]] == pytest.approx(
        sum(line["peak_bytes"] for line in lines), rel=0.2), figure


TURNS = """
def load():
    table = bytearray(30_000_000)
    return len(table)

size = load()
kept = [str(i) * 9 for i in range(200_000)]
"""


def test_peaks_at_different_moments_are_told(tmp_path):
    """The sum is more than the program ever held."""
    (tmp_path / "program.py").write_text(TURNS)
    harness.record([PYTHON, tmp_path / "program.py"], tmp_path / "out")
    lines = harness.kmemshim("tree", tmp_path / "out").stdout.splitlines()
    at_once = re.fullmatch(r"\(kinds of memory had their peaks at different moments: the most at once was about ([\d.]+) MiB\)", lines[1])
    assert at_once and float(at_once[1]) < float(lines[0].split()[4]) - 5, lines
    assert lines[1] in harness.kmemshim("annotate", "program.py", tmp_path / "out").stdout.splitlines()
    for value in ("live", "allocated"):
        assert "different moments" not in harness.kmemshim("tree", "--value", value, tmp_path / "out").stdout
