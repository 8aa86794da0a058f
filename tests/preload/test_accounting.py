"""Each way to ask for memory and to give it back leaves the bytes and blocks that were asked for, to the byte; so do peaks."""
import re

import pytest

import harness

SOURCE = (harness.HERE / "accounting.cc").read_text()
KEEPS = re.findall(r"^(?:.* )?KEEPS(?:_LATER)?\((\w+), ([^,]+), (\d+)\)", SOURCE, re.M)
PEAKS = re.findall(r"^PEAKS\((\w+), (\d+), (\d+), (\d+)\)", SOURCE, re.M)
MIB = 1 << 20


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("accounting") / "accounting"
    harness.ok(harness.run(["g++", "-std=gnu++17", "-g", "-O1", "-fno-builtin", "-w", "-pthread", harness.HERE / "accounting.cc",
                            "-o", path, "-ldl"]))
    return path


@pytest.fixture(scope="module")
def document(program, tmp_path_factory):
    """All of the first table in one process."""
    out = tmp_path_factory.mktemp("capture")
    harness.silent(harness.record([program], out))
    document = harness.report("sites", out, "--top", "1000000")
    assert document["losses"]["lost_unknown_frees"] == document["losses"]["lost_missed_frees"] == 0
    return document


@pytest.fixture(scope="module")
def sites(document):
    return document["sites"]


def those_below(sites, function):
    return [site for site in sites if any(frame["function"].split("(")[0] == function for frame in site["frames"])]


def test_the_tables_were_read():
    assert len(KEEPS) == SOURCE.count("\nKEEPS") + SOURCE.count(") KEEPS_LATER(") and len(PEAKS) == SOURCE.count("\nPEAKS(")


@pytest.mark.parametrize("name, live_bytes, blocks", KEEPS, ids=[row[0] for row in KEEPS])
def test_what_is_kept(name, live_bytes, blocks, sites):
    own = those_below(sites, f"keeps_{name}")

    assert sum(site["live_bytes"] for site in own) == eval(live_bytes)  # a sum or product of numbers
    assert sum(site["live_count"] for site in own) == int(blocks)


def test_an_alignment_that_is_none_is_no_refusal(document):
    """More memory would not have helped."""
    lines = [request["where"]["function"] for request in document["refused_requests"]]

    assert "keeps_refused" in lines and "keeps_alignment_that_is_none" not in lines


@pytest.mark.parametrize("name, a, b, c", PEAKS, ids=[row[0] for row in PEAKS])
def test_what_made_the_peak(name, a, b, c, program, out):
    harness.silent(harness.run([program, name], harness.shim_env(out, KMEMSHIM_EXACT_PEAK=1)))
    sites = harness.report("peak", out, "--top", "1000000")["sites"]

    peaks = [sum(site["peak_bytes"] for site in those_below(sites, function)) for function in "abc"]
    assert peaks == [int(mib) * MIB for mib in (a, b, c)]
