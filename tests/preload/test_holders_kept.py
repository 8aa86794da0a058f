"""A look at who holds what, when the guard is passed or a line is a leak: in the capture, of a program that is killed a second later. Under a memory cgroup."""
import json
import re
import signal
import struct
import subprocess
import sys
import time

import pytest

import harness
from harness import KMEMSHIM, compile_c, kmemshim, run
from test_lost import FORBID, TRACE

pytestmark = pytest.mark.usefixtures("as_users_run_it")

LIMIT = 300 << 20
PYTHON = "/usr/bin/python3"
CACHE = """
import os, signal, sys, time
class Cache:
    def __init__(self):
        self.pages = {}
    def get(self, number):
        self.pages[number] = bytearray(60000)
def main():
    service = Cache()
    for number in range(2500):  # 143 MiB
        service.get(number)
        if number + 1 in (2500,):
            wait()
    if sys.argv[1:]:
        print("went on", len(service.pages), flush=True)
    else:
        os.kill(os.getpid(), signal.SIGKILL)
def wait():
    told, end = os.environ.get("LOOKED"), time.monotonic() + 300
    while told and not os.path.exists(told) and time.monotonic() < end:
        time.sleep(.01)
    if told and os.path.exists(told):
        os.remove(told)
main()
"""
TABLE = """
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *volatile table[3000]; /* else nobody reads it, and it is left out */
static void
fill(int i)
{
    void *block = malloc(60000);
    memset(block, 1, 60000);
    table[i] = block;
}
int main(void)
{
    for (int i = 0; i < 2500; i++)
        fill(i);
    for (int i = 0; i < 30000 && access(getenv("LOOKED"), F_OK) != 0; i++)
        usleep(10000);
    raise(SIGKILL);
}
"""
HEAD_BYTES, DIRECTORY_OFFSET, CHUNK_BYTES, SECTION = 135168, 69632, 65536, 4  # docs/format.md


def looks_in(out):
    """[(number, bytes of the leak; 0 = at the guard)] of what is kept: a capture has two places; one that was never written is zeros."""
    found = []
    for capture in out.glob("*.kmem"):
        with open(capture, "rb") as file:
            first = file.read(HEAD_BYTES)[DIRECTORY_OFFSET::8].find(SECTION)
            for chunk in (first, first + 2) if first >= 0 else ():
                file.seek(HEAD_BYTES + chunk * CHUNK_BYTES + 8)
                number, _, _, leak_bytes = struct.unpack("<4Q", file.read(32))
                found += [(number, leak_bytes)] if number != 0 else []
    return sorted(found)


def at_guard(looks):
    return any(leak_bytes == 0 for _, leak_bytes in looks)


def has_second(looks):
    return looks[-1][0] >= 2


def looked(words, out, *conditions):
    """Runs them. Each time that the program waits, it goes on when the looks are as wanted: on a busy machine they come late."""
    told = out.parent / "looked"
    environment = harness.plain_env(**({"LOOKED": told} if conditions else {}))
    with subprocess.Popen([str(word) for word in words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        for is_wanted in conditions:
            while process.poll() is None and (told.exists() or not is_wanted(looks_in(out))):
                time.sleep(.02)
            told.touch()
        said, complained = process.communicate(timeout=harness.TIMEOUT)
    return subprocess.CompletedProcess(words, process.returncode, said, complained)


def guarded(argv, out, *options, guard="100M", stop="60s", before=(), conditions=(at_guard,)):
    """kmemshim run under a limit of its own."""
    with harness.memory_group(LIMIT) as group:
        return looked(["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', group, *before, KMEMSHIM, "run", "--guard", guard,
                       "--holders-stop", stop, *options, "-o", out, "--", *argv], out, *conditions)


def stored(out):
    done = harness.ok(kmemshim("holders", "--json", out))
    document = json.loads(done.stdout)
    harness.validate(document, "holders")
    return document


@pytest.fixture
def cache(tmp_path):
    program = tmp_path / "cache.py"
    program.write_text(CACHE)
    return program


def test_the_path_survives_the_death_of_a_python_program(cache, tmp_path):
    done = guarded([PYTHON, cache], tmp_path / "out")
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    document = stored(tmp_path / "out")
    line = document["holders"][0]
    assert (document["why"], line["place"], line["samples"]) == ("", "cache.py:7 Cache.get", 32)
    assert re.fullmatch(r"local `(service` of main\(\) \(cache\.py:8\)|self` of Cache.get\(\) \(cache\.py:6\)) -> Cache \.pages -> dict of [12],\d{3}, grown at cache\.py:7 Cache\.get, \[\*\] -> bytearray",
                        line["ways"][0]["text"]), document
    text = kmemshim("holders", "--top", "1", tmp_path / "out")
    assert text.returncode == 0 and line["ways"][0]["text"] in text.stdout
    # ... and so do all that tell of the death.
    way = line["ways"][0]["text"]
    told = " ".join(kmemshim("why", tmp_path / "out").stdout.split())
    assert re.search(r"When the guard was passed, (they|\d+ of 32 samples of them) were held by " + re.escape(way), told), told
    assert re.search(r"Next: .*bound the dict at " + re.escape(way.split(" -> dict")[0]) + r" \([12],\d{3} items at the look\), or drop what is not needed from it: "
                     r"it keeps the blocks of cache\.py:7 Cache\.get alive", told)
    for command in ("report", "leaks"):
        assert f"held by {way}" in " ".join(kmemshim(command, tmp_path / "out").stdout.split()), command
    assert kmemshim("report", "--html", tmp_path / "page.html", tmp_path / "out").returncode == 0
    assert f"by {way}".replace(">", r"\u003e") in (tmp_path / "page.html").read_text() or f"by {way}" in (tmp_path / "page.html").read_text()
    document = harness.report("report", tmp_path / "out")
    assert document["lines"][0]["held_by"][0] == line["ways"][0]
    assert document["guard"]["look"]["holders"][0]["place"] == "cache.py:7 Cache.get"
    assert [finding["kind"] for finding in document["verdict"]["findings"]].count("held-by") == 1


def test_the_path_survives_the_death_of_a_c_program(tmp_path):
    (tmp_path / "table.c").write_text(TABLE)
    done = guarded([compile_c(tmp_path / "table.c", tmp_path / "table", "-g")], tmp_path / "out")
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    line = stored(tmp_path / "out")["holders"][0]
    assert line["place"] == "table.c:10 fill"
    assert line["ways"][0]["text"] == "static variable `table` of table", line


def test_a_program_that_goes_on_is_as_without(cache, tmp_path):
    done = guarded([PYTHON, cache, "go on"], tmp_path / "out")
    assert (done.returncode, done.stdout) == (0, "went on 2500\n"), done.stderr
    assert stored(tmp_path / "out")["holders"][0]["place"] == "cache.py:7 Cache.get"
    assert not harness.report("report", tmp_path / "out")["damages"]


def test_no_look_is_taken_where_nobody_wants_one(cache, tmp_path):
    done = guarded([PYTHON, cache, "go on"], tmp_path / "out", "--no-holders", conditions=())
    assert done.returncode == 0 and "passed its guard" in done.stderr
    told = kmemshim("holders", tmp_path / "out")
    assert told.returncode == 2 and "what holds its memory was not recorded" in told.stderr


GROWS = """
import time
kept = []
for i in range(1840):
    kept.append(bytearray(b"x") * 100000)
    if i > 1000:
        time.sleep(.001)
time.sleep(1)  # it is full, and stays so
print(len(kept))
"""


def test_who_has_nothing_to_look_for_takes_no_memory(tmp_path):
    """The program leaves 8 MiB of its limit: symbols are not read to find that no look is due, nor where there is no memory for one."""
    (tmp_path / "grows.py").write_text(GROWS)
    with harness.memory_group(192 << 20) as group:
        done = harness.run(["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', group, KMEMSHIM, "run", "--guard", "95%", "-o", tmp_path / "out", "--",
                            PYTHON, tmp_path / "grows.py"])
        counters = [group / name for name in ("memory.events", "memory.oom_control")]
        killed = re.search(r"^oom_kill (\d+)$", "".join(path.read_text() for path in counters if path.exists()), re.M)[1]
    assert (done.returncode, done.stdout) == (0, "1840\n") and "passed its guard" in done.stderr, done.stderr
    assert killed == "0"


@pytest.mark.parametrize(("stop", "guard", "why"), [
    ("60s", "270M", r"only \d+\.\d MiB were left below the limit, and a look needs 32 MiB: set the guard lower"),
    ("1ms", "100M", r"(the program|process \d+) .*"),
])
def test_why_nobody_looked_is_told(stop, guard, why, cache, tmp_path):
    if guard == "270M":  # of ten lines: none holds an eighth of the limit, which would be looked at before
        get = "    def get{0}(self, number):\n        self.pages[number] = bytearray(60000)\n"
        cache.write_text(CACHE.replace("def get(self", "def other(self").replace("2500", "4560").replace("service.get(number)", "getattr(service, 'get%d' % (number % 10))(number)")
                         .replace("def main", "".join(get.format(i) for i in range(10)) + "def main"))
    done = guarded([PYTHON, cache, "go on"], tmp_path / "out", guard=guard, stop=stop)
    assert done.returncode == 0, done.stderr
    document = stored(tmp_path / "out")
    assert re.fullmatch(why, document["why"]) and document["holders"] == []
    assert f"what holds it is not known: {document['why']}" in " ".join(kmemshim("why", tmp_path / "out").stdout.split())
    text = kmemshim("holders", tmp_path / "out").stdout
    assert re.fullmatch(r"process \d+ was not examined: " + why + "\n", text)


def test_where_ptrace_is_forbidden_all_else_works(cache, tmp_path):
    done = guarded([PYTHON, cache, "go on"], tmp_path / "out", before=[sys.executable, "-c", FORBID])
    assert (done.returncode, done.stdout) == (0, "went on 2500\n"), done.stderr
    assert "may not be looked at (ptrace: EPERM)" in stored(tmp_path / "out")["why"]


def test_a_program_that_is_traced_already_is_left_alone(cache, tmp_path):
    tracer = f"import subprocess, os, sys\np = subprocess.Popen([sys.executable, '-c', {TRACE!r}, str(os.getpid())], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\np.stdout.readline()\n"
    cache.write_text(tracer + CACHE.replace('print("went on"', 'p.stdin.close(); print("went on"'))
    done = guarded([PYTHON, cache, "go on"], tmp_path / "out")
    assert (done.returncode, done.stdout) == (0, "went on 2500\n"), done.stderr
    assert "is traced by process" in stored(tmp_path / "out")["why"]


def test_a_damaged_look_is_told_and_nothing_else_is_lost(cache, tmp_path):
    guarded([PYTHON, cache, "go on"], tmp_path / "out")
    capture, = (tmp_path / "out").glob("*.kmem")
    content = bytearray(capture.read_bytes())
    for found in re.finditer(b'"stopped_us"', bytes(content)):  # also that of the look before, at a leak
        content[found.start()] ^= 1
    capture.write_bytes(content)
    told = kmemshim("holders", capture)
    assert told.returncode == 3 and 'section "holders": the checksum of look ' in told.stderr
    document = harness.report("report", capture)
    assert document["processes"] and document["damages"]


def test_under_preload_alone_it_is_said_who_would_look(cache, tmp_path):
    with harness.memory_group(LIMIT) as group:
        env = harness.shim_env(tmp_path / "out", KMEMSHIM_GUARD="100M")
        env["SHIM"] = str(env.pop("LD_PRELOAD"))
        done = run(["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec env LD_PRELOAD="$SHIM" "$@"', group, PYTHON, cache], env)
    assert done.returncode == -signal.SIGKILL and "passed its guard" in done.stderr
    line = "what holds it is not known: kmemshim run looks when the guard is passed, LD_PRELOAD alone does not\n"
    assert line in kmemshim("why", tmp_path / "out").stdout
    assert harness.report("report", tmp_path / "out")["guard"]["look"] is None


def test_a_leak_is_looked_at_without_a_guard(cache, tmp_path):
    """It holds more than an eighth of the limit: the kernel kills it later, and what held it is told."""
    cache.write_text(CACHE.replace("range(2500)", "range(8000)"))
    with harness.memory_group(LIMIT) as group:
        done = looked(["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', group, KMEMSHIM, "run", "--holders-stop", "60s", "-o", tmp_path / "out",
                       "--", PYTHON, cache], tmp_path / "out", lambda looks: looks and looks[-1][1] > 1100 * 60000)
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    line = stored(tmp_path / "out")["holders"][0]
    assert line["place"] == "cache.py:7 Cache.get" and line["bytes"] > LIMIT // 8
    way = line["ways"][0]["text"]
    assert re.fullmatch(r"local `(service|self)` of .* -> Cache \.pages -> dict of \d,\d{3}, grown at cache\.py:7 Cache\.get, \[\*\] -> bytearray", way)
    told = " ".join(kmemshim("why", tmp_path / "out").stdout.split())
    assert re.search(r"When the launcher looked, (they|\d+ of 32 samples of them) were held by " + re.escape(way), told), told
    assert "Next: bound the dict at " in told and "guard" not in told
    assert "Next: bound the dict at " in " ".join(done.stderr.split())


def test_a_leak_is_looked_at_under_a_limit_of_addresses(cache, tmp_path):
    """The limit is what recording leaves of it. No look falls into the release of all that follows the MemoryError: less than twice as much is live."""
    cache.write_text(CACHE.replace("range(2500)", "range(3600)").replace("(2500,)", "(1500, 3600)").replace("    if sys.argv", "    bytearray(1 << 30)\n    if sys.argv", 1))
    done = looked(["sh", "-c", 'ulimit -v 600000; exec "$@"', "sh", KMEMSHIM, "run", "--holders-stop", "60s", "-o", tmp_path / "out", "--", PYTHON, cache],
                  tmp_path / "out", bool, has_second)
    assert done.returncode == 1 and "MemoryError" in done.stderr, done.stderr
    line = stored(tmp_path / "out")["holders"][0]
    assert line["place"] == "cache.py:7 Cache.get"
    assert re.fullmatch(r"local `(service|self)` of .* -> Cache \.pages -> dict of \d,\d{3}, grown at cache\.py:7 Cache\.get, \[\*\] -> bytearray", line["ways"][0]["text"])
    told = " ".join(kmemshim("why", tmp_path / "out").stdout.split())
    assert re.search(r"When the launcher looked, (they|\d+ of 32 samples of them) were held by " + re.escape(line["ways"][0]["text"]), told), told


def test_a_leak_is_looked_at_once_for_each_doubling(cache, tmp_path):
    cache.write_text(CACHE.replace("(2500,)", "(900, 3500)").replace("2500", "3500"))  # 52 and 200 MiB: 37.5 MiB is an eighth of the limit
    done = guarded([PYTHON, cache, "go on"], tmp_path / "out", guard="290M", conditions=(bool, has_second))
    assert (done.returncode, done.stdout) == (0, "went on 3500\n"), done.stderr
    (first, before), (last, then) = looks_in(tmp_path / "out")
    assert last == first + 1 in (2, 3) and then >= 2 * before >= 2 * (LIMIT // 8), looks_in(tmp_path / "out")


FEW = """
import os, signal, sys, time
history = []
def load(count):
    for number in range(count):
        history.append(bytearray(b"x") * 16_000_000)
def main():
    for _ in range(3000):  # so much was allocated before that all of it is one generation
        bytearray(16_000_000)
    load(10)
    wait()
    load(100)
""" + CACHE[CACHE.index("def wait"):]


def test_few_large_blocks_are_looked_at_though_they_are_too_few_to_judge(tmp_path):
    """Each of them was kept: no look can be sure that it is a leak, but who is killed for memory wants to know what has it."""
    (tmp_path / "few.py").write_text(FEW)
    with harness.memory_group(LIMIT) as group:
        done = looked(["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', group, KMEMSHIM, "run", "-o", tmp_path / "out",
                       "--", PYTHON, tmp_path / "few.py"], tmp_path / "out", lambda looks: looks and looks[-1][1] > 0)
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    line = harness.report("report", tmp_path / "out")["lines"][0]
    assert (harness.place(line), line["leak"]["class"]) == ("few.py:6", "too-short"), line
    told = " ".join(kmemshim("why", tmp_path / "out").stdout.split())
    assert re.search(r"When the launcher looked, (they|\d+ of \d+ samples of them) were held by global `history` of module __main__ -> list of \d+ \[\*\] -> bytearray", told), told
    assert re.search(r"Next: bound the list at global `history` of module __main__ \(\d+ items at the look\), or drop what is not needed from it", told), told


def test_a_queue_that_lags_is_looked_at(cache, tmp_path):
    """It is no leak, since its oldest blocks are released; who is killed for it wants to know what has it."""
    cache.write_text("""
import collections, os, signal, sys, time
queue = collections.deque()
def take(count):
    for number in range(count):
        queue.append(bytearray(b"x") * 60_000)
        if number % 3 == 2:
            queue.popleft()
        if number == 2400:
            wait()
def main():
    take(20_000)
""" + CACHE[CACHE.index("def wait"):])
    with harness.memory_group(LIMIT) as group:
        done = looked(["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', group, KMEMSHIM, "run", "-o", tmp_path / "out", "--", PYTHON, cache],
                      tmp_path / "out", lambda looks: looks and looks[-1][1] > 0)
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    line = harness.report("report", tmp_path / "out")["lines"][0]
    assert (harness.place(line), line["leak"]["class"]) == ("cache.py:6", "backlog"), line
    told = " ".join(kmemshim("why", tmp_path / "out").stdout.split())
    assert re.search(r"Next: bound the collections.deque at global `queue` of module __main__ .*, or release them faster", told), told


def test_who_is_interrupted_by_the_guard_is_looked_at(cache, tmp_path):
    """Its calls end, and what they held goes with them. But a list of a notebook's stays."""
    cache.write_text(FEW.replace("    load(10)\n    wait()", "    try:\n        load(10)\n        time.sleep(300)\n    except KeyboardInterrupt:\n        wait()"))
    done = guarded([PYTHON, cache], tmp_path / "out", "--guard-action", "interrupt")
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    document = stored(tmp_path / "out")
    assert (document["why"], document["holders"][0]["place"]) == ("", "cache.py:6 load"), document
    told = " ".join(kmemshim("why", tmp_path / "out").stdout.split())
    assert re.search(r"When the guard was passed, (they|\d+ of \d+ samples of them) were held by global `history` of module __main__ -> list of ", told), told


NUMBERS = """
import os, sys, time
kept = {made}
def add(number):
    {add}
def main():
    for number in range(1 << 40):
        add(number)
        if number == 2_000_000:
            wait()
""" + CACHE[CACHE.index("def wait"):]


@pytest.mark.parametrize(("made", "add", "container"), [("set()", "kept.add(number * 7919)", "set"), ("dict()", "kept[number * 7919] = 1", "dict")])
def test_the_storage_of_a_container_grows_with_it(made, add, container, tmp_path):
    """One block, which is replaced by a larger one: more than the numbers in it, and as sure a sign."""
    (tmp_path / "numbers.py").write_text(NUMBERS.format(made=made, add=add))
    with harness.memory_group(LIMIT) as group:
        done = looked(["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', group, KMEMSHIM, "run", "-o", tmp_path / "out", "--", PYTHON,
                       tmp_path / "numbers.py"], tmp_path / "out", lambda looks: looks and looks[-1][1] > 0)
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    lines = [line for line in harness.report("report", tmp_path / "out")["lines"] if harness.place(line) == "numbers.py:5"]
    assert {line["domain"]: line["leak"]["class"] for line in lines} == {"heap": "leak", "python/object": "leak"}, lines
    told = " ".join(kmemshim("why", tmp_path / "out").stdout.split())
    # Which of the two is told depends on how much of the newest storage was filled when it was killed.
    assert "blocks that are full are replaced by larger ones, as the storage of a container that grows" in told or \
        re.search(r"At numbers\.py:5 add blocks from (\d+) of \1 generations .* are still alive", told), told
    assert f"Next: bound the {container} at global `kept` of module __main__ (" in told, told
    assert re.search(r"numbers\.py:5 add \(leak\??\)", " ".join(done.stderr.split())), done.stderr  # and not of a part of it
