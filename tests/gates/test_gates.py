"""What the gates make of figures that are known beforehand."""
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bench")]

import ab  # noqa: E402
import calls  # noqa: E402
import instructions  # noqa: E402
import runner  # noqa: E402
import table  # noqa: E402
import workloads  # noqa: E402


def test_the_committed_table_has_every_row_and_a_commit():
    base = table.read()
    assert len(base.commit) == len(base.before) == 40 and base.machine.startswith("gcc ")
    assert list(base.of("instructions")) == [loop.name for loop in instructions.LOOPS]
    assert list(base.of("calls")) == [program.workload.name for program in calls.PROGRAMS]
    assert list(base.of("ab")) == [program.name for program in ab.PROGRAMS]
    assert table.parse(table.render(base)) == base


def test_an_event_over_a_dense_heap_costs_about_what_one_over_glibc_s_does():
    """The heap's own work is in both, and it is little."""
    counted = table.read().of("instructions")
    assert counted["pairs-dense"] <= 1.3 * counted["pairs-d3"]


@pytest.mark.parametrize("line", ["instructions pairs-d3", "calls true many", "commit", "instructions pairs-d3 1 2"])
def test_a_line_that_means_nothing_is_told(line):
    with pytest.raises(table.Trouble, match="base.txt:2: "):
        table.parse(f"commit abc\n{line}\n")


@pytest.mark.parametrize("value, is_exact, expected", [
    (101.9, True, ""), (102.1, True, "dearer"), (102.1, False, "dearer"), (98.1, True, ""),
    (97.9, True, "cheaper: the table is to be written"), (97.9, False, ""),
])
def test_instructions_may_move_by_two_hundredths(value, is_exact, expected):
    (_, _, _, _, complaint), = instructions.judge({"realloc": value}, {"realloc": 100.0}, is_exact)
    assert complaint == expected


def test_a_loop_without_a_row_is_told():
    assert [row[-1] for row in instructions.judge({"new": 1.0}, {}, True)] == ["has no row in the table"]


LOG = """\
12 execve("/bin/true", ["true"], 0x7f /* 9 vars */) = 0
12 openat(AT_FDCWD, "/etc/ld.so.cache", O_RDONLY) = 3
12 openat(AT_FDCWD, "/proc/self/statm", O_RDONLY|O_CLOEXEC) = 4
12 read(4,  <unfinished ...>
13 close(3) = 0
12 <... read resumed>"1 2 3", 99) = 5
13 --- SIGCHLD {si_signo=SIGCHLD} ---
12 close(4) = 0
12 close(3) = 0
12 exit_group(0) = ?
12 +++ exited with 0 +++
"""


def test_calls_are_those_that_strace_shows_but_for_looks_by_the_clock():
    assert calls.parse(LOG.splitlines()) == {"execve": 1, "openat": 1, "close": 2, "exit_group": 1}
    assert calls.added({"openat": 5, "brk": 1}, {"brk": 3}) == {"openat": 5, "brk": -2}


@pytest.mark.parametrize("name, counts, expected", [
    ("blocks", [{"read": 200}, {"read": 400}], ""),
    ("blocks", [{"read": 200}, {"read": 401}], "grows with the events: +201 read"),
    ("python-end", [{"read": 200}, {"read": 800}], ""),                                     # one in a hundred of 60,000 events
    ("python-end", [{"read": 200}, {"read": 200, "prlimit64": 601}], "grows with the events: +601 prlimit64"),
    ("true", [{"read": 200, "prlimit64": 51, "brk": -1}], ""),                              # a quarter above the table
    ("true", [{"read": 200, "prlimit64": 51}], "adds more: +200 read, +51 prlimit64"),
])
def test_calls_have_a_bound_and_do_not_grow(name, counts, expected):
    (*_, complaint), = calls.judge({name: counts}, {name: 200})
    assert complaint == expected
    assert [row[-1] for row in calls.judge({name: counts}, {})] == [expected if "grows" in expected else "has no row in the table"]


@pytest.mark.parametrize("ratios, is_worse", [
    ([1.04] * 20, True),
    ([1.02] * 20, False),               # surely dearer, and within what is allowed
    ([0.9, 1.2] * 10, False),           # by less than the spread
    ([1.0] * 6 + [1.05] * 14, False),   # six of twenty rounds say nothing of it: the interval begins there
    ([0.99] * 5 + [1.05] * 15, True),
])
def test_worse_is_beyond_the_limit_and_the_spread(ratios, is_worse):
    assert ab.judge(ratios).is_worse is is_worse


def test_programs_are_workloads_and_go_in_turns(tmp_path):
    assert all(program.workload in workloads.WORKLOADS for program in ab.PROGRAMS)
    with runner.Turns(["/usr/bin/python3", workloads.PROGRAMS / "work_churn.py", "2"], {}, tmp_path / "a", None) as program:
        assert program.turn() > 0 and program.turn() > 0
    assert program.child.returncode == 0
    with pytest.raises(RuntimeError, match="no ready: .*no such file"):
        runner.Turns(["/usr/bin/python3", "-c", "raise OSError('no such file')"], {}, tmp_path / "b", None).__enter__()


def test_a_commit_that_is_not_in_the_clone_is_one_line():
    if subprocess.run(["git", "-C", table.ROOT, "rev-parse"], capture_output=True).returncode != 0:
        pytest.skip("no clone")
    with pytest.raises(table.Trouble, match="is not in this clone: fetch the whole history"):
        table.commit_of("0" * 40)
