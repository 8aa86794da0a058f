"""
Killed at random instants, a program leaves a capture that can be read, and what it says differs from the program's own ledger by what
was in flight at most: at every call site, and for the peak. KILLS= of the environment says how many of each program.
"""
import contextlib
import glob
import os
import signal
import subprocess
import time
from collections import Counter, namedtuple
from pathlib import Path

import pytest

import harness
from test_conservation import FIGURES, figures_by_function, ledger_program, read_ledger

pytestmark = pytest.mark.usefixtures("as_users_run_it")

KILLS = int(os.environ.get("KILLS") or 20)
WORKERS = 3
OOM_LIMIT = 80 << 20
UNDER_WAY = "a request was in progress, or the file is damaged"
TORCH_LOOP = harness.HERE / "kills_torch.py"

Way = namedtuple("Way", "name share threads signal env", defaults=({},))
WAYS = (
    Way("SIGKILL, one thread", .35, 1, signal.SIGKILL),
    Way("SIGKILL", .3, 4, signal.SIGKILL),
    Way("SIGSEGV", .1, 4, signal.SIGSEGV),
    Way("SIGABRT", .1, 4, signal.SIGABRT),
    Way("SIGKILL of the whole tree", .05, 2, signal.SIGKILL, {"WORKERS": WORKERS}),
    Way("out of memory in its cgroup", .1, 2, None, {"TOUCH": 1}),
)


class Summary(dict):
    """What is written down about the kills of one kind."""

    def __init__(self):
        super().__init__(kills=0, readable=0, in_order=0, operations_off=0, bytes_off=0, peaks=0, peak_off=0)

    def most(self, name, value):
        self[name] = max(self[name], value)

    def read(self, document):
        """Some instructions after the total of a domain has changed, a large request looks like damage."""
        assert all(text.endswith(UNDER_WAY) for text in document["damages"]), document["damages"]
        self["readable"] += 1
        self["in_order"] += not document["damages"]
        assert self["readable"] - self["in_order"] <= 2 + self["kills"] // 50, document["damages"]

    def tell(self, name, seconds):
        print(f"\n{name}: {self['kills']} kills in {seconds:.0f} s, {self['readable']} readable captures, {self['in_order']} in order; most in one: {self['operations_off']} "
              f"operations, {self['bytes_off']} bytes, none more than was in flight; {self['peaks']} peaks, off by {self['peak_off']} bytes at most")


# --- one death ------------------------------------------------------------------------------------

def limited(argv, group):
    return ["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', group, *argv]


def die(way, argv, file, out, rng, group):
    """Returns once every process is dead; the moment is a random one."""
    argv = limited(argv, group) if way.signal is None else argv
    files = [file] + [Path(f"{file}.{number}") for number in range(1, 1 + way.env.get("WORKERS", 0))]
    process = subprocess.Popen([str(word) for word in argv], env=harness.shim_env(out, MALLOC_ARENA_MAX="2", **way.env),
                               stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        while way.signal is not None and not all(each.exists() and read_steps(each) > 100 for each in files):
            assert process.poll() is None
        if way.signal is not None:
            time.sleep(rng.random() / 20)
            os.killpg(process.pid, way.signal)
        process.wait(timeout=harness.TIMEOUT)
        for _ in files[1:]:
            os.waitpid(-process.pid, 0)  # a worker of this group
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=harness.TIMEOUT)
    assert process.returncode == -(way.signal or signal.SIGKILL)
    return files


def read_steps(file):
    """Without a process for each look."""
    with open(file, "rb") as ledger:
        head = ledger.read(16)
    return int.from_bytes(head[8:16], "little") if len(head) == 16 else 0


# --- ledger and report ----------------------------------------------------------------------------

def sum_of(ledgers):
    total = {"sites": {}, "pending": [], "peak": ledgers[0]["peak"]}
    for ledger in ledgers:
        assert not ledger["is_done"]
        total["pending"] += ledger["pending"]
        for name, entry in ledger["sites"].items():
            mine = total["sites"].setdefault(name, {"domain": entry["domain"], **dict.fromkeys((*FIGURES, "peak_bytes"), 0)})
            for figure in (*FIGURES, "peak_bytes"):
                mine[figure] += entry[figure]
    return total


def check_sites(wanted, seen, summary):
    slack = {name: Counter() for name in wanted["sites"]}
    for name, size in wanted["pending"]:
        slack[name]["bytes"] += size
        slack[name]["count"] += 1
    operations = size_off = 0
    for name, entry in wanted["sites"].items():
        for figure in FIGURES:
            off = abs(entry[figure] - seen[name][figure])
            assert off <= slack[name][figure.split("_")[1]], (
                f"{name} {figure}: ledger {entry[figure]}, report {seen[name][figure]}, pending {wanted['pending']}")
        # An operation that one has and the other has not: an allocation, or a release that changed what lives.
        born = abs(entry["allocated_count"] - seen[name]["allocated_count"])
        operations += max(born, abs(entry["live_count"] - seen[name]["live_count"]))
        size_off += abs(entry["live_bytes"] - seen[name]["live_bytes"])
    summary.most("operations_off", operations)
    summary.most("bytes_off", size_off)


def check_peaks(wanted, seen, document, summary):
    """
    With one thread the ledger knows the peak and who held it. An operation in flight may have made a new one: then those hold it that
    live now.
    """
    in_flight = sum(size for _, size in wanted["pending"])
    for domain, peak in wanted["peak"].items():
        names = [name for name, entry in wanted["sites"].items() if entry["domain"] == domain]
        others = (sum(site["peak_bytes"] for site in document["sites"] if site["domain"] == domain)
                  - sum(seen[name]["peak_bytes"] for name in names))  # what libc itself took
        off = {moment: sum(abs(wanted["sites"][name][moment] - seen[name]["peak_bytes"]) for name in names)
               for moment in ("peak_bytes", "live_bytes")}
        total_off = abs(document["totals"][domain]["peak_bytes"] - others - peak)

        assert total_off <= in_flight and min(off.values()) <= in_flight, (domain, peak, others, off, wanted["pending"])
        summary.most("peak_off", max(total_off, min(off.values())))
        summary["peaks"] += 1


@pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
def test_what_a_killed_program_leaves_is_right(way, programs, out, tmp_path):
    rng = harness.seeded_random()
    program = ledger_program(programs)
    summary, start = Summary(), time.monotonic()

    with harness.adopting(), harness.memory_group(OOM_LIMIT) if way.signal is None else contextlib.nullcontext() as group:
        for kill in range(max(1, round(KILLS * way.share))):
            capture, file = out / str(kill), tmp_path / f"ledger{kill}"
            files = die(way, [program, file, rng.randrange(1 << 31), way.threads, 0], file, capture, rng, group)
            summary["kills"] += 1
            wanted = sum_of([read_ledger(program, each) for each in files])
            document = harness.report("sites", capture, "--top", "1000000")
            summary.read(document)
            seen = figures_by_function(document, wanted["sites"])
            assert len(document["processes"]) == len(files)
            check_sites(wanted, seen, summary)
            if way.threads == 1:
                check_peaks(wanted, seen, document, summary)
            for path in [*files, *capture.glob("*.kmem")]:
                path.unlink()
    summary.tell(way.name, time.monotonic() - start)


# --- PyTorch --------------------------------------------------------------------------------------

def check_kept(capture, ledger, unit, summary):
    """Blocks of `unit` bytes: as many as the loop had begun to take and had given back, or had at least finished to."""
    begun, done, leaving, left = ledger
    document = harness.report("sites", capture, "--domain", "heap", "--top", "20")
    sites = [site for site in document["sites"] if site["domain"] == "heap"
             and any(frame["function"] == "keep" for frame in site["frames"])]
    born = sum(site["allocated_bytes"] for site in sites) // unit
    live = sum(site["live_bytes"] for site in sites) // unit

    assert done <= born <= begun, (ledger, born, live)
    assert left <= born - live <= leaving, (ledger, born, live)
    assert document["totals"]["heap"]["peak_bytes"] >= live * unit
    assert document["losses"]["lost_events"] == 0
    summary.most("operations_off", max(born - done, born - live - left))
    summary.read(document)


@pytest.mark.framework
def test_what_a_killed_training_loop_leaves_is_right(out, tmp_path):
    python = harness.venv("torch")
    rng = harness.seeded_random()
    summary, start = Summary(), time.monotonic()
    server = subprocess.Popen([python, TORCH_LOOP], env=harness.shim_env(out), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              start_new_session=True)

    def ask(text):
        server.stdin.write(f"{text}\n")
        server.stdin.flush()
        return server.stdout.readline().split()

    try:
        (unit,) = ask("unit")
        for kill in range(KILLS):
            file = tmp_path / f"ledger{kill}"
            file.write_bytes(bytes(32))
            (pid,) = ask(file)
            while file.read_bytes()[8:16] == bytes(8):
                pass
            time.sleep(rng.random() / 5)
            os.kill(int(pid), rng.choice([signal.SIGKILL] * 4 + [signal.SIGSEGV, signal.SIGABRT]))
            assert int(ask("wait")[0]) != 0
            summary["kills"] += 1
            data = file.read_bytes()
            (capture,) = glob.glob(f"{out}/*.{pid}.*.kmem")
            check_kept(capture, [int.from_bytes(data[at:at + 8], "little") for at in range(0, 32, 8)], int(unit), summary)
            os.unlink(capture)
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.communicate(timeout=harness.TIMEOUT)
    summary.tell("training loop", time.monotonic() - start)
