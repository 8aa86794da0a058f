"""The report as a page: one file with all in it, no text that could become HTML, and nothing replaced or left half-written."""
import json
import re
import subprocess

import pytest

import harness

PYTHON = harness.find_python()
PROGRAM = """# </script><script>alert(1)</script> <!-- é
class Cache:
    def fill(self):
        self.kept = [bytearray(100000) for _ in range(100)]

cache = Cache()
cache.fill()
"""
HOSTILE = "<script><img src=x onerror=planted(1)>.py"


@pytest.fixture
def capture(tmp_path):
    folder = tmp_path / "there"
    folder.mkdir()
    program = folder / "program.py"
    program.write_text(PROGRAM)
    harness.record([PYTHON, program], tmp_path / "out")
    return tmp_path / "out"


def page_of(capture, path, *options):
    done = harness.kmemshim("report", "--html", path, *options, capture)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert re.fullmatch(rf"kmemshim: written: {re.escape(str(path))} \([\d.]+ KiB\)\. Open it in a browser\.\n", done.stderr), done.stderr
    return path.read_text()


def test_a_pipe_gets_the_page_and_nothing_is_said(capture):
    done = harness.silent(harness.kmemshim("report", "--html", "/dev/stdout", "--force", capture))
    assert done.stdout.startswith("<!DOCTYPE html>") or done.stdout.startswith("<!doctype html>"), done.stdout[:80]


def data_of(page):
    """The data in it, and the page without them and without scripts."""
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[1]), found[1]


def test_a_page_is_one_small_file_that_needs_no_network(capture, tmp_path):
    page = page_of(capture, tmp_path / "page.html")
    assert len(page) < 2 << 20
    assert "default-src 'none'" in page
    assert not re.search(r'<(?:script|link|img|iframe)[^>]+(?:src|href)="(?!data:)', page)
    assert "@import" not in page and "url(" not in page.split("<script")[0]


def test_its_figures_are_those_of_the_report(capture, tmp_path):
    data, _ = data_of(page_of(capture, tmp_path / "page.html"))
    report = harness.report("peak", capture)
    totals = report["totals"]
    assert {row[0]: (row[3], row[4], row[5]) for row in data["domains"]} == {
        name: (domain["peak_bytes"], domain["live_bytes"], domain["allocated_bytes"]) for name, domain in totals.items()}
    assert len(data["lines"]) == report["line_total"] and len(data["sites"]) <= report["site_total"]
    for row, line in zip(data["lines"], report["lines"]):
        assert (data["domains"][row[0]][0], row[1], row[2], row[5]) == (line["domain"], line["peak_bytes"], line["live_bytes"], line["live_count"])
    for domain, (name, *_) in enumerate(data["domains"]):
        assert sum(site[2] for site in data["sites"] if site[0] == domain) == totals[name]["live_bytes"]
    largest = next(row for row in data["lines"] if "program.py:4" in data["texts"][row[12]])
    source = next(source["lines"] for source in data["sources"] if source["file"] == largest[13])
    assert largest[1] > 9_000_000 and source[2 * largest[14] - 1].startswith("self.kept = ") and largest[15] == -1
    assert all(data["verdict"][part] == report["verdict"][part] for part in ("headline", "next", "evidence"))


def test_what_many_small_sites_hold_is_drawn_at_their_caller(tmp_path):
    """Of 40,000 lines none has a 20,000th of the memory; the line that called them has it all."""
    (tmp_path / "program.py").write_text("""
kept = []
for part in range(20):
    space = {}
    exec(compile("\\n".join(f"def f{i}(): kept.append(bytearray(1000))" for i in range(2000)), f"part{part}.py", "exec"), space | {"kept": kept}, space)
    for i in range(2000):
        space[f"f{i}"].__globals__["kept"] = kept
        space[f"f{i}"]()
""")
    harness.record([PYTHON, tmp_path / "program.py"], tmp_path / "out")
    harness.ok(harness.kmemshim("report", "--html", tmp_path / "page.html", tmp_path / "out"))
    data, _ = data_of((tmp_path / "page.html").read_text())
    heap = next(number for number, domain in enumerate(data["domains"]) if domain[0] == "heap")
    held = sum(site[1] for site in data["sites"] if site[0] == heap)
    placed = sum(site[1] for site in data["sites"] if site[0] == heap and site[6] >= 0)
    assert len(data["sites"]) < 5000 and held > 40_000_000, (len(data["sites"]), held)
    assert placed > held * 0.95, (placed, held)


def test_stacks_lead_from_the_outermost_frame_to_the_line(capture, tmp_path):
    data, _ = data_of(page_of(capture, tmp_path / "page.html"))
    site = max(data["sites"], key=lambda row: row[1])
    node, places = site[6], []
    while node >= 0:
        places.append(data["texts"][data["frames"][data["nodes"][2 * node + 1]][0]])
        node = data["nodes"][2 * node]
    python = [place for place in places if place.startswith("program.py:")]
    assert [place.split()[0] for place in python][-2:] == ["program.py:4", "program.py:7"], places


def test_the_users_file_is_in_it_with_its_indentation_and_not_on_request(capture, tmp_path):
    data, raw = data_of(page_of(capture, tmp_path / "page.html"))
    lines = data["sources"][0]["lines"]
    assert lines[::2][:4] == [0, 0, 4, 8] and lines[3] == "class Cache:"
    assert len(data["sources"]) == 1 and data["texts"][data["sources"][0]["file"]].endswith("program.py")
    assert "<" not in raw  # nothing there can end the script
    without, raw = data_of(page_of(capture, tmp_path / "without.html", "--no-source"))
    assert "sources" not in without and "self.kept" not in raw and "alert(1)" not in raw


def without_nonce(page):
    nonce = re.search(r"'nonce-([0-9a-f]{16})'", page)[1]
    return page.replace(nonce, "")


def test_it_is_an_export_too(capture, tmp_path):
    """`export --format html` writes the same page; what it cannot mean is one line."""
    wanted = page_of(capture, tmp_path / "page.html", "--no-source")
    done = harness.kmemshim("export", "--format", "html", "--no-source", capture)
    assert (done.returncode, done.stderr) == (0, "") and without_nonce(done.stdout) == without_nonce(wanted)
    assert harness.kmemshim("export", "--format", "html", "-o", tmp_path / "second.html", capture).returncode == 0
    assert data_of((tmp_path / "second.html").read_text())[0]["sources"]
    for words in (["html", "--domain", "heap"], ["dhat", "--no-source"], ["html", "--value", "live"]):
        done = harness.kmemshim("export", "--format", *words, capture)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr


def test_names_are_no_html(tmp_path):
    program = tmp_path / "a b" / HOSTILE
    program.parent.mkdir()
    program.write_text("kept = bytearray(10 << 20)\n")
    harness.record([PYTHON, program], tmp_path / "out")
    page = page_of(tmp_path / "out", tmp_path / "page.html")
    _, raw = data_of(page)
    assert "<" not in raw and "planted(1)" in raw
    assert "planted" not in page.replace(raw, "")


def test_what_is_there_is_not_replaced_unless_told(capture, tmp_path):
    path = tmp_path / "page.html"
    path.write_text("mine")
    done = harness.kmemshim("report", "--html", path, capture)
    assert (done.returncode, done.stderr.count("\n"), path.read_text()) == (2, 1, "mine") and "--force" in done.stderr
    assert len(page_of(capture, path, "--force")) > 100000


def test_a_link_stays_one_and_what_it_leads_to_is_written(capture, tmp_path):
    """As /dev/stdout is one, which root may replace for all programs of the machine."""
    (tmp_path / "there" / "page.html").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "there" / "page.html")
    harness.ok(harness.kmemshim("report", "--html", tmp_path / "link", "--force", capture))
    assert (tmp_path / "link").is_symlink() and len((tmp_path / "there" / "page.html").read_text()) > 100000


@pytest.mark.parametrize("more", [[], ["--force"]])
@pytest.mark.parametrize("command", [["report", "--html"], ["export", "--format", "html", "-o"]])
def test_a_folder_is_no_page(command, more, tmp_path):
    """`report --html kmemshim.out`: the name of the page was forgotten."""
    done = harness.kmemshim(*command, tmp_path, *more)
    assert done.returncode == 2 and done.stderr == f"kmemshim: {tmp_path}: is a folder: give the name of a file to write\n"


@pytest.mark.parametrize("words", [["--html"], ["--no-source"], ["--force"], ["--html", "{new}", "--json"], ["--html", "{new}", "--top", "3"],
                                   ["--html", "{new}", "--domain", "heap"], ["--html", "/no/such/folder/page.html"]])
def test_what_cannot_be_meant_is_one_line(words, capture, tmp_path):
    new = tmp_path / "new.html"
    done = harness.kmemshim("report", *[word.format(new=new) for word in words], *([] if words == ["--html"] else [capture]))
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and done.stdout == "", done.stderr
    assert not new.exists()


def test_a_full_disk_leaves_nothing_behind(capture, tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    if harness.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", place]).returncode != 0:
        pytest.skip("this user cannot mount a small disk")
    try:
        done = harness.kmemshim("report", "--html", place / "page.html", capture)
        assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
        assert list(place.iterdir()) == []
    finally:
        harness.run(["umount", place])


def test_its_timeline_is_that_of_the_report(capture, tmp_path):
    data, _ = data_of(page_of(capture, tmp_path / "page.html"))
    timeline, told = data["processes"][0]["timeline"], harness.report("report", capture)["processes"][0]["timeline"]
    assert [data["domains"][number][0] for number in timeline["domains"][::2]] == told["domains"]
    assert len(timeline["points"]) == len(told["points"]) > 4
    for drawn, point in zip(timeline["points"], told["points"]):
        assert drawn[0] == point["age_ns"] // 1000 and drawn[3] == point["live_bytes"]
        assert drawn[6:] == point["domain_bytes"] + point["line_bytes"]


# Goes on until its standard input is closed. Each line of code is a new one: the tables of the capture grow, and so does the file.
GROWS = """
import os, select, time
kept, ledger = [], os.open("ledger", os.O_RDWR | os.O_CREAT)
number = 0
while not select.select([0], [], [], 0)[0]:
    space = {}
    exec(compile(f"def f{number}():\\n    return bytearray(2000)\\n", f"made_{number}.py", "exec"), space)
    for _ in range(10):
        kept.append(space[f"f{number}"]())
    number += 1
    os.pwrite(ledger, b"%09d" % number, 0)
    if number == 100:
        print("begun", flush=True)
    time.sleep(0.0005)
"""
OF_A_LINE = 10 * 2001  # bytes


def test_of_a_capture_that_grows_while_the_page_is_made(tmp_path):
    """A page is whole, and has what was held when it was begun; when the program has ended, nothing is missing."""
    def made_lines():
        return int((tmp_path / "ledger").read_bytes())

    def held(data):
        return {data["texts"][row[12]]: row[2] for row in data["lines"]
                if data["texts"][row[12]].startswith("made_") and data["domains"][row[0]][0] == "heap"}

    (tmp_path / "program.py").write_text(GROWS)
    process = subprocess.Popen([PYTHON, "program.py"], cwd=tmp_path, env=harness.shim_env(tmp_path / "out", KMEMSHIM_VERIFY=0),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "begun\n"
        for number in range(5):
            before = made_lines()
            data, _ = data_of(page_of(tmp_path / "out", tmp_path / f"page{number}.html"))
            after = made_lines()
            lines = held(data)
            whole = [name for name, live_bytes in lines.items() if live_bytes == OF_A_LINE]
            assert before < after and len(whole) >= before and len(lines) <= after + 1, (before, len(whole), len(lines), after)
            assert set(lines.values()) <= {count * 2001 for count in range(11)}
            assert data["losses"] == [] and data["damages"] == []
            assert "still running" in data["verdict"]["headline"]
    finally:
        process.stdin.close()
        process.wait(timeout=harness.TIMEOUT)
    assert process.returncode == 0
    data, _ = data_of(page_of(tmp_path / "out", tmp_path / "page.html"))
    assert list(held(data).values()) == [OF_A_LINE] * made_lines()
    assert not any(is_serious for _, _, is_serious in data["losses"]) and data["damages"] == []  # releases as Python ends are left out
