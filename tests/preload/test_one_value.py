"""A figure has one value in all outputs: programs of many kinds, each read by every command, and their sums compared."""
import json
import re

import pytest

import harness

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
AMOUNT = r"≈?([\d,]+(?:\.\d+)?) (B|KiB|MiB|GiB)"

PYTHON = {
    "keeps": "kept = []\nfor i in range(400): kept.append(bytearray(50000))",
    "drops": "for i in range(400): bytearray(50000)",
    "peaks": "kept = [bytearray(100000) for i in range(300)]\ndel kept\nleft = bytearray(3000000)",
    "small": "kept = [[i, str(i)] for i in range(300000)]",
    "dictionary": "kept = {str(i): (i, i + 1) for i in range(200000)}",
    "set": "kept = set()\nfor i in range(500000): kept.add(i * 7)",
    "cycles": "for i in range(20000):\n    a = [bytes(500)]; a.append(a)",
    "cache": "import functools\n@functools.lru_cache(None)\ndef f(n): return bytes(n)\nfor i in range(3000): f(i)",
    "grows": "text = bytearray()\nfor i in range(3000): text += bytes(10000)",
    "threads": "import threading\nkept = []\nwork = lambda: kept.append([bytearray(20000) for i in range(200)])\n"
               "all = [threading.Thread(target=work) for i in range(4)]\n[t.start() for t in all]; [t.join() for t in all]",
    "generator": "def g():\n    held = [bytearray(10000) for i in range(800)]\n    yield held\nrunning = g(); next(running)",
    "exception": "def f():\n    held = bytearray(30000000)\n    raise ValueError\ntry: f()\nexcept ValueError as e: kept = e",
    "fails": "kept = bytearray(20000000)\nraise SystemExit(3)",
    "raises": "kept = [bytearray(10000) for i in range(1000)]\nraise ValueError('no')",
    "_exit": "import os\nkept = [bytearray(10000) for i in range(1000)]\nos._exit(0)",
    "killed": "import os, signal\nkept = [bytearray(10000) for i in range(2000)]\nos.kill(os.getpid(), signal.SIGKILL)",
    "terminated": "import os, signal\nkept = [bytearray(10000) for i in range(2000)]\nos.kill(os.getpid(), signal.SIGTERM)",
    "aborted": "import os\nkept = [bytearray(10000) for i in range(2000)]\nos.abort()",
    "recursion": "import sys\nsys.setrecursionlimit(3000)\ndef f(n): x = bytearray(5000); return f(n - 1) if n else 1\nf(2000)",
    "forks": "import os\nkept = [bytearray(10000) for i in range(1000)]\nif os.fork() == 0:\n    more = bytearray(9000000); os._exit(0)\nos.wait()",
    "child": "import subprocess, sys\nkept = bytearray(5000000)\nsubprocess.run([sys.executable, '-c', 'kept = bytearray(9000000)'])",
    "pool": "import multiprocessing as m\ndef f(n): return bytes(n)\nif __name__ == '__main__':\n    with m.Pool(2) as p: kept = p.map(f, [200000] * 20)",
    "mapped": "import mmap\nkept = [mmap.mmap(-1, 3000000) for i in range(5)]\nfor m in kept[:3]: m[:] = bytes(3000000)",
    "shared": "from multiprocessing import shared_memory as s\nm = s.SharedMemory(create=True, size=8000000)\nm.buf[:] = bytes(8000000)\nm.close(); m.unlink()",
    "refused": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (400 << 20, -1))\nkept = []\nwhile True: kept.append(bytearray(9000000))",
    "recovers": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (400 << 20, -1))\ntry: bytearray(900 << 20)\nexcept MemoryError: kept = bytearray(9000000)",
    "untouched": "import ctypes\nm = ctypes.CDLL(None).malloc; m.restype = ctypes.c_void_p; m.argtypes = [ctypes.c_size_t]\nkept = [m(40 << 20) for i in range(4)]",
    "json": "import json\nkept = json.loads(json.dumps([{'a': i, 'b': str(i)} for i in range(60000)]))",
    "sqlite": "import sqlite3\nc = sqlite3.connect(':memory:')\nc.execute('create table t(a, b)')\n"
              "c.executemany('insert into t values (?, ?)', ((i, 'x' * 100) for i in range(60000)))\nkept = c.execute('select * from t').fetchall()",
    "imports": "import asyncio, email.mime.text, http.server, unittest.mock, xml.dom.minidom",
    "nothing": "",
    "deque": "import collections\nq = collections.deque()\nfor i in range(30000):\n    q.append(bytes(1000))\n    if i % 3: q.popleft()",
    "numpy": "import numpy as n\nkept = [n.ones(100000) for i in range(40)]\nempty = n.zeros(9000000)",
    "views": "import numpy as n\nkept = [n.arange(500000)[:3] for i in range(30)]",
}
C = ["leak_in_a_loop.c", "growth_by_realloc.c", "mmap_partial_unmap.c", "peak_at_start.c", "threads_free_each_other.c", "fork_children.c"]


@pytest.fixture(params=[*PYTHON, *C])
def capture(request, tmp_path, out):
    """The capture of one program, whichever way it ends."""
    if request.param in PYTHON:
        program = tmp_path / "program.py"
        program.write_text(PYTHON[request.param] + "\n")
        argv = ["/usr/bin/python3", program]
    else:
        argv = [harness.compile_c(harness.ROOT / "examples" / request.param, tmp_path / "program")]
    harness.record(argv, out)
    return out


def sums(rows, figure):
    found = {}
    for row in rows:
        found[row["domain"]] = found.get(row["domain"], 0) + row[figure]
    return {domain: value for domain, value in found.items() if value != 0}


def is_of(text, value):
    """Is that the value, as far as its digits go? Of an estimate three digits are printed, as of all."""
    number, unit = re.fullmatch(AMOUNT, text).groups()
    decimals = len(number.partition(".")[2])
    return abs(value / UNITS[unit] - float(number.replace(",", ""))) <= .51 * 10 ** -decimals


TITLES = {"peak": "peak_bytes", "live": "live_bytes", "allocated": "allocated_bytes", "leaking": "leaking_bytes"}
OTHER_TITLES = {"of", "domain", "at", "blocks", "calls", "share", "class", "gens", "released", "through", "line", "Memory"}


def rows_of(text):
    """Each row of each table: what stands under the titles of figures, under `line`, and the row itself."""
    ends = {}
    for row in text.splitlines():
        words = row.split()
        if {"peak", "live"} & set(words) and set(words) <= {*TITLES, *OTHER_TITLES}:
            ends = {at[1]: at.end() for at in re.finditer(r"(\w+)(?! at)(?=\s|$)", row) if at[1] in TITLES or at[1] == "line"}
        elif ends:
            found = {title: re.search(rf"{AMOUNT}$" if title != "line" else r"\d+$", row[:end]) for title, end in ends.items()}
            yield {title: at[0] for title, at in found.items() if at}, row


def compare_rows(text, lines_of_row):
    """The figures of each row are those of the lines that it is of; how many that were."""
    count = 0
    for shown, row in rows_of(text):
        lines = lines_of_row(shown, row) if shown else None
        for title in TITLES if lines else ():
            if title in shown:
                value = sum(line[TITLES[title]] for line in lines)
                assert is_of(shown[title], value), (title, shown[title], value, row)
                count += 1
    return count


def compare_outputs(document, capture):
    """Of what tables show, the rows whose line or file is known without doubt; how many figures that were."""
    host = [line for line in document["lines"] if line["domain"] not in ("reserved", "file")]
    by_place, by_file, by_number, is_clear = {}, {}, {}, True
    for line in host:
        where = line["where"] or {"file": "", "line": 0, "function": "?"}
        name = where["file"].rsplit("/", 1)[-1]
        if "relation" not in where:
            by_place.setdefault((line["domain"], f"{name}:{where['line']} {where['function']}"), []).append(line)
        if name == "program.py":
            by_number.setdefault(str(where["line"]), []).append(line)
            by_file.setdefault(name, []).extend([line] * (line["leak"]["class"] != "import"))
            is_clear = is_clear and line["leak"]["class"] != "none"  # which is also of what an import left no more

    def of_place(_, row):
        at = re.search(r" (\S+) +(\S+:\d+ \S.*)$", row)
        lines = by_place.get((at[1], at[2].rsplit("/", 1)[-1])) if at else None
        return lines if lines and len(lines) == 1 else None

    count = 0
    for words in (("peak",), ("leaks",), ("sites",), ("report", "--all")):
        count += compare_rows(harness.kmemshim(*words, "--top", "50", capture).stdout, of_place)
    for command in ("peak", "leaks", "sites") if is_clear else ():
        count += compare_rows(harness.kmemshim(command, "--by", "file", "--top", "50", capture).stdout,
                              lambda _, row: by_file.get(row.split()[-1]))
    return count + compare_rows(harness.kmemshim("annotate", "program.py", capture).stdout, lambda shown, _: by_number.get(shown.get("line")))


def test_a_figure_has_one_value(capture):
    documents = {command: harness.read_report(command, capture, *["--top", "1000000"][:2 * (command != "why")])
                 for command in ("report", "sites", "leaks", "peak", "why")}
    document = documents["sites"]
    totals = document["totals"]
    for command, other in documents.items():
        assert other["totals"] == totals and other["verdict"] == documents["why"]["verdict"], command
    for figure in ("live_bytes", "live_count", "allocated_bytes", "allocated_count"):
        wanted = {domain: row[figure] for domain, row in totals.items() if row[figure] != 0}
        assert sums(document["lines"], figure) == sums(document["sites"], figure) == wanted, figure

    text = harness.kmemshim("report", "--all", capture).stdout
    rows = re.findall(rf"^  (\S+) +{AMOUNT} +{AMOUNT} +{AMOUNT} +[\d,]+ +[\d,]+", text[text.index("\nMemory "):], re.MULTILINE)
    assert {row[0] for row in rows} == {domain for domain, row in totals.items() if row["allocated_bytes"] != 0}
    for domain, *amounts in rows:
        for text_of, figure in zip((f"{a} {b}" for a, b in zip(amounts[::2], amounts[1::2])), ("peak_bytes", "live_bytes", "allocated_bytes")):
            assert is_of(text_of, totals[domain][figure]), (domain, figure, text_of, totals[domain][figure])

    stacks = harness.kmemshim("export", "--format", "ndjson", capture).stdout.splitlines()
    assert sums(map(json.loads, stacks), "live_bytes") == sums((row for row in document["lines"] if row["domain"] != "reserved"), "live_bytes")
    profiles = json.loads(harness.kmemshim("export", "--format", "speedscope", capture).stdout)["profiles"]
    weights = {profile["name"]: sum(profile["weights"]) for profile in profiles}
    for meaning, figure in (("live at the end", "live_bytes"), ("allocated in all", "allocated_bytes")):
        assert {name: weight for name, weight in weights.items() if name.endswith(": " + meaning)} == {
            f"{domain}: {meaning}": row[figure] for domain, row in totals.items()
            if domain != "reserved" and row[figure] != 0}  # reserved: addresses, not memory; no other format has them
    folded = harness.kmemshim("export", "--format", "folded", "--value", "live", "--domain", "heap", capture).stdout
    assert sum(int(line.rsplit(" ", 1)[1]) for line in folded.splitlines()) == totals["heap"]["live_bytes"]

    harness.ok(harness.kmemshim("report", "--html", capture.parent / "page.html", capture))
    page = json.loads(re.search(r'<script[^>]*application/json[^>]*>(.*?)</script>', (capture.parent / "page.html").read_text(), re.DOTALL)[1])
    assert {name: (peak, live, allocated) for name, _, _, peak, live, allocated, *_ in page["domains"]} == {
        domain: (row["peak_bytes"], row["live_bytes"], row["allocated_bytes"]) for domain, row in totals.items()}

    told = re.search(rf"At the end {AMOUNT} was live", documents["why"]["verdict"]["text"])
    if told and len(document["processes"]) == 1:
        assert is_of(f"{told[1]} {told[2]}", sum(row["live_bytes"] for domain, row in totals.items() if domain != "reserved"))
    assert compare_outputs(document, capture) > 1 or "_no" in capture.parent.name  # the program that holds nothing

    change = json.loads(harness.kmemshim("diff", "--json", capture, capture).stdout)
    for side in ("old", "new"):
        assert {row["domain"]: (row["live_bytes"], row["peak_bytes"]) for row in change[side]["domains"]} == {
            domain: (row["live_bytes"], row["peak_bytes"]) for domain, row in totals.items()}
        for figure in ("live_bytes", "nonresident_bytes"):
            wanted = {domain: row[figure] for domain, row in totals.items() if row[figure] != 0}
            assert sums(({"domain": row["domain"], figure: row[side][figure]} for row in change["rows"]), figure) == wanted, figure

    if harness.kmemshim("baseline", "-o", capture.parent / "baseline.json", capture).returncode == 0:
        rows = json.loads((capture.parent / "baseline.json").read_text())["domains"]
        assert {row["domain"]: (row["live_bytes"]["max"], row["peak_bytes"]["max"]) for row in rows if row["peak_bytes"]["max"] != 0} == {
            domain: (row["live_bytes"], row["peak_bytes"]) for domain, row in totals.items() if row["peak_bytes"] != 0}

    now = re.search(rf"^live {AMOUNT}", harness.kmemshim("top", "--once", capture).stdout, re.MULTILINE)
    assert is_of(f"{now[1]} {now[2]}", sum(row["live_bytes"] for domain, row in totals.items() if domain not in ("reserved", "file")))
