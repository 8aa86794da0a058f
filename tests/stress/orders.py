#!/usr/bin/env python3
"""Holds ORDERS.md against the source: each release and acquire of the shim stands there, with the test that is about it.

orders.py check [RAN]       each is named, none is gone, and (RAN: see check_cases.py) each test ran
orders.py weaken [WORD...]  weakens each of them (of rows with these words) to relaxed in a copy of the tree, runs the row's test up to
                            three times under the thread sanitizer, and says whether it was reported (make weaken)

An order is named file:function:object, the object being the last word of the first argument, or `fence`; the second one of that name in a
function has #2 behind it. Those that are joined by + hide each other and are weakened together.
"""
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("ORDERS.md")
FUNCTION = re.compile(r"^(\w+)\(", re.M)
CALL = re.compile(r"\b(atomic_\w+_explicit|atomic_thread_fence|__atomic_\w+|__sync_\w+)\(")
STRONG = re.compile(r"\b(memory_order_|__ATOMIC_)(release|acquire|acq_rel|seq_cst)\b", re.I)
RELAXED = {"memory_order_": "memory_order_relaxed", "__ATOMIC_": "__ATOMIC_RELAXED"}
NAME = re.compile(r"`([\w.]+:\w+:\w+(?:#\d)?(?: \+ [\w.]+:\w+:\w+(?:#\d)?)*)`")
TEST = re.compile(r"`((?:stress|preload|sanitized)/[^`]+)`")


def without_comments(text):
    """The same length: what stands in comments and literals is blank."""
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", lambda match: re.sub(r"[^\n]", " ", match[0]), text, flags=re.S)


def arguments_end(text, start):
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(text[start], 0)
        start += 1
    return start


def object_of(call, arguments):
    if "fence" in call:
        return "fence"
    first = re.split(r",(?![^\[(]*[\])])", arguments)[0]
    first = re.sub(r"\[[^\[\]]*\]", "", re.sub(r"\[[^\[\]]*\]", "", first))
    return re.findall(r"\w+", first)[-1]


def orders_of(name, text):
    """(name of the order, where its call begins, where it ends) of each that is not relaxed."""
    code = without_comments(text)
    functions = [(match.start(), match[1]) for match in FUNCTION.finditer(code)]
    count = Counter()
    for call in CALL.finditer(code):
        end = arguments_end(code, call.end())
        arguments = code[call.end():end - 1]
        if "signal_fence" in call[1] or not (STRONG.search(arguments) or call[1].startswith("__sync")):
            continue
        function = [what for start, what in functions if start < call.start()][-1]
        order = f"{name}:{function}:{object_of(call[1], arguments)}"
        count[order] += 1
        yield order + (f"#{count[order]}" if count[order] > 1 else ""), call.start(), end


def source_files(root=ROOT):
    return sorted(path for folder in ("shim", "include") for path in (root / folder).rglob("*.[ch]"))


def rows(lines):
    """(line number, names of orders as they stand in `...`, tests, what became of it) of each row."""
    for number, line in enumerate(lines, 1):
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if line.startswith("|") and cells[0] != "what is handed on" and not set(line) <= set("|-: \n"):
            yield number, NAME.findall(cells[1] if len(cells) > 1 else ""), TEST.findall(cells[2] if len(cells) > 2 else ""), cells


def check(table, sources, ran=None):
    """What is wrong, line by line. `sources`: (name, text) of each file; `ran`: lines of RAN."""
    wrong, named = [], set()
    there = {order: name for name, text in sources for order, _, _ in orders_of(name, text)}
    passed = {line.rstrip("\n").split("\t")[1] for line in ran or () if line.startswith(("passed", "skipped"))}
    for number, groups, tests, cells in rows(table):
        own = {order for group in groups for order in group.split(" + ")}
        wrong += [f"{number}: {order} is not in the source" for order in sorted(own - there.keys())]
        named |= own
        if len(cells) != 4 or not own or not cells[3] or not (tests or cells[2].startswith("none: ")):
            wrong.append(f"{number}: what, orders, test or \"none: why\", what weakening showed: one of them is missing")
        wrong += [f"{number}: {test} is no test that ran" for test in tests if ran is not None and test not in passed]
    return wrong + [f"{order} is in no row" for order in sorted(there.keys() - named)]


# --- weakening ------------------------------------------------------------------------------------

def weakened(name, text, orders):
    for order, start, end in reversed(list(orders_of(name, text))):
        if order in orders:
            text = text[:start] + STRONG.sub(lambda found: RELAXED[found[1]], text[start:end]) + text[end:]
    return text


def build_and_run(copy, test):
    """How many of up to three runs fail; None: it could not be built."""
    program, _, case = test.partition("::")
    if program.startswith("preload/"):
        program, case = "sanitized/whole", "1"
    target = f"build/tsan/tests/{program.removesuffix('.c')}"
    build = ["make", "-j1", "CC=gcc", "BUILD=build/tsan", "SANITIZE=thread", "OPTIMIZE=-O1 -g1", "WERROR=0", target]
    made = subprocess.run(build, cwd=copy, capture_output=True, text=True)
    if made.returncode != 0:
        print(made.stdout, made.stderr)
        return None
    for run in range(3):
        argv = ["setarch", "-R", str(copy / target)] + ([case] if case else [])
        try:
            done = subprocess.run(argv, cwd=copy, capture_output=True, timeout=100, env=os.environ | {"TSAN_OPTIONS": "halt_on_error=1"})
        except subprocess.TimeoutExpired:  # which says nothing of an order
            print(f"{test} took too long", flush=True)
            continue
        if done.returncode != 0:
            return run + 1
    return 0


def weaken(words):
    copy = ROOT / "build" / "weaken"
    shutil.rmtree(copy, ignore_errors=True)
    for folder in ("shim", "include", "tests", "tools", "packaging"):
        shutil.copytree(ROOT / folder, copy / folder)
    shutil.copy2(ROOT / "Makefile", copy)
    missed = 0
    with open(TABLE, encoding="utf-8") as table:
        found = list(rows(table))
    found = [row for row in found if not row[3][2].startswith("none: ") and all(word in " ".join(row[3]) for word in words)]
    for test in sorted({test for _, _, tests, _ in found for test in tests}):
        if build_and_run(copy, test) != 0:
            print(f"{test} fails as it is")
            return 1
    for _, groups, tests, cells in found:
        for group in groups:
            files = {order.split(":")[0] for order in group.split(" + ")}
            paths = [path for path in source_files(copy) if path.name in files]
            before = [path.read_text() for path in paths]
            for path, text in zip(paths, before):
                path.write_text(weakened(path.name, text, group.split(" + ")))
            runs = [build_and_run(copy, test) for test in tests]
            for path, text in zip(paths, before):
                path.write_text(text)
            seen = next((run for run in runs if run), 0)
            missed += not seen
            print(f"{group}: " + (f"reported in run {seen}" if seen else "NOT REPORTED") + f" by {', '.join(tests)}", flush=True)
    return 1 if missed else 0


def main(arguments):
    if arguments[:1] == ["weaken"]:
        return weaken(arguments[1:])
    with open(TABLE, encoding="utf-8") as table:
        ran = open(arguments[1], encoding="utf-8").readlines() if len(arguments) > 1 else None
        wrong = check(table, [(path.name, path.read_text()) for path in source_files()], ran)
    for line in wrong:
        print(f"tests/stress/ORDERS.md:{line}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
