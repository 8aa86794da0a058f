#!/usr/bin/env python3
"""Holds CASES.md against the tests that ran: every case names one that did, or says why it has none.

check_cases.py CASES.md RAN [--all]

RAN has a line "outcome<tab>test" for each test: preload/test_gate.py::test_x[parameter] of pytest, unit/shim/record/test_tracker.c::name of
cmocka, stress/tracker.c of a program that is one test. A case may name a file, a test, or a test with its parameters. Tests that
need frameworks run later and count as there; with --all they must have run too. Those that take long need not (make test-long), and
those with a browser have a run of their own (make test-jupyter): they must stand in their file.
"""
import collections
import pathlib
import re
import sys

TESTS = pathlib.Path(__file__).parent
NAMED = re.compile(r"`((?:unit|jupyter|stress|fuzz|preload|python|cuda|bench|fault|deaths|leaks|mutate|real)/[^`]+)`")
NO_TEST = re.compile(r"(does not apply|open): \S+")


def read_ran(lines):
    """Each test's outcomes, under its name, the name without parameters, and its file."""
    outcomes = collections.defaultdict(set)
    for line in lines:
        outcome, name = line.rstrip("\n").split("\t")
        for part in {name, name.split("[")[0], name.split("::")[0]}:
            outcomes[part].add(outcome)
    return outcomes


def stands_in_its_file(name):
    """Whether name, jupyter/test_x.py::test_y, is a test of a run of its own."""
    path, _, test = name.split("[")[0].partition("::")
    if not path.startswith("jupyter/") or not (TESTS / path).is_file():
        return False
    return f"\ndef {test}(" in (TESTS / path).read_text(encoding="utf-8")


def rows(lines):
    """(line number, case, what covers it) of each row of each table."""
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if not line.startswith("|") or cells[0] == "case" or set(line) <= set("|-: \n"):
            continue
        yield number, cells[0], cells[1] if len(cells) == 2 else ""


def check(cases, ran, everything):
    """(what is wrong, line by line; how many cases are of which kind)"""
    outcomes, wrong, count = read_ran(ran), [], collections.Counter()
    for number, case, cover in rows(cases):
        names = NAMED.findall(cover)
        if not names:
            kind = NO_TEST.search(cover)
            if not kind:
                wrong.append(f"{number}: \"{case}\" names no test and no reason")
            count[kind[1] if kind else "nothing"] += 1
            continue
        for name in names:
            became = outcomes.get(name, set())
            if not became and not stands_in_its_file(name):
                wrong.append(f"{number}: {name} is no test that ran")
            elif became == {"failed"} or (became == {"left out"} and everything):
                wrong.append(f"{number}: {name} {' and '.join(sorted(became))}")
        passed = any("passed" in outcomes.get(name, ()) for name in names)
        count["passed" if passed else "skipped or left for later"] += 1
    return wrong, count


def main(arguments):
    if len(arguments) < 2:
        print(__doc__.split("\n\n")[1], file=sys.stderr)
        return 2
    try:
        cases, ran = (open(path, encoding="utf-8") for path in arguments[:2])
    except OSError as error:
        print(f"{error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    wrong, count = check(cases, ran, "--all" in arguments)
    for line in wrong:
        print(f"{arguments[0]}:{line}")
    print(f"{sum(count.values())} cases: " + ", ".join(f"{number} {kind}" for kind, number in count.most_common()))
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
