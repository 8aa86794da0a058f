"""Programs of which somebody can say whether they leak: the class of their line says the same."""
import functools
import re
import sys

import pytest

import harness

pytestmark = pytest.mark.usefixtures("as_users_run_it")

SOURCE = harness.HERE / "leak_classes.c"
SCRIPT = harness.HERE / "leak_classes.py"


def scenes(source, pattern):
    return [name for name in re.findall(pattern, source.read_text(), re.MULTILINE)]


NATIVE = scenes(SOURCE, r"^((?:leak|control)_\w+)\(void\)")
PYTHON = scenes(SCRIPT, r"^def ((?:leak|control)_\w+)\(")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return harness.compile_c(SOURCE, tmp_path_factory.mktemp("classes") / "leak_classes")


@functools.cache
def line_of(source):
    return next(number for number, line in enumerate(source.read_text().splitlines(), 1) if re.search(r"(//|#) kept$", line))


def classes_of(source, out):
    document = harness.report("leaks", out, "--top", "100")
    return {site["leak"]["class"]: site for site in document["sites"]
            if harness.place(site) == f"{source.name}:{line_of(source)}" and site["live_bytes"] > 0}


def check(scene, source, argv, out):
    harness.ok(harness.record([*argv, scene], out))
    classes = classes_of(source, out)
    assert ("leak" in classes) == scene.startswith("leak"), {name: site["leak"] for name, site in classes.items()}


def test_both_kinds_are_tried():
    for names in (NATIVE, PYTHON):
        assert {name.split("_")[0] for name in names} == {"leak", "control"}


@pytest.mark.parametrize("scene", NATIVE)
def test_what_leaks_is_a_leak(scene, program, out):
    check(scene, SOURCE, [program], out)


@pytest.mark.parametrize("scene", PYTHON)
def test_what_leaks_in_python_is_a_leak(scene, out):
    check(scene, SCRIPT, [sys.executable, SCRIPT], out)


# Much work first, so that the clock is slow, and a small leak in all of it; then a loop that keeps a large block each time.
def test_each_class_is_told_however_long_the_program_has_run(out, tmp_path):
    source = harness.HERE / "long_run.c"
    wanted = {number: line.partition("// ")[2].partition(":")[0] for number, line in enumerate(source.read_text().splitlines(), 1)
              if line.startswith("LINE") and "// " in line}
    assert len(wanted) == 6
    harness.record([harness.compile_c(source, tmp_path / "long_run")], out)
    lines = {line["where"]["line"]: line["leak"]["class"] for line in harness.report("leaks", out)["lines"]
             if line["where"] and line["where"]["line"] in wanted}
    assert lines == wanted


FEW_LARGE = """
large, small = [], []
def few():
    large.append(bytearray(250000))
def many():
    small.append(bytearray(600))
for round in range(840):
    many()
    for _ in range(25 if round < 800 else 10):
        bytearray(20000)
    if round >= 800:
        few()
"""


def test_few_large_blocks_stand_before_a_small_leak(out, tmp_path):
    program = tmp_path / "few.py"
    program.write_text(FEW_LARGE)
    assert harness.record(["/usr/bin/python3", program], out).returncode == 0
    lines = [line for line in harness.report("leaks", out)["lines"] if harness.place(line).startswith("few.py")]
    assert [(harness.place(line), line["leak"]["class"]) for line in lines[:2]] == [("few.py:4", "too-short"), ("few.py:6", "leak")]


# As many tests as a small package has, and then the one that everybody has: it loads something large.
SUITE = """
import pytest
kept = []
@pytest.mark.parametrize("number", range(500))
def test_small(number):
    for _ in range(20):
        kept.append(bytearray(600))
def test_large():
    assert len(bytearray(256 << 20)) > 0
"""


def test_the_last_large_test_hides_no_leak(out, tmp_path):
    suite = tmp_path / "test_suite.py"
    suite.write_text(SUITE)
    harness.ok(harness.record(["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", suite], out))
    lines = harness.report("leaks", out, "--top", "100")["lines"]
    assert [line["leak"]["class"] for line in lines if harness.place(line) == "test_suite.py:7" and line["domain"] == "heap"] == ["leak"], harness.summary(lines)


COLLECTS = """
def main():
    collected = []
    for _ in range(100):
        collected.append(bytearray(300_000))
    return len(collected)
main()
"""


def test_nine_tenths_of_the_peak_in_one_line_is_not_said_to_need_no_action(tmp_path):
    script = tmp_path / "collects.py"
    script.write_text(COLLECTS)
    out = tmp_path / "out"
    assert harness.record([sys.executable, script], out).returncode == 0
    advice = harness.report("report", out)["verdict"]["next"]
    assert advice.startswith(("if that peak is ", "look at ")) and "look at collects.py:5 main: it " in advice, advice


# Each is loaded once; then the program reads it, or ends.
LOADED_ONCE = {
    "rows of a table": """
import csv, io
text = "".join(f"{i},name{i},{i * 0.5},{'x' * 20}{i}\\n" for i in range(100000))
def load():
    rows = []
    for row in csv.reader(io.StringIO(text)):
        rows.append({"id": int(row[0]), "name": row[1], "value": float(row[2]), "text": row[3]})
    return rows
rows = load()
""",
    "parsed documents": """
import json
texts = [json.dumps({"id": i, "name": f"n{i}", "values": [i, i + 1, i + 2]}) for i in range(60000)]
def load():
    parsed = []
    for text in texts:
        parsed.append(json.loads(text))
    return parsed
rows = load()
""",
    "of two lines": """
class Row:
    def __init__(self, first, second):
        self.first, self.second = first, second
def load():
    rows = []
    for i in range(2000):
        first = bytearray(50_000)
        second = bytes(60_000)
        rows.append(Row(first, second))
    return rows
rows = load()
sum(len(bytes(row.first[:100])) for round in range(5) for row in rows)
del rows
""",
}


@pytest.mark.parametrize("name", LOADED_ONCE)
def test_what_is_loaded_once_is_not_called_a_leak_for_certain(name, out, tmp_path):
    (tmp_path / "load.py").write_text(LOADED_ONCE[name])
    assert harness.record([sys.executable, tmp_path / "load.py"], out).returncode == 0
    called = [(harness.place(line), line["leak"]["class"]) for line in harness.report("leaks", out)["lines"]
              if line["leak"]["class"] in ("leak", "swept") and not line["may_be_one_time_load"]]
    assert not called
