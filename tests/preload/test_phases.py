"""Phases of whole programs: does each have its own peak, and does the process keep its own, whatever comes later?"""
import re
import signal
import subprocess

import pytest

from harness import BUILD, ROOT, ok, record, report, run, shim_env

KMEMSHIM = BUILD / "kmemshim"
MIB = 1 << 20

PHASES = """
import os, signal, subprocess, sys
sys.path.insert(0, %r)
import kmemshim
def highest():
    return bytearray(100 << 20)
def lower():
    return bytearray(40 << 20)
def kept():
    return bytearray(10 << 20)
highest()
first = kmemshim.phase()
lower()
second = kmemshim.phase()
block = kept()
third = kmemshim.phase()
lower()
print([(phase["heap"].live_bytes + (1 << 19) >> 20, phase["heap"].peak_bytes + (1 << 19) >> 20, phase["heap"].is_begun)
       for phase in (first, second, third)])
""" % str(ROOT / "python")


def lines_of(document, figure):
    """MiB of each function of the program's own."""
    return {line["where"]["function"]: round(line[figure] / MIB) for line in document["lines"]
            if line["where"] and line["where"]["file"].endswith("phases.py") and line[figure] >= 5 * MIB}


def check_process(out):
    document = report("peak", out)
    assert 100 * MIB < document["totals"]["heap"]["peak_bytes"] < 104 * MIB
    assert lines_of(document, "peak_bytes") == {"highest": 100}
    said = run([KMEMSHIM, "report", out]).stdout
    assert re.search(r"100 MiB .*phases.py:6 highest", said), said


def start(tmp_path, more=""):
    program = tmp_path / "phases.py"
    program.write_text(PHASES + more)
    return program


def test_a_phase_has_its_own_peak_and_the_process_keeps_its_own(tmp_path):
    done = ok(run(["/usr/bin/python3", start(tmp_path)], shim_env(tmp_path / "out")))
    base = eval(done.stdout)[0][0]  # what the interpreter holds
    assert eval(done.stdout) == [(base, base + 100, True), (base, base + 40, True), (base + 10, base + 10, True)]
    check_process(tmp_path / "out")
    phase = report("peak", tmp_path / "out", "--phase")
    assert lines_of(phase, "peak_bytes") == {"lower": 40, "kept": 10}
    assert 50 * MIB < phase["totals"]["heap"]["peak_bytes"] < 54 * MIB


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os._exit(3)", "os.abort()"])
def test_a_program_that_dies_in_a_phase_keeps_the_peak_of_its_life(end, tmp_path):
    done = run([KMEMSHIM, "run", "--quiet", "-o", tmp_path / "out", "--", "/usr/bin/python3", start(tmp_path, end + "\n")])
    assert done.returncode in (128 + signal.SIGKILL, 3, 128 + signal.SIGABRT)
    check_process(tmp_path / "out")
    why = run([KMEMSHIM, "why", tmp_path / "out"])
    assert why.returncode == 0 and "damaged" not in why.stderr


def test_a_phase_that_is_higher_than_all_before_is_the_peak_of_the_process(tmp_path):
    more = "def most():\n    return bytearray(200 << 20)\nmost()\nkmemshim.phase()\nlower()\n"
    ok(run(["/usr/bin/python3", start(tmp_path, more)], shim_env(tmp_path / "out")))
    assert lines_of(report("peak", tmp_path / "out"), "peak_bytes") == {"most": 200, "kept": 10}
    assert lines_of(report("peak", tmp_path / "out", "--phase"), "peak_bytes") == {"lower": 40, "kept": 10}


def test_a_running_program_is_asked_for_its_phase(tmp_path):
    program = start(tmp_path, "print('up', flush=True)\nsys.stdin.readline()\n")
    process = subprocess.Popen(["/usr/bin/python3", program], env=shim_env(tmp_path / "out"), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline().startswith("[(")
        assert process.stdout.readline() == "up\n"
        assert lines_of(report("peak", tmp_path / "out", "--phase"), "peak_bytes") == {"lower": 40, "kept": 10}
        assert lines_of(report("peak", tmp_path / "out"), "peak_bytes") == {"highest": 100}
    finally:
        process.communicate("\n", timeout=300)


def test_a_forked_child_has_phases_of_its_own(tmp_path):
    more = """
pid = os.fork()
if pid == 0:
    lower()
    inside = kmemshim.phase()
    lower()
    os._exit(0 if (40 << 20) < inside["heap"].peak_bytes < (44 << 20) else 1)
sys.exit(os.waitpid(pid, 0)[1])
"""
    ok(run(["/usr/bin/python3", start(tmp_path, more)], shim_env(tmp_path / "out")))


def test_without_the_recorder_there_are_no_phases(tmp_path):
    done = run(["/usr/bin/python3", "-c", f"import sys; sys.path.insert(0, {str(ROOT / 'python')!r})\n"
                "import kmemshim; print(kmemshim.phase())"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "None\n", "")


@pytest.mark.parametrize("compiler", [["gcc"], ["gcc", "-no-pie", "-fno-pie"], ["g++", "-x", "c++"]])
def test_a_program_in_c_has_phases(compiler, tmp_path):
    source = tmp_path / "phases.c"
    source.write_text("""
#include <stdio.h>
#include <stdlib.h>
#include "kmemshim.h"
static void *volatile kept;
int main(void)
{
	struct kmemshim_domain now[KMEMSHIM_DOMAINS];
	unsigned filled;
	kept = malloc(5000000); free(kept);
	filled = kmemshim_phase(now);
	if (filled == 0) { printf("not recorded\\n"); return 0; }
	printf("%u %llu %llu\\n", filled, now[KMEMSHIM_HEAP].peak_bytes / 1000000, now[KMEMSHIM_HEAP].is_begun);
	kept = malloc(2000000);
	if (kmemshim_usage(now) != filled || now[KMEMSHIM_HEAP].live_bytes < 2000000 || now[KMEMSHIM_HEAP].is_begun)
		return 1;
	kmemshim_phase(now);
	printf("%llu %llu\\n", now[KMEMSHIM_HEAP].live_bytes / 1000000, now[KMEMSHIM_HEAP].peak_bytes / 1000000);
	return 0;
}
""")
    program = tmp_path / "phases"
    ok(run([*compiler, "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", source, "-o", program]))
    assert run([program]).stdout == "not recorded\n"
    done = record([program], tmp_path / "out")
    assert done.stdout == "64 5 1\n2 2\n"
    assert report("peak", tmp_path / "out")["totals"]["heap"]["peak_bytes"] >= 5000000


MANY = """
import sys
sys.path.insert(0, %r)
import kmemshim
kept = []
for n in range(3000):
    kept.append(bytearray(2000))
    bytearray(500000 + n * 100)  # each phase is the highest so far
    kmemshim.phase()
""" % str(ROOT / "python")


def test_thousands_of_phases_leave_a_capture_of_the_same_size(tmp_path):
    program = tmp_path / "many.py"
    program.write_text(MANY)
    sizes = []
    for count in ("10", "3000"):
        out = tmp_path / count
        program.write_text(MANY.replace("3000", count))
        assert run(["/usr/bin/python3", program], shim_env(out)).returncode == 0
        sizes.append(sum(path.stat().st_size for path in out.glob("*.kmem")))
        report("peak", out)
    assert sizes[1] <= sizes[0] + (1 << 18), sizes
