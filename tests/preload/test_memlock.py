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


@pytest.fixture
def limited(programs, out):
    """Runs the program as a user whose limit on locked memory is so many KiB: recorded, or plain."""
    if os.geteuid() != 0:
        pytest.skip("a user that may not lock all must be become")
    out.mkdir()
    out.chmod(0o777)

    def run(kib, words, is_recorded=True):
        argv = [programs("locks_all.c"), words, "nobody"]
        more = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (kib << 10, kib << 10))}
        return harness.record(argv, out, **more) if is_recorded else harness.run(argv, **more)
    return run


@pytest.mark.parametrize("mib", [0, 1, 8])
def test_a_limit_on_locked_memory_lets_through_what_it_does_alone(mib, limited):
    plain = limited(mib << 10, "1,3,5,6", is_recorded=False)
    watched = limited(mib << 10, "1,3,5,6")

    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout)
    assert (": 0 Success" in plain.stdout) == (mib > 0)


@pytest.mark.parametrize("kib", [64, 1024, 8192])
def test_a_program_can_lock_exactly_its_limit(kib, limited):
    watched = limited(kib, "limit")

    assert (watched.returncode, watched.stdout) == (0, "locked\n")
