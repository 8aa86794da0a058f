"""baseline and check: a verdict for CI, with exit codes that tell regressions from broken runs."""
import json
import shutil
import xml.etree.ElementTree

import pytest

import harness

OK, REGRESSION, USAGE, UNUSABLE, BROKEN_RUN = 0, 1, 2, 3, 4


@pytest.fixture
def measure(programs, tmp_path):
    """Runs the program with some faults; returns the capture folder."""
    program = programs("gate.c")

    def run(*faults):
        folder = tmp_path / ("run-" + "-".join(faults) + str(len(list(tmp_path.iterdir()))))
        harness.kmemshim("run", "-o", folder, "--", program, *faults)
        return folder

    return run


@pytest.fixture
def base(measure, tmp_path):
    file = tmp_path / "base.json"
    done = harness.kmemshim("baseline", measure(), "-o", file)
    assert done.returncode == OK, done.stderr
    return file


def line_of(text):
    lines = (harness.HERE / "gate.c").read_text().splitlines()
    return f"gate.c:{next(number for number, line in enumerate(lines, 1) if text in line)}"


def test_unchanged_code_passes(measure, base):
    done = harness.kmemshim("check", measure(), "--baseline", base)

    assert done.returncode == OK, done.stdout + done.stderr


def test_a_leak_fails_and_its_line_is_named(measure, base):
    done = harness.kmemshim("check", measure("leak"), "--baseline", base)

    assert done.returncode == REGRESSION
    assert line_of("return malloc(") in done.stdout


def test_a_larger_peak_fails_and_its_line_is_named(measure, base):
    done = harness.kmemshim("check", measure("peak"), "--baseline", base)

    assert done.returncode == REGRESSION
    assert line_of("return calloc(") in done.stdout


def test_less_memory_than_the_baseline_passes(measure, tmp_path):
    file = tmp_path / "generous.json"
    assert harness.kmemshim("baseline", measure("leak", "peak"), "-o", file).returncode == OK

    assert harness.kmemshim("check", measure(), "--baseline", file).returncode == OK


@pytest.mark.parametrize("fault", ["kill", "fail"])
def test_a_run_that_was_killed_or_failed_is_no_verdict(fault, measure, base):
    done = harness.kmemshim("check", measure(fault), "--baseline", base)

    assert done.returncode == BROKEN_RUN, done.stdout + done.stderr


def test_several_runs_make_one_baseline(measure, tmp_path):
    file = tmp_path / "several.json"

    assert harness.kmemshim("baseline", measure(), measure(), measure(), "-o", file).returncode == OK
    assert harness.kmemshim("check", measure(), measure(), "--baseline", file).returncode == OK
    assert harness.kmemshim("check", measure("leak"), measure("leak"), "--baseline", file).returncode == REGRESSION


@pytest.mark.parametrize("faults, failures", [((), 0), (("leak",), 1)])
def test_junit_parses_and_agrees(faults, failures, measure, base, tmp_path):
    file = tmp_path / "junit.xml"
    done = harness.kmemshim("check", measure(*faults), "--baseline", base, "--format", f"text,junit={file}")
    suite = xml.etree.ElementTree.parse(file).getroot()
    cases = list(suite.iter("testcase"))

    assert done.returncode == (REGRESSION if failures else OK)
    assert cases
    assert (len(list(suite.iter("failure"))) > 0) == (failures > 0)
    assert {"program ended well", "lines", "peak heap", "live heap"} <= {case.get("name") for case in cases}


def test_bad_baselines_and_captures_have_their_codes(measure, base, tmp_path):
    capture = measure()
    broken = tmp_path / "broken.json"
    broken.write_text('{"schema": ')

    for wrong in (broken, tmp_path / "missing.json", capture):
        done = harness.kmemshim("check", capture, "--baseline", wrong)
        assert done.returncode == USAGE
        assert done.stderr.startswith("kmemshim:") and done.stderr.count("\n") == 1
    not_a_capture = tmp_path / "text.kmem"
    not_a_capture.write_text("words")
    assert harness.kmemshim("check", not_a_capture, "--baseline", base).returncode == UNUSABLE
    assert harness.kmemshim("check", capture).returncode == USAGE


def test_every_session_of_a_folder_is_a_run(programs, tmp_path):
    folder, file = tmp_path / "all", tmp_path / "all.json"
    for _ in range(3):
        harness.kmemshim("run", "-o", folder, "--", programs("gate.c"))

    assert harness.kmemshim("baseline", folder, "-o", file).returncode == OK
    assert json.loads(file.read_text())["runs"] == 3
    assert "3 runs against 3" in harness.kmemshim("check", folder, "--baseline", file).stdout


def test_another_program_is_not_compared(programs, base, tmp_path):
    other = tmp_path / "other-program"
    shutil.copy(programs("gate.c"), other)
    harness.kmemshim("run", "-o", tmp_path / "other", "--", other)

    done = harness.kmemshim("check", tmp_path / "other", "--baseline", base)
    assert done.returncode == USAGE
    assert "measured other-program, the baseline is of " + programs("gate.c").name in done.stderr
    assert done.stderr.startswith("kmemshim:") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("fault", ["kill", "fail"])
def test_a_run_that_was_killed_or_failed_is_no_baseline(fault, measure, tmp_path):
    file = tmp_path / "bad.json"
    done = harness.kmemshim("baseline", measure(), measure(fault), "-o", file)

    assert done.returncode == BROKEN_RUN
    assert done.stderr.startswith("kmemshim:") and done.stderr.count("\n") == 1
    assert not file.exists()


@pytest.mark.parametrize("command", ["check", "baseline"])
def test_a_damaged_capture_is_no_measurement(measure, base, tmp_path, command):
    """One flipped bit among the stacks: a report is made from the rest and says so, a gate is not."""
    folder = measure()
    capture = next(folder.glob("*.kmem"))
    data = bytearray(capture.read_bytes())
    data[data.rindex(b"gate")] ^= 1  # in the path of the module that all stacks lead into
    capture.write_bytes(data)

    options = ["--baseline", base] if command == "check" else ["-o", tmp_path / "damaged.json"]
    done = harness.kmemshim(command, folder, *options)
    assert done.returncode == UNUSABLE, done.stdout
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("kmemshim: ")
    assert not (tmp_path / "damaged.json").exists()

    told = harness.kmemshim("report", folder)
    assert told.returncode == OK
    assert len(told.stderr.splitlines()) == 1 and "damaged" in told.stderr


def test_a_folder_with_an_older_run_is_told(measure, base, programs):
    folder = measure()
    quiet = harness.kmemshim("check", folder, "--baseline", base)
    harness.kmemshim("run", "-o", folder, "--", programs("gate.c"), "leak")
    told = harness.kmemshim("check", folder, "--baseline", base)

    assert quiet.stderr == "" and "holds 2 sessions" in told.stderr


LIMITED = """
#include <stdlib.h>
static void **rows;
static void load(int n) { rows = malloc(n * sizeof *rows); for (int i = 0; i < n; i++) rows[i] = malloc(100); }
static void session(void) { *(void *volatile *)malloc(20000) = rows; }
int main(int argc, char **argv) { load(atoi(argv[1])); for (int i = atoi(argv[2]); i > 0; i--) session(); return argc != 3; }
"""


@pytest.fixture
def limited(tmp_path, out):
    """Records a program with so many blocks of 100 bytes, then of 20,000, in so many KiB of addresses."""
    source = tmp_path / "limited.c"
    source.write_text(LIMITED)
    program = harness.compile_c(source, tmp_path / "limited", "-O0")

    def run(kib, *counts):
        done = harness.run(["bash", "-c", 'ulimit -v "$0"; exec "$@"', kib, harness.KMEMSHIM, "run", "-o", out, "--", program, *counts])
        assert done.returncode == 0, done.stderr
        return done.stderr

    return run


def test_a_limited_address_space_is_recorded_whole(limited):
    """The line that leaks comes after more blocks than a table of a few mebibytes holds."""
    text = limited("400000", "300000", "8000")

    assert "Losses: none" in text
    assert "limited.c:5 session" in text.split("Held at the peak")[1].splitlines()[2]


def test_a_run_without_room_for_its_blocks_is_no_measurement(limited, out, tmp_path):
    """Where there are too few addresses for a map of the heap, what is missing is said, and no gate takes it for less memory."""
    text = limited("150000", "800000", "0")
    file = tmp_path / "base.json"
    done = harness.kmemshim("baseline", out, "-o", file)

    assert "There was no room to record allocations of" in harness.unwrapped(text)
    assert done.returncode == UNUSABLE and len(done.stderr.splitlines()) == 1 and "no room" in done.stderr
    assert not file.exists()
    assert harness.kmemshim("baseline", out, "-o", file, "--salvage").returncode == OK


@pytest.mark.parametrize("want", ["disk", "budget"])
def test_lines_without_room_are_neither_a_baseline_nor_a_regression_unsaid(want, tmp_path):
    """Where the disk was full, names are lost too and nothing is compared; a budget leaves totals and the other lines."""
    script, disk, file = tmp_path / "many_lines.py", tmp_path / "disk", tmp_path / "base.json"
    script.write_text(harness.MANY_LINES)
    disk.mkdir()
    if want == "disk" and harness.run(["mount", "-t", "tmpfs", "-o", "size=300k", "none", disk]).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        harness.record([harness.find_python(), script], tmp_path / "good")
        harness.run([harness.find_python(), script], harness.shim_env(disk, KMEMSHIM_SITES="200" if want == "budget" else "100000"))
        assert harness.kmemshim("baseline", tmp_path / "good", "-o", file).stderr == ""
        check = harness.kmemshim("check", disk, "--baseline", file)
        baseline = harness.kmemshim("baseline", disk, "-o", tmp_path / "poor.json")
        salvaged = harness.kmemshim("check", disk, "--baseline", file, "--salvage")
        verdict = harness.unwrapped(harness.kmemshim("why", disk).stdout)
    finally:
        harness.run(["umount", disk])
    for done in (check, baseline, salvaged):
        assert "MiB of what was held is booked at callers or at an unknown place" in done.stderr, done.stderr
    assert (check.returncode, baseline.returncode, salvaged.returncode) == ((UNUSABLE, UNUSABLE, OK) if want == "disk" else (OK, OK, OK)), check
    assert "record it again with more room for stacks" in verdict
    if want == "budget":
        assert any("elsewhere_bytes" in domain for domain in json.loads((tmp_path / "poor.json").read_text())["domains"])
        again = harness.kmemshim("check", tmp_path / "good", "--baseline", tmp_path / "poor.json")
        assert again.returncode == OK, again.stdout
