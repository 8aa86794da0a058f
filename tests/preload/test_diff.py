"""diff: what changed between two runs, at which line, whatever moved."""
import json
import os
import re

import jsonschema
import pytest

import harness

MIB = 1 << 20

BEFORE = """\
kept = []

class Store:
    def fill(self):
        kept.append(bytearray(2 << 20))
        kept.append(bytearray(3 << 20))

def gone():
    kept.append(bytearray(5 << 20))

Store().fill()
gone()
"""
AFTER = """\
# A line more,
# and another.
kept = []

class Store:
    def fill(self):
        self.note = "new"
        kept.append(bytearray(2 << 20))
        kept.append(bytearray(9 << 20))

def came():
    kept.append(bytearray(1 << 20))

Store().fill()
came()
"""


@pytest.fixture
def pair(tmp_path):
    """Two captures of a script: before and after an edit, in two folders."""
    captures = []
    for name, text in (("old", BEFORE), ("new", AFTER)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "script.py").write_text(text)
        harness.kmemshim("run", "-o", tmp_path / name / "out", "--", "/usr/bin/python3", tmp_path / name / "script.py")
        captures.append(tmp_path / name / "out")
    return captures


def rows(*arguments):
    done = harness.ok(harness.kmemshim("diff", *arguments, "--json"))
    document = json.loads(done.stdout)
    harness.validate(document, "diff")
    return document


def test_moved_lines_are_known_and_what_changed_is_told(pair):
    document = rows(*pair, "--domain", "heap")
    ours = {row["where"]: row for row in document["rows"] if row["file"].endswith("script.py")}

    assert ours["script.py:8 Store.fill"]["state"] == "same"
    assert ours["script.py:8 Store.fill"]["was"] == "script.py:5 Store.fill"
    assert ours["script.py:9 Store.fill"]["live_change_bytes"] == 6 * MIB
    assert ours["script.py:12 came"]["state"] == "new"
    assert ours["script.py:9 gone"]["state"] == "gone"
    assert document["rows"][0]["where"] == "script.py:9 Store.fill"
    assert "6.0 MiB more at script.py:9 Store.fill" in document["summary"]
    assert "5.0 MiB less at script.py:9 gone, which is gone" in document["summary"]


def test_text_and_markdown_begin_with_what_changed_most(pair):
    text = harness.kmemshim("diff", *pair, "--domain", "heap")
    markdown = harness.kmemshim("diff", *pair, "--domain", "heap", "--markdown")

    more = re.match(r"At the end ([\d.]+) MiB more is live", text.stdout)  # where addresses are full, CPython asks for tables of 256 KiB
    assert more and abs(float(more[1]) - 2) <= .35 and text.stderr == "", text
    assert re.search(r"^ +\+6\.0 MiB .* heap +script\.py:9 Store\.fill\n +was line 6$", text.stdout, re.M)
    assert "| heap | `script.py:9 Store.fill` was line 6 |" in markdown.stdout
    widths = {line.replace("\\|", "").count("|") for line in markdown.stdout.splitlines() if line.startswith("|")}
    assert widths == {5, 8, 9}  # what is new or gone has neither old nor new figures, totals have no line


def test_by_function_lines_are_summed(pair):
    ours = {row["where"]: row for row in rows(*pair, "--domain", "heap", "--by", "function")["rows"]
            if row["file"].endswith("script.py")}

    assert ours["script.py Store.fill"]["line_count"] == 2
    assert 11 * MIB <= ours["script.py Store.fill"]["new"]["live_bytes"] <= 11 * MIB + 64


def test_a_capture_and_itself_are_the_same(pair):
    done = harness.kmemshim("diff", pair[0], pair[0])

    assert done.stdout.startswith("No line changed.\n")


def test_the_two_newest_sessions_of_a_folder(pair, tmp_path):
    harness.kmemshim("run", "-o", pair[0], "--", "/usr/bin/python3", tmp_path / "new" / "script.py")
    done = harness.kmemshim("diff", pair[0], "--domain", "heap")

    assert "6.0 MiB more at script.py:9 Store.fill" in done.stdout.splitlines()[0]


def test_two_processes_of_one_session(tmp_path):
    script = tmp_path / "ranks.py"
    script.write_text("import os\nkept = []\nfor rank in range(2):\n    if os.fork() == 0:\n"
                      "        kept.append(bytearray((rank + 1) * (4 << 20)))\n        break\nelse:\n    os.wait(), os.wait()\n")
    harness.kmemshim("run", "-o", tmp_path / "out", "--", "/usr/bin/python3", script)
    report = harness.report("why", tmp_path / "out")
    pids = [process["pid"] for process in report["processes"] if process["pid"] != report["processes"][0]["pid"]]
    document = rows(*(f"{tmp_path / 'out'}@{pid}" for pid in sorted(pids)), "--domain", "heap")

    assert len(pids) == 2
    assert abs(document["rows"][0]["live_change_bytes"]) == 4 * MIB
    assert document["rows"][0]["where"] == "ranks.py:5 <module>"


def test_no_line_moves_within_a_session(tmp_path):
    script = tmp_path / "workers.py"
    script.write_text("import os\ndef work(keeps):\n    kept = []\n    if not keeps:\n        kept.append(bytearray(4 << 20))\n    else:\n"
                      "        kept.append(bytearray(8 << 20))\n    os._exit(0)\nfor keeps in (False, True):\n    if os.fork() == 0:\n"
                      "        work(keeps)\n    os.wait()\n")
    harness.kmemshim("run", "-o", tmp_path / "out", "--", "/usr/bin/python3", script)
    report = harness.report("why", tmp_path / "out")
    pids = sorted(process["pid"] for process in report["processes"] if process["pid"] != report["processes"][0]["pid"])
    done = harness.kmemshim("diff", *(f"{tmp_path / 'out'}@{pid}" for pid in pids), "--domain", "heap")

    assert len(pids) == 2 and "was line" not in done.stdout, done.stdout
    new, gone = done.stdout.split("Lines that are gone")
    assert "workers.py:7 work" in new.split("New lines")[1] and "workers.py:5 work" in gone


def test_a_snapshot_and_the_end(tmp_path):
    script = tmp_path / "steps.py"
    script.write_text("import ctypes\nkmem = ctypes.CDLL(None)\nkept = [bytearray(3 << 20)]\nkmem.kmemshim_recorder_snapshot(b'warm')\n"
                      "kept.append(bytearray(8 << 20))\n")
    harness.kmemshim("run", "-o", tmp_path / "out", "--", "/usr/bin/python3", script)
    document = rows(f"{tmp_path / 'out'}@warm", f"{tmp_path / 'out'}@end", "--domain", "heap")

    ours = {row["where"]: row["live_change_bytes"] for row in document["rows"]}
    assert ours["steps.py:3 <module>"] == 0 and 8 * MIB <= ours["steps.py:5 <module>"] <= 8 * MIB + 64
    assert any("the old one is a snapshot" in note for note in document["notes"])


@pytest.mark.parametrize("arguments, status, words", [
    (["OLD", "missing.kmem"], 2, "missing.kmem"),
    (["OLD", "OLD@1"], 2, "no process 1"),
    (["OLD", "OLD@x"], 2, "x"),
    (["OLD"], 2, "has one session"),
    (["OLD", "NEW", "--by", "file"], 2, "expected line or function"),
    (["OLD", "NEW", "--json", "--markdown"], 2, "not both"),
    (["OLD", "NEW", "--domain", "cuda"], 2, "in neither of the two"),
    (["OLD", "TEXT"], 3, "text.kmem"),
    (["OLD", "DAMAGED"], 3, "--salvage"),
])
def test_what_cannot_be_compared_is_one_line(arguments, status, words, pair, tmp_path):
    (tmp_path / "text.kmem").write_text("words")
    data = bytearray(next(pair[1].glob("*.kmem")).read_bytes())
    data[data.rindex(b"script.py")] ^= 1  # in the name of the file that all stacks lead into
    (tmp_path / "damaged.kmem").write_bytes(data)
    names = {"OLD": pair[0], "NEW": pair[1], "TEXT": tmp_path / "text.kmem", "DAMAGED": tmp_path / "damaged.kmem"}
    given = [re.sub("^(OLD|NEW|TEXT|DAMAGED)", lambda found: str(names[found[0]]), word) for word in arguments]
    done = harness.kmemshim("diff", *given)

    assert (done.returncode, done.stdout) == (status, ""), done.stdout + done.stderr
    assert done.stderr.startswith("kmemshim: ") and done.stderr.count("\n") == 1 and words in done.stderr


@pytest.mark.parametrize("kind", ["report", "diff", "doctor", "holders", "lost"])
def test_a_schema_is_one(kind):
    jsonschema.Draft202012Validator.check_schema(harness.schema(kind))


def test_a_long_name_is_cut_in_its_middle_and_for_a_terminal_alone(tmp_path):
    name = "wächst_" + "größe_" * 30 + "ende"
    for turn, megabytes in (("old", 10), ("new", 30)):
        program = tmp_path / turn / f"{name[:100]}{turn}.py"
        program.parent.mkdir()
        program.write_text(f"def {name}():\n    return bytearray({megabytes} << 20)\nkept = {name}()\n")
        harness.record([harness.find_python(), program], tmp_path / turn / "out")
    sides = (tmp_path / "old" / "out", tmp_path / "new" / "out")
    whole = f"{name[:100]}new.py:2 {name}"
    done = harness.kmemshim("diff", "--json", *sides)
    document = json.loads(done.stdout)
    assert whole in [row["where"] for row in document["rows"]] and whole in document["summary"]
    assert document["notes"] == [f"these are two programs: {name[:100]}old.py, and {name[:100]}new.py"]
    assert harness.kmemshim("diff", *sides).stdout.count(whole) == 2  # the first sentence, and its row
    for columns in (80, 120):
        lines = harness.on_a_terminal(columns, [harness.KMEMSHIM, "diff", *sides], stdout=None).splitlines()
        cut = [found[1] for found in (re.search(r"MiB +(?:heap|mmap) +(w\S*\.\.\.\S*ende)$", line) for line in lines) if found]
        assert cut and {len(name) for name in cut} == {columns}, "\n".join(lines)
        assert whole not in "\n".join(lines)
