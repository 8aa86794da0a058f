#!/usr/bin/env python3
"""
What do memory profilers leave behind where it matters: after SIGKILL, and of child processes? Makes the tables of docs/compare.md.

    python3 -m venv build/peers && build/peers/bin/pip install memray filprofiler scalene
    python3 tests/bench/compare.py --python build/peers/bin/python      # heaptrack: from Debian

A program holds 200 MB at one line, allocates and frees 500,000 times more, says so, and is killed: alone, or with its whole process
group, as when a container is killed. Another one has a child that holds 70 MB. What each tool's own reader then says is searched for
the line, which is line 3 in all of them; of heaptrack, which knows no lines of Python, for the size.
"""
import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD_DIR", ROOT / "build")).absolute()

HOLD = """import os, sys
def hold():
    return [bytearray(1_000_000) for block in range(200)]
kept = hold()
for step in range(500_000):
    bytearray(600)
print("held by", os.getpid(), flush=True)
sys.stdin.read()
"""
CHILD = """import os, subprocess, sys
def child():
    return [bytearray(1_000_000) for block in range(70)]
if len(sys.argv) > 1:
    kept = child()
elif {is_fork}:
    if os.fork() == 0:
        kept = child()
        sys.exit(0)
    os.wait()
else:
    subprocess.run([sys.executable, __file__, "child"])
print("held", flush=True)
"""

def tools(python):
    """Name: how it runs a script with its output in the folder {out}; how its reader prints what is there, or None: the files are text."""
    here = Path(python).parent
    return {
        "kmemshim": ([BUILD / "kmemshim", "run", "--quiet", "-o", "{out}/captures", "--", python], [BUILD / "kmemshim", "peak", "{out}/captures"]),
        "memray": ([python, "-m", "memray", "run", "-q", "-o", "{out}/memray.bin"], [python, "-m", "memray", "stats", "{file}"]),
        "memray --aggregate": ([python, "-m", "memray", "run", "-q", "--aggregate", "-o", "{out}/memray.bin"], [python, "-m", "memray", "stats", "{file}"]),
        "memray --follow-fork": ([python, "-m", "memray", "run", "-q", "--follow-fork", "-o", "{out}/memray.bin"], [python, "-m", "memray", "stats", "{file}"]),
        "heaptrack": (["heaptrack", "-o", "{out}/heaptrack", python], ["heaptrack_print", "-f", "{file}"]),
        "Fil": ([python, "-m", "filprofiler", "--no-browser", "-o", "{out}/fil", "run"], None),
        "Scalene": ([here / "python", "-m", "scalene", "run", "--memory", "-o", "{out}/scalene.json"], None),
        "tracemalloc": ([python, "-X", "tracemalloc=25"], None),
    }


def record(words, script, out, killed):
    words = [str(word).format(out=out) for word in words] + [str(script)]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("KMEMSHIM_", "LD_PRELOAD"))}
    program = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env, cwd=out,
                               start_new_session=True)
    text = ""
    for line in program.stdout:
        text += line
        if line.startswith("held"):
            break
    else:
        sys.exit(f"{' '.join(words)} did not come to its end:\n{text}")
    if killed == "group":
        os.killpg(program.pid, signal.SIGKILL)
    elif killed == "alone":
        os.kill(int(line.split()[-1]), signal.SIGKILL)
    program.communicate()


def left_behind(reader, out, script):
    """(bytes of the files, what the reader says of them)"""
    files = [path for path in Path(out).rglob("*") if path.is_file() and path != script]
    size = sum(path.stat().st_blocks * 512 for path in files)
    if reader is None:
        return size, "".join(path.read_text(errors="replace") for path in files)
    texts = []
    for file in files if "{file}" in str(reader) else files[:1]:
        done = subprocess.run([str(word).format(out=out, file=file) for word in reader], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        texts.append(done.stdout)
    return size, "".join(texts)


def scalene_names_it(out):
    """Its profile holds the text of every line: does line 3 have memory?"""
    profile = Path(out) / "scalene.json"
    files = json.loads(profile.read_text())["files"] if profile.exists() else {}
    return any(line["lineno"] == 3 and line["n_peak_mb"] > 10 for name, file in files.items() if name.endswith("program.py") for line in file["lines"])


def try_one(tool, words, reader, text, killed=None):
    with tempfile.TemporaryDirectory() as out:
        script = Path(out) / "program.py"
        script.write_text(text)
        assert text.splitlines()[2].startswith("    return")
        record(words, script, out, killed)
        size, said = left_behind(reader, out, script)
        if tool == "heaptrack":
            megabytes = re.findall(r"peak heap memory consumption: ([\d.]+)M", said)
            return size, any(float(found) > 60 for found in megabytes)
        return size, scalene_names_it(out) if tool == "Scalene" else re.search(r"program\.py:3\b", said) is not None


def human(size):
    return "no file" if size == 0 else f"{size / (1 << 20):.1f} MiB" if size >= 1 << 20 else f"{size / 1024:.0f} KiB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="an interpreter that has memray, filprofiler, scalene")
    python = Path(parser.parse_args().python).absolute()
    yes = {True: "yes", False: "no"}
    print("| tool | killed with its group | killed alone | its files then | forked child | subprocess |")
    print("|---|---|---|---|---|---|")
    for tool, (words, reader) in tools(python).items():
        _, is_known_of_group = try_one(tool, words, reader, HOLD, "group")
        size, is_known = try_one(tool, words, reader, HOLD, "alone")
        fork, process = (try_one(tool, words, reader, CHILD.replace("{is_fork}", str(is_fork)))[1] for is_fork in (True, False))
        print("|", tool, "|", yes[is_known_of_group], "|", yes[is_known], "|", human(size), "|", yes[fork], "|", yes[process], "|", flush=True)


if __name__ == "__main__":
    main()
