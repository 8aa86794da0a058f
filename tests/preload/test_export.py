"""Exports: what each consumer's own parser reads, and totals that are those of the report."""
import collections
import json
import re

import pytest

import harness

prometheus = pytest.importorskip("prometheus_client.openmetrics.parser", reason="python3-prometheus-client is missing: tools/install-deps test")

PYTHON = harness.find_python()
PROGRAM = """
import mmap
class Cache:
    def fill(self, kept): kept.extend(bytearray(100000) for _ in range(100))
kept = []
Cache().fill(kept)
mapped = mmap.mmap(-1, 4 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for i in range(300):
    kept.append(bytearray(20000))
    lost = bytearray(50000)
"""
FORMATS = ("folded", "speedscope", "ndjson", "openmetrics")
VALUES = ("peak", "live", "leaked", "allocated")


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    (folder / 'a "b;c".py').write_text(PROGRAM)
    harness.record([PYTHON, folder / 'a "b;c".py'], folder / "out")
    return folder / "out"


def export(capture, name, *options):
    done = harness.silent(harness.kmemshim("export", "--format", name, *options, capture))
    return done.stdout


def totals(capture, figure):
    return {name: domain[figure] for name, domain in harness.report("peak", capture)["totals"].items() if name not in ("reserved", "file")}


def folded(text):
    """What flamegraph.pl and inferno read: frames parted by ';', a space, a number."""
    rows = [re.fullmatch(r"([^;]+(?:;[^;]+)+) (\d+)", line) for line in text.splitlines()]
    assert all(rows)
    return [(row[1].split(";"), int(row[2])) for row in rows]


@pytest.mark.parametrize("value", VALUES)
def test_folded_stacks_add_up(value, capture):
    sums = collections.Counter()
    rows = folded(export(capture, "folded", "--value", value))
    for frames, number in rows:
        sums[frames[0]] += number
    if value == "leaked":
        wanted = collections.Counter()
        for site in harness.report("leaks", capture)["sites"]:
            if site["leak"]["class"] == "leak":
                wanted[site["domain"]] += site["live_bytes"]
        assert sums == wanted
        return
    wanted = totals(capture, {"peak": "peak_bytes", "live": "live_bytes", "allocated": "allocated_bytes"}[value])
    assert sums["heap"] == wanted["heap"] and sums["mmap"] == wanted["mmap"]
    if value != "peak":
        return
    longest = max(rows, key=lambda row: row[1])[0]
    assert longest.index('a "b:c".py:6 <module>') < longest.index('a "b:c".py:4 Cache.fill')


def test_one_domain_alone(capture):
    assert {frames[0] for frames, _ in folded(export(capture, "folded", "--domain", "mmap"))} == {"mmap"}


def test_speedscope_reads_it(capture):
    """What its format says: https://www.speedscope.app/file-format-schema.json, the parts that sampled profiles need."""
    document = json.loads(export(capture, "speedscope"))
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    frames = document["shared"]["frames"]
    assert all(isinstance(frame["name"], str) and set(frame) <= {"name", "file", "line", "col"} for frame in frames)
    names = [profile["name"] for profile in document["profiles"]]
    assert "heap: live at the peak" in names and "mmap: live at the end" in names and len(set(names)) == len(names)
    for profile in document["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "samples", "weights"}
        assert (profile["type"], profile["unit"], profile["startValue"]) == ("sampled", "bytes", 0)
        assert len(profile["samples"]) == len(profile["weights"]) and sum(profile["weights"]) == profile["endValue"]
        assert all(0 <= frame < len(frames) for sample in profile["samples"] for frame in sample)
    heap = document["profiles"][names.index("heap: live at the peak")]
    assert heap["endValue"] == totals(capture, "peak_bytes")["heap"]


def test_rows_are_json_one_by_one(capture):
    rows = [json.loads(line) for line in export(capture, "ndjson").splitlines()]
    report = harness.report("peak", capture)
    assert len(rows) == sum(line["domain"] not in ("reserved", "file") for line in report["lines"])
    assert len({tuple(row) for row in rows}) == 1  # the same columns in each
    sums = collections.Counter()
    for row in rows:
        sums[row["domain"]] += row["live_bytes"]
    assert sums["heap"] == totals(capture, "live_bytes")["heap"]
    assert rows[0]["function"].startswith("Cache.fill") and rows[0]["cause"] == "exited" and rows[0]["session"] == report["session"]


def test_a_row_says_how_far_its_estimates_may_be_off(tmp_path):
    (tmp_path / "small.py").write_text("kept = [(i,) for i in range(300000)]\n")  # 14 MiB of small objects: 50 samples
    harness.record([PYTHON, tmp_path / "small.py"], tmp_path / "out")
    rows = [json.loads(line) for line in export(tmp_path / "out", "ndjson").splitlines()]
    report = harness.report("peak", tmp_path / "out")
    figures = ("is_estimated", "error_bytes", "peak_error_bytes", "samples")  # nothing instead of null: a column has one type
    assert sorted(tuple(row[name] for name in figures) for row in rows) == sorted(
        tuple(line[name] or 0 for name in figures) for line in report["lines"] if line["domain"] not in ("reserved", "file"))
    assert any(row["error_bytes"] for row in rows)


def test_prometheus_reads_it(capture):
    families = {family.name: family for family in prometheus.text_string_to_metric_families(export(capture, "openmetrics"))}
    wanted = harness.report("peak", capture)["totals"]
    for name, figure in (("kmemshim_live_bytes", "live_bytes"), ("kmemshim_peak_bytes", "peak_bytes"), ("kmemshim_allocated_bytes", "allocated_bytes")):
        assert families[name].unit == "bytes"
        assert {sample.labels["domain"]: sample.value for sample in families[name].samples} == {
            domain: row[figure] for domain, row in wanted.items() if domain not in ("reserved", "file")}
    lines = families["kmemshim_line_live_bytes"].samples
    assert 1 < len(lines) <= 20 and any(sample.labels["place"].startswith('a "b;c".py:4 ') for sample in lines)


def test_a_process_that_replaced_itself_is_no_series_twice(tmp_path):
    program = tmp_path / "again.py"
    program.write_text("import os, sys\nkept = [bytearray(100000) for _ in range(50)]\n"
                       "if len(sys.argv) == 1: os.execv(sys.executable, [sys.executable, __file__, 'x'])\n")
    harness.record([PYTHON, program], tmp_path / "out")
    lines = [line.rsplit(" ", 1)[0] for line in export(tmp_path / "out", "openmetrics").splitlines() if not line.startswith("#")]
    assert sum(line.startswith("kmemshim_process_peak_bytes") for line in lines) == 2 and len(lines) == len(set(lines)), lines


def test_a_file_is_whole_or_not_there_and_never_replaced_unasked(capture, tmp_path):
    path = tmp_path / "stacks.txt"
    assert export(capture, "folded", "-o", path) == "" and folded(path.read_text())
    done = harness.kmemshim("export", "--format", "folded", "-o", path, capture)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "--force" in done.stderr
    assert export(capture, "folded", "-o", path, "--force") == ""


@pytest.mark.parametrize("words", [[], ["--format", "pdf"], ["--format", "folded", "--value", "all"], ["--format", "ndjson", "--value", "live"],
                                   ["--format", "folded", "--domain", "cuda"], ["--format", "folded", "-o", "/no/such/folder/x"]])
def test_what_cannot_be_meant_is_one_line(words, capture):
    done = harness.kmemshim("export", *words, capture)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
