"""
What was freed and cannot be given back: told as fragmentation, with figures that agree with what the system says, of programs in C, C++
and Python that their container's limit ended, or a signal in their sleep, when the last that they did was to free.
"""
import signal

import pytest

import harness

pytestmark = pytest.mark.usefixtures("as_users_run_it")

LIMIT_MIB = 300  # what refills waits a millisecond each time: looks take a 32nd part of the time at most, and one is to come on a busy machine, too
LIVE_BYTES = 4000 * 900
PYTHON = """
import os
import re
import signal
import sys
import time
COUNT = 200000
BYTES = 867 # with the head of an object and malloc's words as much as in C
kept = []
def work():
    return b"x" * BYTES
def keep():
    kept.append(b"x" * BYTES)
def refill():
    kept.append(b"x" * (BYTES * 115))
    time.sleep(.001)
def tell_truth():
    text = open("/proc/self/smaps").read()
    figures = [sum(int(kib) for kib in re.findall(r"^Rss: +(\\d+) kB", part, re.M))
               for part in (text, re.search(r"\\[heap\\]\\n(.*?)\\nPss:", text, re.S).group(0))]
    print(*figures, file=open(sys.argv[2], "w"))
worked = [None] * COUNT
for i in range(COUNT):
    if i % 50:
        worked[i] = work()
    else:
        keep()
for i in range(COUNT):
    worked[i] = None
    if i % 250 == 0:
        time.sleep(.001)  # as in fragmented.h
tell_truth()
if sys.argv[1] == "asleep":
    os.kill(os.getpid(), signal.SIGKILL)
while True:
    refill()
"""


@pytest.fixture(scope="module")
def fragmented_cc(tmp_path_factory):
    return harness.compile_cc(tmp_path_factory.mktemp("fragmented"), "fragmented")


@pytest.fixture(params=["C", "C++", "Python"])
def fragmented(request, programs, fragmented_cc, tmp_path):
    if request.param == "C":
        return [programs("fragmented.c")]
    if request.param == "C++":
        return [fragmented_cc]
    script = tmp_path / "fragmented.py"
    script.write_text(PYTHON)
    return [harness.find_python(), script]


def check(out, truth, process):
    """Within a fifth of what the system says, and of what the program knows."""
    resident_bytes, heap_bytes = (int(word) << 10 for word in truth.read_text().split())
    found = process["fragmentation"]
    assert found is not None, process["resident"]
    assert abs(found["freed_bytes"] - (heap_bytes - LIVE_BYTES)) < heap_bytes / 5, (found, heap_bytes)
    assert found["freed_bytes"] / found["resident_bytes"] * 1e6 == pytest.approx(found["share_ppm"], abs=2)
    return resident_bytes, found


def first_row(out):
    return harness.report("leaks", out, "--top", "1")["lines"][0]


def test_a_kill_in_its_sleep_after_a_phase_of_frees(fragmented, out, tmp_path):
    done = harness.run([harness.KMEMSHIM, "run", "-o", out, "--", *fragmented, "asleep", tmp_path / "truth"])
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    document = harness.report("report", out)
    verdict, process = document["verdict"], document["processes"][0]
    resident_bytes, found = check(out, tmp_path / "truth", process)
    assert abs(found["resident_bytes"] - resident_bytes) < resident_bytes / 5, (found, resident_bytes)
    assert "not given back" in verdict["text"] and "malloc_trim(0)" in verdict["next"], verdict
    assert verdict["memory"]["fragmentation"]["pid"] == process["pid"]
    first = first_row(out)
    assert first["where"]["function"].startswith("keep") and first["live_bytes"] == pytest.approx(LIVE_BYTES, rel=.05), first


def test_a_kill_at_the_limit_while_the_holes_stay(fragmented, out, tmp_path):
    with harness.memory_group(LIMIT_MIB << 20) as group:
        run = [harness.KMEMSHIM, "run", "-o", out, "--", *fragmented, "limit", tmp_path / "truth"]
        done = harness.run(["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', group, *run])
    assert done.returncode == 128 + signal.SIGKILL, done.stderr
    document = harness.report("report", out)
    verdict, process = document["verdict"], document["processes"][0]
    assert verdict["cause"] == "container-limit", verdict["text"]
    _, found = check(out, tmp_path / "truth", process)
    assert abs(found["resident_bytes"] - (LIMIT_MIB << 20)) < (LIMIT_MIB << 20) / 5, found
    found = [finding["kind"] for finding in verdict["findings"]]
    assert found.index("freed-not-returned") < found.index("line"), verdict
    assert "refill" in verdict["findings"][found.index("line")]["where"], verdict
    assert "malloc_trim(0)" in verdict["next"], verdict["next"]
    assert first_row(out)["where"]["function"].startswith("refill")


def test_of_several_processes_each_has_figures_of_its_own(programs, out, tmp_path):
    program = programs("fragmented.c")
    truths = [tmp_path / "first", tmp_path / "second"]
    script = " & ".join(f'"$0" asleep {truth}' for truth in truths) + " & wait"
    assert harness.run([harness.KMEMSHIM, "run", "-o", out, "--", "sh", "-c", script, program]).returncode == 0
    found = [process for process in harness.report("report", out)["processes"] if process["name"].startswith("fragmented")]
    assert len(found) == 2
    for process, truth in zip(found, truths):
        check(out, truth, process)


ENDS = """
#include <stdlib.h>
#include <string.h>
struct session {
	struct session *next;
	char buffer[4000];
};
int main(void)
{
	struct session *all = NULL;

	for (int i = 0; i < 20000; i++) {
		struct session *session = malloc(sizeof(*session));
		memset(session, 1, sizeof(*session));
		session->next = all;
		all = session;
		free(malloc(10000));
	}
	while (all != NULL) {
		struct session *next = all->next;
		free(all);
		all = next;
	}
	free(calloc(1, 100)); // all stays with malloc
	return 0;
}
"""


def test_what_the_end_of_the_program_freed_is_no_fragmentation(tmp_path):
    """It exits next: nobody needs that memory back."""
    (tmp_path / "ends.c").write_text(ENDS)
    program = tmp_path / "ends"
    assert harness.run(["gcc", "-O1", "-g", "-fno-builtin", "-o", program, tmp_path / "ends.c"]).returncode == 0
    harness.run([program], harness.shim_env(tmp_path / "out", MALLOC_TRIM_THRESHOLD_=1000000000))
    document = harness.report("why", tmp_path / "out")
    verdict = document["verdict"]
    assert document["processes"][0]["resident"]["parts"]["brk"] > 64 << 20, "malloc kept nothing: this needs another program"
    assert "grew until the peak" in verdict["next"], verdict
    assert "malloc_trim" not in verdict["text"] + verdict["next"] and "fragmentation" not in verdict["text"], verdict


FULL = """
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 30000; i++) {
        void **block = malloc(8192);
        if (block == NULL)
            break;
        memset(block, 1, 8192);
        if (i % 100 == 0)
            usleep(2000);
    }
    usleep(1500000);
    return 3;
}
"""


def test_blocks_for_which_there_was_no_map_are_not_free(tmp_path):
    """With few addresses the map of blocks has holes: what lies there is in a table, and nobody knows which pages it fills."""
    (tmp_path / "full.c").write_text(FULL)
    assert harness.run(["gcc", "-g", "-O1", tmp_path / "full.c", "-o", tmp_path / "full"]).returncode == 0
    done = harness.run(["sh", "-c", 'ulimit -v 300000; exec "$@"', "sh", harness.KMEMSHIM, "run", "-o", tmp_path / "out", "--", tmp_path / "full"])
    assert done.returncode == 3, done.stderr
    process, = harness.report("report", tmp_path / "out")["processes"]
    assert process["resident"]["heap_pages"]["sampled_pages"] > 1000 and process["resident"]["heap_pages"]["empty_bytes"] < 1 << 20, process["resident"]
    assert "fragmentation" not in harness.kmemshim("why", tmp_path / "out").stdout


CACHE = """
#include <stdlib.h>
#include <unistd.h>
#include <list>
#include <vector>
struct Wait { ~Wait() { usleep(150000); } };
int main()
{
    Wait wait; // as on a busy machine
    std::list<std::vector<char>> cache; // its destructor runs as main returns
    for (int i = 0; i < 100000; i++) {
        cache.emplace_front(64000, (char)i);
        if (cache.size() > 800)
            cache.pop_back();
    }
}
"""


def test_what_a_local_destructor_frees_as_main_returns_is_no_fragmentation(tmp_path):
    """It did not grow until its peak: a cache of constant size, which the program holds to its end."""
    (tmp_path / "cache.cc").write_text(CACHE)
    assert harness.run(["g++", "-g", "-O1", tmp_path / "cache.cc", "-o", tmp_path / "cache"]).returncode == 0
    done = harness.run([harness.KMEMSHIM, "run", "-o", tmp_path / "out", "--", tmp_path / "cache"])
    document = harness.report("report", tmp_path / "out")
    resident = document["processes"][0]["resident"]
    assert resident["heap_pages"]["empty_bytes"] > 32 << 20, f"it was not seen after the release: {resident}"
    assert "fragmentation" not in done.stderr + document["verdict"]["text"] and "malloc_trim" not in done.stderr, done.stderr


GROWS = """
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    char *block = NULL;
    size_t bytes = 0;
    if (argc == 1) { /* moved with its mapping */
        while (bytes < 64 << 20) {
            block = realloc(block, bytes + (1 << 20));
            memset(block + bytes, 1, 1 << 20);
            bytes += 1 << 20;
            usleep(10000);
        }
    } else { /* freed, and asked for again: its pages are there all the time. So little freed is no reason for a look */
        mallopt(M_MMAP_THRESHOLD, 1 << 30);
        mallopt(M_TRIM_THRESHOLD, 1 << 30);
        for (bytes = 2 << 20; bytes < 16 << 20; bytes += 1 << 20) {
            free(block);
            block = malloc(bytes);
            memset(block, 1, bytes);
            usleep(60000);
        }
        bytes -= 1 << 20;
    }
    kill(getpid(), SIGKILL);
    return block[bytes - 1];
}
"""


@pytest.mark.parametrize(["way", "limit"], [([], "80M"), (["again"], "19M")], ids=["realloc", "malloc"])
def test_a_block_whose_event_makes_a_look_is_in_the_map_by_then(tmp_path, way, limit):
    """The look came between the books and the map: one block that grows seemed to be all free."""
    (tmp_path / "grows.c").write_text(GROWS)
    assert harness.run(["gcc", "-g", "-O1", "-fno-builtin", tmp_path / "grows.c", "-o", tmp_path / "grows"]).returncode == 0
    harness.run([tmp_path / "grows", *way], harness.shim_env(tmp_path / "out", KMEMSHIM_GUARD=limit))  # for short steps
    process, = harness.report("report", tmp_path / "out")["processes"]
    assert process["resident"]["bytes"] > 10 << 20, "there was no look late enough"
    # None: all pages are those of large blocks
    assert process["resident"]["heap_pages"] is None or process["resident"]["heap_pages"]["empty_bytes"] < 1 << 20, process["resident"]
    assert "fragmentation" not in harness.kmemshim("why", tmp_path / "out").stdout


STATIC_OBJECTS = """
#include <map>
#include <string>
#include <vector>
static std::vector<std::string> table;
static std::map<int, std::string> names;
int main()
{
    for (int i = 0; i < 40000; i++) {
        table.push_back(std::string(1000, 't'));
        names[i] = std::string(500, 'n');
    }
}
"""


def test_what_destructors_release_as_the_program_ends_is_no_fragmentation(tmp_path):
    """The last look may come while they run."""
    (tmp_path / "statics.cc").write_text(STATIC_OBJECTS)
    assert harness.run(["g++", "-g", "-O1", tmp_path / "statics.cc", "-o", tmp_path / "statics"]).returncode == 0
    for number in range(4):
        harness.record([tmp_path / "statics"], tmp_path / f"out{number}")
        said = harness.kmemshim("why", tmp_path / f"out{number}").stdout
        assert "Exit handlers or destructors released" in said and "not given back" not in said, said
