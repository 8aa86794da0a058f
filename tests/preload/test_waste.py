"""kmemshim waste: what was freed and kept, never touched, allocated again and again."""
import json
import re

import pytest

import harness

PYTHON = harness.find_python()


def waste(*words):
    """{heading: lines}"""
    done = harness.silent(harness.kmemshim("waste", *words))
    parts = re.split(r"^(Freed, and still|Asked for, and never|Allocated again and again|Not known).*$", done.stdout, flags=re.MULTILINE)
    return {parts[i].split(",")[0]: parts[i + 1].strip("\n").splitlines() for i in range(1, len(parts), 2)}


PROGRAM = """
kept = [bytearray(1000)]
for i in range(2000):
    copy = bytearray(50_001)
def mixed():
    for i in range(1000):
        large = bytearray(100_000)
def small():
    for i in range(500):
        little = bytearray(3_000)
mixed()
for i in range(40):
    small()
held = [bytearray(30_000) for _ in range(500)]
once = bytearray(9 << 20)
for i in range(15):
    few = bytearray(1 << 20)
for i in range(16):
    again = bytearray(1 << 20)
"""


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("waste")
    (folder / "program.py").write_text(PROGRAM)
    harness.record([PYTHON, folder / "program.py"], folder / "out")
    return folder / "out"


def test_lines_that_allocate_again_and_again_are_named_with_their_size(capture):
    rows = waste(capture)["Allocated again and again"]
    text = "\n".join(rows)
    places = [re.search(r"program\.py:(\d+)", row)[1] for row in rows if "program.py:" in row]
    assert places[:3] == ["7", "4", "10"], text  # by what was turned over; 13 and 14 hold all that they allocated
    assert not {"13", "14", "17"} & set(places)  # of line 17 there are 15 calls
    assert "19" in places
    assert re.search(r"^ *95\.\d MiB +2,000 +[\d.]+ KiB  heap +program\.py:4 ", text, re.MULTILINE), text
    assert "size 48.8 KiB each, as far as sums can tell" in text
    assert re.search(r"^ *57\.\d MiB +20,000 ", text, re.MULTILINE), text


def test_a_line_of_several_sizes_has_a_histogram(tmp_path):
    (tmp_path / "p.py").write_text("def make(size): return bytearray(size)\nfor i in range(3000): make(20_000)\nfor i in range(1000): make(70_000)\n")
    harness.record([PYTHON, tmp_path / "p.py"], tmp_path / "out")
    text = "\n".join(waste(tmp_path / "out")["Allocated again and again"])
    assert "    average size 16.0 KiB" in text
    sizes = re.findall(r"([\d.]+ KiB to [\d.]+ KiB) +(█+) +([\d,]+) calls", text)
    assert [(size, count, len(bar)) for size, bar, count in sizes] == [("16.0 KiB to 32.0 KiB", "3,000", 8), ("64.0 KiB to 128 KiB", "1,000", 3)], text


def test_what_was_never_touched_is_told_and_address_space_is_not(programs, out):
    harness.record([programs("resident.c")], out)
    lines = [json.loads(row) for row in harness.kmemshim("export", "--format", "ndjson", out).stdout.splitlines()]
    wanted = [line for line in lines if line["nonresident_bytes"] >= 1 << 20]
    rows = [row for row in waste(out)["Asked for"] if re.match(r" *[\d.]+ [KMG]iB  of ", row)]
    assert 1 <= len(rows) == min(len(wanted), 5)


def test_what_malloc_keeps_is_told_with_the_lines_that_keep_it(programs, out, tmp_path):
    harness.record([programs("fragmented.c"), "exits", tmp_path / "truth"], out)  # when it begins to, its pages are looked at
    rows = waste(out)["Freed"]
    freed = next(process["fragmentation"] for process in harness.report("report", out)["processes"])["freed_bytes"]
    assert float(re.match(r" *([\d.]+) MiB  by fragmented\w* \(pid \d+\): [\d.]+ % of what it had in memory", rows[0])[1]) == pytest.approx(freed / (1 << 20), rel=0.01)
    assert any(re.search(r"of pages are kept by few blocks of fragmented\.c:\d+ keep", row) for row in rows), rows


def test_top_and_the_rest_add_up(capture):
    one = waste(capture, "--top", "1")["Allocated again and again"]
    assert sum("program.py:" in row for row in one) == 1 and re.search(r"in \d+ other lines?$", one[-1])


def test_what_the_capture_cannot_tell_is_said(capture):
    assert "is known of a sample, and not of small Python objects" in " ".join(waste(capture)["Not known"])


def test_a_program_that_wastes_nothing(programs, out):
    harness.record([programs("peak_at_start.c")], out)
    assert all(len(rows) >= 1 for rows in waste(out).values())


@pytest.mark.parametrize("words", [["--domain", "cuda"], ["--json"], ["/no/such"]])
def test_what_cannot_be_meant_is_one_line(words, capture):
    done = harness.kmemshim("waste", *words, *([] if words == ["/no/such"] else [capture]))
    assert (done.returncode in (2, 3), done.stdout, done.stderr.count("\n")) == (True, "", 1), done.stderr


SOON = r"""
#include <stdlib.h>
#include <string.h>

static __attribute__((noinline)) void *get(size_t bytes) { void *block = malloc(bytes); memset(block, 1, 16); return block; }

int main(int argc, char **argv)
{
	size_t bytes = (size_t)atol(argv[1]);
	void *ring[8] = { 0 };

	for (int i = 0; i < 20000; i++)
		free(get(bytes)); // at once
	for (int i = 0; i < 20000; i++) {
		free(ring[i % 8]);
		ring[i % 8] = get(bytes); // late
	}
	for (int i = 0; i < 20000; i++) {
		void *block = get(bytes); // every second one
		void *other = i % 2 ? get(24) : NULL;

		free(block);
		free(other);
	}
	return 0;
}
"""


@pytest.mark.usefixtures("as_users_run_it")
@pytest.mark.parametrize("size", [200, 20000, 80000])
def test_how_many_blocks_were_temporary_is_told_of_a_sample(size, tmp_path):
    (tmp_path / "soon.c").write_text(SOON)
    program = harness.compile_c(tmp_path / "soon.c", tmp_path / "soon")
    harness.record([program, str(size)], tmp_path / "out")
    sites = harness.report("sites", tmp_path / "out", "--top", "100", "--wrappers", "get")["lines"]
    parts = {}
    for word in ("at once", "late", "every second one"):
        number = next(at for at, text in enumerate(SOON.splitlines(), 1) if f"// {word}" in text)
        line = next(line for line in sites if line["where"]["line"] == number)
        assert line["temporary_of"] >= 8
        parts[word] = line["temporary_releases"] / line["temporary_of"]
    assert parts["at once"] >= 0.95 and parts["late"] <= 0.05 and 0.3 <= parts["every second one"] <= 0.7, parts
    said = "\n".join(waste("--top", "20", "--wrappers", "get", tmp_path / "out")["Allocated again and again"])
    assert len(re.findall(r"^ +temporary [\d,]+ of [\d,]+ blocks of a sample were released before their thread allocated again$", said, re.MULTILINE)) == 3, said


OBJECTS = """
for _ in range(300):
    kept = [str(i) for i in range(1000)]
"""


@pytest.mark.usefixtures("as_users_run_it")
def test_of_small_python_objects_nobody_knows_how_many_were_temporary(tmp_path):
    (tmp_path / "objects.py").write_text(OBJECTS)
    harness.record([harness.find_python(), tmp_path / "objects.py"], tmp_path / "out")
    lines = [line for line in harness.report("sites", tmp_path / "out", "--top", "1000")["lines"] if line["domain"] == "python/object"]
    assert any(line["watched_releases"] > 8 for line in lines)
    assert all(line["temporary_of"] == line["temporary_releases"] == 0 for line in lines), lines


@pytest.mark.usefixtures("as_users_run_it")
def test_where_each_stack_is_walked_nobody_knows_how_many_were_temporary(tmp_path):
    (tmp_path / "soon.c").write_text(SOON)
    program = harness.compile_c(tmp_path / "soon.c", tmp_path / "soon")
    harness.run([program, "2000000"], harness.shim_env(tmp_path / "out", KMEMSHIM_NATIVE="all"))
    lines = harness.report("sites", tmp_path / "out", "--top", "100", "--wrappers", "get")["lines"]
    assert any(line["watched_releases"] > 8 for line in lines)
    assert all(line["temporary_of"] == 0 for line in lines), lines


HANDED_ON = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int there[2], back[2];

static void *take(void *unused)
{
	void *block;

	while (read(there[0], &block, sizeof(block)) == sizeof(block)) {
		free(block);
		if (write(back[1], "", 1) != 1)
			break;
	}
	return unused;
}

int main(void)
{
	pthread_t thread;
	char word;

	if (pipe(there) != 0 || pipe(back) != 0 || pthread_create(&thread, NULL, take, NULL) != 0)
		return 1;
	for (int i = 0; i < 2000; i++) {
		void *block = memset(malloc(80000), 1, 16);
		if (write(there[1], &block, sizeof(block)) != sizeof(block) || read(back[0], &word, 1) != 1)
			return 2;
	}
	close(there[1]);
	return pthread_join(thread, NULL);
}
"""


@pytest.mark.usefixtures("as_users_run_it")
def test_what_another_thread_releases_may_be_temporary_and_nobody_knows(tmp_path):
    """All of it is: the thread that allocates waits."""
    (tmp_path / "handed_on.c").write_text(HANDED_ON)
    program = harness.compile_c(tmp_path / "handed_on.c", tmp_path / "handed_on", "-pthread")
    harness.record([program], tmp_path / "out")
    line = max(harness.report("sites", tmp_path / "out")["lines"], key=lambda line: line["allocated_bytes"])
    assert line["watched_releases"] > 8 and line["temporary_of"] == 0, line
