"""Whole programs for aarch64 under qemu, with the library preloaded: is the line found, and do walks agree with libunwind?

For `make test-aarch64`, which builds what is needed. The command runs under qemu, too.
"""
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "aarch64"
SYSROOT = ROOT / "build" / "sysroot" / "aarch64"
QEMU = ["qemu-aarch64", "-L", SYSROOT]


def built(tmp_path, source, compiler="gcc", *options):
    file = tmp_path / ("program.c" if compiler == "gcc" else "program.cc")
    file.write_text(source)
    program = tmp_path / "program"
    subprocess.run([f"aarch64-linux-gnu-{compiler}", f"--sysroot={SYSROOT}", "-g", "-O1", "-pthread", *options, "-o", program, file], check=True)
    return program


def record(tmp_path, *command, options=(), **settings):
    """(the program's result, the report's text)"""
    out = tmp_path / "out"
    settings = {"LD_PRELOAD": BUILD / "libkmemshim.so", "KMEMSHIM_OUT": out, "KMEMSHIM_VERIFY": "1", **settings}
    environment = [word for name, value in settings.items() for word in ("-E", f"{name}={value}")]
    done = subprocess.run([*QEMU, *options, *environment, *command], capture_output=True, text=True, timeout=300,
                          env={"PATH": os.environ["PATH"]})
    if not out.exists():
        return done, ""
    report = subprocess.run([*QEMU, BUILD / "kmemshim", "report", out], capture_output=True, text=True, timeout=300)
    assert report.returncode == 0, report.stderr
    return done, report.stdout


def check_walks(report):
    """Every walk was made twice, and none was lost."""
    assert "Losses: none" in report, report
    assert re.search(r" [1-9][0-9,]* stacks were verified, 0 differed", report), report


LEAK = """
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
void *volatile last;
__attribute__((noinline)) static void *keep(size_t bytes) { void *p = malloc(bytes); memset(p, 1, bytes); return p; }
__attribute__((noinline)) static void grow(char *pad) { memset(pad, 1, 40); last = keep(100000 + pad[3]); }
static void *work(void *unused) { char pad[64]; for (int i = 0; i < 50; i++) grow(pad); return unused; }
int main(void) { pthread_t thread; work(0); pthread_create(&thread, 0, work, 0); pthread_join(thread, 0); return 0; }
"""


def test_a_leak_of_two_threads_is_found_with_its_callers(tmp_path):
    done, report = record(tmp_path, built(tmp_path, LEAK))

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert re.search(r"9\.5 MiB +100 % +9\.5 MiB +100 heap +program\.c:6 keep\n.*\n +from program\.c:7 grow\n", report), report
    check_walks(report)


def test_a_frame_of_20_kib_and_one_without_frame_pointer_are_walked(tmp_path):
    source = LEAK.replace("char pad[64]", "char pad[20000]")
    done, report = record(tmp_path, built(tmp_path, source, "gcc", "-fomit-frame-pointer", "-O2"))

    assert done.returncode == 0
    assert "from program.c:7 grow" in report and "from program.c:8 work" in report, report
    check_walks(report)


SIGNAL = """
#include <signal.h>
#include <stdlib.h>
void *volatile last;
static void handler(int number) { last = malloc(300000 + number); }
__attribute__((noinline)) static void leaf(void) { __asm__ volatile("mov x0, #0\\n str x0, [x0]" ::: "x0"); }
static void over(int number, siginfo_t *info, void *context)
{
	handler(number);
	((ucontext_t *)context)->uc_mcontext.pc += 4;
}
int main(void)
{
	struct sigaction action = { .sa_sigaction = over, .sa_flags = SA_SIGINFO };
	sigaction(SIGSEGV, &action, 0);
	for (int i = 0; i < 10; i++)
		leaf();
	return 0;
}
"""


def test_a_handler_that_interrupts_a_leaf_is_walked_to_main(tmp_path):
    """leaf() never stores its return address: it is in the link register that the signal found."""
    done, report = record(tmp_path, built(tmp_path, SIGNAL))

    assert done.returncode == 0
    block = report[report.index("program.c:5 handler"):]
    assert re.search(r"from program\.c:6 leaf\n +from program\.c:1\d main", block), report
    assert "Losses: none" in report  # libunwind cannot read the code that the handler returns to: qemu has no process_vm_readv()


NEW = """
int *volatile last;
__attribute__((noinline)) void grow() { last = new int[50000]; }
int main() { for (int i = 0; i < 40; i++) { grow(); int *volatile gone = new int[10]; delete[] gone; } }
"""


def test_operator_new_is_the_lines(tmp_path):
    done, report = record(tmp_path, built(tmp_path, NEW, "g++"))

    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"7\.6 MiB +99 % +7\.6 MiB +40 heap +program\.cc:3 grow\n", report), report
    check_walks(report)


def test_a_fork_is_recorded_on_its_own(tmp_path):
    source = LEAK.replace("work(0);", "if (fork() == 0) { work(0); return 7; } wait(0);").replace(
        "#include <string.h>", "#include <string.h>\n#include <unistd.h>\n#include <sys/wait.h>")
    done, _ = record(tmp_path, built(tmp_path, source))

    assert done.returncode == 0
    assert len(list((tmp_path / "out").glob("*.kmem"))) == 2


def test_a_line_of_python_is_found(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("kept = []\ndef grow():\n    kept.append(bytearray(3_000_000))\nfor i in range(20):\n    grow()\nprint(len(kept))\n")
    python = next((SYSROOT / "usr" / "bin").glob("python3.*"))
    done, report = record(tmp_path, python, program, PYTHONHOME=SYSROOT / "usr")

    assert (done.returncode, done.stdout, done.stderr) == (0, "20\n", "")
    assert re.search(r"57\.2 MiB +\d+ % +57\.2 MiB +20 heap +program\.py:3 grow", report), report
    assert "from program.py:5 <module>" in report
    assert "Losses: none" in report


@pytest.mark.parametrize("page_bytes", [16384, 65536])
def test_larger_pages_are_refused_in_one_line(tmp_path, page_bytes):
    done, report = record(tmp_path, built(tmp_path, "#include <stdio.h>\nint main(void) { puts(\"ran\"); return 3; }\n"),
                          options=["-p", str(page_bytes)])

    assert (done.returncode, done.stdout, report) == (3, "ran\n", "")
    assert done.stderr == (f"kmemshim: this kernel has pages of {page_bytes} bytes, and kmemshim knows those of 4096: "
                           "nothing is recorded; record on a kernel with 4 KiB pages\n")
