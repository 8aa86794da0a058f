"""CLIFFS.md has a row for each structure of fixed size in shim/, with the constants and values of the source."""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import cliffs  # noqa: E402

SHIM = Path(__file__).parents[2] / "shim"
PAGE = Path(__file__).parent / "CLIFFS.md"
DEFINED = re.compile(r"^\s*#\s*define (\w+)[ \t]+(\S.*?)[ \t]*(?://.*)?$", re.M)  # an include guard has no value
SIZES = re.compile(r"_MAX|_BITS|WAYS|ROWS|SLOTS|_ROOM|_PLACES|_FRAMES")


def defined():
    """The constants of the source: (file below shim/, name): value."""
    files = sorted(path for path in SHIM.rglob("*.[ch]"))
    return {(str(path.relative_to(SHIM)), name): " ".join(value.split())
            for path in files for name, value in DEFINED.findall(path.read_text())}


def described():
    """The same of the rows of the page: of each name the file that stands before it, in the folder of the heading."""
    found = []
    folder = file = None
    for line in PAGE.read_text().splitlines():
        if line.startswith("## shim/"):
            folder = line.removeprefix("## shim/")
        elif line.startswith("| `"):
            for word in re.findall(r"`([^`]+)`", line.split(" | ")[0]):
                if " = " in word:
                    name, value = word.split(" = ", 1)
                    found.append(((f"{file}", name), value))
                else:
                    file = word if "/" in word else f"{folder}/{word}"
    return found


def test_every_size_has_one_row():
    rows = [key for key, _ in described()]
    missing = [key for key in defined() if SIZES.search(key[1]) and key not in rows]
    assert not missing and len(rows) > 100
    assert len(set(rows)) == len(rows), [key for key in rows if rows.count(key) > 1]


def test_rows_say_what_the_source_says():
    source = defined()
    wrong = [(key, value, source.get(key)) for key, value in described() if source.get(key) != value]
    assert not wrong


def test_every_row_says_what_happens_beyond():
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    bad = [row for row in rows if len(row.strip("| ").split(" | ")) != 5]
    assert not bad


def test_each_workload_has_its_figures_and_each_figure_its_workload():
    named = set(re.findall(r"`bench-cliffs ([a-z-]+)`", PAGE.read_text()))
    assert named == {cliff.name for cliff in cliffs.CLIFFS}
