"""Functions that call themselves: what it costs does not grow with how often, the line is right, and the stack says that it is so."""
import pytest

import harness
from test_cells import interpreter_of

SECONDS = 120  # what takes as long as the square of the depth must not hold up the rest


def record_case(programs, out, case, lost_unwinds=0, **settings):
    done = harness.run([programs("recursion.c"), case], harness.shim_env(out, **settings), timeout=SECONDS)
    document = harness.report("sites", out, "--domain", "heap", "--top", "100000")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "done"
    assert document["losses"]["lost_events"] == 0
    assert lost_unwinds is None or document["losses"]["lost_unwinds"] == lost_unwinds
    return document


def names(site):
    return [frame["function"] for frame in site["frames"]]


def sites_of(document, function):
    return [site for site in document["sites"] if function in names(site)]


def test_a_hundred_thousand_nested_calls_that_allocate_are_recorded_in_time(programs, out):
    """Without verifying, which walks all of each stack."""
    document = record_case(programs, out, "deep", KMEMSHIM_VERIFY=0)
    sites = sites_of(document, "nest")

    assert sum(site["allocated_count"] for site in sites) == 100001
    assert (sum(site["live_count"] for site in sites), sum(site["live_bytes"] for site in sites)) == (1, 40)
    assert len(sites) == 3  # called once, twice, more often
    assert all(names(site)[:-1].count("work") == 1 for site in sites)  # the outermost frames are there, however deep
    assert max(len(site["frames"]) for site in sites) < 20
    assert all(site["frames_omitted"] == 0 for site in sites)
    assert sum(path.stat().st_size for path in out.glob("*.kmem")) < 1 << 20


@pytest.mark.parametrize("settings", [{}, {"KMEMSHIM_VERIFY": 0}, {"KMEMSHIM_VERIFY": 1}], ids=["verify", "plain", "each"])
def test_a_recursive_builder_of_trees_is_one_place_for_each_line_that_calls_it(settings, programs, out):
    document = record_case(programs, out, "trees", **settings)
    sites = sites_of(document, "build_tree")
    nodes = 2 ** 15 - 1
    repeated = [site for site in sites if any("is_repeated" in frame for frame in site["frames"])]

    assert sum(site["live_count"] for site in sites) == 2 * nodes
    assert len(sites) <= 2 * (1 + 2 + 2)  # called from outside alone; by itself, at the left or the right; more often, too
    assert {site["where"]["function"] for site in sites} == {"build_tree"}
    for line in {frame["line"] for site in sites for frame in site["frames"] if frame["function"] == "work"}:
        assert sum(site["live_count"] for site in sites
                   if line in [frame["line"] for frame in site["frames"] if frame["function"] == "work"]) == nodes
    assert sum(site["live_count"] for site in repeated) == 2 * (nodes - 3)
    for site in repeated:
        assert names(site)[:2] == ["build_tree", "build_tree"]  # the innermost and the outermost
        assert [frame.get("is_repeated", False) for frame in site["frames"]][:3] == [True, False, False]


def test_a_stack_says_that_its_function_calls_itself(programs, out):
    record_case(programs, out, "trees")
    shown = harness.kmemshim("sites", out, "--native").stdout

    assert "build_tree (calls itself)\n" in shown


def test_what_a_deep_stack_needs_is_not_locked_in_memory(programs, out):
    """It is room for many more frames."""
    done = harness.run([programs("recursion.c"), "locked"], harness.shim_env(out), timeout=SECONDS)
    grown, last = done.stdout.splitlines()

    assert (done.returncode, done.stderr, last) == (0, "", "done")
    if grown == "may not lock":
        pytest.skip(grown)
    assert int(grown) < 10


def test_a_handler_that_allocates_does_not_hide_who_called_a_deep_stack(programs, out):
    """Its own walk is another kind, and says nothing of the frames outside of it."""
    document = record_case(programs, out, "signals", lost_unwinds=None, KMEMSHIM_VERIFY=0)
    live = {function: sum(site["live_count"] for site in sites_of(document, function)) for function in ("first_way", "second_way")}

    assert live == {"first_way": 50, "second_way": 150}


@pytest.mark.parametrize("settings", [{}, {"KMEMSHIM_VERIFY": 0}], ids=["verify", "plain"])
def test_of_three_thousand_frames_only_the_outermost_is_another(settings, programs, out):
    document = record_case(programs, out, "ways", **settings)
    live = {function: sum(site["live_count"] for site in sites_of(document, function)) for function in ("first_way", "second_way")}

    assert live == {"first_way": 50, "second_way": 150}


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_where_the_native_frames_of_a_python_recursion_end_does_not_depend_on_its_depth(version, tmp_path, out):
    """Each event is verified: what was remembered at one level is the walk at another."""
    program = tmp_path / "deep.py"
    program.write_text("""\
import sys
sys.setrecursionlimit(10 ** 6)
kept = []

def build(level):
    if level:
        build(level - 1)
    if level % 1000 == 0:
        kept.extend(bytearray(1000000 + level) for _ in range(4))

for _ in range(2):
    build(40000)
""")
    done = harness.run([interpreter_of(version), program], harness.shim_env(out, KMEMSHIM_VERIFY="1"), timeout=SECONDS)
    document = harness.report("sites", out, "--domain", "heap", "--top", "100000")

    assert (done.returncode, done.stderr) == (0, "")
    assert document["verify"]["checked"] > 100
    assert all("main" not in name for site in sites_of(document, "build") for name in names(site))
