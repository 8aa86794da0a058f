"""
What was in memory decides, not what was asked for: a block that nobody touched is blamed neither by the verdict nor by the first row,
in C, C++ and Python, of a program that its container's limit killed and of one that ended well. What was freed and not given back is told.
"""
import re
import signal

import pytest

import harness

pytestmark = pytest.mark.usefixtures("as_users_run_it")

LIMIT_MIB = 260
NUMPY = """
import sys, time
import numpy as np
table = np.zeros((20000, 13000))
kept = []
def keep_one(i):
    table[0, i % 13000] = i
    kept.append(np.ones(20000))
    time.sleep(0.0001)
for i in range((int(sys.argv[1]) << 20) // 160000):
    keep_one(i)
"""
PLAIN = """
import mmap
import sys, time
table = mmap.mmap(-1, 2 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
kept = []
def keep_one():
    kept.append(b"x" * 100000)
    time.sleep(0.0001)
for i in range((int(sys.argv[1]) << 20) // 100000):
    keep_one()
"""


@pytest.fixture(scope="module")
def in_memory_cc(tmp_path_factory):
    return harness.compile_cc(tmp_path_factory.mktemp("in_memory"), "in_memory")


@pytest.fixture
def command(request, programs, in_memory_cc, tmp_path):
    """A program that asks for 2 GiB, touches next to nothing of it, and keeps so many MiB in small blocks at keep_one()."""
    form = request.param
    if form in ("calloc", "mmap", "blocks", "mappings"):
        return lambda mib: [programs("in_memory.c"), form, mib]
    if form == "reserve":
        return lambda mib: [in_memory_cc, mib]
    python = harness.find_python(*(["numpy"] if form == "numpy" else []))
    if python is None:
        pytest.skip("no interpreter has NumPy")
    script = tmp_path / "keep.py"
    script.write_text(NUMPY if form == "numpy" else PLAIN)
    return lambda mib: [python, script, mib]


FORMS = pytest.mark.parametrize("command", ["calloc", "mmap", "blocks", "mappings", "reserve", "numpy", "python"], indirect=True)


def check_first_row(out):
    first, *rest = harness.report("leaks", out, "--top", "20")["lines"]
    asked = next(line for line in rest if line["live_bytes"] >= 1 << 30)
    assert first["where"]["function"].endswith("keep_one") and first["nonresident_bytes"] == 0
    assert asked["nonresident_bytes"] > asked["live_bytes"] * .95 and 0 < asked["large_bytes"] <= asked["live_bytes"]
    page = harness.unwrapped(harness.kmemshim("leaks", out).stdout)
    assert "of it in memory" in page and "count only what is in memory" in page, page
    share = int(re.search(r"(\d+) %", page).group(1)) # of the first row
    assert share >= 60, page
    _, untouched, *rows = harness.kmemshim("tree", "--value", "live", out).stdout.splitlines()
    assert untouched.endswith(" more was asked for and not touched") and "keep_one" in rows[0] + rows[1], rows
    assert re.search(r"\n +(\S+ \S+) of it in memory, before \1\n", harness.kmemshim("diff", out, out).stdout)


@FORMS
def test_what_nobody_touched_is_not_blamed_for_a_kill(command, out):
    with harness.memory_group(LIMIT_MIB << 20) as group:
        run = [harness.KMEMSHIM, "run", "-o", out, "--", *command(2 * LIMIT_MIB)]
        done = harness.run(["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', group, *run])
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    check_first_row(out)
    verdict = harness.report("report", out)["verdict"]
    assert verdict["cause"] == "container-limit", verdict["text"]
    blamed = verdict["text"].split("At the end")[1]
    assert blamed.index("of it in memory") < blamed.index("keep_one") < blamed.index("asked for, only"), verdict["text"]
    assert "keep_one" in verdict["next"], verdict["next"]
    assert verdict["nonresident_bytes"] > 1 << 30


NUMPY_FILLS = """
import numpy as np
images = np.random.randint(0, 256, (60000, 32, 32), dtype=np.uint8)
train = images / 255.0
"""


@pytest.mark.parametrize("form", ["c", "numpy"])
def test_the_block_that_killed_it_while_it_was_filled_is_the_first(form, programs, out, tmp_path):
    """The last look came with the block, before a page of it was touched, and of the container nothing is left to ask."""
    python = harness.find_python("numpy")
    if form == "numpy" and python is None:
        pytest.skip("no interpreter has NumPy")
    (tmp_path / "late.py").write_text(NUMPY_FILLS)
    words = [programs("in_memory.c"), "fill", 60] if form == "c" else [python, tmp_path / "late.py"]
    with harness.memory_group(LIMIT_MIB << 20) as group:
        done = harness.run(["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', group, *words], harness.shim_env(out))
    assert done.returncode == -signal.SIGKILL, done.stderr
    verdict = harness.report("report", out)["verdict"]
    first = harness.report("peak", out)["lines"][0]
    where = "fill_at_once" if form == "c" else "late.py:4"
    assert where in f"{first['where']['function']} {harness.place(first)}", first
    assert first["live_bytes"] - first["nonresident_bytes"] > (LIMIT_MIB << 20) * .4, first
    assert where in verdict["next"] and "only" not in verdict["text"].split("At the end")[1], verdict


@FORMS
def test_what_nobody_touched_is_told_of_who_ended_well(command, out):
    assert harness.run([harness.KMEMSHIM, "run", "-o", out, "--", *command(60)]).returncode == 0
    lines = harness.report("peak", out, "--top", "20")["lines"]
    assert any(line["live_bytes"] >= 1 << 30 and line["nonresident_bytes"] > line["live_bytes"] * .95 for line in lines) or \
        lines[0]["where"]["function"].endswith("keep_one"), lines[:2]


def test_the_part_that_was_touched_counts(programs, out):
    assert harness.run([harness.KMEMSHIM, "run", "-o", out, "--", programs("in_memory.c"), "quarter", 60]).returncode == 0
    first, second = harness.report("leaks", out, "--top", "2")["lines"]
    held = {line["where"]["function"]: line["live_bytes"] - line["nonresident_bytes"] for line in (first, second)}
    assert abs(held["ask_for_much"] - (256 << 20)) < 8 << 20, held


@pytest.mark.parametrize("kind", ["empty", "sparse"])
def test_freed_memory_that_is_not_given_back_is_told(kind, programs, out):
    """It ended well, and held 200 MiB of which next to nothing was live."""
    harness.ok(harness.run([harness.KMEMSHIM, "run", "-o", out, "--", programs("in_memory.c"), kind, 200]))
    document = harness.report("report", out)
    verdict, pages = document["verdict"], document["processes"][0]["resident"]["heap_pages"]
    assert verdict["memory"]["freed_resident_bytes"] > 150 << 20, verdict
    if kind == "sparse":
        assert pages["sparse_bytes"] > 60 << 20 and "keep_small" in verdict["next"], (pages, verdict)
    else:
        assert pages["empty_bytes"] > 150 << 20, pages
    assert "Freed memory was not given back" in verdict["text"] and "malloc_trim(0)" in verdict["text"] + verdict["next"], verdict
