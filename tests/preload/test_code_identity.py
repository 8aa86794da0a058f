"""Code objects die and their addresses come back: nothing may be charged to a function that is gone."""
import re

import pytest

from harness import HERE, kmemshim, ok, read_report, record, report, run, silent, unwrapped
from test_cells import VERSIONS, interpreter_of


def check_functions(out, count):
    """Every function is there under its name, file and line, with the bytes that it alone asked for."""
    seen = {}
    document = read_report("sites", out, "--domain", "heap")
    for site in document["sites"]:
        where = site["where"] or {"function": ""}
        match = re.fullmatch(r"function_(\d+)", where["function"])
        if not match or "relation" in where:  # what another thread did meanwhile
            continue
        number = int(match[1])
        assert where["file"] == f"made_{number}.py" and where["line"] == number % 7 + 2, where
        seen[number] = seen.get(number, 0) + site["allocated_bytes"]
    assert document["losses"]["lost_python_text"] == 0
    wrong = {number: seen.get(number) for number in range(count)
             if not 0 <= seen.get(number, 0) - (2000 + number % 50000) <= 64}
    assert not wrong, (len(wrong), list(wrong.items())[:5])


OLDEST_AND_NEWEST = (VERSIONS[0], VERSIONS[-1])


@pytest.mark.parametrize("version, threads", [pytest.param("3.8", 1, marks=pytest.mark.long)] + [
    pytest.param(version, 4, marks=[] if version in OLDEST_AND_NEWEST else pytest.mark.long) for version in VERSIONS])
def test_twenty_thousand_functions_and_none_misnamed(version, threads, out):
    count = 20000
    done = ok(record([interpreter_of(version), HERE / "exec_many.py", count, threads], out))
    assert int(done.stdout.split()[0]) < count / 2  # else nothing was put to the test
    check_functions(out, count)


@pytest.mark.parametrize("version", VERSIONS)
def test_functions_of_several_interpreters(version, out):
    silent(record([interpreter_of(version), HERE / "exec_interpreters.py", 4000, 3], out))
    check_functions(out, 4000)


@pytest.mark.long
def test_ever_more_functions_need_bounded_room_and_the_loss_is_told(out):
    """200,000 are more than there is room for; a million made the program 33 MiB larger and the capture 29 MB."""
    program = [interpreter_of("3.11"), HERE / "exec_many.py", 200000, 1]
    plain = run(program)
    done = ok(record(program, out))
    grown = (int(done.stdout.split()[1]) - int(plain.stdout.split()[1])) / 1024
    size = sum(file.stat().st_size for file in out.iterdir()) / 1e6
    print(f"{grown:.0f} MiB more resident, capture of {size:.0f} MB")
    assert grown < 60 and size < 60
    document = report("sites", out, "--domain", "heap", "--top", "20")
    assert document["losses"]["lost_python_text"] > 50000
    assert document["totals"]["heap"]["allocated_count"] >= 200000
    assert "times there was no room for the name or lines of a Python function" in unwrapped(kmemshim("report", out).stdout)
