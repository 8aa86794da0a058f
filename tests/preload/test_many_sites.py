"""100,000 call sites: reports stay within bounds, say on a terminal that they are at work, and leave nothing half-written when they are interrupted."""
import json
import os
import re
import resource
import shutil
import signal
import subprocess

import pytest

import harness

pytestmark = pytest.mark.long  # the program alone takes seconds
PYTHON = harness.find_python()
MODULES = 100
LINES = 100_000
MAIN = """import sys
for name in [f"made{i:03}" for i in range(100)]:
    module = __import__(name)
    for i in range(10): getattr(module, f"f{i}")()
"""


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    """100 modules of 1,000 lines that each keep one block twice: once below the import, once below the main program."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(MODULES):
        text = ["kept = []"]
        for part in range(10):
            text += [f"def f{part}():"] + [f"    kept.append(bytearray({600 + (i * 37 + part) % 3000}))" for i in range(LINES // MODULES // 10)]
        (folder / f"made{number:03}.py").write_text("\n".join(text + [f"f{part}()" for part in range(10)]) + "\n")
    (folder / "main.py").write_text(MAIN)
    harness.ok(harness.record([PYTHON, folder / "main.py"], folder / "out", cwd=folder))
    return folder / "out"


def most_memory(argv):
    """Runs it; the peak of its resident set in bytes."""
    process = subprocess.Popen([str(word) for word in argv], stdout=subprocess.DEVNULL, env=harness.plain_env())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_maxrss << 10


def test_a_program_with_100000_lines_ends_as_without_us_and_is_recorded_whole(capture):
    document = harness.report("sites", capture, "--top", "1")
    assert document["line_total"] >= LINES and document["site_total"] >= 2 * LINES
    assert document["losses"].get("events", 0) == 0 and document["losses"].get("sites", 0) == 0


@pytest.mark.parametrize("words", [["report", "--html", "{file}"], ["peak"], ["peak", "--by", "package"], ["tree"], ["waste"], ["annotate", "made007"],
                                   ["export", "--format", "pprof", "-o", "{file}"], ["export", "--format", "dhat", "-o", "{file}"],
                                   ["export", "--format", "massif", "-o", "{file}"], ["export", "--format", "ndjson", "-o", "{file}"]], ids=lambda words: " ".join(words[:3]))
def test_reports_take_less_than_512_mib(words, capture, tmp_path):
    assert most_memory([harness.KMEMSHIM, *[word.format(file=tmp_path / "written") for word in words], capture]) < 512 << 20


def test_the_page_has_every_byte(capture, tmp_path):
    harness.ok(harness.kmemshim("report", "--html", tmp_path / "page.html", capture))
    data = json.loads(re.search(r'<script id="data" type="application/json">(.*?)</script>', (tmp_path / "page.html").read_text(), re.DOTALL)[1])
    totals = harness.report("peak", capture, "--top", "1")["totals"]
    for number, row in enumerate(data["domains"]):
        assert sum(site[2] for site in data["sites"] if site[0] == number) == totals[row[0]]["live_bytes"]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is missing: tools/install-deps consumers")
def test_the_page_is_drawn(capture, tmp_path):
    assert harness.kmemshim("report", "--html", tmp_path / "page.html", capture).returncode == 0
    done = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile", "--virtual-time-budget=30000", "--dump-dom",
                           f"file://{tmp_path}/page.html"], capture_output=True, text=True, timeout=280)
    drawn = re.sub(r"<script.*?</script>", "", done.stdout, flags=re.DOTALL)
    assert 'id="verdict"' in drawn and 'role="tab"' in drawn and "main.py" in drawn
    assert len(drawn) < 4 << 20  # not every line at once


def test_a_terminal_is_told_that_it_is_at_work_and_a_file_is_not(capture, tmp_path):
    seen = harness.on_a_terminal(80, [harness.KMEMSHIM, "report", "--html", tmp_path / "page.html", capture])
    lines = seen.split("\r\x1b[K")
    assert any(re.fullmatch(r"kmemshim: [a-z ]+: [\d,]+(?: of [\d,]+)?", line) for line in lines), seen[:500]
    assert re.fullmatch(r"kmemshim: written: .*page\.html \([\d.]+ MiB\)\. Open it in a browser\.\n", lines[-1]), lines  # it is taken away first
    done = harness.kmemshim("report", "--html", tmp_path / "again.html", capture)
    assert done.returncode == 0 and re.fullmatch(r"kmemshim: written: .*again\.html .*\n", done.stderr), done.stderr


@pytest.mark.parametrize("words", [["report", "--html"], ["export", "--format", "dhat", "-o"]], ids=["page", "export"])
def test_an_interrupted_command_leaves_nothing(words, capture, tmp_path):
    process = subprocess.Popen([harness.KMEMSHIM, *words, tmp_path / "whole", capture], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=harness.plain_env())
    while not list(tmp_path.iterdir()) and process.poll() is None:
        os.sched_yield()
    process.send_signal(signal.SIGINT)
    assert process.wait() == -signal.SIGINT and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["report", "--html"], ["export", "--format", "dhat", "-o"], ["export", "--format", "pprof", "-o"]], ids=["page", "dhat", "pprof"])
def test_a_full_disk_is_one_line(words, capture, tmp_path):
    """A limit on the size of files is met in the same way, and needs no rights."""
    path = tmp_path / "whole"
    done = harness.run([harness.KMEMSHIM, *words, path, capture], preexec_fn=lambda: (signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1) and "cannot write" in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []
