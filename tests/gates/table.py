"""The committed table: the base commit, and what recording costs there; and the base's library, built beside.

base.txt has one line for each figure: its gate, its name, its value. The commit stands in the same file, so that only a change of the
table moves it.
"""
import os
import platform
import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD_DIR", ROOT / "build")).absolute()
FILE = Path(__file__).with_name("base.txt")
HEAD = """# What recording costs at `commit`, by gate: instructions for one more, system calls added; ab: CPU time of a program against `before`,
# the commit of the table before. `make gates WRITE=1` writes this file. A change that moves a figure comes with the new table, and its
# message says why the program pays that.
"""
OF_LIBRARY = ("shim", "include", "Makefile")  # what the library is built from


class Trouble(Exception):
    """Nothing can be measured; the text is one line that says why."""


@dataclass
class Table:
    commit: str
    machine: str  # what else decides how many instructions there are
    before: str = ""
    figures: dict = field(default_factory=dict)  # (gate, name): value

    def of(self, gate):
        return {name: value for (one, name), value in self.figures.items() if one == gate}


def parse(text):
    table = Table("", "")
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if words[0] in ("commit", "before") and len(words) == 2:
            setattr(table, words[0], words[1])
        elif words[0] == "machine":
            table.machine = line.partition(" ")[2]
        elif len(words) == 3 and re.fullmatch(r"\d+(\.\d+)?", words[2]):
            table.figures[words[0], words[1]] = float(words[2])
        else:
            raise Trouble(f"{FILE.name}:{number}: \"{line}\": wanted \"GATE NAME NUMBER\", \"commit HASH\", \"before HASH\" or \"machine TEXT\"")
    return table


def read():
    return parse(FILE.read_text())


def render(table):
    lines = [f"commit {table.commit}", *([f"before {table.before}"] if table.before else []), f"machine {table.machine}"]
    lines += [f"{gate} {name} {value:g}" if value < 1000 else f"{gate} {name} {value:.0f}" for (gate, name), value in table.figures.items()]
    return HEAD + "\n".join(lines) + "\n"


def machine(python):
    """Compiler, libraries and processor as the programs under callgrind see them."""
    def version(words, pattern):
        try:
            said = subprocess.run(words, capture_output=True, text=True).stdout
        except OSError:
            return "none"
        found = re.search(pattern, said)
        return found.group(1) if found else "none"

    flags = re.search(r"^flags\s*:(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    wide = "avx2" if flags and " avx2" in flags.group(1) else "no avx2"  # valgrind knows none wider; glibc has functions for each
    number = r"(\d+(?:\.\d+)+)"
    return (f"gcc {version(['gcc', '--version'], number)}, glibc {platform.libc_ver()[1]}, "
            f"python {version([python, '--version'], number)}, valgrind {version(['valgrind', '--version'], number)}, "
            f"{platform.machine()}, {wide}")


def git(*words):
    done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def commit_of(name):
    found = git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
    if found is None:
        raise Trouble(f"commit {name} is not in this clone: fetch the whole history (git fetch --unshallow), or give BASE=")
    return found


def library_of(name):
    """The library of a commit, built once."""
    commit = commit_of(name)
    folder = BUILD / "gates" / commit[:12]
    library = folder / "libkmemshim.so"
    if not library.exists():
        source = folder / "source"
        source.mkdir(parents=True, exist_ok=True)
        print(f"gates: building {commit[:12]}", flush=True)
        subprocess.run(f"git -C {ROOT} archive {commit} | tar -x -C {source}", shell=True, check=True)
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "BUILD"))}
        made = subprocess.run(["make", "-C", source, "build/libkmemshim.so"], env=plain, capture_output=True, text=True)
        if made.returncode != 0:
            raise Trouble(f"the library of {commit[:12]} cannot be built: {(made.stderr.strip().splitlines() or ['?'])[-1]}")
        (source / "build" / "libkmemshim.so").replace(library)
    return library


def written_commit():
    """The commit whose library is measured for the table: HEAD, and nothing of the library is changed since."""
    if git("status", "--porcelain", "--", *OF_LIBRARY) != "":
        raise Trouble("the library has changes that are not committed: commit them first, the table names a commit")
    return commit_of("HEAD")
