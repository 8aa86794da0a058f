"""A program locks its own memory (mlock), also all of it (mlockall, shim/hooks/hooks_memlock.c), and nothing of ours is locked."""
import os
import resource

import pytest

import harness


def figures(done):
    return [tuple(int(word) for word in line.split()) for line in done.stderr.splitlines()]


def test_what_is_ours_is_not_locked_with_the_program(programs, out):
    """Each combination of the flags, with and without what came before; 8 and 4 alone are no flags."""
    program = programs("locks_all.c")
    asked = "1,2,3,1,5,1,7,6,4,8,9"
    plain = harness.run([program, asked])
    watched = harness.record([program, asked], out)

    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout)
    for (plain_locked, plain_resident), (locked, resident) in zip(figures(plain), figures(watched), strict=True):
        assert locked <= plain_locked + 3072  # a library that libkmemshim needs, its larger stacks, the capture's head
        assert resident <= plain_resident + 8192


@pytest.mark.parametrize("mib", [0, 1, 8])
def test_a_limit_on_locked_memory_lets_through_what_it_does_alone(mib, programs, out):
    if os.geteuid() != 0:
        pytest.skip("a user that may not lock all must be become")
    out.mkdir()
    out.chmod(0o777)
    run = [programs("locks_all.c"), "1,3,5,6", "nobody"]
    more = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (mib << 20, mib << 20))}
    plain = harness.run(run, **more)
    watched = harness.record(run, out, **more)

    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout)
    assert (": 0 Success" in plain.stdout) == (mib > 0)


@pytest.mark.parametrize("kib", [64, 1024, 8192])
def test_a_program_can_lock_exactly_its_limit(kib, programs, out):
    if os.geteuid() != 0:
        pytest.skip("a user that may not lock all must be become")
    out.mkdir()
    out.chmod(0o777)
    more = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (kib << 10, kib << 10))}
    watched = harness.record([programs("locks_all.c"), "limit", "nobody"], out, **more)

    assert (watched.returncode, watched.stdout) == (0, "locked\n")
