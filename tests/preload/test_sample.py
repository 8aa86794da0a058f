"""KMEMSHIM_SAMPLE: of the heap a sample is recorded. Estimates are right within their error, large blocks exact, and nothing is lost."""
import subprocess

import pytest

import estimates
import harness

MIB = 1 << 20
RATES = {"64K": 64 << 10, "512K": 512 << 10, "4M": 4 << 20}
EXACT_FROM = MIB  # record/heap_samples.h


@pytest.fixture(scope="session")
def program(tmp_path_factory):
    return harness.compile_c(harness.HERE / "sample.c", tmp_path_factory.mktemp("sample") / "sample", "-O1", "-fno-builtin", "-pthread")


def wanted_of(done):
    return {place: int(size) for place, size in (line.split() for line in done.stdout.splitlines())}


def live_of(document, place, domain):
    return sum(line["live_bytes"] for line in document["lines"] if line["domain"] == domain and
               (line["where"] or {}).get("function") == place)


def check(document, wanted, mean_bytes):
    assert document["heap_sample_bytes"] == mean_bytes
    assert {name: count for name, count in document["losses"].items() if count and name != "lost_inherited_frees"} == {}
    for place, size in wanted.items():
        if place == "large_blocks":
            assert live_of(document, place, "heap") == size
            assert live_of(document, place, "heap/sample") == 0
            continue
        told = live_of(document, place, "heap/sample")
        # a sample of n bytes stands for about n / 2 more than the mean
        assert estimates.is_right(told, size, 0.02 * size, mean_bytes), (place, told, size)
        assert live_of(document, place, "heap") == 0
    told, size = document["totals"]["heap/sample"]["live_bytes"], sum(wanted.values()) - wanted["large_blocks"]
    assert estimates.is_right(told, size, 0.02 * size + MIB, mean_bytes)


@pytest.mark.parametrize("end", ["exit", "kill"])
@pytest.mark.parametrize("rate", RATES)
def test_each_place_has_its_bytes(program, out, rate, end):
    done = harness.run([program, end], env=harness.shim_env(out, KMEMSHIM_SAMPLE=rate))
    assert done.returncode == (0 if end == "exit" else -9) and done.stderr == ""
    check(harness.report("sites", out, "--top", "400"), wanted_of(done), RATES[rate])


def test_a_child_has_a_sample_of_its_own(program, out):
    """It releases all that it inherited, and keeps as much of its own."""
    done = harness.run([program, "fork"], env=harness.shim_env(out, KMEMSHIM_SAMPLE="512K"))
    assert done.returncode == 0 and done.stderr == ""
    wanted = wanted_of(done)
    captures = sorted(out.glob("*.kmem"))
    assert len(captures) == 2
    for capture in captures:
        check(harness.report("sites", capture, "--top", "400"), wanted, 512 << 10)


@pytest.mark.parametrize("value, said", [
    ("15K", 'KMEMSHIM_SAMPLE=15K is not valid; use a size from 16K to 64M, such as 512K; 0 turns it off (the default is used now)'),
    ("much", 'KMEMSHIM_SAMPLE=much is not valid; use a size from 16K to 64M, such as 512K; 0 turns it off (the default is used now)')])
def test_a_bad_rate_is_named_and_each_block_recorded(program, out, value, said):
    done = harness.run([program, "exit"], env=harness.shim_env(out, KMEMSHIM_SAMPLE=value))
    assert done.returncode == 0 and said in done.stderr
    document = harness.report("sites", out, "--top", "400")
    assert document["heap_sample_bytes"] == 0 and live_of(document, "small_blocks", "heap") == 200000 * 100


def test_run_has_the_option_and_says_so_on_top(program, out):
    done = harness.kmemshim("run", "-o", out, "--sample", "512K", "--", program, "exit")
    assert done.returncode == 0
    assert "Sample: of the heap one block for each 512 KiB is recorded" in " ".join(done.stderr.split())
    assert "Sample: of the heap one block for each 512 KiB is recorded" in " ".join(harness.kmemshim("report", out).stdout.split())
    assert harness.kmemshim("run", "-o", out, "--sample", "1K", "--", program, "exit").returncode == 2


def test_a_line_of_few_samples_is_not_named(out, tmp_path):
    few = tmp_path / "few.py"
    few.write_text("kept = [bytearray(3000) for i in range(1000)]\n")
    done = harness.run(["/usr/bin/python3", few], env=harness.shim_env(out, KMEMSHIM_SAMPLE="512K"))
    assert done.returncode == 0
    text = harness.kmemshim("report", out).stdout
    verdict = text[:text.index("Held at the peak")]
    assert "few.py:1" not in verdict.replace("few.py (pid", "") and "few.py:1" in text


def test_holders_are_not_looked_for(out, tmp_path):
    """A way to a block leads through blocks that are not in the sample: none is better than a wrong one."""
    waits = tmp_path / "waits.py"
    waits.write_text("import sys\nkept = [bytearray(3000) for i in range(20000)]\nprint('ready', flush=True)\nsys.stdin.readline()\n")
    with subprocess.Popen(["/usr/bin/python3", waits], env=harness.shim_env(out, KMEMSHIM_SAMPLE="512K"), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as program:
        assert program.stdout.readline() == b"ready\n"
        done = harness.kmemshim("holders", program.pid)
        program.stdin.close()
    assert done.returncode == 2 and "run again without KMEMSHIM_SAMPLE" in done.stderr


def test_a_library_that_forwards_to_us_hides_no_heap(out, tmp_path):
    source = tmp_path / "forwards.c"
    source.write_text("""#include <dlfcn.h>
#include <stddef.h>
void *malloc(size_t bytes) { static void *(*next)(size_t); if (next == NULL) next = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc"); return next(bytes); }
""")
    library = harness.compile_c(source, tmp_path / "forwards.so", "-shared", "-fPIC", "-ldl")
    env = harness.shim_env(out, KMEMSHIM_SAMPLE="512K", LD_PRELOAD=f"{library}:{harness.SHIM}")
    assert harness.run(["/usr/bin/python3", "-c", "kept = [bytearray(3000) for i in range(2000)]"], env=env).returncode == 0
    notes = [note for process in harness.report("report", out)["processes"] for note in process["notes"]]
    assert not [note for note in notes if "comes before" in note]
