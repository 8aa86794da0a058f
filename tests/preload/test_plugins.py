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


def copies(folder, count):
    """Each is another library to the recorder, by its build-id."""
    model = plugin(folder, "anna").read_bytes()
    note = model.index(b"\x14\0\0\0\x03\0\0\0GNU\0") + 12
    for number in range(count):
        (folder / f"copy{number}.so").write_bytes(model[:note] + number.to_bytes(20, "little") + model[note + 20:])
    return [folder / f"copy{number}.so" for number in range(count)]


def modules_of(document, function):
    return sorted(frame["module"] for site in document["sites"] for frame in site["frames"] if frame["function"] == function)


def test_more_libraries_than_there_are_places_for_come_and_go(programs, tmp_path, out):
    libraries = copies(tmp_path, 2100)
    done = harness.record([programs("plugins.c"), -1, *libraries], out)
    document = harness.report("sites", out, "--top", "1000000")

    assert (done.returncode, done.stdout, done.stderr) == (0, "moved\n", "")
    assert modules_of(document, "held_by_anna") == sorted(library.name for library in libraries)
    assert document["losses"]["lost_modules"] == document["losses"]["lost_sites"] == 0


def test_more_libraries_at_once_than_there_are_places_for_are_told(programs, tmp_path, out):
    libraries = copies(tmp_path, 2100)
    done = harness.record([programs("plugins.c"), 0, *libraries], out)
    document = harness.report("sites", out, "--top", "1000000")

    assert (done.returncode, done.stdout, done.stderr) == (0, "moved\n", "")
    known = len(modules_of(document, "held_by_anna"))
    assert 2000 < known < 2048 and document["losses"]["lost_modules"] >= 2100 - known
    assert document["totals"]["heap"]["live_bytes"] >= 2100 * 1000


def test_too_many_libraries_at_one_address_fold_into_their_caller(programs, tmp_path, out):
    libraries = copies(tmp_path, 100)
    document = record(programs, out, 1, *libraries)

    seen = modules_of(document, "held_by_anna")
    assert seen == sorted(library.name for library in libraries[:len(seen)]) and len(seen) > 50
    assert document["losses"]["lost_sites"] == 100 - len(seen) and document["losses"]["lost_events"] == 0
    assert sum(site["live_bytes"] for site in document["sites"]) >= 100 * 1000


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
        harness.silent(harness.record([program, library, *close], out / str(len(close))))
        sites = [site for site in harness.report("sites", out / str(len(close)), "--domain", "heap", "--top", "1000")["sites"]
                 if any(frame["function"] == "at_load" for frame in site["frames"])]
        assert [site["allocated_bytes"] for site in sites] == [64 << 20]
        assert sites[0]["live_bytes"] == (0 if close else 64 << 20)
        assert sites[0]["where"]["file"].endswith("library.c")
