"""Who releases blocks of a line, and through which caller do those stay that nobody releases?"""
import sys
import textwrap

import pytest

import harness

pytestmark = pytest.mark.usefixtures("as_users_run_it")

SOURCE = harness.HERE / "releases.c"

FORGETS = """
    pending = {}

    def begin(number):
        pending[number] = bytearray(20_000)

    def finish(number):
        pending.pop(number)  # released

    def serve(number):
        begin(number)
        finish(number)

    def fail(number):
        begin(number)  # forgotten

    for number in range(4000):
        fail(number) if number % 10 == 3 else serve(number)
"""

# What is loaded first goes first; more is loaded than goes.
QUEUE = """
    import collections

    waiting = collections.deque()

    def load():
        waiting.append(bytearray(20_000))

    def drain():
        for _ in range(3):
            waiting.popleft()  # released

    for round in range(1000):
        for _ in range(4):
            load()
        drain()
"""

SMALL = """
    class Request:
        def __init__(self, number):
            self.texts = [bytes(100) for _ in range(200)]

    pending = {}

    def finish(number):
        del pending[number]  # released

    for number in range(20000):
        pending[number] = Request(number)
        if number % 4:
            finish(number)
"""


def line_of(text, comment):
    return next(number for number, line in enumerate(text.splitlines(), 1) if comment in line)


def row_of(out, name):
    """The line that holds most, of the user's own."""
    return next(line for line in harness.report("leaks", out)["lines"] if line["where"] and line["where"]["file"].endswith(name))


@pytest.fixture(params=["c", "python"])
def forgetful(request, tmp_path):
    if request.param == "c":
        return [harness.compile_c(SOURCE, tmp_path / "releases")], SOURCE.name, SOURCE.read_text()
    script = tmp_path / "forgets.py"
    script.write_text(textwrap.dedent(FORGETS))
    return [sys.executable, script], script.name, script.read_text()


def test_the_caller_that_forgets_and_the_line_that_releases(forgetful, tmp_path):
    argv, name, text = forgetful
    out = tmp_path / "out"
    assert harness.record(argv, out).returncode == 0
    row = row_of(out, name)
    assert row["leak"]["class"] == "leak"
    assert row["growth"]["pace"] == "even" and row["growth"]["bytes"] > 0.8 * row["growth"]["whole_bytes"], row["growth"]
    assert (row["kept"]["through"]["function"], row["kept"]["through"]["line"]) == ("fail", line_of(text, "forgotten"))
    assert row["kept"]["live_count"] >= 0.95 * row["live_count"]
    assert row["kept"]["other_live_count"] <= 1 and row["kept"]["other_allocated_count"] >= 3600
    assert row["watched_releases"] >= 50
    assert row["released_by"][0]["where"]["line"] == line_of(text, "released")
    assert row["released_by"][0]["count"] >= 0.95 * row["watched_releases"]
    said = harness.kmemshim("leaks", out).stdout
    assert "allocated through other callers" in said and f"other blocks of it were released by {name}:{line_of(text, 'released')}" in said
    next_one = harness.report("report", out)["verdict"]["next"]
    assert f"look at {name}:{line_of(text, 'forgotten')} fail" in next_one and f"at {name}:{line_of(text, 'released')}" in next_one, next_one


@pytest.mark.parametrize("text", [QUEUE, SMALL], ids=["queue", "small_objects"])
def test_the_line_that_releases_what_was_put_there_elsewhere(text, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(text))
    out = tmp_path / "out"
    assert harness.record([sys.executable, script], out).returncode == 0
    row = row_of(out, script.name)
    assert row["kept"] is None
    assert row["leak"]["class"] in ("backlog", "leak"), row["leak"]  # it grows to the end, whatever its generations say
    assert row["released_by"][0]["where"]["line"] == line_of(script.read_text(), "released"), row["released_by"]
    assert row["released_by"][0]["count"] >= 0.9 * row["watched_releases"]


def test_what_nobody_releases_has_nobody_who_does(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("kept = []\nfor _ in range(3000):\n    kept.append(bytearray(20_000))\n")
    out = tmp_path / "out"
    assert harness.record([sys.executable, script], out).returncode == 0
    row = row_of(out, script.name)
    assert (row["watched_releases"], row["released_by"], row["kept"]) == (0, [], None)


FASTER = """
    import time

    kept = []
    time.sleep(0.5)
    for number in range(120):
        for _ in range(40):
            bytearray(50_000)
        kept.extend(bytearray(1000 + number) for _ in range(number * number // 100))
"""


LARGER = """
    import time

    kept = []
    for number in range(300):
        for _ in range(4):
            bytearray(100_000)
        kept.append(bytearray(500 * (number + 1)))
        time.sleep(0.001)
"""


@pytest.mark.parametrize("block, pace", [("500 * (number + 1)", "faster"), ("70_000", "even")])
def test_blocks_that_become_larger_grow_faster_and_faster(tmp_path, block, pace):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(LARGER).replace("500 * (number + 1)", block))
    out = tmp_path / "out"
    assert harness.record([sys.executable, script], out).returncode == 0
    assert row_of(out, script.name)["growth"]["pace"] == pace


def test_a_leak_that_grows_faster_and_faster_and_began_late(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(FASTER))
    out = tmp_path / "out"
    assert harness.record([sys.executable, script], out).returncode == 0
    growth = row_of(out, script.name)["growth"]
    assert growth["pace"] == "faster" and growth["since_ms"] >= 400, growth
    assert "grows faster and faster since second " in harness.kmemshim("leaks", out).stdout


TOGETHER = """
    kept, other = [], []

    class Node:
        def __init__(self):
            self.data = bytearray(40_000)
            self.grad = bytearray(20_000)

    def make():
        kept.append(Node())

    def log():
        if len(kept) % 2:
            other.append(bytearray(10_000))

    for _ in range(400):
        make()
        log()
        bytearray(300_000)
"""


def test_what_leaks_together_is_told_with_the_largest(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(TOGETHER))
    text, out = script.read_text(), tmp_path / "out"
    assert harness.record([sys.executable, script], out).returncode == 0
    with_whom = {line["where"]["line"]: line["grows_with"] and line["grows_with"]["line"] for line in harness.report("leaks", out)["lines"]
                 if line["where"] and line["leak"]["class"] == "leak" and line["domain"] == "heap"}
    data = line_of(text, "40_000")
    assert with_whom[data] is None and with_whom[line_of(text, "20_000")] == data and with_whom[line_of(text, "10_000")] is None, with_whom
    said = harness.kmemshim("leaks", out).stdout
    assert "with it grows 1 other line (" in said and f"grows with program.py:{data} Node.__init__, block for block" in said, said
    assert "block for block with it: one thing may keep both" in harness.kmemshim("why", out).stdout.replace("\n", " ")


FILLS = """
    import random
    keys, cache = random.Random(1), {}
    for _ in range(100):
        for _ in range(4):
            key = keys.randrange(100)
            if key not in cache:
                cache[key] = bytearray(30_000)
        bytearray(400_000)
"""


def test_where_a_cache_that_fills_seems_to_end(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(FILLS))
    out = tmp_path / "out"
    assert harness.record([sys.executable, script], out).returncode == 0
    row = row_of(out, script.name)
    assert row["leak"]["class"] == "filling" and row["live_bytes"] <= row["filled_bytes"] <= 2 * 100 * 30_000, row
    assert row["kept_in_steps"] is None and "fills: it seems to end at about " in harness.kmemshim("leaks", out).stdout
