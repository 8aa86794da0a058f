"""Libraries that come and go: an address that was one library's and is another one's now."""
import pytest

import harness

pytestmark = pytest.mark.usefixtures("as_users_run_it")


def plugin(folder, name):
    """A library whose code lies where that of any other one lies: only the names differ."""
    source = folder / f"{name}.c"
    source.write_text("#include <stdlib.h>\n"
                      f"__attribute__((noinline)) void *held_by_{name}(size_t bytes) {{ void *volatile block = malloc(bytes); return block; }}\n"
                      f"void *allocate(size_t bytes) {{ void *volatile block = held_by_{name}(bytes); return block; }}\n")
    return harness.compile_c(source, folder / f"{name}.so", "-shared", "-fPIC")


def held(document):
    return {frame["function"]: site["live_count"] for site in document["sites"]
            for frame in site["frames"] if (frame["function"] or "").startswith("held_by_")}


def record(programs, out, turns, *libraries):
    done = harness.record([programs("plugins.c"), turns, *libraries], out)
    assert (done.returncode, done.stdout, done.stderr) == (0, "same\n", "")
    return harness.report("sites", out, "--top", "1000")


def test_code_at_the_same_address_is_told_apart(programs, tmp_path, out):
    document = record(programs, out, 1, *(plugin(tmp_path, name) for name in ("anna", "bert", "cleo")))

    assert held(document) == {"held_by_anna": 1, "held_by_bert": 1, "held_by_cleo": 1}


def test_two_that_take_turns_keep_their_own(programs, tmp_path, out):
    document = record(programs, out, 50, *(plugin(tmp_path, name) for name in ("anna", "bert")))

    assert held(document) == {"held_by_anna": 50, "held_by_bert": 50}


def test_a_library_that_comes_back_needs_no_more_room(programs, tmp_path, out):
    document = record(programs, out, 3000, plugin(tmp_path, "anna"))

    assert held(document) == {"held_by_anna": 3000}
    assert document["losses"]["lost_modules"] == 0
    assert sum(path.stat().st_blocks for path in out.rglob("*.kmem")) * 512 < 4 << 20
