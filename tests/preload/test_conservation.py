"""The report's figures are the ledger's figures: exactly when the program ended, within what was pending when killed."""
import json
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

import harness

pytestmark = pytest.mark.usefixtures("as_users_run_it")

LIBRARY_FOLDERS = (Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib64"), Path("/usr/lib"))
FIGURES = ("live_bytes", "live_count", "allocated_bytes", "allocated_count")


def ledger_program(programs):
    return programs("ledger.c", "-fno-optimize-sibling-calls")


def read_ledger(program, file):
    done = harness.ok(harness.run([program, file]))
    return json.loads(done.stdout)


def figures_by_function(document, names):
    """Sums the report's sites by the ledger's call-site functions."""
    sums = {name: Counter() for name in names}
    for site in document["sites"]:
        function = next((frame["function"] for frame in site["frames"] if frame["function"] in names), None)
        if function:
            assert site["where"]["function"] == function
            for figure in FIGURES + ("peak_bytes",):
                sums[function][figure] += site[figure]
    return sums


def report_of(out):
    return harness.report("sites", out, "--top", "1000000")


def check_ledger_site_by_site(wanted, document, figures):
    seen = figures_by_function(document, wanted["sites"])
    wrong = {name: {figure: (entry[figure], seen[name][figure]) for figure in figures
                    if entry[figure] != seen[name][figure]} for name, entry in wanted["sites"].items()}
    assert not any(wrong.values()), f"(ledger, report): { {name: each for name, each in wrong.items() if each} }"


@pytest.mark.parametrize("attempt", range(3))
def test_single_threaded_program_is_exact_to_the_byte(attempt, programs, out, tmp_path):
    seed = harness.seeded_random().randrange(1 << 31)
    program, file = ledger_program(programs), tmp_path / "ledger"
    harness.ok(harness.record([program, file, seed, 1, 100000], out))
    wanted, document = read_ledger(program, file), report_of(out)

    assert wanted["is_done"] and wanted["sites"]["site_malloc_1"]["allocated_count"] > 1000
    check_ledger_site_by_site(wanted, document, FIGURES + ("peak_bytes",))
    for domain, peak in wanted["peak"].items():
        # What libc itself took at the start is there too, and constant.
        others = sum(site["peak_bytes"] for site in document["sites"] if site["domain"] == domain) - sum(
            entry["peak_bytes"] for entry in wanted["sites"].values() if entry["domain"] == domain)
        assert document["totals"][domain]["peak_bytes"] == peak + others
        assert 0 <= others < 4 << 20


@pytest.mark.parametrize("threads", [2, 8, 32])
def test_threads_that_free_each_others_blocks_are_exact(threads, programs, out, tmp_path):
    seed = harness.seeded_random().randrange(1 << 31)
    program, file = ledger_program(programs), tmp_path / "ledger"
    harness.ok(harness.record([program, file, seed, threads, 200000 // threads], out))
    wanted, document = read_ledger(program, file), report_of(out)

    assert wanted["is_done"]
    check_ledger_site_by_site(wanted, document, FIGURES)


def test_threads_that_grow_at_once_wait_for_the_map(programs, out):
    """It gets more words for one of them at a time. Who did not wait had its blocks in a table that is small, then nowhere."""
    threads, blocks = 32, 100_000
    harness.ok(harness.run([programs("growing.c"), str(threads), str(blocks)], harness.shim_env(out)))

    document = harness.report("sites", out, "--top", "100")
    assert sum(site["live_count"] for site in document["sites"] if site["where"]["function"] == "keep") == threads * blocks
    assert not {name: count for name, count in document["losses"].items() if count}
    assert document["recording"]["crowded_blocks"] <= threads * blocks // 10_000  # where words lie as close as they can


@pytest.mark.parametrize("exact", [False, True])
def test_threads_say_how_far_the_peak_may_be_off(exact, programs, out, tmp_path):
    program, file = ledger_program(programs), tmp_path / "ledger"
    environment = harness.shim_env(out, **({"KMEMSHIM_EXACT_PEAK": 1} if exact else {}))
    harness.ok(harness.run([program, file, 7, 8, 5000], environment))
    document = report_of(out)
    page = harness.kmemshim("report", out)

    assert (document["peak_error_bytes"] == 0) == exact
    assert ("peaks may be off by" in harness.unwrapped(page.stdout)) != exact


@pytest.mark.parametrize("allocator", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4"])
def test_an_allocator_that_packs_blocks_of_8_bytes_is_exact(allocator, programs, out):
    """Preloaded behind us. glibc's blocks are never closer than 32 bytes; what that saves us must not be used here."""
    if not any((folder / allocator).exists() for folder in LIBRARY_FOLDERS):
        pytest.skip(f"{allocator} is not installed (libjemalloc2, libtcmalloc-minimal4)")
    program = programs("neighbours.c")
    done = harness.ok(harness.run([program, 20000], harness.shim_env(out, LD_PRELOAD=f"{harness.SHIM} {allocator}")))

    assert int(done.stdout) <= 16, f"{allocator} does not pack blocks: this proves nothing"
    document = report_of(out)
    kept = [site for site in document["sites"] if site["where"]["function"] == "keep"]
    assert sum(site["live_count"] for site in kept) == 10000
    assert sum(site["allocated_count"] for site in kept) == 20000
    assert document["losses"]["lost_missed_frees"] == document["losses"]["lost_unknown_frees"] == 0


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("attempt", range(5))
def test_killed_program_differs_by_what_was_pending_at_most(attempt, threads, programs, out, tmp_path):
    rng = harness.seeded_random()
    program, file = ledger_program(programs), tmp_path / "ledger"
    process = subprocess.Popen([program, file, str(rng.randrange(1 << 31)), str(threads), "0"],
                               env=harness.shim_env(out), stdin=subprocess.DEVNULL)
    try:
        while not file.exists() or read_ledger(program, file)["steps"] < 1000:
            assert process.poll() is None
        time.sleep(rng.random() / 2)  # the moment of death
    finally:
        process.kill()
        process.wait(timeout=harness.TIMEOUT)
    assert process.returncode == -signal.SIGKILL
    wanted, document = read_ledger(program, file), report_of(out)
    seen = figures_by_function(document, wanted["sites"])
    slack = {name: Counter() for name in wanted["sites"]}
    for name, size in wanted["pending"]:
        slack[name]["bytes"] += size
        slack[name]["count"] += 1

    assert not wanted["is_done"]
    for name, entry in wanted["sites"].items():
        for figure in FIGURES:
            off = abs(entry[figure] - seen[name][figure])
            assert off <= slack[name][figure.split("_")[1]], (
                f"{name} {figure}: ledger {entry[figure]}, report {seen[name][figure]}, pending {wanted['pending']}")


def test_a_capture_still_being_written_can_be_read(programs, out, tmp_path):
    program, file = ledger_program(programs), tmp_path / "ledger"
    process = subprocess.Popen([program, file, "1", "2", "0"], env=harness.shim_env(out), stdin=subprocess.DEVNULL)
    try:
        while not file.exists() or read_ledger(program, file)["steps"] < 1000:
            assert process.poll() is None
        for _ in range(5):
            document = report_of(out)
            assert sum(site["live_count"] for site in document["sites"]) > 0
            assert process.poll() is None
    finally:
        process.kill()
        process.wait(timeout=harness.TIMEOUT)
