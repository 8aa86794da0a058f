"""Exports in the programs that they are for: go tool pprof, ms_print, dh_view.html in a browser, DuckDB. Totals are those of the report."""
import collections
import gzip
import html
import json
import os
import re
import shutil
import socket
import subprocess

import pytest

import harness

PYTHON = harness.find_python()
DH_VIEW = next((path for path in ("/usr/libexec/valgrind", "/usr/lib/valgrind") if os.path.exists(f"{path}/dh_view.html")), None)
CHROMIUM = shutil.which("chromium")
PROGRAM = """
import mmap, os
class Cache:
    def fill(self, kept): kept.extend(bytearray(100000) for _ in range(100))
def again(kept, depth):
    return again(kept, depth - 1) if depth else Cache().fill(kept)
kept = []
again(kept, 3)
mapped = mmap.mmap(-1, 4 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
for i in range(300):
    kept.append(bytearray(20000))
    lost = bytearray(50000)
"""
FORKS = PROGRAM + """
for i in range(2):
    if os.fork() == 0:
        own = bytearray(3_000_000 + i)
        os._exit(0)
    os.wait()
"""


def missing(program, package):
    return pytest.mark.skipif(program is None, reason=f"{package} is missing: tools/install-deps consumers")


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("consumers")
    (folder / 'a "b;<c>.py').write_text(PROGRAM)
    harness.record([PYTHON, folder / 'a "b;<c>.py'], folder / "out")
    return folder / "out"


@pytest.fixture(scope="module")
def family(tmp_path_factory):
    """Three processes; the program lies in a git repository."""
    folder = tmp_path_factory.mktemp("family")
    for words in (["init", "-q"], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "first"]):
        assert harness.run(["git", *words], cwd=folder).returncode == 0
    (folder / "forks.py").write_text(FORKS)
    harness.record([PYTHON, "forks.py"], folder / "out", cwd=folder)
    return folder / "out"


def export(capture, name, path, *options):
    done = harness.kmemshim("export", "--format", name, "-o", path, *options, capture)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), done.stderr
    return path


def totals(capture, figure):
    return {name: domain[figure] for name, domain in harness.report("peak", capture)["totals"].items() if name not in ("reserved", "file") and domain[figure]}


# --- pprof --------------------------------------------------------------------------------------

def pprof(*words):
    done = harness.ok(harness.run(["go", "tool", "pprof", *words], harness.plain_env(HOME=os.environ.get("HOME", "/tmp"), GOFLAGS="-mod=mod")))
    return done.stdout


@missing(shutil.which("go"), "golang-go")
@pytest.mark.parametrize("domain", [None, "heap"])
def test_pprof_has_the_reports_totals_by_domain(domain, capture, tmp_path):
    raw = pprof("-raw", export(capture, "pprof", tmp_path / "p.pb.gz", *(["--domain", domain] if domain else [])))
    names = re.search(r"Samples:\n(.*)\n", raw)[1].split()
    assert names == ["alloc_objects/count", "alloc_space/bytes", "peak_space/bytes", "inuse_objects/count", "inuse_space/bytes[dflt]"]
    sums = collections.defaultdict(lambda: [0] * 5)
    labels = set()
    for values, rest in re.findall(r"^ +(\d+(?: +\d+)+): [\d ]*\n((?: {16}\w+:\[.*\n)*)", raw, re.MULTILINE):
        found = dict(re.findall(r"(\w+):\[(.*?)\]", rest))
        assert set(found) == {"domain", "process", "leak_class"}
        labels.add(found["leak_class"])
        for i, value in enumerate(values.split()):
            sums[found["domain"]][i] += int(value)
    for i, figure in ((0, "allocated_count"), (1, "allocated_bytes"), (2, "peak_bytes"), (3, "live_count"), (4, "live_bytes")):
        wanted = totals(capture, figure)
        assert {name: row[i] for name, row in sums.items() if row[i]} == ({domain: wanted[domain]} if domain else wanted), figure
    assert "leak" in labels and {"steady", "import"} & labels


@missing(shutil.which("go"), "golang-go")
def test_pprof_shows_functions_lines_and_recursion(capture, tmp_path):
    path = export(capture, "pprof", tmp_path / "p.pb.gz")
    top = pprof("-top", "-cum", "-unit=B", "-nodefraction=0", "-nodecount=1000", "-sample_index=inuse_space", "-tagfocus=domain=heap", path)
    assert "Type: inuse_space" in top
    held = {name: (int(flat), int(cum)) for flat, cum, name in re.findall(r"^ +(\d+)B? +[\d.e-]+% +[\d.e-]+% +(\d+)B? +[\d.e-]+% +(.+)$", top, re.MULTILINE)}
    assert 10_000_000 < held["Cache.fill"][1] < 10_100_000, top
    assert held["again"][1] == held["Cache.fill"][1]  # three calls of itself count once
    lines = pprof("-list", "Cache.fill", path)
    assert 'a "b;<c>.py' in lines


def test_pprof_is_gzip_of_a_whole_message(capture, tmp_path):
    packed = export(capture, "pprof", tmp_path / "p.pb.gz").read_bytes()
    assert packed == harness.subprocess.run([harness.KMEMSHIM, "export", "--format", "pprof", capture], capture_output=True).stdout
    assert b"Cache.fill" in gzip.decompress(packed)


# --- valgrind -----------------------------------------------------------------------------------

@missing(shutil.which("ms_print"), "valgrind")
def test_ms_print_draws_the_peak_and_the_end(capture, tmp_path):
    path = export(capture, "massif", tmp_path / "massif.out")
    done = harness.run(["ms_print", path])
    assert done.returncode == 0 and "Detailed snapshots" in done.stdout, done.stderr
    details = [int(row.replace(",", "")) for row in re.findall(r"^100\.00% \(([\d,]+)B\)", done.stdout, re.MULTILINE)]
    assert details == [sum(totals(capture, figure).values()) for figure in ("peak_bytes", "live_bytes")]
    assert "Cache.fill" in done.stdout and "(peak)" in done.stdout


def test_each_massif_node_is_the_sum_of_its_children(capture, tmp_path):
    lines = export(capture, "massif", tmp_path / "massif.out").read_text().splitlines()
    nodes = [re.fullmatch(r"( *)n(\d+): (\d+) (.*)", line) for line in lines if re.match(r" *n\d+:", line)]
    checked = 0
    for i, node in enumerate(nodes):
        children = []
        for other in nodes[i + 1:]:
            if len(other[1]) <= len(node[1]):
                break
            if len(other[1]) == len(node[1]) + 1:
                children.append(int(other[3]))
        assert len(children) == int(node[2])
        if children:
            assert sum(children) == int(node[3])
            checked += 1
    assert checked > 10


def dhat_sums(document):
    sums = collections.defaultdict(collections.Counter)
    for point in document["pps"]:
        assert all(0 < frame < len(document["ftbl"]) for frame in point["fs"])
        sums[document["ftbl"][point["fs"][0]]].update({name: point[name] for name in ("tb", "tbk", "gb", "eb", "ebk")})
    return sums


def test_dhat_has_the_reports_totals_by_domain(capture, tmp_path):
    document = json.loads(export(capture, "dhat", tmp_path / "dhat.json").read_text())
    sums = dhat_sums(document)
    for name, figure in (("tb", "allocated_bytes"), ("tbk", "allocated_count"), ("gb", "peak_bytes"), ("eb", "live_bytes"), ("ebk", "live_count")):
        assert {domain: row[name] for domain, row in sums.items() if row[name]} == totals(capture, figure)
    stacks = [tuple(point["fs"]) for point in document["pps"]]
    assert len(set(stacks)) == len(stacks)  # the viewer asserts it


@missing(DH_VIEW and CHROMIUM, "valgrind or chromium")
def test_dh_view_draws_it(capture, tmp_path):
    """Its own page, with what its file button does done by a line of script."""
    for name in ("dh_view.html", "dh_view.js", "dh_view.css"):
        shutil.copy(f"{DH_VIEW}/{name}", tmp_path)
    data = export(capture, "dhat", tmp_path / "dhat.json").read_text()
    assert dhat_sums(json.loads(data))
    page = (tmp_path / "dh_view.html").read_text()
    shown = "<script>window.addEventListener('load', () => tryFunc(() => { gData = JSON.parse(document.getElementById('given').textContent); gFilename = 'given'; buildTree(); gSelect.selectedIndex = 0; displayTree(); }));</script>"
    place = re.search(r"</body>", page)
    given = '<script id="given" type="application/json">' + data.replace("<", "\\u003c") + "</script>" + shown
    (tmp_path / "filled.html").write_text(page[:place.start()] + given + page[place.start():])
    done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile", "--virtual-time-budget=20000", "--dump-dom",
                           f"file://{tmp_path}/filled.html"], capture_output=True, text=True, timeout=120)
    drawn = re.sub(r"<script.*?</script>", "", done.stdout, flags=re.DOTALL)
    words = html.unescape(re.sub(r"<[^>]*>", "", drawn))
    figures = [f"{sum(totals(capture, figure).values()):,} bytes" for figure in ("allocated_bytes", "peak_bytes", "live_bytes")]
    assert all(figure in words for figure in figures), words[-3000:]
    assert "Cache.fill" in words and "At t-gmax" in words


# --- rows ---------------------------------------------------------------------------------------

def test_rows_of_each_process_add_up_and_say_which_run_it_was(family, tmp_path):
    rows = [json.loads(line) for line in export(family, "ndjson", tmp_path / "rows.ndjson").read_text().splitlines()]
    report = harness.report("peak", family)
    assert {row["pid"] for row in rows} == {process["pid"] for process in report["processes"]} and len(report["processes"]) == 3
    assert len({tuple(row) for row in rows}) == 1
    for figure in ("live_bytes", "allocated_bytes", "allocated_count"):
        sums = collections.Counter()
        for row in rows:
            sums[row["domain"]] += row[figure]
        assert {name: value for name, value in sums.items() if value} == totals(family, figure)
    commit = harness.run(["git", "rev-parse", "HEAD"], cwd=family.parent).stdout.strip()
    assert {(row["session"], row["host"], row["git_revision"], row["cause"], row["verdict"]) for row in rows} == {
        (report["session"], socket.gethostname(), commit, report["verdict"]["cause"], report["verdict"]["text"])}
    own = [row for row in rows if row["line"] == 16 and row["live_bytes"] > 2_900_000]
    assert len({row["pid"] for row in own}) == 2 == len(own)


@pytest.mark.parametrize("steps", [[], [["pack-refs", "--all"]], [["checkout", "-q", "--detach"]], [["worktree", "add", "-q", "{tree}"]], None],
                         ids=["branch", "packed", "detached", "worktree", "no repository"])
def test_the_commit_is_the_one_that_git_names(steps, tmp_path):
    folder, tree = tmp_path / "repository", tmp_path / "tree"
    (folder / "below").mkdir(parents=True)
    for words in [["init", "-q"], ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", "first"], *(steps or [])]:
        assert harness.run(["git", *[word.format(tree=tree) for word in words]], cwd=folder).returncode == 0
    place = tmp_path if steps is None else tree if tree.exists() else folder / "below"
    harness.record([PYTHON, "-c", "kept = bytearray(1 << 20)"], tmp_path / "out", cwd=place)
    rows = [json.loads(line) for line in export(tmp_path / "out", "ndjson", tmp_path / "rows.ndjson").read_text().splitlines()]
    commit = harness.run(["git", "rev-parse", "HEAD"], cwd=folder).stdout.strip() if steps is not None else ""
    assert {row["git_revision"] for row in rows} == {commit}


def test_a_commit_since_then_is_not_taken_for_the_runs(family, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(family.parent / ".git", copy / ".git", copy_function=shutil.copyfile)  # written now: later than the run
    shutil.copytree(family.parent / ".git", copy / "kept")
    shutil.rmtree(family.parent / ".git")
    try:
        os.symlink(copy / ".git", family.parent / ".git")
        rows = [json.loads(line) for line in export(family, "ndjson", tmp_path / "rows.ndjson").read_text().splitlines()]
        assert {row["git_revision"] for row in rows} == {""}
    finally:
        (family.parent / ".git").unlink()
        shutil.copytree(copy / "kept", family.parent / ".git")


def test_rows_of_one_domain(family, tmp_path):
    rows = [json.loads(line) for line in export(family, "ndjson", tmp_path / "rows.ndjson", "--domain", "mmap").read_text().splitlines()]
    assert {row["domain"] for row in rows} == {"mmap"} and sum(row["live_bytes"] for row in rows) == totals(family, "live_bytes")["mmap"]


@pytest.mark.framework
def test_duckdb_reads_rows(family, tmp_path):
    path = export(family, "ndjson", tmp_path / "rows.ndjson")
    query = f"import duckdb; print(duckdb.sql(\"select domain, sum(live_bytes)::bigint from read_json_auto('{path}') group by domain having sum(live_bytes) > 0\").fetchall())"
    done = harness.ok(harness.run([harness.venv("duckdb"), "-c", query]))
    assert dict(eval(done.stdout)) == totals(family, "live_bytes")
