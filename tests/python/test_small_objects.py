"""The set of `make small-objects`: its programs are whole, and two of them, recorded object by object, name their line."""
import pytest

import small_objects

PYTHON = "/usr/bin/python3"
LINES_MAX = 40


def test_each_program_has_one_culprit_and_is_short():
    assert len(small_objects.programs()) >= 30
    for program in small_objects.programs():
        assert small_objects.culprit(program)
        assert len(program.read_text().splitlines()) < LINES_MAX, program.name


@pytest.mark.parametrize("name", ["dict_of_strings", "multiprocessing_worker"])
def test_the_culprit_is_first_with_python_objects(name):
    program = small_objects.PROGRAMS / f"{name}.py"
    first, share, is_right = small_objects.judge(program, PYTHON, ["--python-objects"])
    assert is_right, f"{first}, {share} %"


def test_the_first_place_is_the_largest_of_all_domains_but_address_space():
    def row(domain, line, live):
        where = line and {"file": "/somewhere/a.py", "line": line}
        return {"domain": domain, "where": where, "live_bytes": live}

    rows = [row("heap", 1, 30), row("mmap", 2, 40), row("heap", 2, 5), row("reserved", 3, 900), row("python/arena", None, 25)]
    totals = {domain: {"live_bytes": sum(each["live_bytes"] for each in rows if each["domain"] == domain)}
              for domain in ("heap", "mmap", "reserved", "python/arena")}
    assert small_objects.first_row({"lines": rows, "totals": totals}) == ("a.py:2", 45)
