"""kmemshim annotate: a source file with what each line held beside it, also after the program was killed; and files that are no more what ran."""
import collections
import os
import re
import signal

import pytest

import harness

PYTHON = harness.find_python()
PROGRAM = """import helpers.store
import twin


class Cache:
    def fill(self, size):
        for _ in range(50):
            self.kept.append(bytearray(size))

    def __init__(self):
        self.kept = []
%s

def load(cache, depth=3):
    if depth:
        return load(cache, depth - 1)
    cache.fill(200_000)


cache = Cache()
load(cache)
cache.fill(100_000)
kept = helpers.store.keep(1_000_000)
"""
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
FIGURE = r"≈?[\d.]+ (?:B|KiB|MiB|GiB)"
ROW = re.compile(rf" *(?:({FIGURE}) +({FIGURE}) +({FIGURE})  (\S*))? *({FIGURE})? +(\d+)(?:  (.*))?")


@pytest.fixture
def project(tmp_path):
    """A program of several files, two of the same name; with a death at its end where it is asked for."""
    folder = tmp_path / "project"
    (folder / "helpers").mkdir(parents=True)
    (folder / "program.py").write_text(PROGRAM % ("\n" * 30))
    (folder / "helpers" / "__init__.py").write_text("")
    (folder / "helpers" / "store.py").write_text("import helpers.twin\ndef keep(size):\n    return [bytearray(size) for _ in range(3)]\n")
    (folder / "helpers" / "twin.py").write_text("kept = bytearray(3_000_000)\n")
    (folder / "twin.py").write_text("kept = bytearray(2_000_000)\n")
    return folder


@pytest.fixture
def capture(project, tmp_path):
    harness.record([PYTHON, project / "program.py"], tmp_path / "out")
    return tmp_path / "out"


def annotate(*words):
    done = harness.silent(harness.kmemshim("annotate", *words))
    return done.stdout.splitlines()


def size(text):
    number, unit = text.lstrip("≈").split()
    return float(number) * UNITS[unit]


def half_a_digit(bytes_):
    """As far as a figure that is shown with one digit behind the point, or from 100 on with none, may be off."""
    unit = max(unit for unit in UNITS.values() if unit <= max(bytes_, 1))
    return (0.051 if bytes_ < 99.9 * unit else 0.51) * unit


def rows_of(lines):
    """{line: (peak, live, allocated, class, through, text)}; what has no figure is 0."""
    rows = {}
    for line in lines[lines.index(next(line for line in lines if line.split()[:2] == ["peak", "live"])) + 2:]:
        row = ROW.fullmatch(line)
        if row and (row[5] or row[1] or row[7] is not None):
            rows[int(row[6])] = (*(size(row[i]) if row[i] else 0 for i in (1, 2, 3)), row[4], size(row[5]) if row[5] else 0, row[7] or "")
    return rows


def test_figures_beside_lines_are_those_of_the_report(capture, project):
    lines = annotate(project / "program.py", capture, "--all")
    rows = rows_of(lines)
    assert lines[0] == str(project / "program.py")
    source = (project / "program.py").read_text().splitlines()
    assert [rows[number][5] if number in rows else "" for number in range(1, len(source) + 1)] == source
    wanted = collections.defaultdict(lambda: [0, 0, 0])
    for line in harness.report("sites", capture)["lines"]:
        if line["where"] and line["where"]["file"] == str(project / "program.py"):
            for i, figure in enumerate(("peak_bytes", "live_bytes", "allocated_bytes")):
                wanted[line["where"]["line"]][i] += line[figure]
    assert {number for number, row in rows.items() if row[3]} == set(wanted)
    for number, figures in wanted.items():
        for shown, exact in zip(rows[number], figures):
            assert abs(shown - exact) <= half_a_digit(exact), number
    whole = [size(word) for word in re.findall(FIGURE, lines[2])][:3]
    for i, shown in enumerate(whole):
        exact = sum(figures[i] for figures in wanted.values())
        assert abs(shown - exact) <= half_a_digit(exact), i


def test_calls_show_what_went_through_them_once(capture, project):
    rows = rows_of(annotate("program.py", capture))
    by_text = {row[5].strip(): row for row in rows.values()}
    assert by_text["self.kept.append(bytearray(size))"][0] == pytest.approx(15_000_000, rel=0.05)
    assert by_text["load(cache)"][4] == pytest.approx(10_000_000, rel=0.05)
    assert by_text["return load(cache, depth - 1)"][4] == pytest.approx(10_000_000, rel=0.05)  # three frames of it
    assert by_text["cache.fill(100_000)"][4] == pytest.approx(5_000_000, rel=0.05)
    assert by_text["import helpers.store"][3] == "import"


def test_long_stretches_without_memory_are_left_out_and_told(capture):
    short, whole = annotate("program.py", capture), annotate("program.py", capture, "--all")
    gaps = [int(line.split("(")[1].split()[0]) for line in short if "lines without memory" in line]
    assert gaps and min(gaps) > 12 and len(whole) == len(short) - len(gaps) + sum(gaps)


@pytest.mark.parametrize("name, file", [("helpers/store.py", "helpers/store.py"), ("store.py", "helpers/store.py"), ("helpers.store", "helpers/store.py"),
                                        ("store", "helpers/store.py"), ("helpers.twin", "helpers/twin.py"), ("{project}/twin.py", "twin.py"),
                                        ("{project}/helpers/../twin.py", "twin.py")])
def test_a_file_is_found_by_what_people_call_it(name, file, capture, project):
    assert annotate(name.format(project=project), capture)[0] == str(project / file)


def test_a_library_shows_what_went_through_it(tmp_path):
    (tmp_path / "p.py").write_text("import json\ntext = '[' + ','.join('\"%0500d\"' % i for i in range(5000)) + ']'\nkept = [json.loads(text) for _ in range(8)]\n")
    harness.record([PYTHON, tmp_path / "p.py"], tmp_path / "out")
    rows = rows_of(annotate("json.decoder", tmp_path / "out"))
    assert max(row[4] for row in rows.values()) > 18_000_000 and not any(row[3] for row in rows.values())


def test_source_of_compiled_code(programs, out):
    harness.record([programs("leak_in_a_loop.c")], out)
    lines = annotate("leak_in_a_loop.c", out)
    assert any(row[3] == "leak" and "malloc" in row[5] for row in rows_of(lines).values()), lines


def test_after_a_kill(project, tmp_path):
    with open(project / "program.py", "a") as file:
        file.write("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert harness.record([PYTHON, project / "program.py"], tmp_path / "out").returncode == -signal.SIGKILL
    rows = rows_of(annotate("program.py", tmp_path / "out"))
    assert any("bytearray(size)" in row[5] and row[1] > 14_000_000 for row in rows.values())


@pytest.mark.parametrize("change, told", [(lambda file: file.write_text("# new\n" + file.read_text()), "was changed after the program started"),
                                          (os.unlink, "The file is gone")])
def test_a_file_that_is_not_what_ran_is_told_and_its_text_is_not_shown(change, told, capture, project):
    before = rows_of(annotate("program.py", capture))
    change(project / "program.py")
    lines = annotate("program.py", capture)
    assert told in lines[1] and not any("bytearray" in line for line in lines)
    after = rows_of(lines)
    assert {number: row[:5] for number, row in after.items()} == {number: row[:5] for number, row in before.items() if row[3] or row[4]}
    assert any(row[5] == "Cache.fill" for row in after.values())


@pytest.mark.parametrize("words, told", [(["twin.py"], "2 files are called so"), (["twin"], "2 files are called so"), (["no_such.py"], "nothing was allocated there"),
                                         (["win.py"], "nothing was allocated there"), ([], "an argument is missing"), (["program.py", "--domain", "cuda"], "cuda"),
                                         (["program.py", "--top", "3"], "unknown option")])
def test_what_cannot_be_meant_is_one_line(words, told, capture):
    done = harness.kmemshim("annotate", *words, *([capture] if words else []))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1) and told in done.stderr, done.stderr


def test_names_cannot_steer_the_terminal(tmp_path):
    program = tmp_path / "evil\x1b[31m\n.py"
    program.write_text("kept = bytearray(10 << 20)  # \x1b[2J\n")
    harness.record([PYTHON, program], tmp_path / "out")
    done = harness.kmemshim("annotate", program, tmp_path / "out")
    shown = done.stdout if done.returncode == 0 else "\n".join(annotate("evil\\x1b[31m\\n.py", tmp_path / "out"))
    assert "\x1b" not in shown + done.stderr and "bytearray(10 << 20)" in shown
