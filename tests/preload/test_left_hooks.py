"""A hook that a signal handler leaves by a jump, for good: the thread records again, nothing hangs. One that is only interrupted goes on."""
import resource

import pytest

import harness

SECONDS = 120  # what hangs must not hold up the rest


def counted(document, function):
    return sum(site["allocated_count"] for site in document["sites"] if (site["where"] or {}).get("function") == function)


@pytest.mark.parametrize("case", ["overflow", "main"])
def test_a_thread_that_recovers_from_a_stack_overflow_records_again(case, programs, out, as_users_run_it):
    """The overflow is at each place of a frame once, also where only we would come to the end of the stack."""
    command = [programs("left_hooks.c", "-fno-omit-frame-pointer"), case]
    more = {"timeout": SECONDS, "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_STACK, (256 << 10, resource.RLIM_INFINITY))}
    plain = harness.run(command, **more)
    watched = harness.record(command, out, **more)
    document = harness.report("sites", out, "--top", "100000")

    assert (watched.returncode, watched.stdout, watched.stderr) == (plain.returncode, plain.stdout, "")
    assert plain.stdout == "256\n"
    assert counted(document, "late") == 1000
    assert document["losses"]["lost_reentrant"] == 0
    assert document["losses"]["lost_growth"] == document["losses"]["lost_stacks"] == 0
    assert 0 < document["losses"]["lost_events"] < 256 * 12  # of two frames, at most, where the stack ends
    assert counted(document, "recurse") > 256 * 20


@pytest.mark.parametrize("case,recovered,left,inside", [("jump", 1, 1, 0), ("near", 1, 1, 0), ("deeper", 1, 1, 0), ("nested", 0, 0, 1), ("alternate", 0, 0, 1), ("switch", 0, 0, 1)])
def test_a_hook_that_is_interrupted_goes_on_unless_it_was_left(case, recovered, left, inside, programs, out, tmp_path):
    """What is allocated inside the hook is no event, and counted; what comes after it is recorded."""
    library = harness.compile_c(harness.HERE / "left_hooks_next.c", tmp_path / "next.so", "-shared", "-fPIC")
    done = harness.run([programs("left_hooks.c"), case], harness.shim_env(out, LD_PRELOAD=f"{harness.SHIM} {library}"), timeout=SECONDS)
    document = harness.report("sites", out, "--top", "1000")

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{recovered}\n", "")
    assert counted(document, "late") == 1000
    assert counted(document, "inside") == 0
    assert counted(document, "near" if case in ("near", "deeper") else "deep") == 1 - left
    assert document["losses"]["lost_events"] == left
    assert document["losses"]["lost_reentrant"] == inside
