#!/usr/bin/env python3
"""How stable are keys, and how many lines does `kmemshim diff` pair rightly? Prints the tables of docs/diff.md.

    make && BUILD_DIR=$PWD/build tests/stable/measure.py [PYTHON...]

Each place of program.cc and of package/ keeps one block of a size that no other place keeps, so that it is known which line a
line of another build is. Of each pair of captures: how many places have the same family of keys, which is what `check` compares; of the lines
that hold one place alone, how many `diff` pairs rightly, leaves without a pair, and pairs wrongly.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ.get("BUILD_DIR", HERE.parents[1] / "build"))
FIRST, STEP = 100000, 4096
PLACES = 32
BASE = ("g++", "-O1", "-g")


def number_of(size):
    """Of the place that keeps so much; None: none of ours. Objects and terminators add some bytes."""
    number, more = divmod(size - FIRST, STEP)
    return number if size >= FIRST and more < 128 and number < PLACES else None


def asked(*arguments):
    done = subprocess.run([BUILD / "kmemshim", *arguments], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def keys(capture):
    """By number of the place the family of its key; and the places that have a line for themselves."""
    report = asked("sites", capture, "--domain", "heap", "--json")
    families = {number_of(site["live_bytes"]): int(site["key"], 16) >> 16 for site in report["sites"]}
    alone = {number_of(line["live_bytes"]) for line in report["lines"]}
    return families, alone


def compare(old, new):
    """Places, those of the same family; lines of one place, those that are paired rightly, not at all, wrongly."""
    (before, lines_before), (after, lines_after) = keys(old), keys(new)
    places = (before.keys() & after.keys()) - {None}
    both = (lines_before & lines_after) - {None}
    family = sum(before[number] == after[number] for number in places)
    right = wrong = 0
    for row in asked("diff", old, new, "--domain", "heap", "--json")["rows"]:
        if row["file"] and Path(row["file"]).parent.name not in ("stable", "package"):
            continue
        then, now = number_of(row["old"]["live_bytes"]), number_of(row["new"]["live_bytes"])
        if now in both and row["old"]["live_bytes"]:
            right += then == now
            wrong += then != now
    return len(places), family, len(both), right, len(both) - right - wrong, wrong


def record(command, folder, directory=None):
    subprocess.run(command, check=True, cwd=directory,
                   env=dict(os.environ, LD_PRELOAD=str(BUILD / "libkmemshim.so"), KMEMSHIM_OUT=str(folder)))
    return folder


def build(folder, name, compiler, *flags, strip=False):
    program = folder / name / "program"
    program.parent.mkdir()
    subprocess.run([compiler, "-std=c++17", *flags, "-o", program, HERE / "program.cc"], check=True)
    if strip:
        subprocess.run(["strip", program], check=True)
    return record([program], folder / name / "out")


def edited(folder, name):
    """The package as it is after an afternoon's work: in every file lines came, and one function has another name."""
    target = folder / name
    shutil.copytree(HERE / "package", target / "package", ignore=shutil.ignore_patterns("__pycache__"))
    for file in (target / "package").glob("*.py"):
        text = file.read_text()
        text = re.sub(r"^(    def fill\(self, number\):\n)", r"\1        self.added = number\n", text, flags=re.M)
        text = text.replace("several(", "several_more(")
        file.write_text('"""Edited."""\n# two lines\n\n' + text)
    return target


def table(title, rows):
    print(f"| {title} | places | same family | lines | paired rightly | not paired | paired wrongly |\n|---" + "|---:" * 6 + "|")
    for name, figures in rows:
        print(f"| {name} | " + " | ".join(map(str, figures)) + " |")
    print()


def native(folder):
    base = build(folder, "base", *BASE)
    others = [
        ("gcc -O1 -g again, in another folder", build(folder, "again", *BASE)),
        ("gcc -O3 -g", build(folder, "gcc3", "g++", "-O3", "-g")),
        ("clang -O1 -g", build(folder, "clang1", "clang++", "-O1", "-g")),
        ("clang -O3 -g", build(folder, "clang3", "clang++", "-O3", "-g")),
        ("gcc -O0 -g", build(folder, "gcc0", "g++", "-O0", "-g")),
        ("gcc -O3, without -g", build(folder, "bare3", "g++", "-O3")),
        ("gcc -O1 -g, edited", build(folder, "edited1", *BASE, "-DEDITED")),
        ("clang -O3 -g, edited", build(folder, "edited3", "clang++", "-O3", "-g", "-DEDITED")),
    ]
    table("C++: gcc -O1 -g, and", [(name, compare(base, other)) for name, other in others])
    bare = build(folder, "bare1", "g++", "-O1")
    table("C++: gcc -O1 without -g, and", [
        ("clang -O1, without -g", compare(bare, build(folder, "bare4", "clang++", "-O1"))),
        ("gcc -O3, without -g", compare(bare, folder / "bare3" / "out")),
        ("gcc -O1, stripped", compare(bare, build(folder, "stripped", "g++", "-O1", strip=True)))])


def python(folder, interpreters):
    changed = edited(folder, "elsewhere")
    captures = {}
    for interpreter in interpreters:
        version = subprocess.run([interpreter, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
                                 stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        captures[version] = (record([interpreter, "-B", "-m", "package"], folder / f"py{version}", HERE),
                             record([interpreter, "-B", "-m", "package"], folder / f"edited{version}", changed))
    first = list(captures)[0]
    rows = [(f"{first}, in another folder, edited", compare(*captures[first]))]
    for version in list(captures)[1:]:
        rows.append((version, compare(captures[first][0], captures[version][0])))
        rows.append((f"{version}, in another folder, edited", compare(captures[first][0], captures[version][1])))
    table(f"Python {first}, and", rows)


def main():
    with tempfile.TemporaryDirectory() as name:
        native(Path(name))
        python(Path(name), sys.argv[1:] or ["/usr/bin/python3"])


if __name__ == "__main__":
    main()
