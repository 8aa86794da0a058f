"""What recording does beyond the fast way, in programs that do the same again and again: few in 1,000 events.

Counts, so no bound depends on how fast the machine is; BY_CLOCK has those of what is done by the clock. A program does its work when it
gets a line: its capture is read before and after, while it waits. A bound is about twice what was measured.
"""
import contextlib
import json
import re
import shutil
import signal
import subprocess
import sys

import pytest

import harness

pytestmark = pytest.mark.usefixtures("as_users_run_it")

PROGRAMS = harness.ROOT / "tests" / "bench" / "programs"
EVENTS = 150_000  # so many at least, or what threads have not added yet is too large a part
BATCH = 64  # KMEM_EFFORT_BATCH: so many less one of a kind a thread may not have added yet
THREADS = 4  # that do something meanwhile

# For 1,000 events, at most. What is not here is 0, but for what threads have not added yet.
USUAL = {
    "slow_allocations": 2, "slow_releases": 2, "others_blocks": 1, "python_chains": 20, "digests": .5, "python_walks": .5,
    "python_frames": 2, "rooms": .5, "new_stacks": .3, "rings": .3, "rules": .1, "growths": .05,
}
BY_CLOCK = {"system_calls": 20, "heartbeats": 5, "library_looks": 10}  # a slow machine has more of these; an event makes no call


def recording(out):
    document = json.loads(harness.kmemshim("report", out, "--json", "--top", "1").stdout)
    harness.validate(document)
    assert document["processes"][0]["recording"]["events"] <= document["recording"]["events"]
    return document["recording"]


def counts(one):
    return {name: value for name, value in one.items() if name not in ("events", "longest_pause", "longest_pause_ns")}


def rates(before, after):
    """What each kind had for each 1,000 events between two looks."""
    events = after["events"] - before["events"]
    assert events >= EVENTS, f"only {events} events"
    return {"events": events, **{name: (value - before[name]) * 1000 / events for name, value in counts(after).items()}}


def exceeding(found, more=()):
    """What is above its bound, as lines. `more`: other bounds than usual."""
    bounds = {**USUAL, **BY_CLOCK, **dict(more)}
    unsure = THREADS * (BATCH - 1) * 1000 / found["events"]
    return [f"{name}: {rate:.3f} for 1,000 events, bound {bounds.get(name, 0)}"
            for name, rate in found.items() if name != "events" and rate > bounds.get(name, 0) + unsure]


@contextlib.contextmanager
def worker(argv, out, **settings):
    """A program that waits for lines, and answers each."""
    with subprocess.Popen([str(word) for word in argv], env=harness.shim_env(out, **settings), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as process:
        def works():
            line = process.stdout.readline()
            assert line, f"it has ended: {process.wait()}"
            return line

        def turn():
            process.stdin.write("\n")
            process.stdin.flush()
            return works()

        try:
            assert "ready" in works()
            yield turn
            process.stdin.close()
            assert process.wait() == 0
        finally:
            process.kill()


def measured(argv, out, **settings):
    with worker(argv, out, **settings) as turn:
        turn()  # what comes first only now
        before = recording(out)
        turn()
        return rates(before, recording(out))


@pytest.mark.framework
@pytest.mark.parametrize("framework, words, more", [
    ("torch", ["work_torch.py", "mlp", 400], {}),
    ("keras", ["work_keras.py", 154], {"slow_allocations": 4, "slow_releases": 4, "digests": 2, "python_walks": 2, "python_frames": 40, "rings": 1.2}),
    ("jax", ["work_jax.py", "eager", 300], {"rooms": 100}),
    ("jax", ["work_jax.py", "jit", 2000], {"slow_allocations": 25, "slow_releases": 25, "others_blocks": 6, "rooms": 100}),
    ("pandas", ["work_pandas.py", 80], {"slow_allocations": 120, "slow_releases": 80, "python_chains": 100, "digests": 7,
                                        "python_walks": 10, "python_frames": 200, "new_stacks": 6, "system_calls": 200}),
], ids=["torch", "keras", "jax-eager", "jax-jit", "pandas"])
def test_a_framework_leaves_the_fast_way_seldom(framework, words, more, out):
    found = measured([harness.venv(framework), PROGRAMS / words[0], *words[1:]], out, BENCH_TURNS=1)
    assert not exceeding(found, more), found


SERVICE = {"successors": 160, "slow_allocations": 4, "slow_releases": 7, "others_blocks": 7}


def test_a_service_in_cpp_leaves_the_fast_way_seldom(tmp_path, out):
    found = measured([harness.compile_cc(tmp_path, "service", "-pthread")], out)
    assert not exceeding(found, SERVICE), found


# Its allocator is jemalloc, a library.
REDIS = {"slow_allocations": 8, "slow_releases": 12, "successors": 350}
REDIS_PROGRAM = "redis-check-rdb"  # of redis-tools, which starts no service: it is the server, by its name


def test_redis_leaves_the_fast_way_seldom(tmp_path, out):
    socket = tmp_path / "socket"
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--dir", tmp_path],
                              executable=shutil.which(REDIS_PROGRAM), env=harness.shim_env(out), stdout=subprocess.DEVNULL)

    def turn():
        harness.ok(harness.run(["redis-benchmark", "-q", "-s", socket, "-n", 4000, "-r", 1000, "-t", "set,get,lpush,lpop,sadd,hset,zadd"]))

    try:
        harness.wait_for(lambda: harness.run(["redis-cli", "-s", socket, "ping"]).stdout == "PONG\n")
        turn()
        before = recording(out)
        turn()
        found = rates(before, recording(out))
    finally:
        server.terminate()
        server.wait()
    assert not exceeding(found, REDIS), found


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return harness.compile_c(harness.HERE / "self_measurement.c", tmp_path_factory.mktemp("program") / "self_measurement")


def test_a_loop_leaves_the_fast_way_for_nothing(program, out):
    found = measured([program, "steady"], out)
    assert not exceeding(found, {name: 0 for name in USUAL if not name.startswith("slow_")}), found


def test_a_walk_for_each_event_is_seen(program, out):
    """A regression on purpose: all that is remembered is walked, too."""
    found = measured([program, "steady"], out, KMEMSHIM_VERIFY="64")
    seen = [line.partition(":")[0] for line in exceeding(found)]
    assert {"walks", "slow_allocations"} <= set(seen) and found["walks"] > 400, found


DEEP = """
import sys

def nest(levels):
    kept = bytes(600)
    if levels:
        nest(levels - 1)
    return kept, bytes(600)

sys.setrecursionlimit(30000)
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(4):
        nest(20000)
    print("done", flush=True)
"""


def test_a_recursion_that_comes_back_the_same_way_is_remembered(tmp_path, out):
    """However deep, and whether it goes down or comes back; each level's frames are another stack."""
    path = tmp_path / "deep.py"
    path.write_text(DEEP)
    found = measured([sys.executable, path], out)
    assert not exceeding(found, {"slow_allocations": 70, "slow_releases": 75, "successors": 8, "digests": 2, "python_walks": 2, "python_frames": 400}), found


def test_counts_survive_a_kill(program, out):
    done = harness.record([program, "stacks", 300, "kill"], out)
    assert done.returncode == -signal.SIGKILL
    found = recording(out)
    assert 300 <= found["new_stacks"] < 330, found
    assert found["walks"] >= 300 - BATCH and found["growths"] >= 2 and found["system_calls"] >= 50, found
    assert found["longest_pause_ns"] > 0 and found["longest_pause"] in ("walks", "new_stacks", "growths", "heartbeats"), found


def test_a_child_begins_at_0(program, out):
    harness.ok(harness.record([program, "stacks", 300, "fork"], out))
    parent, child = (process["recording"] for process in harness.report("report", out)["processes"])
    assert 300 <= parent["new_stacks"] < 330 and 300 <= child["new_stacks"] < 330, (parent, child)
    whole = recording(out)
    assert all(whole[name] == parent[name] + child[name] for name in ("events", *counts(parent)))
    assert whole["longest_pause_ns"] == max(parent["longest_pause_ns"], child["longest_pause_ns"])


def test_the_page_has_it_when_all_is_asked_for(program, out):
    harness.record([program, "stacks", 300, "kill"], out)
    found = recording(out)
    page = harness.kmemshim("report", "--all", out).stdout
    assert "\nWhat recording did  per 1,000 events\n" in page
    assert re.search(rf"^ +{found['new_stacks']} +{found['new_stacks'] * 1000 / found['events']:.2f}  stacks that were stored$", page, re.MULTILINE), page
    assert "What recording did" not in harness.kmemshim("report", out).stdout


OWN_NEW = """
#include <stdlib.h>

static int calls;
void *_Znwm(size_t bytes) { calls++; return malloc(bytes); }
__attribute__((visibility("default"))) void beyond_pair(void)
{
	int before = calls;
	void *block = _Znwm(100);

	if (block == NULL || calls != before + 1)
		abort();
	free(block);
}
"""


def test_behind_very_many_libraries_an_operator_new_is_searched_once(tmp_path, out):
    """More of them than a list of 2,048 would hold stand before it."""
    count = 2_100
    (tmp_path / "own_new.c").write_text(OWN_NEW)
    program = harness.compile_c(PROGRAMS / "beyond.c", tmp_path / "beyond", "-O0")
    first = harness.compile_c(PROGRAMS / "beyond_library.c", tmp_path / "0.so", "-shared", "-fPIC")
    for number in range(1, count):
        shutil.copyfile(first, tmp_path / f"{number}.so")
    harness.compile_c(tmp_path / "own_new.c", tmp_path / f"{count}.so", "-shared", "-fPIC", "-fno-builtin")
    harness.ok(harness.record([program, "libraries", count + 1, 1, tmp_path], out))
    found = recording(out)
    assert (found["new_searches"], found["new_pages"]) == (1, 1), found
