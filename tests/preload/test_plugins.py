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


def test_what_a_librarys_constructor_keeps_is_its_own(tmp_path, out):
    """Run inside of dlopen, with the loader's lock held."""
    (tmp_path / "library.c").write_text(
        "#include <stdlib.h>\n#include <string.h>\nvoid *kept;\n"
        "__attribute__((constructor)) static void at_load(void) { kept = malloc(64 << 20); memset(kept, 1, 64 << 20); }\n"
        "__attribute__((destructor)) static void at_unload(void) { free(kept); }\n")
    library = harness.compile_c(tmp_path / "library.c", tmp_path / "library.so", "-shared", "-fPIC")
    (tmp_path / "main.c").write_text("#include <dlfcn.h>\n#include <stdlib.h>\nint main(int count, char **words) {\n"
                                     "void *library = dlopen(words[1], RTLD_NOW); if (!library) return 1;\n"
                                     "if (count > 2) dlclose(library);\n_Exit(0); }\n")
    program = harness.compile_c(tmp_path / "main.c", tmp_path / "main")

    for close in ([], ["close"]):
        done = harness.record([program, library, *close], out / str(len(close)))
        assert (done.returncode, done.stderr) == (0, "")
        sites = [site for site in harness.report("sites", out / str(len(close)), "--domain", "heap", "--top", "1000")["sites"]
                 if any(frame["function"] == "at_load" for frame in site["frames"])]
        assert [site["allocated_bytes"] for site in sites] == [64 << 20]
        assert sites[0]["live_bytes"] == (0 if close else 64 << 20)
        assert sites[0]["where"]["file"].endswith("library.c")
