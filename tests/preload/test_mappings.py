"""Mappings: what is live by any way in which they come, go and change, and what the resident set is made of."""
from collections import Counter

import pytest

import harness

PARTS = {"brk", "heap", "mmap", "reserved", "python/arena", "shared", "file", "program", "stacks", "kmemshim", "inherited",
         "not attributed"}
ANY = (1 << 64) - 1


def figures_by_case(document, cases):
    """Bytes and count by (function, domain): each case is a function, and all that it maps is below it."""
    seen = {}
    for site in document["sites"]:
        case = next((frame["function"] for frame in site["frames"] if frame["function"] in cases), None)
        if case and site["domain"] != "heap":
            figures = seen.setdefault((case, site["domain"]), Counter())
            figures["bytes"] += site["live_bytes"]
            figures["count"] += site["live_count"]
    return seen


@pytest.fixture(scope="session")
def cases(programs, tmp_path_factory):
    """(case, domain, bytes, count) as the program says it must be, the same as the report says it, and the report."""
    folder = tmp_path_factory.mktemp("mappings")
    program, seed = programs("mappings.c"), harness.seeded_random().randrange(1 << 31)
    plain = harness.run([program, folder, seed])
    watched = harness.record([program, folder, seed], folder / "capture")
    assert (watched.returncode, watched.stdout, watched.stderr) == (0, plain.stdout, plain.stderr)
    document = harness.report("sites", folder / "capture", "--top", "1000000")
    wanted = {(case, domain): (int(size), int(count)) for case, domain, size, count in map(str.split, plain.stdout.splitlines())}
    return wanted, figures_by_case(document, {case for case, _ in wanted}), document


CASES = """remap_grows_in_place_or_not remap_shrinks remap_moves_over_another remap_of_the_middle remap_that_fails_changes_nothing
remap_leaves_the_old_range remap_of_size_0_shares unmap_of_the_start_the_end_and_the_middle unmap_of_a_hole
unmap_across_several_with_holes unmap_that_fails_changes_nothing unmap_of_more_pieces_than_fit_one_look fixed_over_live_ranges
fixed_that_fails_or_finds_room_taken bytes_that_are_no_whole_pages protect_makes_a_reservation_memory protect_then_unmap protect_page_by_page
protect_of_the_whole_and_of_nothing reservations_and_huge_pages advice_returns_pages devices_and_files shared_memory
direct_calls_are_not_seen random_work""".split()


@pytest.mark.parametrize("case", CASES)
def test_live_mappings_are_exact(case, cases):
    wanted, seen, _ = cases
    domains = {domain for name, domain in set(wanted) | set(seen) if name == case}

    assert domains
    for domain in domains:
        size, count = wanted.get((case, domain), (0, 0))
        figures = seen.get((case, domain), Counter())
        assert figures["bytes"] == size, domain
        assert count in (ANY, figures["count"]), domain


def test_pages_that_become_memory_one_after_the_other_are_one_block(cases):
    """But for a few generations. Each would take a place in the recorder's map."""
    assert 0 < cases[1][("protect_page_by_page", "mmap")]["count"] < 10


def test_every_case_of_the_program_is_looked_at(cases):
    assert {case for case, _ in cases[0]} - {"returned"} == set(CASES)


def test_what_madvise_gave_back_is_counted(cases):
    wanted, _, document = cases

    assert document["totals"]["mmap"]["returned_bytes"] == wanted["returned", "mmap"][0]


def resident_of(out, process=0):
    """The parts, which are all there and add up."""
    resident = harness.report("sites", out)["processes"][process]["resident"]
    assert set(resident["parts"]) == PARTS
    assert sum(resident["parts"].values()) == resident["bytes"] > 0
    return resident


def test_each_kind_of_memory_is_found_in_the_resident_set(programs, out):
    done = harness.ok(harness.record([programs("resident.c")], out))
    wanted = Counter()
    for line in done.stdout.splitlines():
        part, kib = line.rsplit(" ", 1)
        wanted[part] += int(kib) << 10
    resident = resident_of(out)

    assert abs(resident["bytes"] - wanted.pop("all")) < 1 << 20
    for part, size in wanted.items():
        assert size <= resident["parts"][part] < size + (1 << 20), part
    assert resident["parts"]["program"] > 0 and 0 < resident["parts"]["kmemshim"] < 64 << 20
    page = harness.kmemshim("report", out).stdout
    assert "Resident set" in page and "not attributed" in page


OWN_RESIDENT = """
import re
print(re.search(r"Rss: *(\\d+)", open("/proc/self/smaps_rollup").read())[1])
"""


def check_a_python_program(python, text, out, most_unknown):
    done = harness.ok(harness.record([python, "-c", text + OWN_RESIDENT], out))
    resident, own = resident_of(out), int(done.stdout.split()[-1]) << 10

    assert abs(resident["bytes"] - own) < own / 20
    assert resident["parts"]["not attributed"] < most_unknown
    return resident["parts"]


def test_numpy_has_next_to_nothing_that_is_not_attributed(numpy_python, out):
    text = "import numpy, threading\nkept = [numpy.ones(300000) for _ in range(30)]\n" \
           "small = [object() for _ in range(100000)]\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    parts = check_a_python_program(numpy_python, text, out, 1 << 20)

    assert 30 * 300000 * 8 <= parts["heap"] < 30 * 300000 * 8 + (8 << 20)
    assert parts["python/arena"] > 1 << 20 and parts["stacks"] > 0


FORKS = """
import os
kept = bytearray(20 << 20)
if os.fork() == 0:
    own = bytearray(7 << 20)
    os._exit(0)
os.wait()
"""


def test_what_a_child_has_from_its_parent_is_apart(out):
    harness.ok(harness.record(["/usr/bin/python3", "-c", FORKS], out))
    parent, child = resident_of(out)["parts"], resident_of(out, 1)["parts"]

    assert parent["inherited"] == 0 and parent["heap"] >= 20 << 20
    assert child["inherited"] >= 20 << 20 and 7 << 20 <= child["heap"] < 8 << 20
    assert child["not attributed"] == 0


@pytest.mark.framework
def test_pytorch_has_next_to_nothing_that_is_not_attributed(out):
    python = harness.ROOT / "build" / "venv-torch" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"{python} is not there: tools/venv torch")
    text = "import torch\nkept = [torch.ones(500000) for _ in range(30)]\ntorch.ones(300, 300) @ torch.ones(300, 300)\n"
    parts = check_a_python_program(python, text, out, 4 << 20)

    assert parts["heap"] + parts["brk"] >= 30 * 500000 * 4


def test_pages_of_a_reservation_are_booked_where_it_grew_and_released_with_it(out, tmp_path):
    """Of what an allocator of its own touches and gives back: as much is booked as the system says is in memory."""
    program = harness.compile_c(harness.HERE / "reservation.c", tmp_path / "reservation")
    done = harness.ok(harness.record([program], out))
    lines = [line for line in harness.report("sites", out)["lines"] if line["domain"] == "library"]

    assert sum(line["live_bytes"] for line in lines) == int(done.stdout) == 31 << 20
    text = (harness.HERE / "reservation.c").read_text().splitlines()
    places = {f"reservation.c:{number}" for number, line in enumerate(text, 1) if "grows here" in line or "munmap(mmap" in line}
    named = sum(line["live_bytes"] for line in lines if harness.place(line) in places)
    assert named >= 24 << 20, harness.summary(lines)
