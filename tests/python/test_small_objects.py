"""The set of `make small-objects`: its programs are whole. Some of them, by default settings, name their line, and its bytes are right."""
import pytest

import estimates
import small_objects
import small_objects_estimates

PYTHON = "/usr/bin/python3"
LINES_MAX = 40


def test_each_program_has_one_culprit_and_is_short():
    assert len(small_objects.programs()) >= 30
    for program in small_objects.programs():
        assert small_objects.culprit(program)
        assert len(program.read_text().splitlines()) < LINES_MAX, program.name


@pytest.mark.parametrize("name, way", [("set_of_strings", "default"), ("multiprocessing_worker", "default"), ("copied_by_reading", "default"),
                                       ("dict_of_strings", "--python-objects")])
def test_the_culprit_is_first(name, way):
    program = small_objects.PROGRAMS / f"{name}.py"
    first, share, is_right = small_objects.judge(program, PYTHON, small_objects.WAYS[way])
    assert is_right, f"{first}, {share} %"


@pytest.mark.parametrize("name", ["csv_rows", "loader_workers"])
def test_the_estimate_is_near_what_python_objects_says(name):
    turns, truth, runs = small_objects_estimates.compare(small_objects.PROGRAMS / f"{name}.py", PYTHON, 2)
    assert turns and all(error for _, error, *_ in runs)
    for told, _, _, of_samples in runs:
        assert estimates.is_right(of_samples, truth - (told - of_samples)), (truth, runs)  # the rest is exact


@pytest.mark.parametrize("text, line, stopped", [
    ("a = 1\nb = 2\n", 2, "a = 1\n%sb = 2\n"),
    ("def f():\n    return 1\n", 2, "def f():\n    %sreturn 1\n"),
    ("def f():\n    def g():\n        pass\n    return g\n", 2, "def f():\n    def g():\n        pass\n    %sreturn g\n"),  # behind what opens a block
    ("try:\n    a\nfinally:\n    b\n", 4, "try:\n    a\nfinally:\n    %sb\n"),
])
def test_the_stop_stands_before_the_line_and_moves_no_other(text, line, stopped):
    assert small_objects_estimates.with_stop(text, line) == stopped % small_objects_estimates.CALL


def test_every_program_takes_the_stop():
    for program in small_objects.programs():
        line = int(small_objects.culprit(program).rsplit(":")[-1])
        text = small_objects_estimates.with_stop(program.read_text(), line)
        compile(text, program.name, "exec")
        assert len(text.splitlines()) == len(program.read_text().splitlines())


def test_the_first_place_is_the_largest_of_all_domains_but_address_space():
    def row(domain, line, live):
        where = line and {"file": "/somewhere/a.py", "line": line}
        return {"domain": domain, "where": where, "live_bytes": live}

    rows = [row("heap", 1, 30), row("mmap", 2, 40), row("heap", 2, 5), row("reserved", 3, 900), row("python/arena", None, 25)]
    totals = {domain: {"live_bytes": sum(each["live_bytes"] for each in rows if each["domain"] == domain)}
              for domain in ("heap", "mmap", "reserved", "python/arena")}
    assert small_objects.first_row({"lines": rows, "totals": totals}) == ("a.py:2", 45)
