"""Small objects of Python, one of many: what is recorded by default, against what the interpreter says of its objects.

Estimates are tested by chance: estimates.py says how far they may be from the truth.
"""
import json
import math
import os
import sys

import pytest

import estimates
from test_objects import VERSIONS, interpreter_of, out  # noqa: F401

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "preload"))
import harness  # noqa: E402
from test_threads import python_library  # noqa: E402

pytestmark = pytest.mark.usefixtures("as_users_run_it")

MEAN = estimates.SAMPLE_BYTES
MIB = 1 << 20
PROGRAM = os.path.join(HERE, "samples_program.py")
DOMAIN = "python/object"
MOST = ("--top", "400")  # lines, by what they hold: all that hold much, and not each call site


def record(out, python, case, end="kill", options=(), **environment):
    """Runs a case of samples_program.py; {function: bytes that are alive}, and what sites says."""
    done = harness.run([python, *options, PROGRAM, case, end],
                       harness.shim_env(out, PYTHONDONTWRITEBYTECODE="1", **environment))
    assert done.returncode == (-9 if end == "kill" else 0), done.stdout + done.stderr
    assert done.stderr == ""
    document = harness.ok(harness.kmemshim("sites", out, "--json", *MOST))
    return json.loads(done.stdout.splitlines()[-1]), json.loads(document.stdout)


def record_until(is_seen, out, python, case, **environment):
    """The same of a program that goes on until is_seen(what sites says), and is killed then."""
    def is_there():
        document = harness.kmemshim("sites", out, "--json", *MOST)
        return document.returncode == 0 and is_seen(json.loads(document.stdout))

    told = harness.killed_when(is_there, [python, PROGRAM, case, "goes on"], harness.shim_env(out, PYTHONDONTWRITEBYTECODE="1", **environment))
    return json.loads(told), json.loads(harness.kmemshim("sites", out, "--json", *MOST).stdout)


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    return harness.compile_c(os.path.join(HERE, "embedded_samples.c"), str(tmp_path_factory.mktemp("embedded") / "embedded"),
                             "-ldl")


def record_embedded(out, embedded, what, version, case="whole", **environment):
    """The same in a program that embeds Python."""
    library, prefix = python_library(version)
    done = harness.run([embedded, what, library, prefix, PROGRAM, case],
                       harness.shim_env(out, PYTHONDONTWRITEBYTECODE="1", **environment))
    assert done.returncode == -9, done.stdout + done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout.splitlines()[-1]), harness.report("sites", out, *MOST)


def notes_of(out):
    return [note for process in harness.report("report", out, "--top", "1")["processes"] for note in process["notes"]]


def live_bytes(document, function, domain=DOMAIN):
    return sum(row["live_bytes"] for row in document["lines"] if row["where"] and row["domain"] == domain and
               row["where"]["function"].split(".")[-1] == function and row["where"]["module"] == "samples_program.py")


def check(expected, document, others=0.02):
    """Each line is right, and all together are. others: what the interpreter makes beside the objects, a part of them."""
    assert expected and document["losses"]["lost_missed_frees"] == 0 and document["losses"]["lost_events"] == 0
    found = {function: live_bytes(document, function) for function in expected}
    for function, wanted in expected.items():
        assert estimates.is_right(found[function], wanted, others * wanted), function
    wanted = sum(expected.values())
    assert estimates.is_right(sum(found.values()), wanted, others * wanted)


@pytest.mark.parametrize("allocator", ["", "pymalloc", "debug", "pymalloc_debug"])
@pytest.mark.parametrize("version", VERSIONS)
def test_each_line_has_its_bytes(out, version, allocator):
    """Kept objects, objects of which every second one is released, tables that grow by realloc, all of many sizes. P2, P3."""
    environment = {"PYTHONMALLOC": allocator} if allocator else {}
    expected, document = record(out, interpreter_of(version), "ledger", **environment)
    check(expected, document)
    assert live_bytes(document, "dropped") <= 8 * MEAN  # of some 40 MiB that came and went


@pytest.mark.parametrize("end, allocator", [("kill", ""), ("exit", ""), ("exit", "debug")])
@pytest.mark.parametrize("version", VERSIONS)
def test_names_in_the_cache_of_attributes_are_held_by_no_line(out, version, end, allocator):
    """What only this cache keeps, which has 4,096 places, is not alive; names that the program keeps too are."""
    environment = {"PYTHONMALLOC": allocator} if allocator else {}
    python = interpreter_of(version)
    if end == "kill":  # between two passes over the cache there are some that were not seen; the next one sees them
        expected, document = record_until(lambda document: live_bytes(document, "looked_up") == 0, out, python, "names", **environment)
    else:
        expected, document = record(out, python, "names", end, **environment)
    check(expected, document)
    assert live_bytes(document, "looked_up") == 0  # of some 60 MB
    assert document["losses"]["lost_unknown_frees"] == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_values_that_the_cache_of_attributes_found_are_alive(out, version):
    """A word of the cache that is no reference says nothing of who holds a str."""
    expected, document = record(out, interpreter_of(version), "values")
    check(expected, document)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_estimate_is_unbiased(out, version):
    """Of 24 lines with 6 MiB each: the mean is right, and errors are as large as chance makes them."""
    expected, document = record(out, interpreter_of(version), "many_lines")
    wanted = sum(expected.values()) / 24
    rows = {row["where"]["line"]: row["live_bytes"] for row in document["lines"] if row["where"] and
            row["domain"] == DOMAIN and row["where"]["function"] == "many_lines"}
    assert set(range(3, 3 + 3 * 24, 3)) <= set(rows)  # the line that compiled them has a sample now and then
    rows = [rows[line] for line in range(3, 3 + 3 * 24, 3)]
    sigma = math.sqrt(MEAN * wanted)
    assert estimates.is_right(sum(rows), 24 * wanted, 0.01 * 24 * wanted)
    spread = math.sqrt(sum((row - wanted) ** 2 for row in rows) / 24) / sigma
    assert 0.4 <= spread <= 1.8  # chi with 24 degrees of freedom: less in one of 1,100,000 cases, more in one of 7,000,000


@pytest.mark.parametrize("allocator", ["malloc", "malloc_debug"])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_malloc_sees_is_not_sampled(out, version, allocator):
    """P1: each object is a block of the heap already."""
    expected, document = record(out, interpreter_of(version), "ledger", PYTHONMALLOC=allocator)
    assert DOMAIN not in document["totals"]
    for function, wanted in expected.items():
        assert wanted <= live_bytes(document, function, "heap") <= 1.6 * wanted + MIB, function


@pytest.mark.parametrize("version", ["3.13", "3.13t"])
def test_with_mimalloc_each_is_recorded(out, version):
    expected, document = record(out, interpreter_of(version), "ledger", PYTHONMALLOC="mimalloc")
    assert DOMAIN not in document["totals"]
    for function, wanted in expected.items():
        assert 0.95 * wanted <= live_bytes(document, function, "heap") <= 1.1 * wanted + MIB, function


@pytest.mark.parametrize("version", VERSIONS)
def test_beside_a_sample_of_the_heap(out, version):
    """KMEMSHIM_SAMPLE takes nothing away from the sample of small objects, which malloc serves."""
    expected, document = record(out, interpreter_of(version), "ledger", KMEMSHIM_SAMPLE="512K")
    check(expected, document)
    assert document["heap_sample_bytes"] == 512 << 10


@pytest.mark.parametrize("version", ["3.13", "3.13t"])
def test_with_mimalloc_they_are_part_of_the_sample_of_the_heap(out, version):
    expected, document = record(out, interpreter_of(version), "ledger", PYTHONMALLOC="mimalloc", KMEMSHIM_SAMPLE="64K")
    assert DOMAIN not in document["totals"]
    for function, wanted in expected.items():
        assert estimates.is_right(live_bytes(document, function, "heap/sample"), 0.95 * wanted, 0.15 * wanted + MIB, 64 << 10), function


@pytest.mark.parametrize("case", ["threads", "fork", "tracemalloc", "subinterpreters", "subinterpreters_with_locks"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_in_special_cases(out, version, case):
    """fork: the child is the one that is looked at; it inherited as much as it makes."""
    if case == "subinterpreters_with_locks" and version in ("3.8", "3.9", "3.10", "3.11", "system"):
        pytest.skip("sub-interpreters have locks of their own from 3.12 on")
    expected, document = record(out, interpreter_of(version), case, "exit" if case == "fork" else "kill")
    check(expected, document)


@pytest.mark.parametrize("version", VERSIONS)
def test_under_tracemalloc_from_the_beginning(out, version):
    expected, document = record(out, interpreter_of(version), "ledger", options=["-X", "tracemalloc"])
    check(expected, document)


@pytest.mark.parametrize("version", ["3.8", "3.13", "system"])
def test_what_exit_handlers_release_is_there_before(out, version):
    """And the arenas that they were in, which the interpreter gives back then."""
    expected, document = record(out, interpreter_of(version), "released_at_exit", "exit")
    check(expected, document)
    # What is left of the arenas, all of which hold these objects and what the interpreter had before.
    most = expected["released_at_exit"] * 1.1 - estimates.bounds(expected["released_at_exit"])[0] + 4 * MIB
    assert document["totals"]["python/arena"]["live_bytes"] < most


def test_children_of_one_fork_do_not_draw_the_same(out):
    """8 children make the same objects: their samples differ."""
    python = interpreter_of("system")
    harness.silent(harness.run([python, PROGRAM, "siblings", "exit"], harness.shim_env(out)))
    seen = []
    for capture in sorted(out.glob("*.kmem")):
        document = json.loads(harness.kmemshim("sites", capture, "--json", *MOST).stdout)
        seen.append(live_bytes(document, "childs_own"))
    seen = [value for value in seen if value != 0]
    assert len(seen) == 8
    assert len(set(seen)) >= 3  # of about 64 samples each, with a deviation of 8: of 8 such numbers in one of 2,000,000 cases there are two values


def test_threads_that_make_little_are_no_samples(out):
    """A thread's first object is drawn no sooner than any other: 400 threads with 100 objects each are 4 MiB, not 100."""
    expected, document = record(out, interpreter_of("system"), "many_threads")
    assert estimates.is_right(live_bytes(document, "little"), expected["little"], expected["little"] / 4)


def test_kinds_are_known_of_samples(out):
    def types(document):
        """Of the last look that found some."""
        return next((row["types"] for row in document["lines"] if row["domain"] == DOMAIN and row["types"] and
                     row["where"] and row["where"]["function"] == "kinds"), [])

    least, most = (bound * 400000 / (400000 * 64) for bound in estimates.bounds(400000 * 64))
    expected, document = record_until(lambda document: types(document) and types(document)[0]["count"] >= least, out, interpreter_of("system"), "kinds")
    assert expected == {"kinds": 400000 * 64}
    assert types(document)[0]["name"] == "Slots" and types(document)[0]["count"] <= most


def test_switched_off_nothing_is_sampled(out):
    _, document = record(out, interpreter_of("system"), "ledger", KMEMSHIM_PYTHON_OBJECTS="0")
    assert DOMAIN not in document["totals"]
    assert document["totals"]["python/arena"]["live_bytes"] > 30 * MIB


def test_recorded_exactly_nothing_is_sampled(out):
    _, document = record(out, interpreter_of("system"), "ledger", KMEMSHIM_PYTHON_OBJECTS="1")
    assert DOMAIN not in document["totals"]


def test_the_sample_goes_on_when_the_interpreters_own_allocators_are_put_back(out):
    """P4: what is alive is still released rightly."""
    expected, document = record(out, interpreter_of("system"), "put_back")
    check(expected, document)
    assert live_bytes(document, "before") <= 8 * MEAN
    assert document["losses"]["lost_unknown_frees"] == 0
    assert notes_of(out) == []


@pytest.mark.parametrize("version", ["3.8", "3.13"])
def test_what_replaces_the_allocators_ends_the_sample_and_the_report_says_so(out, embedded, version):
    _, document = record_embedded(out, embedded, "removes", version)
    assert notes_of(out) == ["small Python objects have lines only until the program, or a tool in it, replaced the interpreter's allocators"]
    assert live_bytes(document, "mixed") == 0
    assert document["losses"]["lost_unknown_frees"] <= 1  # the loader's, of what it had before


EMBEDDED = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13"]


@pytest.mark.parametrize("what", ["late", "again", "below", "above"])
@pytest.mark.parametrize("version", EMBEDDED)
def test_the_same_in_a_program_that_embeds_python(out, embedded, version, what):
    expected, document = record_embedded(out, embedded, what, version)
    check(expected, document)
    assert not [note for note in notes_of(out) if note.startswith("small Python objects")]
    arenas = document["totals"].get("mmap", {"live_bytes": 0})["live_bytes"]
    assert arenas < 4 * MIB  # the first one of each life, from before its first line of Python


@pytest.mark.parametrize("version", ["3.8", "3.13"])
def test_in_each_life_of_an_interpreter_objects_are_recorded_one_by_one(out, embedded, version):
    expected, document = record_embedded(out, embedded, "again", version, KMEMSHIM_PYTHON_OBJECTS="1")
    for function, wanted in expected.items():
        assert wanted <= live_bytes(document, function, "heap") <= 1.1 * wanted + MIB, function


@pytest.mark.parametrize("version", ["3.8", "3.13"])
def test_an_allocator_of_the_programs_that_is_not_mallocs_is_not_sampled(out, embedded, version):
    expected, document = record_embedded(out, embedded, "outside", version)
    assert expected and DOMAIN not in document["totals"]
    assert document["losses"]["lost_events"] == 0


@pytest.mark.parametrize("size, is_sampled", [(40, True), (600, False)])
def test_who_calls_malloc_in_a_sample_is_counted_as_lost(out, embedded, size, is_sampled):
    """An allocator below, or a signal handler, calls malloc between the draw and the sample's own malloc. Only a large one takes its place."""
    expected, document = record_embedded(out, embedded, "noting", "3.11", NOTED_BYTES=str(size))
    (function, wanted), = expected.items()
    least, most = estimates.counts(wanted / MEAN)  # of what is kept; and some 30 of what comes and goes meanwhile
    assert least <= document["losses"]["lost_reentrant"] <= most + estimates.counts(60)[1]
    if is_sampled:
        check(expected, document)
    else:
        assert live_bytes(document, function) == 0


def test_a_baseline_of_several_runs_finds_the_line_that_grew(out, tmp_path):
    """What the runs of the baseline differ by is chance; twelve deviations more are none."""
    runs = []
    for name, count in (("a", 80000), ("b", 80000), ("c", 80000), ("grown", 500000)):
        runs.append(os.path.join(out, name))
        record(runs[-1], interpreter_of("system"), "two_lines", end="exit", COUNT=str(count))
    saved = os.path.join(tmp_path, "baseline.json")
    assert harness.kmemshim("baseline", *runs[:3], "-o", saved).returncode == 0
    done = harness.kmemshim("check", "--baseline", saved, runs[3])
    failed = [line for line in done.stdout.splitlines() if line.startswith("FAIL")]
    assert done.returncode == 1 and any(DOMAIN in line and " halves" in line for line in failed), done.stdout
