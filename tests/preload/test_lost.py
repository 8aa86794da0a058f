"""kmemshim lost: what nothing leads to any more, beside what a leak sanitizer says of the same programs; and the program goes on."""
import collections
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import harness
from harness import HERE, KMEMSHIM, compile_c, kmemshim, plain_env, run, shim_env

SANITIZER = ("-fsanitize=leak", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
COMPILERS = {"lost.c": ("gcc", ()), "lost.cc": ("g++", ("-std=gnu++17",))}
# In front of programs that are compiled here.
WAITS = """
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#define WAIT(is_as_it_was) (puts("ready"), fflush(stdout), getchar() == 'x' && (is_as_it_was) ? 0 : 3)
"""
LARGE = """
static void **kept;
int main(void)
{
    size_t count = %d;
    kept = malloc(count * sizeof(*kept));
    for (size_t i = 0; i < count; i++)
        kept[i] = &kept[i * 4099 %% count];
    return WAIT(kept[1] != 0);
}
"""
WIDE = """
struct node { struct node *next; };
static struct node **kept;
int main(void)
{
    size_t count = 700000; /* more than the list of reachability.c has room for */
    kept = malloc(count * sizeof(*kept));
    for (size_t i = 0; i < count; i++) {
        kept[i] = calloc(1, sizeof(struct node));
        kept[i]->next = calloc(1, sizeof(struct node));
    }
    return WAIT(kept[1] != 0);
}
"""
CHANCE = """
static volatile uintptr_t numbers[12];
__attribute__((noinline)) static uintptr_t few(void) { return (uintptr_t)memset(malloc(100), 1, 100); }
__attribute__((noinline)) static uintptr_t many(void) { return (uintptr_t)memset(malloc(100), 1, 100); }
int main(void)
{
    for (int i = 0; i < 100; i++)
        numbers[0] = few();
    for (int i = 0; i < 100; i++)
        numbers[1 + i % 10] = many();
    return WAIT(numbers[0] != 0);
}
"""
TRACE = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long] * 4
assert libc.ptrace(0x4206, int(sys.argv[1]), 0, 0) == 0  # PTRACE_SEIZE
print("ready", flush=True)
sys.stdin.read()
"""
# seccomp: ptrace (101) fails with EPERM, all else is allowed.
FORBID = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
rows = [(0x20, 0, 0, 0), (0x15, 0, 1, 101), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(rows), ctypes.addressof(code))), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""


class Waiting:
    """A recorded program that has said that it is ready and waits for a word."""

    def __init__(self, program, out, **more):
        words = [str(word) for word in (program if isinstance(program, list) else [program])]
        self.process = subprocess.Popen(words, env={name: str(value) for name, value in shim_env(out, **more).items()},
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        assert self.process.stdout.readline() == "ready\n"
        harness.wait_for(lambda: not self.is_running())  # it has still to take what reading needs
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    @property
    def pid(self):
        return self.process.pid

    def is_running(self):
        try:
            return any("State:\tR" in status.read_text() for status in Path(f"/proc/{self.pid}/task").glob("*/status"))
        except OSError:  # a thread that has just ended
            return True

    def status(self, field):
        with open(f"/proc/{self.pid}/status") as status:
            return next(line.split()[1] for line in status if line.startswith(field + ":"))

    def answers(self):
        """It goes on: it reads the word and ends as it does otherwise."""
        assert self.status("TracerPid") == "0"
        self.process.communicate("x\n", timeout=harness.TIMEOUT)
        return self.process.returncode == 0


def build(folder, source, *flags):
    compiler, standard = COMPILERS[source]
    harness.ok(run([compiler, *standard, "-D_GNU_SOURCE", "-g", "-O1", "-pthread", *flags, HERE / source, "-o", folder / "program"]))
    return folder / "program"


def of_text(folder, text):
    source = folder / "program.c"
    source.write_text(WAITS + text)
    return compile_c(source, folder / "program")


STOP = ("--stop", "60s")  # a machine that tests is busy


def lost(pid):
    done = harness.ok(kmemshim("lost", pid, "--json", *STOP))
    document = json.loads(done.stdout)
    harness.validate(document, "lost")
    return document


def by_line(document, kind):
    return {(line["function"].split("(")[0], line["line"]): (line[kind + "_bytes"], line[kind + "_blocks"])
            for line in document["lines"] if line[kind + "_blocks"]}


def of_sanitizer(folder, source):
    """{kind: {(function, line): (bytes, blocks)}}: the first frame of the program's own file that is no helper."""
    done = run([build(folder, source, *SANITIZER), "end"], plain_env(LSAN_OPTIONS="exitcode=23:fast_unwind_on_malloc=1"))
    if "LeakSanitizer has encountered a fatal error" in done.stderr:
        pytest.skip("the leak sanitizer may not trace here")
    assert done.returncode == 23, done.stderr
    sums = {"direct": collections.defaultdict(lambda: (0, 0)), "indirect": collections.defaultdict(lambda: (0, 0))}
    for kind, size, count, stack in re.findall(r"(Direct|Indirect) leak of (\d+) byte\(s\) in (\d+) object\(s\).*?\n(.*?)\n\n",
                                               done.stderr + "\n\n", flags=re.DOTALL):
        frames = re.findall(r"in (?!fresh)(\w+).* \S*/" + re.escape(source) + r":(\d+)", stack)
        place = (frames[0][0], int(frames[0][1]))
        was = sums[kind.lower()][place]
        sums[kind.lower()][place] = (was[0] + int(size), was[1] + int(count))
    return {kind: dict(of_lines) for kind, of_lines in sums.items()}


def test_R1_R2_R3_R4_a_program_in_c_loses_what_a_leak_sanitizer_says(tmp_path):
    (tmp_path / "sanitized").mkdir()
    theirs = of_sanitizer(tmp_path / "sanitized", "lost.c")
    with Waiting(build(tmp_path, "lost.c"), tmp_path / "out") as program:
        ours = lost(program.pid)
        assert program.answers()
    direct, indirect = by_line(ours, "direct"), by_line(ours, "indirect")
    first, other = sorted(place for place in theirs["indirect"] if place[0] == "lose_circle")
    # Of a circle that sanitizer calls all blocks indirect; it does not look into mappings.
    assert theirs["indirect"].pop(first) == theirs["indirect"].pop(other) == (1280, 20)
    assert sum(table.pop(place, (0, 0))[1] for table in (direct, indirect) for place in (first, other)) == 40
    kept = [place for place in theirs["direct"] if place[0] == "keep"]
    assert [theirs["direct"].pop(place) for place in kept] == [(4003, 1)]
    assert direct == theirs["direct"] and indirect == theirs["indirect"]
    assert ours["all"]["direct_blocks"] == 146 and ours["all"]["indirect_blocks"] == 220
    reachable = {size for place, (size, _) in by_line(ours, "reachable").items() if place[0] in ("keep", "wait_with_block")}
    assert reachable == {4000, 4001, 4002, 4003, 4004, 4005}
    assert any(line["reachable_bytes"] == 4006 for line in ours["lines"])


def test_objects_of_cpp_that_are_lost_are_what_a_leak_sanitizer_says(tmp_path):
    (tmp_path / "sanitized").mkdir()
    theirs = of_sanitizer(tmp_path / "sanitized", "lost.cc")
    with Waiting(build(tmp_path, "lost.cc"), tmp_path / "out") as program:
        ours = lost(program.pid)
        assert program.answers()
    functions = {"direct": collections.Counter(), "indirect": collections.Counter()}
    wanted = {"direct": collections.Counter(), "indirect": collections.Counter()}
    for kind in functions:
        for (function, _), (size, _) in by_line(ours, kind).items():
            functions[kind][function] += size
        for (function, _), (size, _) in theirs[kind].items():
            wanted[kind][function] += size
    # The root of a map's tree leads back to the map: a circle, of which that sanitizer calls all blocks indirect.
    assert wanted["indirect"].pop("lose_map") == 5 * (48 + 50 * 48)
    assert functions["direct"].pop("lose_map") + functions["indirect"].pop("lose_map") == 5 * (48 + 50 * 48)
    assert functions == wanted
    assert set(wanted["direct"]) == {"lose_vector", "lose_array"} and set(wanted["indirect"]) == {"lose_vector"}
    kept = sum(line["reachable_bytes"] for line in ours["lines"] if line["function"].startswith("keep"))
    assert kept >= 20 * (500 * 4 + 24) + 20 * 80


def test_R5_more_reachable_blocks_than_the_list_has_room_for(tmp_path):
    with Waiting(of_text(tmp_path, WIDE), tmp_path / "out") as program:
        found = lost(program.pid)["all"]
        assert program.answers()
    assert found["direct_blocks"] == found["indirect_blocks"] == 0
    assert found["reachable_blocks"] >= 1400001


def test_the_text_says_how_much_and_where(tmp_path):
    with Waiting(build(tmp_path, "lost.c"), tmp_path / "out") as program:
        done = kmemshim("lost", program.pid, *STOP)
        cut = kmemshim("lost", program.pid, "--top", "2", *STOP)
        assert program.answers()
    assert done.returncode == 0, done.stderr
    assert f"process {program.pid} has lost 447 KiB in 366 blocks" in done.stdout
    assert re.search(r"^ *293 KiB +0 B +1 +0 B  lost\.c:\d+ lose_large$", done.stdout, flags=re.MULTILINE)
    assert re.search(r"^the program stood still for \d+\.\d{3} s", done.stdout, flags=re.MULTILINE)
    assert re.search(r"^and 5 more lines \(--top\)$", cut.stdout, flags=re.MULTILINE)


def test_a_number_that_looks_like_a_pointer_is_told_as_chance(tmp_path):
    (tmp_path / "chance.c").write_text(WAITS + CHANCE)
    assert run(["gcc", "-g", "-O1", tmp_path / "chance.c", "-o", tmp_path / "chance"]).returncode == 0
    with Waiting(tmp_path / "chance", tmp_path / "out") as program:
        done = kmemshim("lost", program.pid, *STOP)
        assert program.answers()
    rows = dict(re.findall(r"(\S+ B)  chance\.c:\d+ (\w+.*)$", done.stdout, flags=re.MULTILINE))
    assert rows == {"100 B": "few", "1000 B": "many"}, done.stdout
    assert re.search(r" few\n +some reachable by chance\?\n", done.stdout) and done.stdout.count("by chance") == 1, done.stdout


@pytest.mark.parametrize("words, status, said", [
    ((), 2, "lost"),
    (("12x",), 2, "is not a process: give the number of one"),
    (("0",), 2, "is not a process: give the number of one"),
    (("4194999",), 2, "process 4194999 is gone"),
    (("1", "--stop", "soon"), 2, "--stop"),
    (("1", "--stop", "0s"), 2, "--stop"),
])
def test_wrong_words(words, status, said):
    done = kmemshim("lost", *words)
    assert done.returncode == status and said in done.stderr


def test_a_process_that_is_not_recorded():
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=plain_env())
    try:
        done = kmemshim("lost", other.pid)
        assert done.returncode == 2 and done.stderr.endswith(f"process {other.pid} is not recorded: start it with kmemshim run\n")
    finally:
        other.communicate()


def test_out_of_time(tmp_path):
    with Waiting(of_text(tmp_path, LARGE % (16 << 20)), tmp_path / "out") as program:
        done = kmemshim("lost", program.pid, "--stop", "1ms")
        assert program.answers()
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert re.search(r"stood still for .* allow more with --stop|did not stop in time", done.stderr)


def test_traced_by_another_one(tmp_path):
    with Waiting(build(tmp_path, "lost.c"), tmp_path / "out") as program:
        other = subprocess.Popen([sys.executable, "-c", TRACE, str(program.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if other.stdout.readline() != "ready\n":
            pytest.skip("ptrace is not allowed here")
        done = kmemshim("lost", program.pid)
        other.communicate()
        assert program.answers()
    assert done.returncode == 2
    assert done.stderr == (f"kmemshim: lost: process {program.pid} is traced by process {other.pid} already, perhaps a debugger: "
                           "end that first\n")


def test_ptrace_forbidden(tmp_path):
    with Waiting(build(tmp_path, "lost.c"), tmp_path / "out") as program:
        done = run([sys.executable, "-c", FORBID, KMEMSHIM, "lost", program.pid])
        assert program.answers()
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert f"process {program.pid} may not be looked at (ptrace: EPERM)" in done.stderr


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda end: end.name)
def test_a_looker_that_is_killed_lets_the_program_go_on(tmp_path, end):
    caught, tries = 0, harness.tries()
    with Waiting(of_text(tmp_path, LARGE % (32 << 20)), tmp_path / "out") as program:
        while caught < 3:  # on a busy machine a look may be over before
            next(tries)
            looker = subprocess.Popen([KMEMSHIM, "lost", str(program.pid), *STOP], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while looker.poll() is None and program.status("State") != "t":
                pass  # the moment is short
            looker.send_signal(end)
            caught += looker.wait() == -end
            harness.wait_for(lambda: program.status("State") == "S" and program.status("TracerPid") == "0")
        assert program.answers()


@pytest.mark.parametrize("command", ["lost", "holders"])
def test_a_program_that_is_killed_while_it_stands_still_is_told_so(command, tmp_path):
    """Its memory is gone: what was not read yet would be taken for no pointers, and what they lead to for lost."""
    with Waiting(of_text(tmp_path, LARGE % (16 << 20)), tmp_path / "out") as waiting:
        with subprocess.Popen([KMEMSHIM, command, str(waiting.pid), *STOP], env=plain_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as look:
            while "TracerPid:\t0\n" in open(f"/proc/{waiting.pid}/status").read():
                assert look.poll() is None
            waiting.process.kill()
            said, why = look.communicate()
    assert (look.returncode, said) == (2, "")
    assert re.fullmatch(rf"kmemshim: {command}: process {waiting.pid} (was killed while it stood still|is gone)\n", why), why


@pytest.mark.parametrize("command", ["lost", "holders"])
def test_a_program_that_is_killed_at_any_moment_of_a_look_is_told_so(command, tmp_path):
    """Also before the recorder's tables were found: they are not those of another version."""
    rng, program, killed, looks, tries = harness.seeded_random(), of_text(tmp_path, LARGE % (1 << 20)), 0, 0, harness.tries()
    while looks < 10 or killed < 3:  # on a busy machine most looks are over before
        next(tries)
        looks += 1
        with Waiting(program, tmp_path / "out") as waiting:
            with subprocess.Popen([KMEMSHIM, command, str(waiting.pid), *STOP], env=plain_env(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as look:
                while waiting.status("TracerPid") == "0" and look.poll() is None:
                    pass
                time.sleep(rng.random() ** 2 / 100)
                waiting.process.kill()
                why = look.communicate()[1]
        killed += look.returncode != 0
        assert look.returncode == 0 or re.fullmatch(rf"kmemshim: {command}: process {waiting.pid} (was killed while it stood still|is gone)\n", why), why


# ---- at the exit ----

STOPS = """
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
static void *end(void *of_thread)
{
    void *volatile kept = malloc(4321);
    (void)of_thread;
    raise(SIGUSR1);
    exit(kept != NULL ? 6 : 0); /* while the first thread waits, with a block on its stack */
}
static void nothing(int number) { (void)number; }
int main(void)
{
    pthread_t thread;
    void *volatile of_main = malloc(5432);
    signal(SIGUSR1, nothing);
    pthread_create(&thread, NULL, end, NULL);
    pthread_join(thread, NULL);
    return of_main != NULL;
}
"""


def at_exit(folder, *words):
    return kmemshim("lost", "--at-exit", *STOP, "-o", folder / "out", *words)


def test_at_exit_it_is_what_a_leak_sanitizer_says(tmp_path):
    (tmp_path / "sanitized").mkdir()
    theirs = of_sanitizer(tmp_path / "sanitized", "lost.c")
    done = at_exit(tmp_path, "--json", "--", build(tmp_path, "lost.c"), "end")
    assert done.returncode == 0, done.stderr
    ours = json.loads(done.stdout)
    harness.validate(ours, "lost")
    direct, indirect = by_line(ours, "direct"), by_line(ours, "indirect")
    first, other = sorted(place for place in theirs["indirect"] if place[0] == "lose_circle")
    for kind in theirs.values():  # see above
        for place in list(kind):
            if place in (first, other) or place[0] == "keep":
                del kind[place]
    assert sum(table.pop(place, (0, 0))[1] for table in (direct, indirect) for place in (first, other)) == 40
    assert direct == theirs["direct"] and indirect == theirs["indirect"]


@pytest.mark.parametrize("code, status", [("print('said'); raise SystemExit(5)", 5), ("import os; print('said', flush=True); os.abort()", 134)])
def test_at_exit_the_status_is_the_programs_and_its_output_is_beside(code, status, tmp_path):
    done = at_exit(tmp_path, "--", sys.executable, "-c", code)
    assert done.returncode == status and "said" in done.stderr and "said" not in done.stdout
    assert re.match(r"process \d+ has lost ", done.stdout)


def test_at_exit_signals_reach_it_and_a_thread_may_end_it(tmp_path):
    done = at_exit(tmp_path, "--json", "--", of_text(tmp_path, STOPS))
    assert done.returncode == 6, done.stderr
    lines = json.loads(done.stdout)["lines"]
    assert sum(line["reachable_bytes"] for line in lines) >= 4321 + 5432  # stacks of threads that are about to end count
    assert not any(line["direct_blocks"] + line["indirect_blocks"] for line in lines)


def test_at_exit_a_program_that_stops_waits_until_it_is_continued(tmp_path):
    look = subprocess.Popen([KMEMSHIM, "lost", "--at-exit", *STOP, "-o", tmp_path / "out", "--", sys.executable, "-c",
                             "import os, signal; print(os.getpid(), flush=True); os.kill(os.getpid(), signal.SIGSTOP); print('went on')"],
                            env=plain_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    pid = int(look.stderr.readline())
    harness.wait_for(lambda: re.search("State:\t[tT]", open(f"/proc/{pid}/status").read()))
    os.kill(pid, signal.SIGCONT)
    out, err = look.communicate(timeout=harness.TIMEOUT)
    assert look.returncode == 0 and "went on" in err and out.startswith(f"process {pid} has lost ")


@pytest.mark.parametrize("words, said", [
    (("--at-exit",), "give the number of a process, or --at-exit -- and a program"),
    (("--at-exit", "12"), "give the number of a process, or --at-exit -- and a program"),
    (("--at-exit", "--", "/nothing/here"), "/nothing/here: cannot be run: No such file or directory"),
])
def test_at_exit_wrong_words(words, said):
    done = kmemshim("lost", *words)
    assert done.returncode == 2 and done.stdout == "" and said in done.stderr


def test_at_exit_where_ptrace_is_forbidden(tmp_path):
    done = run([sys.executable, "-c", FORBID, KMEMSHIM, "lost", "--at-exit", "-o", tmp_path / "out", "--", "true"])
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "true may not be watched (ptrace: EPERM)" in done.stderr
