"""Taking a stack disturbs nothing: no lock that the program may hold, no descriptor, no exception handling; and it is complete."""
import re
import shutil

import pytest

import harness

SECONDS = 120  # what hangs must not hold up the rest


def test_an_allocation_under_the_threads_own_lock_does_not_hang(programs, out):
    done = harness.record([programs("stacks.c"), "lock"], out, timeout=SECONDS)

    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_java_starts(out):
    java = shutil.which("java")
    if java is None:
        pytest.skip("no java here")
    plain = harness.run([java, "-version"], timeout=SECONDS)
    watched = harness.record([java, "-version"], out, timeout=SECONDS)

    assert plain.returncode == 0, plain.stderr
    assert (watched.returncode, watched.stdout, watched.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_stacks_of_every_kind_are_walked_to_their_end(programs, out):
    done = harness.run([programs("stacks.c"), "kinds"], harness.shim_env(out, KMEMSHIM_VERIFY=1))
    document = harness.report("peak", out)

    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert document["losses"]["lost_unwinds"] == 0
    assert document["verify"]["checked"] > 700
    assert document["verify"]["mismatched"] == 0


@pytest.mark.parametrize("settings", [{}, {"KMEMSHIM_VERIFY": 1}], ids=["plain", "verify"])
def test_no_descriptor_is_left_open(settings, programs, out):
    program = programs("stacks.c")
    plain, watched = (re.sub(r"(/proc/|:\[)\d+", "", harness.run([program, "files"], env).stdout)  # numbers of processes and pipes
                      for env in (harness.plain_env(), harness.shim_env(out, **settings)))

    assert "0 /dev/null" in plain
    assert watched == plain


def test_exceptions_of_late_libraries_are_thrown_by_the_runtime_that_the_program_has(tmp_path, out):
    """libunwind defines _Unwind_RaiseException, too; nothing of the program may be bound to that."""
    source = tmp_path / "thrower.cc"
    source.write_text('extern "C" int thrower() { try { throw 1; } catch (int number) { return number; } }\n')
    library = tmp_path / "thrower.so"
    harness.ok(harness.run(["g++", "-shared", "-fPIC", "-o", library, source]))
    python = harness.find_python("ctypes")

    done = harness.run([python, "-c", f"import ctypes; print(ctypes.CDLL('{library}').thrower())"],
                       harness.shim_env(out, LD_DEBUG="bindings", LD_DEBUG_OUTPUT=tmp_path / "bindings"))
    bindings = "".join(path.read_text() for path in tmp_path.glob("bindings.*"))

    assert done.stdout == "1\n"
    assert "`_Unwind_RaiseException'" in bindings
    assert not re.search(r"to \S*libunwind\S* .*`_Unwind_", re.sub(r"binding file \S*libunwind.*", "", bindings))


def record_threads(programs, out, case, **settings):
    """Runs a case without and with the shim: it ends alike, and nothing is lost. Returns its last line but one, and the report."""
    program = programs("threads.c")
    plain = harness.run([program, case], timeout=SECONDS)
    watched = harness.run([program, case], harness.shim_env(out, **settings), timeout=SECONDS)
    document = harness.report("sites", out, "--domain", "heap")

    assert plain.returncode == 0
    assert (watched.returncode, watched.stderr) == (0, "")
    assert case == "sequence" or watched.stdout == plain.stdout
    assert document["losses"]["lost_events"] == document["losses"]["lost_missed_frees"] == 0
    return int(watched.stdout.split()[0]) - int(plain.stdout.split()[0]) if case == "sequence" else None, document


def live(document, function):
    sites = [site for site in document["sites"] if (site["where"] or {}).get("function") == function]
    return sum(site["live_bytes"] for site in sites), sum(site["live_count"] for site in sites)


def test_ten_thousand_threads_one_after_the_other_need_no_more_room(programs, out):
    growth_kib, document = record_threads(programs, out, "sequence")

    assert growth_kib < 1024
    assert live(document, "come_and_go") == (0, 0)
    assert sum(path.stat().st_size for path in out.glob("*.kmem")) < 1 << 20


def test_what_destructors_of_threads_allocate_is_exact(programs, out):
    """4 times 64 threads; a key's destructor is called four times, the last ones after our own."""
    document = record_threads(programs, out, "destructors")[1]

    assert live(document, "key_destructor") == (4 * 64 * 4 * 1000, 4 * 64 * 4)
    assert live(document, "tls_destructor") == (4 * 64 * 500, 4 * 64)
    assert live(document, "come_and_go") == (0, 0)


@pytest.mark.parametrize("case", ["small", "coroutines"])
def test_stacks_of_four_kib_are_enough(case, programs, out):
    """Verifying needs more: users do not."""
    document = record_threads(programs, out, case, KMEMSHIM_VERIFY=0)[1]

    assert live(document, "come_and_go") == (0, 0)


@pytest.mark.parametrize("case", ["jumps", "interrupts", "cancel", "loader"])
def test_threads_that_jump_are_interrupted_cancelled_or_wait_for_the_loader(case, programs, out):
    document = record_threads(programs, out, case)[1]

    for function in ("come_and_go", "wait_for_deferred", "wait_for_any", "allocate_until_handled"):
        assert live(document, function) == (0, 0)
    assert document["totals"].get("mmap", {"live_bytes": 0})["live_bytes"] == 0


def test_threads_that_never_allocate_keep_no_slot(programs, out):
    """libc frees what it made for a thread after the thread's last destructor; slots that these took would never come back."""
    harness.ok(harness.record([programs("idle_threads.c"), 1000], out))
    document = harness.report("sites", out)

    # A thread that allocates at the end: 4 KiB for each slot that was ever in use at the same time; 50 threads may end together.
    assert 0 < document["peak_error_bytes"] <= 250 * 4096


RECURSION = """\
import random, sys
sys.setrecursionlimit(3000)
kept = []

def down(depth, way):
    if depth == 0:
        kept.append(bytearray(2000))
    elif way[depth]:
        down(depth - 1, way)
    else:
        down(depth - 1, way)

way = [1] * 1500
for depth in [150, 170, 300, 900, 1400]:
    for _ in range(40):
        down(depth, way)
        way[random.randrange(1, 150)] ^= 1
"""


@pytest.mark.parametrize("settings", [{}, {"KMEMSHIM_VERIFY": 0}], ids=["verify", "plain"])
def test_deep_recursion_of_python(settings, tmp_path, out):
    """Stacks that are longer than what is shown of them are recognised too, and told from each other; the line is right."""
    program = tmp_path / "recursion.py"
    program.write_text(RECURSION)
    harness.silent(harness.run(["/usr/bin/python3", program], harness.shim_env(out, **settings)))
    sites = [site for site in harness.report("sites", out, "--top", "100000")["sites"]
             if site["where"] and site["where"]["line"] == 7]

    assert len(sites) > 150  # another way, another stack
    assert sum(site["live_bytes"] // 2000 for site in sites) >= 200
    for site in sites:
        assert site["where"]["function"] == "down"
        # 160 are kept; of more, the walk says that there are outer ones, not how many.
        assert (len(site["frames"]), site["frames_omitted"] > 0) in [(152, False), (160, True)]
        assert {frame["line"] for frame in site["frames"]} <= {7, 9, 11, 16}
