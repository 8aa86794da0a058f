"""
The guard before the limit, under a real memory cgroup: a program that grows stops before the kernel kills it, with what it held, and the
report says what that was. Where it cannot be stopped, the state of that moment is there all the same.
"""
import re
import signal
import subprocess
import sys

import pytest

import harness
from growing import GROWING

pytestmark = pytest.mark.usefixtures("as_users_run_it")

LIMIT = 192 << 20
PYTHON = harness.find_python()

# What a cell is: compiled on its own, with what it leaves in a namespace that outlives it.
PROGRAM = """
import sys
class Item:
    def __init__(self): self.name, self.data = "item", list(range(20))
kept = []
space = {"kept": kept, "Item": Item, "sys": sys}
try:
    exec(compile(sys.argv[1], "<cell>", "exec"), space)
except KeyboardInterrupt:
    held = len(kept)
    print("stopped", held > 0, flush=True)
    kept.clear()
else:
    print("went on")
"""


def run_limited(group, argv, out, **more):
    words = ["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec env LD_PRELOAD="$SHIM" "$@"', group, *argv]
    env = harness.shim_env(out, **more)
    env["SHIM"] = str(env.pop("LD_PRELOAD"))
    return harness.run(words, env)


def limited_guard(argv, out, action, share="90%", **more):
    with harness.memory_group(LIMIT) as group:
        return run_limited(group, argv, out, KMEMSHIM_GUARD=share, KMEMSHIM_GUARD_ACTION=action, **more)


def told(text):
    """The figure that was judged, and the guard, both in MiB."""
    found = re.search(r"passed its guard: (\d+) of \d+ MiB (?:are|would be) in use \(.*; the guard is (\d+) MiB\)", text)
    assert found, text
    return int(found[1]), int(found[2])


def newest(out):
    return max(out.glob("*.kmem"), key=lambda path: path.stat().st_size)


MOVED = """
import sys, time
kept = [bytearray(1 << 20) for _ in range(20)]
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
try:
    for number in range(400):
        kept.append(bytearray(1 << 20))
        time.sleep(.06 if number < 100 else .01)  # six seconds, and 120 MiB
except KeyboardInterrupt:
    print("stopped", flush=True)
"""


def test_a_program_that_is_moved_to_another_cgroup_is_guarded_there(tmp_path):
    """Its limit is looked for again after five seconds."""
    out = tmp_path / "out"
    with harness.memory_group(LIMIT) as group:
        done = harness.run([PYTHON, "-c", MOVED, group], harness.shim_env(out, KMEMSHIM_GUARD="90%", KMEMSHIM_GUARD_ACTION="interrupt"))
        assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr
    assert "of 192 MiB are in use (the limit of the memory cgroup" in done.stderr
    notes = harness.report("report", newest(out))["processes"][0]["notes"]
    assert [note for note in notes if note.startswith("it was moved to another cgroup")]


def test_a_program_that_is_killed_where_it_was_moved_to(tmp_path):
    """The counters of the cgroup in which it began do not move: nothing is concluded from that."""
    out = tmp_path / "out"
    with harness.memory_group(LIMIT) as group:
        env = harness.plain_env(KMEMSHIM_OUT=out)
        done = harness.run([harness.KMEMSHIM, "run", "--", PYTHON, "-c", MOVED, group], env)
        verdict = harness.report("report", out)["verdict"]
    assert done.returncode == 128 + signal.SIGKILL
    assert verdict["cause"] == "container-limit" and "no kill" not in verdict["text"], verdict["text"]


@pytest.mark.parametrize("kind", GROWING)
def test_a_growing_cell_stops_and_what_it_held_is_there(kind, tmp_path):
    out = tmp_path / "out"
    done = limited_guard([PYTHON, "-c", PROGRAM, GROWING[kind]], out, "interrupt")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "stopped True\n"
    assert told(done.stderr)[0] >= told(done.stderr)[1] == 172
    assert re.search(r"passed its guard: \d+ of 192 MiB (?:are|would be) in use \(the limit of the memory cgroup; the guard is 172 MiB\)(, with the \d+ MiB that it asks for)?: "
                     "it gets SIGINT, as from Ctrl-C", done.stderr), done.stderr
    guard = harness.report("report", out)["guard"]
    assert guard["action"] == "interrupt" and not guard["is_action_in_vain"] and guard["number"] >= 1
    assert guard["limit"] == "cgroup" and guard["limit_bytes"] == LIMIT
    assert guard["guard_bytes"] <= guard["used_bytes"] + (guard["request_bytes"] or 0) and guard["used_bytes"] < LIMIT
    assert guard["live_bytes"] > LIMIT // 4
    held = sum(line["live_bytes"] for line in guard["lines"] if line["where"] and line["where"]["file"] == "<cell>")
    assert held > guard["live_bytes"] // 3, guard["lines"]


def test_it_is_armed_again(tmp_path):
    """Three cells, one after the other, in one process."""
    done = limited_guard([PYTHON, "-c", """
import gc
for number in range(3):
    kept = []
    def grow():
        while True: kept.append(bytearray(b'x') * 50000)
    try:
        grow()
    except KeyboardInterrupt:
        print("stopped", number)
    kept = None
    gc.collect()
"""], tmp_path / "out", "interrupt")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "stopped 0\nstopped 1\nstopped 2\n"
    assert done.stderr.count("passed its guard") == 3, done.stderr
    assert harness.report("report", tmp_path / "out")["guard"]["number"] == 3


def test_it_is_armed_again_where_malloc_keeps_what_was_freed(tmp_path):
    """What lives at the end of its heap keeps all of it in memory; what grows next is of another allocator, and finds no room there."""
    done = limited_guard([PYTHON, "-c", """
pins = []
def blocks():
    while True: kept.append(bytearray(b'x') * 50000)
def objects():
    while True: kept.append([object() for _ in range(100)])
for number, grow in enumerate([blocks, objects, blocks, objects]):
    kept = []
    try:
        grow()
    except KeyboardInterrupt:
        print("stopped", number, flush=True)
    pins.append(bytearray(600))
    kept = None
"""], tmp_path / "out", "interrupt")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "stopped 0\nstopped 1\nstopped 2\nstopped 3\n"
    assert done.stderr.count("passed its guard") == 4, done.stderr


def test_one_big_request_is_refused(tmp_path):
    done = limited_guard([PYTHON, "-c", """
kept = bytearray(b'x') * (50 << 20)
try:
    more = bytearray(b'x') * (150 << 20)
except MemoryError:
    print("refused", len(kept))
again = bytearray(b'x') * (60 << 20)
print("served", len(again))
"""], tmp_path / "out", "raise")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"refused {50 << 20}\nserved {60 << 20}\n"
    assert ", with the 150 MiB that it asks for: this request fails" in done.stderr
    assert told(done.stderr)[0] >= told(done.stderr)[1]
    document = harness.report("report", tmp_path / "out")
    assert document["guard"]["request_bytes"] == (150 << 20) + 1
    assert document["guard"]["lines"][0]["where"]["line"] == 2
    assert document["refused_requests"][0]["state"] == "recovered"


@pytest.mark.parametrize("action", ["note", "interrupt"])
def test_of_a_request_that_cannot_fit_the_figure_is_with_it(action, tmp_path):
    """"19 of 192 MiB are in use" is far below a guard of 172 MiB: what passed it is what would be in use."""
    done = limited_guard([PYTHON, "-c", "import ctypes\ntry: ctypes.CDLL(None).malloc(400 << 20)\nexcept KeyboardInterrupt: print('stopped')"], tmp_path / "out", action)
    assert (done.returncode, done.stdout) == (0, "stopped\n" if action == "interrupt" else ""), done.stderr
    assert 400 < told(done.stderr)[0] < 500 and told(done.stderr)[1] == 172
    assert "would be in use (the limit of the memory cgroup; the guard is 172 MiB), with the 400 MiB that it asks for: " in done.stderr


def test_many_blocks_are_refused_one_by_one_and_small_ones_never(tmp_path):
    done = limited_guard([PYTHON, "-c", """
kept = []
try:
    while True: kept.append(bytearray(b'x') * (4 << 20))
except MemoryError:
    small = [bytearray(b'x') * 1000 for _ in range(1000)]
    print("refused", len(kept), len(small))
"""], tmp_path / "out", "raise")
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"refused (3\d|40|41) 1000\n", done.stdout), done.stdout
    assert done.stderr.count("passed its guard") == 1


CPP = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <cerrno>
int main() {
	try { char *block = new char[180 << 20]; memset(block, 1, 180 << 20); puts("served"); }
	catch (const std::bad_alloc &) { puts("bad_alloc"); }
	errno = 0;
	void *block = malloc(180 << 20);
	printf("%d %d\\n", block == nullptr, errno == ENOMEM);
	void *aligned = nullptr;
	printf("%d\\n", posix_memalign(&aligned, 64, 180 << 20) == ENOMEM);
	char *grown = static_cast<char *>(malloc(90 << 20));
	memset(grown, 7, 90 << 20);
	char *more = static_cast<char *>(realloc(grown, 190 << 20));
	printf("%d %d\\n", more == nullptr, grown[(90 << 20) - 1] == 7);
	printf("%d\\n", (more = static_cast<char *>(realloc(grown, 100 << 20))) != nullptr);
	free(more);
}
"""


def test_the_whole_family_of_malloc_refuses(tmp_path):
    source = tmp_path / "family.cc"
    source.write_text(CPP)
    harness.ok(harness.run(["g++", "-O0", "-g", "-w", source, "-o", tmp_path / "family"]))
    done = limited_guard([tmp_path / "family"], tmp_path / "out", "raise")
    assert done.stdout == "bad_alloc\n1 1\n1\n1 1\n1\n", done.stderr
    assert done.returncode == 0


CHILD = """
import os, sys
kept = bytearray(b'x') * (20 << 20)
pid = os.fork()
if pid == 0:
    held = []
    def grow():
        while True: held.append(bytearray(b'y') * 100000)
    try:
        grow()
    except KeyboardInterrupt:
        os._exit(7)
try:
    print("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), len(kept))
except KeyboardInterrupt:
    print("parent was interrupted")
"""


def test_a_child_that_grows_is_interrupted_and_its_parent_is_not(tmp_path):
    done = limited_guard([PYTHON, "-c", CHILD], tmp_path / "out", "interrupt")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"child 7 {20 << 20}\n"
    document = harness.report("report", tmp_path / "out")
    child = next(process for process in document["processes"] if process["inherited_bytes"] != 0)
    assert document["guard"]["pid"] == child["pid"]


C_LOOP = """
#include <stdlib.h>
#include <string.h>
#include <signal.h>
static void noted(int number) { (void)number; }
int main(void) {
	signal(SIGINT, noted); /* as Python: it only remembers */
	for (;;) memset(malloc(50000), 1, 50000);
}
"""


def test_a_loop_in_c_is_killed_and_the_verdict_says_both(tmp_path):
    program = tmp_path / "loop"
    (tmp_path / "loop.c").write_text(C_LOOP)
    harness.compile_c(tmp_path / "loop.c", program, "-O0")
    with harness.memory_group(LIMIT) as group:
        done = harness.run(["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', group, harness.KMEMSHIM, "run", "--guard", "90%",
                            "--guard-action", "interrupt", "-o", tmp_path / "out", "--", program])
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    assert "it gets SIGINT" in done.stderr
    document = harness.report("why", tmp_path / "out")
    assert document["verdict"]["cause"] in ("container-limit", "machine-memory")
    text = document["verdict"]["text"]
    assert "passed its guard" in text and "it got SIGINT, but the kill came all the same" in text
    assert document["guard"]["lines"][0]["where"]["function"] == "main"
    assert "It passed its guard" in harness.unwrapped(done.stderr)
    assert "Live when the guard was passed" in harness.kmemshim("report", tmp_path / "out").stdout


def test_the_launcher_runs_the_command(tmp_path):
    """The program leaves 4 MiB of its limit: there is no room for looks, nor for what the kernel still counts of one that it killed."""
    told = tmp_path / "told"
    with harness.memory_group(LIMIT) as group:
        done = harness.run(["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', group, harness.KMEMSHIM, "run", "--no-holders", "--guard", "90%",
                            "--guard-action", f"exec:echo on stdout; echo $KMEMSHIM_GUARD_PID > {told}", "-o", tmp_path / "out", "--",
                            PYTHON, "-c", "import os\nkept = [bytearray(b'x') * 100000 for _ in range(1820)]\nprint(os.getpid())"])
    assert done.returncode == 0, done.stderr
    assert "the command is run" in done.stderr and "on stdout\n" in done.stderr
    assert told.read_text() == done.stdout
    assert [path.suffix for path in (tmp_path / "out").iterdir()] == [".kmem"]  # the pipe is gone
    guard = harness.report("report", tmp_path / "out")["guard"]
    assert guard["action"] == "exec" and not guard["is_action_in_vain"]


def test_without_a_launcher_nobody_runs_a_command(tmp_path):
    done = limited_guard([PYTHON, "-c", "kept = [bytearray(b'x') * 100000 for _ in range(1820)]"], tmp_path / "out", "exec:true")
    assert done.returncode == 0, done.stderr
    assert "nobody can run the command: the program was not started by kmemshim run" in done.stderr
    assert harness.report("report", tmp_path / "out")["guard"]["is_action_in_vain"]


def test_who_ignores_it_is_told_of(tmp_path):
    done = limited_guard([PYTHON, "-c", """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
kept = [bytearray(b'x') * 100000 for _ in range(1820)]
print(len(kept))
"""], tmp_path / "out", "interrupt")
    assert done.stdout == "1820\n", done.stderr
    assert "it ignores SIGINT, so nothing stops it" in done.stderr
    assert harness.report("report", tmp_path / "out")["guard"]["is_action_in_vain"]


def test_noting_changes_nothing(tmp_path):
    done = limited_guard([PYTHON, "-c", "kept = [bytearray(b'x') * 100000 for _ in range(1820)]\nprint(len(kept))"], tmp_path / "out",
                         "note")
    assert done.returncode == 0 and done.stdout == "1820\n"
    assert done.stderr.count("passed its guard") == 1 and "kmemshim report shows what it held" in done.stderr


def test_contents_of_files_are_none_of_it(tmp_path):
    """A large file is read through: the cgroup is full of what the kernel drops when it needs room."""
    file = tmp_path / "large"
    subprocess.run(["dd", "if=/dev/zero", f"of={file}", "bs=1M", "count=300", "status=none"], check=True)
    done = limited_guard([PYTHON, "-c", """
import os, sys
kept = []
with open(sys.argv[1], "rb", buffering=0) as file:
    while file.read(1 << 20):
        kept.append(bytes(40000))
print("read", len(kept))
""", file], tmp_path / "out", "interrupt")
    assert done.returncode == 0 and done.stdout == "read 300\n", done.stderr
    assert "passed its guard" not in done.stderr


def test_contents_of_files_do_not_keep_it_from_being_armed_again(tmp_path):
    """Less is in use than 3/4 of the guard (57 MiB): only with what the kernel drops when it needs room it is more."""
    program = f"""
import mmap, time
data = open({str(tmp_path / "data")!r}, "wb")
for _ in range(17): data.write(bytes(1 << 20))
data.flush()
base = mmap.mmap(-1, 36 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
base.write(bytes(1 << 20) * 36)
for _ in range(2):
    kept = []
    for _ in range(40):
        kept.append(mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        kept[-1].write(bytes(1 << 20))
    for block in kept: block.close()
    time.sleep(1.2)
    other = [bytes(2000) for _ in range(4000)]
"""
    with harness.memory_group(LIMIT) as group:
        done = run_limited(group, [PYTHON, "-c", program], tmp_path / "out", KMEMSHIM_GUARD="40%", KMEMSHIM_GUARD_ACTION="note")
    assert done.returncode == 0 and done.stderr.count("passed its guard") == 2, done.stderr


@pytest.mark.parametrize("value, line", (
    ("12", 'KMEMSHIM_GUARD=12 is not valid; use a share such as 90%'),
    ("much", 'KMEMSHIM_GUARD=much is not valid; use a share such as 90%'),
    ("3000G", "KMEMSHIM_GUARD=3000G: this is not below the"),
    ("99T", "KMEMSHIM_GUARD=99T: this is not below the"),
    ("104857601M", "KMEMSHIM_GUARD=104857601M: this is not below the"),
    ("90%", "KMEMSHIM_GUARD=90%: no limit is in force here: the guard is"),
))
def test_what_cannot_be_meant_is_one_line(value, line, tmp_path):
    done = harness.run([PYTHON, "-c", "print(1)"], harness.shim_env(tmp_path / "out", KMEMSHIM_GUARD=value))
    assert done.stdout == "1\n" and done.returncode == 0
    assert done.stderr.count("\n") == 1 and done.stderr.startswith(f"kmemshim: {line}"), done.stderr


def test_a_limit_on_addresses_counts(tmp_path):
    done = harness.run(["sh", "-c", "ulimit -v 2000000; exec env LD_PRELOAD=$SHIM \"$@\"", "sh", PYTHON, "-c", """
kept = []
def grow():
    while True: kept.append(bytearray(b'x') * (8 << 20))
try:
    grow()
except KeyboardInterrupt:
    print("stopped")
"""], {**{name: str(value) for name, value in harness.shim_env(tmp_path / "out", KMEMSHIM_GUARD="80%", KMEMSHIM_GUARD_ACTION="interrupt").items() if name != "LD_PRELOAD"},
       "SHIM": str(harness.SHIM)})
    assert done.returncode == 0 and done.stdout == "stopped\n", done.stderr
    assert "the limit on addresses (ulimit -v)" in done.stderr
    assert sys.maxsize > harness.report("report", tmp_path / "out")["guard"]["limit_bytes"] < 2000000 << 10


@pytest.mark.parametrize("mib, is_passed", [(150, False), (400, True)])
def test_addresses_of_the_recorder_do_not_pass_a_guard(mib, is_passed, tmp_path):
    program = tmp_path / "grows.py"
    program.write_text(f"kept = [bytearray(b'x') * (1 << 20) for _ in range({mib})]\nprint(len(kept))\n")
    done = harness.run(["sh", "-c", 'ulimit -v 2000000; exec "$@"', "sh", harness.KMEMSHIM, "run", "--guard", "300M", "-o", tmp_path / "out", "--", PYTHON, program],
                       harness.plain_env())
    assert (done.returncode, done.stdout) == (0, f"{mib}\n"), done.stderr
    assert ("passed its guard" in done.stderr) == is_passed, done.stderr


def test_a_size_that_is_small_beside_the_machine_is_passed_at_once(tmp_path):
    """The first beat comes before the guard is there: the next one must not wait until a 64th of the machine's memory is live."""
    done = harness.run([harness.KMEMSHIM, "run", "-q", "--guard", "50M", "-o", tmp_path / "out", "--", PYTHON, "-c",
                        "kept = [bytearray(b'x') * 100000 for _ in range(1000)]\nprint(len(kept))"], harness.plain_env())
    assert (done.returncode, done.stdout) == (0, "1000\n") and "passed its guard: 5" in done.stderr, done.stderr
