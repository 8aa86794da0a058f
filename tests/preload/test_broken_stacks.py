"""Stacks that cannot be walked: tables that lie, are damaged or missing, small stacks. The program goes on, the loss is told."""
import resource

import pytest

import harness

SECONDS = 120  # what hangs must not hold up the rest
WAYS = {"loop": "loop_frame", "null": "word_frame", "wild": "word_frame", "kernel": "word_frame", "rbp": "rbp_frame",
        "down": "down_frame", "far": "far_frame"}


def run_and_report(argv, out, verify=0, **more):
    done = harness.silent(harness.run(argv, harness.shim_env(out, KMEMSHIM_VERIFY=verify), timeout=SECONDS, **more))
    return done.stdout, harness.report("sites", out, "--top", "1000")


@pytest.mark.parametrize("verify", [0, 1])
@pytest.mark.parametrize("way", WAYS)
def test_tables_that_lie(way, verify, programs, out):
    printed, document = run_and_report([programs("broken_stacks.c"), way], out, verify)
    sites = [site for site in document["sites"] if site["live_bytes"] == 100_000]

    assert printed == "1\n"
    assert [site["frames"][0]["function"] for site in sites] == [WAYS[way]]
    assert len(sites[0]["frames"]) <= 3  # nothing was made up
    assert (document["losses"]["lost_unwinds"] > 0) == (way != "null")  # a return address of 0 is where a stack ends


def damage(library, kind, seed):
    """Flips bytes of the library's unwind tables, or hides them."""
    data = bytearray(library.read_bytes())
    sections = harness.run(["readelf", "-SW", library]).stdout
    for line in sections.splitlines():
        words = line.replace("[ ", "[").split()
        if len(words) > 5 and words[1] == kind:
            start, size = int(words[4], 16), int(words[5], 16)
            rng = harness.random.Random(seed)
            for _ in range(1 + seed % 12):
                data[start + rng.randrange(size)] = rng.randrange(256)
            library.write_bytes(data)
            return
    raise AssertionError(f"no {kind}:\n{sections}")


@pytest.mark.parametrize("kind", [".eh_frame", ".eh_frame_hdr"])
def test_damaged_tables(kind, programs, tmp_path, out):
    for seed in range(12):
        library = tmp_path / f"damaged{seed}.so"
        source = tmp_path / "damaged.c"
        source.write_text("#include <stdlib.h>\nvoid *allocate(size_t bytes) { volatile char room[300]; room[0] = 1;"
                          " void *volatile block = malloc(bytes); room[1] = 1; return block; }\n")
        harness.compile_c(source, library, "-shared", "-fPIC")
        damage(library, kind, seed)
        printed, document = run_and_report([programs("plugins.c"), 20, library], out / str(seed), seed % 2)

        assert printed == "same\n"
        assert sum(site["live_count"] for site in document["sites"] if site["live_bytes"] % 1000 == 0) == 20, seed


@pytest.mark.parametrize("flags", [("-fno-asynchronous-unwind-tables",), ("-Wl,--no-eh-frame-hdr",)], ids=["none", "no-header"])
def test_missing_tables(flags, programs, tmp_path, out):
    source = tmp_path / "bare.c"
    source.write_text("#include <stdlib.h>\nvoid *allocate(size_t bytes) { void *volatile block = malloc(bytes); return block; }\n")
    harness.compile_c(source, tmp_path / "bare.so", "-shared", "-fPIC", *flags)
    printed, document = run_and_report([programs("plugins.c"), 20, tmp_path / "bare.so"], out)

    assert printed == "same\n"
    assert [site["live_count"] for site in document["sites"] if site["frames"][0]["module"] == "bare.so"] == [20]


def limit_stack():
    resource.setrlimit(resource.RLIMIT_STACK, (64 << 10, 64 << 10))


def test_stacks_of_64_kib(programs, out):
    """The main thread's and, by default, every thread's."""
    printed, document = run_and_report([programs("stacks.c"), "small"], out, preexec_fn=limit_stack)

    assert printed == "done\n"
    assert document["losses"]["lost_unwinds"] == 0
