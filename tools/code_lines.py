#!/usr/bin/env python3
"""Code lines by folder: without blank lines, comments, and lines of brackets alone; golden texts and fuzzing's inputs are not counted.

code_lines.py                  what is in each folder, beside its bound in tools/code_lines.txt
code_lines.py --write          write the bounds anew; refused where the product's or the tests' sum would rise
code_lines.py --write --more   rise as well: a commit of its own, which says what it buys
"""
import re
import sys
from pathlib import Path

PRODUCT = ("shim", "analyzer", "include", "python")
ENDINGS = {".c", ".h", ".cc", ".py", ".js", ".s", ".json", ".proto"}
TABLE = "tools/code_lines.txt"
LOOSE = 100  # lines that may be gone before the bound is to follow


def lines_of(path):
    text = path.read_text(errors="replace")
    if path.suffix in (".c", ".h", ".cc", ".js", ".s"):
        text = re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)
        text = re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.S)
        text = re.sub(r"//[^\n]*", "", text)
    else:
        text = re.sub(r"(?m)^\s*#.*$", "", text)
    return sum(re.search(r"[^\s{}()\[\];,]", line) is not None for line in text.splitlines())


def is_code(name):
    return name.suffix in ENDINGS and "golden" not in name.parts and "__pycache__" not in name.parts and \
        ("fuzz" not in name.parts or name.suffix == ".c")


def counted(root):
    """{"shim/base": lines}: of the product by folder, and of the tests."""
    sums = {}
    for side in (*PRODUCT, "tests"):
        for path in (root / side).rglob("*"):
            name = path.relative_to(root)
            if is_code(name) and path.is_file():
                folder = "/".join(name.parts[:2]) if len(name.parts) > 2 and side != "tests" else side
                sums[folder] = sums.get(folder, 0) + lines_of(path)
    return sums


def bounds(root):
    """{folder: lines} as the table has them."""
    table = root / TABLE
    rows = [line.split() for line in table.read_text().splitlines() if not line.startswith("#")] if table.exists() else []
    return {folder: int(lines) for lines, folder in rows}


def sums_of(lines):
    tests = lines.get("tests", 0)
    return {"product": sum(lines.values()) - tests, "tests": tests}


def check(root, say):
    """A folder that grew, and a bound that what went has left too wide."""
    table, now = bounds(root), counted(root)
    for folder, lines in sorted(now.items()) if table else ():
        more = lines - table.get(folder, 0)
        if more > 0:
            say(f"{folder}: {more:,} code lines more than {TABLE} allows; take as many out somewhere, then run tools/code_lines.py --write")
    for side, lines in sums_of(now).items() if table else ():
        less = sums_of(table)[side] - lines
        if less > LOOSE:
            say(f"{TABLE}: allows {less:,} code lines of the {side} that are gone; run tools/code_lines.py --write")


def write(root, may_rise):
    now, before = counted(root), bounds(root)
    for side, lines in sums_of(now).items():
        most = sums_of(before)[side]
        if before and lines > most and not may_rise:
            sys.exit(f"code_lines: {side}: {lines:,} lines, {lines - most:,} more than before: take as many out, or add --more "
                     "in a commit of its own that says what they buy")
    with open(root / TABLE, "w") as table:
        print("# Most code lines in each folder; tools/lint holds them, tools/code_lines.py writes them.", file=table)
        for folder, lines in sorted(now.items()):
            print(f"{lines:6} {folder}", file=table)


def main(arguments):
    root = Path(__file__).resolve().parents[1]
    if "--write" in arguments:
        write(root, "--more" in arguments)
        return
    now, table = counted(root), bounds(root)
    for folder, lines in sorted(now.items()):
        print(f"{lines:7,} of {table.get(folder, 0):7,}  {folder}")
    for side, lines in sums_of(now).items():
        print(f"{lines:7,} of {sums_of(table)[side]:7,}  {side}")


if __name__ == "__main__":
    main(sys.argv[1:])
