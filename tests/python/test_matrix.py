"""Interpreters x what programs do: the report names the right file, line and function of every block, and the whole chain.

features.py runs under the shim and notes what the interpreter itself says; here the report is compared with that.
MATRIX=full: with every allocator of the interpreter (PYTHONMALLOC), else with the usual one and one in turn. Those beside the usual one
run with what was remembered held against what is walked.
"""
import json
import os
import re
import subprocess

import pytest

import interpreters

HERE = os.path.dirname(os.path.abspath(__file__))
SHIM = os.path.join(interpreters.BUILD, "libkmemshim.so")
KMEMSHIM = os.path.join(interpreters.BUILD, "kmemshim")
CHAIN_MAX = 150  # the shim keeps the innermost ones
OTHER_BYTES = 4000  # of small objects on the same line, and of what an allocator adds; sizes are further apart


def allocators_of(interpreter):
    if interpreter.is_free_threaded:
        return ["debug", "mimalloc"]
    return ["malloc", "debug", "pymalloc", "malloc_debug", "pymalloc_debug"] + (
        ["mimalloc", "mimalloc_debug"] if interpreter.minor >= (3, 13) else [])


def report(capture, least=0):
    """
    Without the sites that allocated less: some 50 of 20,000 are looked at, and to read them all takes longer than the program runs. A site is
    one line of the JSON.
    """
    done = subprocess.run([KMEMSHIM, "sites", capture, "--json", "--top", "100000"], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    rows = [row for row in done.stdout.split(b"\n")
            if not row.startswith(b'    {"key": ') or int(re.search(rb'"allocated_bytes": (\d+)', row)[1]) >= least]
    document = json.loads(re.sub(r",\n(?= *\])", "\n", b"\n".join(rows).decode("utf-8")))
    assert document["verify"]["mismatched"] == 0
    return document


def wrong_places(noted, document):
    """[name, what the interpreter says, what the report says]"""
    sites = [(site["allocated_bytes"],
              [[frame["file"], frame["line"], frame["function"]] for frame in site["frames"] if frame["kind"] == "python"])
             for site in document["sites"]]
    wrong = []
    for name, size in noted["sizes"].items():
        if name in noted["skipped"]:
            continue
        limit = size + OTHER_BYTES if name != "zlib" else 4 * size  # resizes what it takes
        told = [chain[:CHAIN_MAX] for allocated, chain in sites if size <= allocated < limit]
        if noted["expected"][name][:CHAIN_MAX] not in told:
            wrong.append([name, noted["expected"][name][:3], [chain[:3] for chain in told[:2]]])
    return wrong


def run_features(interpreter, folder, **environment):
    noted = os.path.join(folder, "noted")
    capture = os.path.join(folder, "capture")
    done = interpreter.run(os.path.join(HERE, "features.py"), noted, LD_PRELOAD=SHIM, KMEMSHIM_OUT=capture, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == "" or environment.get("BESIDE") == "torch"  # which writes about devices
    with open(noted) as file:
        told = json.load(file)
    return told, report(capture, min(told["sizes"].values()))


@pytest.mark.parametrize("name", interpreters.NAMES)
def test_every_line_is_right(name, tmp_path):
    interpreter = interpreters.get(name)
    allocators = allocators_of(interpreter)
    if os.environ.get("MATRIX") != "full":
        allocators = [allocators[interpreters.NAMES.index(name) % len(allocators)]]
    for allocator in [None] + allocators:
        folder = tmp_path / str(allocator)
        folder.mkdir()
        environment = {} if allocator is None else {"PYTHONMALLOC": allocator, "KMEMSHIM_VERIFY": "64"}
        noted, document = run_features(interpreter, str(folder), **environment)
        assert not wrong_places(noted, document), (allocator, wrong_places(noted, document))
        assert document["losses"]["lost_python_frames"] == 0, document["losses"]
        assert document["losses"]["lost_python_text"] == 0, document["losses"]
        if allocator is None:
            skipped = noted["skipped"]
    interpreters.rows.append("%-15s %-9s %2d kinds of places right, allocators: default %s%s" % (
        name, noted["version"], len(noted["sizes"]) - len(skipped), " ".join(allocators),
        "".join("; %s: %s" % each for each in skipped.items() if each[0] != "tensor")))


def check_beside(interpreter, kind, folder):
    # A tensor's line allocates much else when torch is new: brief, all of that is one site.
    settings = {"KMEMSHIM_NATIVE": "to-python"} if kind == "torch" else {}
    noted, document = run_features(interpreter, str(folder), BESIDE=kind, **settings)
    assert not wrong_places(noted, document), wrong_places(noted, document)
    interpreters.rows.append("%-15s %-9s %2d kinds of places right beside %s" % (
        interpreter.name, interpreter.version, len(noted["sizes"]) - len(noted["skipped"]), kind))


@pytest.mark.parametrize("name", interpreters.NAMES)
def test_the_profile_function_stays_the_programs(name, tmp_path):
    """A profiler, a debugger, coverage, tracemalloc at the same time, each sees what it would see."""
    interpreter = interpreters.get(name)
    kinds = ["cProfile", "bdb", "coverage", "tracemalloc"]
    if interpreter.run("-c", "import coverage").returncode != 0:
        kinds.remove("coverage")
    if interpreter.is_free_threaded and interpreter.minor == (3, 13):
        kinds.remove("cProfile")  # beside threads it crashes or hangs by itself, more often than not
    if os.environ.get("MATRIX") != "full":
        kinds.remove("tracemalloc")  # 11 s; test_object_samples.py has it too
        kinds = [kinds[interpreters.NAMES.index(name) % len(kinds)]]
    for kind in kinds:
        folder = tmp_path / kind
        folder.mkdir()
        check_beside(interpreter, kind, folder)


@pytest.mark.framework
def test_torch_profiler_stays_the_programs(tmp_path):
    interpreter = interpreters.at("torch", os.path.join(interpreters.BUILD, "venv-torch", "bin", "python"))
    check_beside(interpreter, "torch", tmp_path)
