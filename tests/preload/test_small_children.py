"""The file of a child is made when it matters; what was recorded before is in it, and one that never mattered leaves no trace on the disk."""
import collections

import pytest

import harness


def record(programs, out, how):
    done = harness.record([programs("small_children.c"), how, out], out)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 captures\n", "")  # the first process's
    document = harness.report("sites", out, "--top", "1000")
    held = collections.Counter()
    for site in document["sites"]:
        held[(site["where"] or {}).get("function")] += site["live_bytes"]
    return document, held, document["processes"][1:]


def test_one_that_stays_small_leaves_nothing_however_it_ends(programs, out):
    document, held, children = record(programs, out, "nothing")

    assert children == [] and held["keep_small"] == 0
    assert len(list(out.iterdir())) == 1


def test_a_capture_that_goes_between_listing_and_reading_is_no_damage(programs, out):
    """As that of a child that ends small while the report is made: the name is there, the file is not."""
    record(programs, out, "nothing")
    (out / "python3.11.4711.1.kmem").symlink_to(out / "removed")
    harness.silent(harness.kmemshim("report", out))



@pytest.mark.parametrize("how, function, bytes_", [
    ("grows", "keep_large", 700 << 10), ("thread", "keep_in_thread", 3000), ("exec-fails", "keep_large", 700 << 10),
])
def test_one_that_matters_later_has_all_of_it(how, function, bytes_, programs, out):
    document, held, children = record(programs, out, how)

    assert [child["state"] for child in children] == ["gone"]
    assert held["keep_small"] == 50 * 1000 and held[function] == bytes_
    site = next(site for site in document["sites"] if (site["where"] or {}).get("function") == "keep_small")
    assert site["allocated_count"] == 100 and site["live_count"] == 50
    assert document["losses"]["lost_events"] == 0


def test_a_refused_request_matters(programs, out):
    document, held, children = record(programs, out, "refused")

    assert [child["state"] for child in children] == ["gone"]
    assert [request["where"]["function"] for request in document["refused_requests"]] == ["keep_too_much"]
    assert held["keep_small"] == 50 * 1000


def test_a_child_of_a_small_one_may_matter(programs, out):
    document, held, children = record(programs, out, "forks")

    assert [child["state"] for child in children] == ["gone"]
    assert held["keep_large"] == 700 << 10
    assert sum(child["inherited_bytes"] for child in children) >= 50 * 1000
