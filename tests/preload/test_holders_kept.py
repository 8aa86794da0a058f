"""A look at who holds what, when the guard is passed or a line is a leak: in the capture, of a program that is killed a second later. Under a memory cgroup."""
import json
import re
import signal
import subprocess
import sys

import fastjsonschema
import pytest

import harness
from harness import KMEMSHIM, ROOT, compile_c, kmemshim, run
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
        time.sleep(0.0002)
    time.sleep(0.5 if sys.argv[1:] else 1)
    if sys.argv[1:]:
        print("went on", len(service.pages), flush=True)
    else:
        os.kill(os.getpid(), signal.SIGKILL)
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
    for (int i = 0; i < 2500; i++) {
        fill(i);
        usleep(200);
    }
    sleep(1);
    raise(SIGKILL);
}
"""


def guarded(argv, out, *options, guard="100M", before=()):
    """kmemshim run under a limit of its own."""
    with harness.memory_group(LIMIT) as group:
        return run(["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', group, *before, KMEMSHIM, "run", "--guard", guard, *options,
                    "-o", out, "--", *argv], harness.plain_env())


def stored(out):
    done = kmemshim("holders", "--json", out)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    fastjsonschema.validate(json.loads((ROOT / "analyzer/holders/holders.schema.json").read_text()), document)
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
    assert f"When the guard was passed, they were held by {way}." in told
    assert re.search(r"Next: .*bound the dict at " + re.escape(way.split(" -> dict")[0]) + r" \([12],\d{3} items\), or drop what is not needed from it: "
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
    done = guarded([PYTHON, cache, "go on"], tmp_path / "out", "--no-holders")
    assert done.returncode == 0 and "passed its guard" in done.stderr
    told = kmemshim("holders", tmp_path / "out")
    assert told.returncode == 2 and "what holds its memory was not recorded" in told.stderr


GROWS = """
import time
kept = []
for i in range(1780):
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
    assert (done.returncode, done.stdout) == (0, "1780\n") and "passed its guard" in done.stderr, done.stderr
    assert killed == "0"


@pytest.mark.parametrize(("options", "guard", "why"), [
    ((), "270M", r"only \d+\.\d MiB were left below the limit, and a look needs 32 MiB: set the guard lower"),
    (("--holders-stop", "1ms"), "100M", r"(the program|process \d+) .*"),
])
def test_why_nobody_looked_is_told(options, guard, why, cache, tmp_path):
    if guard == "270M":  # of ten lines: none holds an eighth of the limit, which would be looked at before
        get = "    def get{0}(self, number):\n        self.pages[number] = bytearray(60000)\n"
        cache.write_text(CACHE.replace("def get(self", "def other(self").replace("2500", "4450").replace("service.get(number)", "getattr(service, 'get%d' % (number % 10))(number)")
                         .replace("def main", "".join(get.format(i) for i in range(10)) + "def main"))
    done = guarded([PYTHON, cache, "go on"], tmp_path / "out", *options, guard=guard)
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
    cache.write_text(tracer + CACHE.replace("0.5 if", "3 if").replace('print("went on"', 'p.stdin.close(); print("went on"'))
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
    cache.write_text(CACHE.replace("2500", "8000"))
    with harness.memory_group(LIMIT) as group:
        done = run(["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', group, KMEMSHIM, "run", "-o", tmp_path / "out", "--", PYTHON, cache],
                   harness.plain_env())
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
    """The limit is what recording leaves of it."""
    cache.write_text(CACHE.replace("2500", "9000"))
    done = run(["sh", "-c", 'ulimit -v 600000; exec "$@"', "sh", KMEMSHIM, "run", "-o", tmp_path / "out", "--", PYTHON, cache], harness.plain_env())
    assert done.returncode == 1 and "MemoryError" in done.stderr, done.stderr
    line = stored(tmp_path / "out")["holders"][0]
    assert line["place"] == "cache.py:7 Cache.get"
    assert re.fullmatch(r"local `(service|self)` of .* -> Cache \.pages -> dict of \d,\d{3}, grown at cache\.py:7 Cache\.get, \[\*\] -> bytearray", line["ways"][0]["text"])
    assert f"When the launcher looked, they were held by {line['ways'][0]['text']}." in " ".join(kmemshim("why", tmp_path / "out").stdout.split())


def looks_in(capture):
    """Its two places; what was never written is zeros."""
    content = capture.read_bytes()
    at = content.index(b'"schema"') - content[:content.index(b'"schema"')][::-1].index(b"{") - 1 - 40
    first = at - (1 << 17) if content[at - (1 << 17) + 40:][:1] == b"{" else at
    return [content[place:place + (1 << 17)] for place in (first, first + (1 << 17))]


def test_a_leak_is_looked_at_once_for_each_doubling(cache, tmp_path):
    cache.write_text(CACHE.replace("2500", "3500"))  # 200 MiB: 37.5 MiB at the first look, then 75 and 150
    done = guarded([PYTHON, cache, "go on"], tmp_path / "out", guard="290M")
    assert (done.returncode, done.stdout) == (0, "went on 3500\n"), done.stderr
    capture, = (tmp_path / "out").glob("*.kmem")
    sequences = sorted(int.from_bytes(look[8:16], "little") for look in looks_in(capture))
    assert sequences == [2, 3], sequences
