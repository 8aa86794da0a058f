"""baseline and check: a verdict for CI, with exit codes that tell regressions from broken runs."""
import glob
import json
import os
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

    done = harness.kmemshim("baseline", measure(), measure(), measure(), "-o", file)
    assert (done.returncode, done.stdout, done.stderr) == (OK, "", f"kmemshim: written: {file}, from 3 runs\n")
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
    assert "3 runs against 3" in harness.kmemshim("check", folder, "--baseline", file, "--runs", "all").stdout
    assert "2 runs against 3" in harness.kmemshim("check", folder, "--baseline", file, "--runs", "2").stdout


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


def test_an_older_run_in_the_folder_hides_no_leak_and_is_told(measure, base, programs):
    """A workspace that was kept, or a second try: the least of both would be the good one."""
    folder = measure()
    quiet = harness.kmemshim("check", folder, "--baseline", base)
    harness.kmemshim("run", "-o", folder, "--", programs("gate.c"), "leak")
    told = harness.kmemshim("check", folder, "--baseline", base)
    both = harness.kmemshim("check", folder, "--baseline", base, "--runs", "all")

    assert quiet.stderr == "" and quiet.returncode == OK
    assert told.returncode == REGRESSION and "has 2 sessions; the newest is used" in told.stderr
    assert both.returncode == OK and "each of them a run" in both.stderr


def test_another_name_of_the_program_can_be_allowed(programs, measure, base, tmp_path):
    """A binary that carries its commit in its name."""
    other = tmp_path / "gate-1a2b3c4"
    shutil.copy(programs("gate.c"), other)
    harness.kmemshim("run", "-o", tmp_path / "good", "--", other)
    harness.kmemshim("run", "-o", tmp_path / "bad", "--", other, "leak")
    codes = {allowed: harness.kmemshim("check", tmp_path / "good", "--baseline", base, "--program", allowed).returncode
             for allowed in ("gate-1a2b3c4", "gate-*", "any", "bench-*")}

    assert codes == {"gate-1a2b3c4": OK, "gate-*": OK, "any": OK, "bench-*": USAGE}
    assert harness.kmemshim("check", tmp_path / "bad", "--baseline", base, "--program", "gate-*").returncode == REGRESSION


def test_under_another_name_its_lines_are_the_same(programs, measure, tmp_path):
    """What leaks in the baseline as well is no new leak: lines of the program do not depend on its name."""
    other = tmp_path / "gate-1a2b3c4"
    shutil.copy(programs("gate.c"), other)
    harness.kmemshim("run", "-o", tmp_path / "other", "--", other, "leak")
    base = tmp_path / "leaking.json"
    assert harness.kmemshim("baseline", measure("leak"), "-o", base).returncode == 0
    done = harness.kmemshim("check", tmp_path / "other", "--baseline", base, "--program", "gate-*")

    assert done.returncode == OK and "is compared with" not in done.stdout, done.stdout


COMPREHENSIONS = """
class Table:
    def load(self):
        self.rows = [bytearray(20000) for i in range(100)]
        self.names = {str(i): bytearray(10000) for i in range(100)}
kept = []
def step(i):
    kept.append(bytearray(700))
table = Table()
table.load()
everywhere = [bytearray(30000) for i in range(40)]
import sys
for i in range(3000 if len(sys.argv) > 1 else 0):
    step(i)
"""


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_comprehensions_keep_their_lines_in_all_versions_of_python(version, tmp_path):
    """From 3.12 on they are no functions of their own: what is in them is as old as it was."""
    found = {name: sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/{name}.*/bin/python3"))) for name in ("3.11", "3.12", "3.13")}
    if not found[version]:
        pytest.skip(f"no Python {version} on this machine")
    script, base = tmp_path / "app.py", tmp_path / "base.json"
    script.write_text(COMPREHENSIONS)
    for name, *words in (("good",), ("bad", "leak")):
        harness.record([found["3.11" if name == "good" else version][-1], script, *words], tmp_path / name)
    harness.record([found[version][-1], script], tmp_path / "same")
    assert harness.kmemshim("baseline", tmp_path / "good", "-o", base).returncode == OK
    same = harness.kmemshim("check", tmp_path / "same", "--baseline", base, "--abs", "200k", "--any-platform")
    done = harness.kmemshim("check", tmp_path / "bad", "--baseline", base, "--abs", "200k", "--any-platform")

    assert not [line for line in same.stdout.splitlines() if line.startswith("FAIL") and "app.py" in line], same.stdout
    assert done.returncode == REGRESSION
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL") and "heap" in line]
    assert failed and all("app.py:8 step" in line for line in failed), done.stdout


RENAMED = """
#include <stdlib.h>
#include <string.h>
static void **rows, **more;
static __attribute__((noinline)) void **LOAD(int n) {
	void **all = malloc(n * sizeof *all);
	for (int i = 0; i < n; i++) all[i] = malloc(1000 + i % 7);
	return all;
}
static __attribute__((noinline)) void SETUP(int n) { rows = LOAD(n); *(volatile char *)rows = 0; }
static __attribute__((noinline)) void serve(int i) { free(memset(malloc(3000 + i % 99), 1, 100)); }
static __attribute__((noinline)) void leak(int n) { more[n] = malloc(1000); }
int main(int argc, char **argv) {
	int leaks = argc > 2 ? atoi(argv[2]) : 0;
	more = calloc(20000, sizeof *more);
	SETUP(atoi(argv[1]));
	for (int i = 0; i < 20000; i++) {
		serve(i);
		if (i < leaks) leak(i);
	}
	return 0;
}
"""


@pytest.fixture
def tables(tmp_path):
    """Builds and runs a program of which functions can have other names; returns the capture folder."""
    source = tmp_path / "tables.c"
    source.write_text(RENAMED)

    def run(name, *words, load="load_table", setup="setup"):
        (tmp_path / name).mkdir()
        program = harness.compile_c(source, tmp_path / name / "tables", f"-DLOAD={load}", f"-DSETUP={setup}")
        assert harness.record([program, *words], tmp_path / name / "out").returncode == 0
        return tmp_path / name / "out"

    return run


def test_a_function_that_was_renamed_and_holds_the_same_is_no_leak(tables, tmp_path):
    base = tmp_path / "base.json"
    harness.kmemshim("baseline", tables("base", "11000"), "-o", base)
    done = {name: harness.kmemshim("check", tables(name, "11000", **names), "--baseline", base, "--format", f"text,junit={tmp_path / name}.xml")
            for name, names in (("function", {"load": "read_table"}), ("caller", {"setup": "prepare"}))}

    for name, old, new in (("function", "load_table", "read_table"), ("caller", "load_table", "load_table")):
        assert done[name].returncode == OK, done[name].stdout
        note = [line for line in done[name].stdout.splitlines() if line.startswith("note:")]
        assert len(note) == 1 and f"tables.c:7 {new} is compared with tables.c:7 {old} of the baseline" in note[0], done[name].stdout
        assert not list(xml.etree.ElementTree.parse(f"{tmp_path / name}.xml").getroot().iter("failure"))


def test_a_renamed_function_hides_no_leak(tables, tmp_path):
    """One that leaks more, and another one that leaks beside it."""
    base = tmp_path / "base.json"
    harness.kmemshim("baseline", tables("base", "11000"), "-o", base)
    grown = harness.kmemshim("check", tables("grown", "14000", load="read_table"), "--baseline", base)
    beside = harness.kmemshim("check", tables("beside", "11000", "11000", load="read_table"), "--baseline", base)
    kept = harness.kmemshim("check", tables("kept", "11000", "11000"), "--baseline", base)

    assert grown.returncode == REGRESSION and "tables.c:7 read_table" in grown.stdout
    for done in (beside, kept):
        assert done.returncode == REGRESSION
        assert [line for line in done.stdout.splitlines() if line.startswith("FAIL") and "tables.c:12 leak" in line], done.stdout


SUITE = """
import random, sys
random.seed(7)
kept, keeps = [], sys.argv[1:] == ["leak"]
def service():
    if keeps:
        kept.append(bytearray(600))
def test_service():
    for i in range(20):
        service()
    data = [bytearray(random.randrange(600, 4000)) for i in range(50)]
def table():
    return [bytearray(600) for i in range(4000)]
start = [bytearray(1 << 20) for i in range(60)]
rows = table() if sys.argv[1:] == ["table"] else []
for i in range(200):
    test_service()
for i in range(20):
    big = [bytearray(1 << 20) for i in range(20)]
    del big
"""


def test_what_tests_kept_is_a_rule_of_its_own_when_a_large_one_follows(tmp_path):
    """By the end it grows no more. The total would allow as much; a table that is loaded at one go is left to that."""
    script, base = tmp_path / "suite.py", tmp_path / "base.json"
    script.write_text(SUITE)
    python = harness.find_python()
    for name in ("good", "leak", "table"):
        harness.record([python, script, name], tmp_path / name)
    harness.kmemshim("baseline", tmp_path / "good", "-o", base)
    leak = harness.kmemshim("check", tmp_path / "leak", "--baseline", base, "--format", f"text,junit={tmp_path / 'junit.xml'}")
    table = harness.kmemshim("check", tmp_path / "table", "--baseline", base)
    classes = {harness.place(site): site["leak"]["class"] for site in reversed(harness.report("leaks", tmp_path / "leak")["sites"])}  # the largest of a line
    case = next(case for case in xml.etree.ElementTree.parse(tmp_path / "junit.xml").getroot().iter("testcase") if case.get("name") == "lines")

    assert classes["suite.py:7"] == "steady"
    assert leak.returncode == REGRESSION
    failed = [line for line in leak.stdout.splitlines() if line.startswith("FAIL")]
    assert len(failed) == 1 and failed[0].startswith("FAIL  grown") and "suite.py:7 service" in failed[0], leak.stdout
    assert case.get("line") == "7" and case.get("file").endswith("suite.py") and "suite.py:7 service" in case.find("failure").text
    assert table.returncode == OK, table.stdout


def test_a_failed_total_names_file_and_line_in_junit(measure, base, tmp_path):
    harness.kmemshim("check", measure("peak"), "--baseline", base, "--format", f"junit={tmp_path / 'junit.xml'}")
    case = next(case for case in xml.etree.ElementTree.parse(tmp_path / "junit.xml").getroot().iter("testcase") if case.get("name") == "peak heap")

    assert case.get("file").endswith("gate.c") and int(case.get("line")) == int(line_of("return calloc(").split(":")[1])
    assert "gate.c" in case.find("failure").get("message")
    assert case.find("failure").text.startswith(case.find("failure").get("message") + "\nrepeat: kmemshim run -o again -- ")


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
        done = harness.ok(harness.run(["bash", "-c", 'ulimit -v "$0"; exec "$@"', kib, harness.KMEMSHIM, "run", "-o", out, "--", program, *counts]))
        return done.stderr

    return run


def test_a_limited_address_space_is_recorded_whole(limited, out):
    """The line that leaks comes after more blocks than a table of a few mebibytes holds."""
    assert "Not all was recorded" not in limited("400000", "300000", "8000")
    text = harness.kmemshim("report", out).stdout

    assert "Losses: none" in text
    assert "limited.c:5 session" in text.split("Held at the peak")[1].splitlines()[2]


def test_a_run_without_room_for_its_blocks_is_no_measurement(limited, out, tmp_path):
    """Where there are too few addresses for a map of the heap, what is missing is said, and no gate takes it for less memory."""
    text = limited("150000", "800000", "0")
    file = tmp_path / "base.json"
    done = harness.kmemshim("baseline", out, "-o", file)

    assert "There was no room to record allocations of" in harness.unwrapped(text)
    assert "Not all was recorded: the report says under Losses what is missing." in harness.unwrapped(text)
    assert done.returncode == UNUSABLE and len(done.stderr.splitlines()) == 1 and "for lack of room" in done.stderr
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
        harness.run([harness.find_python(), script], harness.shim_env(disk, KMEMSHIM_SITES_MAX="200" if want == "budget" else "100000"))
        assert harness.kmemshim("baseline", tmp_path / "good", "-o", file).stderr.startswith("kmemshim: written: ")
        check = harness.kmemshim("check", disk, "--baseline", file)
        baseline = harness.kmemshim("baseline", disk, "-o", tmp_path / "poor.json")
        salvaged = harness.kmemshim("check", disk, "--baseline", file, "--salvage")
        verdict = harness.unwrapped(harness.kmemshim("why", disk).stdout)
    finally:
        harness.run(["umount", disk])
    for done in (check, baseline, salvaged):
        assert "MiB is counted at callers or at an unknown place" in done.stderr, done.stderr
    assert (check.returncode, baseline.returncode, salvaged.returncode) == ((UNUSABLE, UNUSABLE, OK) if want == "disk" else (OK, OK, OK)), check
    assert "record it again with more room for stacks" in verdict
    if want == "budget":
        assert any("elsewhere_bytes" in domain for domain in json.loads((tmp_path / "poor.json").read_text())["domains"])
        again = harness.kmemshim("check", tmp_path / "good", "--baseline", tmp_path / "poor.json")
        assert again.returncode == OK, again.stdout


def test_a_file_that_is_no_baseline_is_replaced_with_force_alone(base, measure, tmp_path):
    run, other = measure(), tmp_path / "notes.json"
    other.write_text('{"mine": 1}\n')
    refused = harness.kmemshim("baseline", run, "-o", other)
    assert refused.returncode == 2 and refused.stderr == f"kmemshim: {other}: is there already: give --force to replace it\n"
    assert other.read_text() == '{"mine": 1}\n'
    for options in ((base,), (other, "--force"), (other,)):
        assert harness.kmemshim("baseline", run, "-o", *options).returncode == OK
