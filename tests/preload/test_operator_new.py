"""
C++'s operator new and delete in every form, whoever serves them: the program's output is the same, and what each form keeps is exact to
the byte at the line that asked.
"""
import functools
import re

import pytest

import harness
from test_foreign import ALLOCATORS, ANY_TLS, MALLOC_HIDDEN, hides, installed, link_to, same_with_us

NEWS = harness.HERE / "news.cc"
FORMS = {name: int(size) for name, size in re.findall(r"^\s+ROW\((\w+),[\s\\]*(\d+), ", NEWS.read_text(), re.M)}
BLOCKS = 500


@functools.cache
def built(folder, compiler, *flags):
    program = folder / f"news{abs(hash((compiler, flags)))}{'.so' if '-shared' in flags else ''}"
    done = harness.run([compiler, "-std=c++17", "-O1", "-g", "-Wall", "-fno-builtin", "-pthread", NEWS, "-o", program, *flags])
    if compiler != "g++" and done.returncode != 0:
        pytest.skip(f"{compiler} {' '.join(map(str, flags))} does not link here: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    return program


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    return functools.partial(built, tmp_path_factory.mktemp("news"))


@pytest.fixture(scope="session")
def opens(tmp_path_factory):
    return harness.compile_c(harness.HERE / "opens.c", tmp_path_factory.mktemp("opens") / "opens", "-fno-builtin", "-ldl")


def plugin(build, *flags):
    return build("g++", "-DPLUGIN", "-shared", "-fPIC", *flags)


def check_all_is_kept(document, times=1):
    """At the function that asked: no frame of an allocator, or of the C++ library, is named instead."""
    assert len(FORMS) == 8
    for name, size in FORMS.items():
        own = [site for site in document["sites"] if (site["where"] or {}).get("function") == f"keep_{name}"]
        kept = sum(site["live_count"] for site in own), sum(site["live_bytes"] for site in own)
        assert kept == (times * BLOCKS, times * BLOCKS * size), name
    assert {name: count for name, count in document["losses"].items() if count and name != "lost_unwinds"} == {}


def check_failed_requests_are_told(document):
    refused = {request["where"]["function"] for request in document["refused_requests"]}
    assert refused & {f"refused_{name}" for name in FORMS}, refused


def serves_failed_requests(name):
    """Debian's mimalloc is built as C: it ends the program instead of throwing."""
    return name != "mimalloc"


@pytest.mark.parametrize("how", ["serves", "throws"])
@pytest.mark.parametrize("name", [None, *ALLOCATORS])
def test_preloaded_behind_us(name, how, build, out):
    if name is not None:
        installed(name)
    if how == "throws" and not serves_failed_requests(name):
        pytest.skip("its operator new does not throw")
    document, notes = same_with_us([build("g++"), how], out, after=[ALLOCATORS[name]] if name else [])

    check_all_is_kept(document)
    assert not notes
    if how == "throws":
        check_failed_requests_are_told(document)


@pytest.mark.parametrize("how", ["serves", "throws"])
@pytest.mark.parametrize("name", ALLOCATORS)
def test_linked(name, how, build, out):
    installed(name, f"lib{name if name != 'tcmalloc' else 'tcmalloc_minimal'}.so")
    if how == "throws" and not serves_failed_requests(name):
        pytest.skip("its operator new does not throw")
    document, notes = same_with_us([build("g++", *link_to(name)), how], out)

    check_all_is_kept(document)
    assert not notes


@pytest.mark.parametrize("name", ALLOCATORS)
def test_before_us_it_stays_in_charge(name, build, out):
    installed(name)
    document, notes = same_with_us([build("g++")], out, before=[ALLOCATORS[name]])

    assert hides(notes, MALLOC_HIDDEN, name)
    assert not [site for site in document["sites"] if site["domain"] == "heap" and (site["where"] or {}).get("function", "").startswith("keep_")]


@pytest.mark.parametrize("compiler, flags", [
    ("g++", ["-static-libstdc++", "-static-libgcc"]),
    ("g++", ["-static-libstdc++", "-static-libgcc", "-rdynamic"]),
    ("g++", ["-flto", "-O2"]),
    ("g++", ["-DOWN"]),
    ("g++", ["-DOWN", "-rdynamic"]),
    ("g++", ["-DOWN", *link_to("jemalloc")]),
    ("clang++", ["-fsized-deallocation"]),
    ("clang++", ["-fsized-deallocation", "-stdlib=libc++"]),
], ids=lambda value: " ".join(map(str, value)) if isinstance(value, list) else value)
def test_whoever_brings_it(compiler, flags, build, out):
    """A new of the program's own counts its calls: it is the one that is called."""
    if "-DOWN" in flags and len(flags) == 3:
        installed("jemalloc", "libjemalloc.so")
    document, notes = same_with_us([build(compiler, *flags), "serves" if "-DOWN" in flags else "throws"], out)

    check_all_is_kept(document)
    assert not notes


def test_a_library_chooses_its_new_when_it_is_loaded(build, tmp_path, out):
    """The address of such a symbol is that of code that tells which function to call."""
    library = tmp_path / "libchosen_new.so"
    harness.ok(harness.run(["g++", "-O1", "-g", "-shared", "-fPIC", harness.HERE / "chosen_new.cc", "-o", library]))
    document, notes = same_with_us([build("g++", library, f"-Wl,-rpath,{tmp_path}"), "serves"], out)

    assert sum(site["live_count"] for site in document["sites"] if "keep_plain" in [frame["function"] for frame in site["frames"]]) == BLOCKS
    assert not notes


@pytest.mark.parametrize("how", ["serves", "throws"])
@pytest.mark.parametrize("brings", [[], ["-static-libstdc++", "-static-libgcc"], ["-DOWN"]], ids=" ".join)
def test_a_program_in_c_opens_libraries(brings, how, opens, build, out):
    """libstdc++ is in nobody's scope but theirs."""
    if how == "throws" and "-DOWN" in brings:
        pytest.skip("its own new does not throw")
    libraries = [plugin(build, *brings), plugin(build, "-DSECOND")]
    document, notes = same_with_us([opens, how, *libraries], out)

    times = sum(site["live_count"] for site in document["sites"] if (site["where"] or {}).get("function") == "keep_plain") // BLOCKS
    assert times in (2, 3, 4)  # what was closed and opened again keeps a second time
    check_all_is_kept(document, times)
    assert not notes


def test_a_library_brings_an_allocator(opens, build, out):
    """Its new is that allocator's, malloc is everybody's: each block goes back to where it came from."""
    installed("tcmalloc", "libtcmalloc_minimal.so")
    libraries = [plugin(build), plugin(build, "-DALONE", *link_to("tcmalloc"))]
    document, notes = same_with_us([opens, *libraries], out, **ANY_TLS)

    times = sum(site["live_count"] for site in document["sites"] if (site["where"] or {}).get("function") == "keep_wide") // BLOCKS
    assert times in (2, 3, 4)
    check_all_is_kept(document, times)


def test_a_library_that_goes_past_us_finds_its_own(opens, build, out):
    document, notes = same_with_us([opens, "deep", "throws", plugin(build, "-static-libstdc++", "-static-libgcc")], out)

    assert not notes


def test_there_is_no_c_plus_plus_at_all(opens, out):
    done = harness.record([opens], out)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert harness.report("sites", out)["totals"]["heap"]["live_count"] == 0


@pytest.mark.parametrize("name", [None, "jemalloc"])
def test_python_opens_it(name, build, out):
    if name is not None:
        installed(name)
    script = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).news_run(1))"
    document, notes = same_with_us(["/usr/bin/python3", "-c", script, plugin(build)], out, after=[ALLOCATORS[name]] if name else [],
                                   KMEMSHIM_NATIVE="to-python")

    assert not notes
    held = sum(site["live_bytes"] for site in document["sites"] if any(f["function"].startswith("keep_") for f in site["frames"]))
    assert held == BLOCKS * sum(FORMS.values())


def test_a_forked_child_waits_for_no_search_of_its_parent(tmp_path, out):
    """The program has no C++ library of its own, so each library is looked up. The loader's lock is not held meanwhile."""
    libraries = [tmp_path / f"libpages{i}.so" for i in range(9)]
    shared = ["g++", "-O1", "-std=gnu++17", "-fno-toplevel-reorder", "-shared", "-fPIC", harness.ROOT / "tests/bench/programs/pages.cc", "-o"]
    for command in (["gcc", "-O1", harness.HERE / "far_news.cc", "-o", tmp_path / "far_news", "-pthread"],
                    [*shared, libraries[0], "-DDISTANCE=0x1000000"], *([*shared, library, "-DDISTANCE=16"] for library in libraries[1:])):
        done = harness.ok(harness.run(command))
    done = harness.record([tmp_path / "far_news", *libraries], out)

    assert (done.returncode, done.stdout, done.stderr) == (0, "60 of 60\n", "")
