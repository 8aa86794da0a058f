#!/usr/bin/env python3
"""
Is every threshold of the analyzer held by a unit test? Changes one after the other and looks whether a test fails.

thresholds.py [WORD...]   of the constants whose file or name contains one of the words; without words, of all

A small number becomes one more and one less, others twice and half of it. For each change the unit programs of FOLDERS are built and run, in a
copy of the tree, until one of them fails. Prints a line for each change; exit 1 when one survives.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ["analyzer/analysis/*.c", "analyzer/verdict/*.c"]
FOLDERS = ["verdict", "analysis", "report", "cli"]
SMALL = 128
DEFINE = re.compile(r"^#define (\w+)[ \t]+((?:.*\\\n)*[^\n]*?)[ \t]*(//[^\n]*)?$", re.MULTILINE)
NUMBER = re.compile(r"(?:\d|\(|UINT64_C)[\w\s()<*+.]*")

# Not thresholds: sizes of arrays and texts. And why a change of others is no error.
EXEMPT = {
    "FINDERS_MAX": "room for the rows of a table",
    "SUMMED_MAX": "bounds the work",
    "CRASH_PLACES_MAX": "room for places, of which three are enough",
    "PLACE_BYTES": "how much of a place fits",
    "COMM_BYTES": "how much of a name the kernel writes",
    "NAME_BYTES_MAX": "how much of a path fits a sentence",
    "MOST": "keeps sums of numbers that a damaged capture may hold from overflowing",
}


def constants(text):
    """(name, value, start, end) of each number that has a name."""
    for found in DEFINE.finditer(text):
        value = found[2].replace("\\\n", " ").strip()
        if NUMBER.fullmatch(value) and found[1] not in EXEMPT:
            yield found[1], value, found.start(2), found.end(2)


def changes(value):
    if re.fullmatch(r"\d+u?", value) and int(value.rstrip("u")) <= SMALL:
        number = int(value.rstrip("u"))
        return [str(number + 1), str(number - 1)]
    return [f"(({value}) * 2)", f"(({value}) / 2)"]


def first_to_fail(copy):
    """The unit program that fails; None = all pass."""
    for folder in FOLDERS:
        program = f"build/dev/tests/unit/analyzer/{folder}/run"
        made = subprocess.run(["make", "-s", "-j2", "CC=gcc", "BUILD=build/dev", "WERROR=0", program], cwd=copy, capture_output=True, text=True)
        if made.returncode != 0:
            raise SystemExit(f"cannot be built:\n{made.stdout}{made.stderr}")
        try:
            done = subprocess.run([program], cwd=copy, capture_output=True, text=True, timeout=300)
        except subprocess.TimeoutExpired:
            return f"{folder}, which takes too long"
        if done.returncode != 0:
            return ", ".join(sorted(set(re.findall(r"\[  FAILED  \] (\w+)$", done.stdout + done.stderr, re.MULTILINE)))) or f"{folder}, which crashes"
    return None


def main(words):
    copy = ROOT / "build" / "thresholds"
    for folder in ("analyzer", "shim", "include", "tests", "packaging"):
        shutil.rmtree(copy / folder, ignore_errors=True)
        shutil.copytree(ROOT / folder, copy / folder)
    shutil.copy2(ROOT / "Makefile", copy)
    for folder in ("obj/analyzer/analysis", "obj/analyzer/verdict", "tests"):  # of the last run's changes, and newer than the sources
        shutil.rmtree(copy / "build" / "dev" / folder, ignore_errors=True)
    broken = first_to_fail(copy)
    if broken:
        print(f"without any change {broken} fails")
        return 1
    survivors, count = [], 0
    for path in sorted(path for pattern in SOURCES for path in copy.glob(pattern)):
        text = path.read_text()
        for name, value, start, end in constants(text):
            if words and not any(word in f"{path.name}:{name}" for word in words):
                continue
            for change in changes(value):
                path.write_text(text[:start] + change + text[end:])
                failed = first_to_fail(copy)
                path.write_text(text)
                what = f"{path.parent.name}/{path.name}: {name} {value} -> {change}"
                count += 1
                if failed is None:
                    survivors.append(what)
                print(f"{what}: " + (f"held by {failed}" if failed else "SURVIVES"), flush=True)
    print(f"{count} changes, {len(survivors)} survive")
    for what in survivors:
        print(f"  {what}")
    return 1 if survivors or not count else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
