"""
Can a team trust `check`? Unchanged code passes each time on a loaded machine; 1 KiB kept in each step of a program that churns 100 MiB in each
fails it each time. TRUST=100 says how often (20 without it: two to three minutes); docs/ci.md has what was measured.
"""
import contextlib
import os
import subprocess
import sys

import pytest

import harness

OK, REGRESSION = 0, 1
TIMES = int(os.environ.get("TRUST", "20"))

CHURN = """
#include <stdlib.h>
#include <string.h>
#define BLOCKS 100
static char *kept[1000];
static char *work[BLOCKS];
static __attribute__((noinline)) char *take(size_t bytes) {
	char *block = malloc(bytes);
	memset(block, 1, bytes < 4096 ? bytes : 4096);
	return block;
}
static __attribute__((noinline)) char *remember(void) { return take(1024); }
static __attribute__((noinline)) void step(int i, int how) {
	for (int k = 0; k < BLOCKS; k++) work[k] = take(1 << 20);
	if (how == 1) kept[i] = remember();
	if (how == 2) kept[i] = take(1024);
	for (int k = 0; k < BLOCKS; k++) free(work[k]);
}
int main(int argc, char **argv) {
	for (int i = 0; i < 100; i++) step(i, argc > 1 ? atoi(argv[1]) : 0);
	return 0;
}
"""

# Threads that take turns as they can, caches that hold what came last, sizes that no seed fixes.
BUSY = """
import collections, json, os, queue, random, threading
chance = random.Random(os.urandom(8))
cache, tasks, results = collections.OrderedDict(), queue.Queue(8), collections.deque(maxlen=50)
lock = threading.Lock()
def remember(key, value):
    with lock:
        cache[key] = value
        if len(cache) > 64:
            cache.popitem(last=False)
def work():
    while (number := tasks.get()) is not None:
        rows = [{"n": i, "text": "x" * chance.randrange(50, 400)} for i in range(200)]
        text = json.dumps(rows)
        remember(number % 97, bytearray(chance.randrange(1000, 40000)))
        results.append(len(json.loads(text)))
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for number in range(400): tasks.put(number)
for thread in threads: tasks.put(None)
for thread in threads: thread.join()
"""

BURN = "import time\nend = time.monotonic() + 3600\nwhile time.monotonic() < end: sum(bytearray(1 << 20))"


@contextlib.contextmanager
def load():
    """Twice as many busy processes as there are processors."""
    burning = [subprocess.Popen([sys.executable, "-c", BURN]) for _ in range(2 * os.cpu_count())]
    try:
        yield
        assert all(process.poll() is None for process in burning)
    finally:
        for process in burning:
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The programs, and a baseline of each, made before the load begins."""
    folder = tmp_path_factory.mktemp("trust")
    (folder / "churn.c").write_text(CHURN)
    (folder / "busy.py").write_text(BUSY)
    harness.compile_c(folder / "churn.c", folder / "churn")
    for name, words in PROGRAMS.items():
        done = harness.run([harness.KMEMSHIM, "baseline", "-o", f"{name}.json", "--", *words], cwd=folder)
        assert done.returncode == OK, done.stderr
    return folder


PROGRAMS = {"churn": ["./churn"], "busy": [harness.find_python(), "busy.py"]}


def statuses(folder, times, name, words, *options):
    """How often each status came; and the last output."""
    counted, said = {}, ""
    for _ in range(times):
        done = harness.run([harness.KMEMSHIM, "check", "--baseline", f"{name}.json", *options, "-o", "now", "--", *words], cwd=folder)
        counted[done.returncode] = counted.get(done.returncode, 0) + 1
        said = done.stdout + done.stderr if done.returncode not in (OK, REGRESSION) or not said else said
        harness.run(["rm", "-r", folder / "now"])
    print(name, words[1:], options, counted)
    return counted, said


@pytest.mark.long
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_unchanged_code_passes_each_time(folder, name):
    with load():
        counted, said = statuses(folder, TIMES, name, PROGRAMS[name])

    assert counted == {OK: TIMES}, said


@pytest.mark.long
@pytest.mark.parametrize("how", ["1", "2"], ids=["a line of its own", "the line that churns"])
def test_one_kib_in_each_step_fails_each_time(folder, how):
    with load():
        counted, said = statuses(folder, TIMES, "churn", ["./churn", how], "--retries", "0")
        again, _ = statuses(folder, max(TIMES // 20, 1), "churn", ["./churn", how])

    assert counted == {REGRESSION: TIMES} and list(again) == [REGRESSION], said
    assert "churn.c:" in said
