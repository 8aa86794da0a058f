"""The timeline: are its points what the program itself says it held, how many are there, and what is left after SIGKILL?"""
import bisect
import gzip
import struct

import pytest

from harness import BUILD, ROOT, compile_c, ok, record, report, run, shim_env

LINES = ("small", "middle", "large")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("timeline") / "timeline"
    compile_c(ROOT / "tests/preload/timeline.c", path, "-O1", "-g")
    return path


def entries_of(path):
    return list(struct.iter_unpack("=QQQQQ", path.read_bytes()))


def at(document, pid=None):
    process = next(one for one in document["processes"] if pid is None or one["pid"] == pid)
    return process, process["timeline"]


def start_of(capture):
    with open(capture, "rb") as file:
        file.seek(32 + 24)
        return struct.unpack("=Q", file.read(8))[0]


def compare(document, capture, entries, pid=None):
    """Each point that was taken while the ledger was kept is exactly one of its states. Returns how many were compared."""
    _, timeline = at(document, pid)
    heap = timeline["domains"].index("heap")
    columns = [next(number for number, line in enumerate(timeline["lines"])
                    if line["where"] and line["where"]["function"] == name) for name in LINES]
    times = [entry[0] for entry in entries]
    compared = 0
    for point in timeline["points"]:
        moment = start_of(capture) + point["age_ns"]
        number = bisect.bisect_right(times, moment) - 1
        if number < 1 or number + 1 >= len(entries) or point["is_end"]:
            continue
        allowed = [entries[number - 1][2:], entries[number][2:], entries[number + 1][2:]]
        held = tuple(point["line_bytes"][column] for column in columns)
        assert held in allowed, (point, allowed)
        assert point["domain_bytes"][heap] - sum(held) in range(0, 3000), point # libc's own
        compared += 1
    return compared


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_point_is_what_the_program_held_at_that_moment(program, tmp_path, seed):
    record([program, tmp_path / "ledger", str(seed), "20000"], tmp_path / "out")
    capture, = (tmp_path / "out").glob("*.kmem")
    document = report("report", capture)
    assert compare(document, capture, entries_of(tmp_path / "ledger")) >= 20
    _, timeline = at(document)
    assert len(timeline["points"]) <= 512
    ages = [point["age_ns"] for point in timeline["points"]]
    assert ages == sorted(ages)
    # the highest is there: within what a program adds between two looks
    peak = next(domain["peak_bytes"] for domain in document["totals"] if domain["domain"] == "heap") \
        if isinstance(document["totals"], list) else document["totals"]["heap"]["peak_bytes"]
    heap = timeline["domains"].index("heap")
    assert max(point["domain_bytes"][heap] for point in timeline["points"]) >= 0.8 * peak


def test_after_a_kill_the_last_point_is_what_was_held_then(program, tmp_path):
    done = run([program, tmp_path / "ledger", "4", "20000", "kill"], shim_env(tmp_path / "out"))
    assert done.returncode == -9
    capture, = (tmp_path / "out").glob("*.kmem")
    document = report("report", capture)
    entries = entries_of(tmp_path / "ledger")
    assert compare(document, capture, entries) >= 20
    _, timeline = at(document)
    last = timeline["points"][-1]
    named = {line["where"]["function"]: last["line_bytes"][number]
             for number, line in enumerate(timeline["lines"]) if line["where"]}
    assert tuple(named[name] for name in LINES) == entries[-1][2:] and last["is_end"]


def test_a_forked_child_has_its_own(program, tmp_path):
    record([program, tmp_path / "ledger", "5", "20000", "fork"], tmp_path / "out")
    document = report("report", tmp_path / "out")
    assert len(document["processes"]) == 2
    child = next(process for process in document["processes"] if process["inherited_bytes"] != 0)
    capture, = (tmp_path / "out").glob(f"*.{child['pid']}.*.kmem")
    assert compare(report("report", capture), capture, entries_of(tmp_path / "ledger.child")) >= 20
    parent = next(process for process in document["processes"] if process is not child)
    capture, = (tmp_path / "out").glob(f"*.{parent['pid']}.*.kmem")
    assert compare(report("report", capture), capture, entries_of(tmp_path / "ledger")) >= 20


def test_a_program_of_a_few_milliseconds_has_points(program, tmp_path):
    record([program, tmp_path / "ledger", "6", "300"], tmp_path / "out")
    _, timeline = at(report("report", tmp_path / "out"))
    assert len(timeline["points"]) >= 8, timeline


def test_a_capture_of_format_9_is_read(tmp_path):
    old = tmp_path / "old.kmem"
    old.write_bytes(gzip.decompress((ROOT / "tests/golden/format9.kmem.gz").read_bytes()))
    assert old.read_bytes()[8] == 9
    document = report("report", old)
    process, timeline = at(document)
    assert process["exit_status"] == 0 and timeline is None
    assert (100 * 100000, 50 * 100000) in [(site["allocated_bytes"], site["live_bytes"]) for site in document["sites"]]
    for command in (["report"], ["peak"], ["leaks"], ["why"], ["tree"]):
        done = run([BUILD / "kmemshim", *command, old])
        assert done.returncode == 0, done
    ok(run([BUILD / "kmemshim", "report", "--html", tmp_path / "page.html", old]))
