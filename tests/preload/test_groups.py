"""--by function, file, module, package, thread: each byte in one group, and the group that a person would name."""
import re

import pytest

import harness

PROGRAM = """
import json, threading
from concurrent.futures import ThreadPoolExecutor
import numpy as np
import store.rows
class Cache:
    def fill(self, size): return [bytearray(size) for _ in range(50)]
def worker(size): return bytearray(size)
def train():
    return Cache().fill(200_000), Cache().fill(100_000)
kept = [train()]
kept.append(store.rows.make(3_000_000))
kept.append(np.concatenate([np.ones(500_000), np.ones(500_000)]))
text = "[" + ",".join('"%0500d"' % i for i in range(2000)) + "]"
kept.append([json.loads(text) for _ in range(4)])
thread = threading.Thread(target=lambda: kept.append(worker(5_000_000)))
thread.start(); thread.join()
with ThreadPoolExecutor(1) as pool:
    kept.extend(pool.map(worker, [2_000_000] * 3))
"""
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
SIZE = r"≈?([\d.]+) (B|KiB|MiB|GiB)"
GROUPS = ("function", "file", "module", "package", "thread")


@pytest.fixture(scope="module")
def capture(tmp_path_factory, numpy_python):
    folder = tmp_path_factory.mktemp("groups")
    (folder / "store").mkdir()
    (folder / "store" / "__init__.py").write_text("")
    (folder / "store" / "rows.py").write_text("def make(size):\n    return bytearray(size)\n")
    (folder / "program.py").write_text(PROGRAM)
    harness.record([numpy_python, folder / "program.py"], folder / "out")
    return folder / "out"


def size(number, unit):
    return float(number) * UNITS[unit]


def lines_of(*words):
    done = harness.silent(harness.kmemshim(*words))
    return done.stdout.splitlines()


def groups_of(command, grouping, capture, *options):
    """(total, {group: (bytes, {part: bytes})})"""
    lines = lines_of(command, "--by", grouping, "--top", "1000", *options, capture)
    heading = re.search(rf", by {grouping}: {SIZE} of ", lines[0])
    assert heading, lines[0]
    groups, name = {}, ""
    for line in lines[1 + [line.split()[1:2] for line in lines].index(["share"]):]:
        part = re.fullmatch(rf" {{20}} *{SIZE} in (.*)", line)
        row = re.match(rf" *{SIZE} ", line)
        if part:
            groups[name][1][part[3]] = size(part[1], part[2])
        elif row and not line.endswith("of it in memory"):
            name = re.split(r"  +", line)[-1]
            groups[name] = (size(row[1], row[2]), {})
    return size(heading[1], heading[2]), groups


@pytest.mark.parametrize("command, figure", [("peak", "peak_bytes"), ("leaks", "live_bytes"), ("sites", "live_bytes")])
@pytest.mark.parametrize("grouping", GROUPS)
def test_groups_add_up_to_the_report_and_the_tree(grouping, command, figure, capture):
    """The heading of what is in memory, the rows of what was asked for; in the host's domains."""
    total, groups = groups_of(command, grouping, capture)
    lines = [line for line in harness.report(command, capture)["lines"] if line["domain"] not in ("reserved", "file")]
    wanted = sum(max(line[figure] - line["nonresident_bytes"], 0) for line in lines)
    tree = re.search(rf": {SIZE} of ", lines_of("tree", "--value", figure.split("_")[0], capture)[0])
    assert total == size(tree[1], tree[2]) == pytest.approx(wanted, rel=0.006)  # three digits are shown
    assert sum(held for held, _ in groups.values()) == pytest.approx(sum(line[figure] for line in lines), rel=0.02)


@pytest.mark.parametrize("grouping, group, held, part", [
    ("function", "program.py Cache.fill.<locals>.<listcomp>", 15_000_000, "program.py:7 Cache.fill.<locals>.<listcomp>"),
    ("file", "rows.py", 3_000_000, "make"),
    ("module", "json.decoder", None, None),
    ("module", "numpy.core._multiarray_umath", 8_000_000, None),
    ("package", "numpy", 8_000_000, "its import"),
    ("package", "json", 4_000_000, "loads"),
    ("package", "your own code", 29_000_000, "program.py worker"),
    ("thread", "threads of program.py <lambda>", 5_000_000, "program.py:8 worker"),
    ("thread", "threads of program.py worker", 6_000_000, "program.py:8 worker"),
])
def test_each_group_is_what_a_person_would_name(grouping, group, held, part, capture):
    groups = groups_of("leaks", grouping, capture, "--domain", "heap")[1]  # exact: small objects are estimated from a sample
    if group == "program.py Cache.fill.<locals>.<listcomp>" and group not in groups:  # newer Pythons have no function of it
        group, part = "program.py Cache.fill", "program.py:7 Cache.fill"
    if group == "numpy.core._multiarray_umath":  # its folder has another name from numpy 2 on
        group = next(name for name in groups if name.endswith("_multiarray_umath"))
    if group == "rows.py" and group not in groups:
        group = "store/rows.py"
    assert group in groups, groups
    if held is not None:
        assert held * 0.99 < groups[group][0] < held * 1.2 + 10_000_000 * (group == "numpy"), groups
    if part is not None:
        assert part in groups[group][1], groups[group]


def test_a_tree_by_package_and_by_thread(capture):
    def rows(grouping):
        heading, *lines = lines_of("tree", "--by", grouping, "--value", "live", capture)
        assert f", by {grouping}: " in heading
        return [re.sub(r"^.{18}", "", line) for line in lines]

    packages = rows("package")
    assert packages[0] == "your own code" and any(row.endswith("─ numpy") for row in packages) and any(row.endswith("─ json") for row in packages)
    threads = rows("thread")
    assert threads[0] == "main thread" and "threads of program.py worker" in threads
    assert sum(row.startswith("threads of") for row in threads) == 2


def test_threads_of_compiled_programs(tmp_path, out):
    source = tmp_path / "pool.c"
    source.write_text("""#include <pthread.h>
#include <stdlib.h>
#include <string.h>
void *kept[3];
static void *churn(void *slot) { return *(void **)slot = memset(malloc(4 << 20), 1, 4 << 20); }
int main(void) {
	pthread_t thread[2];
	for (int i = 0; i < 2; i++) pthread_create(&thread[i], NULL, churn, &kept[i]);
	for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
	return (kept[2] = memset(malloc(1 << 20), 1, 1 << 20)) == NULL;
}
""")
    harness.record([harness.compile_c(source, tmp_path / "pool")], out)
    groups = groups_of("leaks", "thread", out)[1]
    assert groups["threads of pool.c churn"][0] == 8 << 20 and groups["main thread"][0] == 1 << 20, groups


@pytest.mark.parametrize("words", [["peak", "--by", "colour"], ["tree", "--by", "colour"], ["peak", "--by", "file", "--json"], ["why", "--by", "file"]])
def test_what_cannot_be_meant_is_one_line(words, capture):
    done = harness.kmemshim(*words, capture)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
