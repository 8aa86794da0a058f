"""
The nth call that the shim makes to the system fails: the program must not notice, and what was not recorded must be told.

The library under test is the shipped one's objects with a door in front of the system, see faults.c. Every program is run once
without faults to learn how many calls there are, then again for the calls asked for: FAULT_STRIDE=1 is all of them (make test-faults).
"""
import os
import shutil
import struct

import pytest

import harness

FAULTY = harness.BUILD / "tests" / "fault" / "libkmemshim.so"
STRIDE = int(os.environ.get("FAULT_STRIDE", "0"))
PLAN = struct.Struct("=QQqQQQ40s")
ONCE, KIND, ALL, NAMED = range(4)
TIMEOUT = 120

SCRIPT = """
import sys
class Node:
    def __init__(self, size):
        self.data = bytearray(size)
nodes = [Node(3000 + i) for i in range(2000)]
pieces = [str(i) * 100 for i in range(3000)]
print(len(nodes), len(pieces), sum(len(node.data) for node in nodes))
sys.exit(5)
"""


class Plan:
    """The file that tells faults.c what fails, and us what happened."""

    def __init__(self, path, at=0, mode=ONCE, error=0, name=""):
        self.path = path
        path.write_bytes(PLAN.pack(at, mode, error, 0, 0, 0, name.encode()))

    def outcome(self):
        _, _, _, calls, failed, _, name = PLAN.unpack(self.path.read_bytes())
        return calls, failed, name.rstrip(b"\0").decode()


def run_with(argv, out, plan):
    environment = harness.shim_env(out, FAULT_PLAN=plan.path) | {"LD_PRELOAD": str(FAULTY)}
    return harness.run(argv, environment, timeout=TIMEOUT)


def figures(out):
    """Sums of all domains and processes, and everything that the report counts as lost; None without a capture."""
    if not list(out.glob("*.kmem")):
        return None
    document = harness.report("sites", out, "--top", "1")
    totals = document["totals"].values()
    lost = sum(count for name, count in document["losses"].items() if name.startswith("lost_"))
    return {name: sum(row[name] for row in totals) for name in ("allocated_bytes", "allocated_count", "live_bytes")}, lost


class Scene:
    """A program, what it does without us, and what is recorded without faults."""

    def __init__(self, argv, folder, is_exact=True):
        self.argv = argv
        self.folder = folder
        self.is_exact = is_exact
        self.plain = harness.run(argv)
        plan = Plan(folder / "plan")
        done = run_with(argv, folder / "clean", plan)
        assert (done.returncode, done.stdout, done.stderr) == (
            self.plain.returncode, self.plain.stdout, self.plain.stderr)
        self.calls = plan.outcome()[0]
        self.clean, _ = figures(folder / "clean")

    def check(self, **wanted):
        """One run with a fault. Returns how many calls there were, and how many of them failed."""
        number = len(list(self.folder.iterdir()))
        out = self.folder / f"out{number}"
        plan = Plan(self.folder / f"plan{number}", **wanted)
        done = run_with(self.argv, out, plan)
        calls, failed, name = plan.outcome()
        what = f"{wanted} ({name}, {failed} of {calls} calls): {done.returncode}\n{done.stderr}"
        assert (done.returncode, done.stdout) == (self.plain.returncode, self.plain.stdout), what
        told = [line for line in done.stderr.splitlines() if line.startswith("kmemshim:")]
        assert "".join(line + "\n" for line in told) + self.plain.stderr == done.stderr, what
        assert len(told) <= 1 or len(told) == len(set(told)) and wanted.get("mode") != ONCE, what
        # To tell something takes these; and where nothing works, an empty file cannot be removed either.
        is_mute = wanted["mode"] == ALL or name in ("fstat", "write", "ppoll")
        try:
            seen = figures(out)
        except AssertionError as unreadable:
            assert wanted["mode"] == ALL and "record it again" in str(unreadable), f"{what}: {unreadable}"
            return calls, failed
        if seen is None:
            assert told or is_mute, what
        elif self.is_exact and not told and not is_mute:
            recorded, lost = seen
            assert recorded == self.clean or lost > 0, f"{what}\n{recorded}\n{self.clean}"
        shutil.rmtree(out, ignore_errors=True)
        return calls, failed

    def check_from(self, number, mode):
        """
        The same from the nth call on, as many as the mode says: a fault that never happens tests nothing. A run may make fewer calls than
        the one without faults, by its clock and its threads (555 to 810 of one program): then it is an earlier call.
        """
        calls, failed = self.check(at=number, mode=mode)
        for _ in range(3):
            if calls >= number or number > self.calls:
                break
            number = calls * 3 // 4
            calls, failed = self.check(at=number, mode=mode)
        what = f"{failed} of {calls} calls failed, from call {number} on"
        wanted = {ONCE: range(1, 2), KIND: range(1, calls + 1), ALL: range(calls - number + 1, calls - number + 2)}[mode]
        assert calls >= number and failed in wanted, what


def program_scene(programs, folder, source, *arguments, is_exact):
    program = programs(source, "-fno-optimize-sibling-calls")
    words = [folder / "ledger" if word == "FILE" else word for word in arguments]
    return Scene([program, *words], folder, is_exact)


# --- every nth call ------------------------------------------------------------------------------

SCENES = {
    "leak": ("leak_in_a_loop.c",),
    "realloc": ("growth_by_realloc.c",),
    "unmap": ("mmap_partial_unmap.c",),
    "peak": ("peak_at_start.c",),
    "threads": ("threads_free_each_other.c",),
    "fork": ("fork_children.c",),
    "ledger": ("ledger.c", "FILE", 7, 1, 3000),
    "python": None,
}
FIRST_CALLS = 120  # about what a start takes; what comes later repeats itself
SHARES = 43        # without FAULT_STRIDE: so many tests share the calls among them
EXACT = {"leak", "realloc", "unmap", "fork", "ledger"}  # the same figures in every run


@pytest.fixture(scope="session")
def scenes(programs, tmp_path_factory):
    made = {}

    def make(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            if SCENES[name] is None:
                made[name] = Scene(["/usr/bin/python3", "-c", SCRIPT], folder, is_exact=False)
            else:
                made[name] = program_scene(programs, folder, *SCENES[name], is_exact=name in EXACT)
        return made[name]

    return make


def numbers(calls, share):
    """Which calls fail: a share of those of the start and of some later ones. FAULT_STRIDE=1: all."""
    if STRIDE:
        return range(1, calls + 1, STRIDE)
    every = list(range(1, min(calls, FIRST_CALLS) + 1)) + list(range(FIRST_CALLS + 1, calls + 1, max(1, calls // 20)))
    return every[share::SHARES]


@pytest.mark.parametrize("name", SCENES)
def test_the_nth_call_fails(name, scenes):
    scene = scenes(name)
    for number in numbers(scene.calls, list(SCENES).index(name)):
        scene.check_from(number, ONCE)


@pytest.mark.parametrize("mode", [KIND, ALL], ids=["calls of one kind", "all calls"])
@pytest.mark.parametrize("name", SCENES)
def test_from_the_nth_call_on(name, mode, scenes):
    scene = scenes(name)
    for number in numbers(scene.calls, list(SCENES).index(name) + len(SCENES) * mode):
        scene.check_from(number, mode)


def test_faults_reach_the_shim(scenes):
    """The door is there: a plan that fails the first call is seen to fail one."""
    assert scenes("leak").check(at=1, mode=ONCE)[1] == 1


def test_a_fault_that_never_happens_fails_its_test(scenes):
    scene = scenes("leak")
    with pytest.raises(AssertionError, match="^0 of"):
        scene.check_from(scene.calls + 1000, ONCE)
