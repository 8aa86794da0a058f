"""
Heaps that are not glibc's, in every place where one can stand, and blocks that nobody saw given out: the program's output is the same,
what is recorded is exact, and where it cannot be the report says who hides it.
"""
import functools
import re
from pathlib import Path

import pytest

import harness

LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}
LINKED_AS = {"tcmalloc": "tcmalloc_minimal"}
KEPT, KEPT_BYTES = 1000, 1000
MALLOC_HIDDEN = "the heap is not recorded, only the mappings that it makes: malloc is "
ANY_TLS = {"GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=16384"}  # these allocators are not made to be opened late


def installed(name, *files):
    for file in files or [ALLOCATORS[name]]:
        if not (LIBRARIES / file).exists():
            pytest.skip(f"{LIBRARIES / file} is not installed (tools/install-deps test)")


@functools.cache
def built(folder, compiler, *flags):
    """foreign.c in C or C++; flags may name libraries."""
    program = folder / f"foreign{abs(hash((compiler, flags)))}"
    language = ["-x", "c++", "-std=c++17"] if compiler == "g++" else ["-std=gnu11"]
    harness.ok(harness.run([compiler, *language, "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-fno-builtin", "-pthread",
                            harness.HERE / "foreign.c", "-x", "none", "-o", program, *flags]))
    return program


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    return functools.partial(built, tmp_path_factory.mktemp("foreign"))


def link_to(name):
    return ["-Wl,--no-as-needed", f"-l{LINKED_AS.get(name, name)}"]


def plugin(build, *flags):
    return build("gcc", "-DPLUGIN", "-shared", "-fPIC", *flags)


def messages(text):
    """Of threads, in any order; sanitizers put the process in front."""
    return sorted(re.sub(r"==\d+==", "", text).splitlines())


def same_with_us(argv, out, before=(), after=(), **more):
    """Runs without us and with us among the preloads; returns what the report says."""
    others = [*before, *after]
    plain = harness.run(argv, harness.plain_env(LD_PRELOAD=" ".join(others), **more))
    assert "failed at" not in plain.stdout
    if plain.returncode == 77:
        pytest.skip(plain.stdout)
    preloads = " ".join(map(str, [*before, harness.SHIM, *after]))
    watched = harness.run(argv, harness.shim_env(out, LD_PRELOAD=preloads, **more))
    assert plain.returncode == 0, (plain.stdout, plain.stderr)
    assert (watched.returncode, watched.stdout, messages(watched.stderr)) == (0, plain.stdout, messages(plain.stderr))
    document = harness.report("sites", out, "--top", "1000000")
    notes = [note for process in document["processes"] for note in process["notes"]]
    for note in notes:
        assert " ".join(note.split()[:6]) in harness.unwrapped(harness.kmemshim("report", out).stdout)
    return document, notes


def check_kept(document, blocks=KEPT):
    kept = [site for site in document["sites"] if (site["where"] or {}).get("function") == "keep"]
    assert sum(site["live_count"] for site in kept) == blocks
    assert sum(site["live_bytes"] for site in kept) == blocks * KEPT_BYTES


def hides(notes, what, who):
    return [note for note in notes if note.startswith(what) and who in note]


@pytest.mark.parametrize("language", ["gcc", "g++"])
@pytest.mark.parametrize("name", ALLOCATORS)
def test_preloaded_behind_us(name, language, build, out):
    installed(name)
    document, notes = same_with_us([build(language)], out, after=[ALLOCATORS[name]])

    check_kept(document)
    assert not notes


@pytest.mark.parametrize("language", ["gcc", "g++"])
@pytest.mark.parametrize("name", ALLOCATORS)
def test_preloaded_before_us(name, language, build, out):
    """Its reallocarray may be ours: then it must not go to glibc's heap."""
    installed(name)
    document, notes = same_with_us([build(language)], out, before=[ALLOCATORS[name]])

    check_kept(document, 0)
    assert hides(notes, MALLOC_HIDDEN, name)
    assert document["verdict"]["next"].startswith("put libkmemshim.so first in LD_PRELOAD"), document["verdict"]


@functools.cache
def dense_heap(folder):
    """An allocator of ours that puts small blocks side by side."""
    return harness.compile_c(harness.ROOT / "tests" / "bench" / "programs" / "dense_heap.c", folder / "dense_heap.so", "-shared", "-fPIC")


@pytest.mark.parametrize("count, size", [(1_200_000, 16), (700_000, 8), (1_200_000, 17)])
@pytest.mark.parametrize("name", ["ours", *ALLOCATORS])
def test_no_small_block_is_lost(name, count, size, build, out, tmp_path):
    """Two or four of them lie in 32 bytes, and more in all than a table of what has no word of its own has room for."""
    if name != "ours":
        installed(name)
    document, notes = same_with_us([build("gcc"), "small", count, size], out,
                                   after=[str(dense_heap(tmp_path)) if name == "ours" else ALLOCATORS[name]])

    kept = [site for site in document["sites"] if (site["where"] or {}).get("function") == "keep_small"]
    assert [sum(site[field] for site in kept) for field in ("live_count", "live_bytes", "allocated_count")] == [
        count, count * size, count + count // 2]
    assert document["losses"]["lost_events"] == 0
    assert not notes


TENSORS = """
import os, torch
kept = []
def load():
    for _ in range(40):
        kept.append(torch.zeros(1 << 18))
load()
print(len(kept), flush=True)
os._exit(0)
"""


@pytest.mark.long
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("name", ALLOCATORS)
def test_tensors_over_it(name, place, out, tmp_path):
    """40 tensors of 1 MiB: behind us the line is exact to what Python needs for them; before us its pages are an estimate, or it is told."""
    installed(name)
    program = tmp_path / "tensors.py"
    program.write_text(TENSORS)
    document, notes = same_with_us([harness.venv("torch"), program], out, **{place: [ALLOCATORS[name]]})
    held = sum(site["live_bytes"] for site in document["sites"] if (site["where"] or {}).get("function") == "load")
    print(name, place, held)

    if place == "after":
        assert not notes and 40 << 20 <= held < 41 << 20
    else:
        assert hides(notes, MALLOC_HIDDEN, name) and "The heap is missing in these figures" in document["verdict"]["text"]


@pytest.mark.parametrize("name", ALLOCATORS)
def test_linked_dynamically(name, build, out):
    installed(name, f"lib{LINKED_AS.get(name, name)}.so")
    document, notes = same_with_us([build("g++", *link_to(name))], out)

    check_kept(document)
    assert not notes


@pytest.mark.parametrize("name", ["jemalloc", "tcmalloc"])  # Debian has no libmimalloc.a
def test_linked_statically(name, build, out):
    archive = f"lib{LINKED_AS.get(name, name)}.a"
    installed(name, archive)
    program = build("g++", "-Wl,--whole-archive", LIBRARIES / archive, "-Wl,--no-whole-archive", "-lm", "-ldl")
    document, notes = same_with_us([program], out)

    check_kept(document, 0)
    assert hides(notes, MALLOC_HIDDEN, "part of the program itself")


@pytest.mark.parametrize("how", ["deepbind", "own"])
@pytest.mark.parametrize("name", ALLOCATORS)
def test_a_plugin_brings_it(name, how, build, out):
    """Opened with RTLD_DEEPBIND or in a namespace of its own, it is the plugin's alone: the program's heap stays exact."""
    installed(name, f"lib{LINKED_AS.get(name, name)}.so")
    document, notes = same_with_us([build("g++"), how, plugin(build, *link_to(name))], out, **ANY_TLS)

    check_kept(document)
    assert not notes


@pytest.mark.parametrize("how", ["deepbind", "own", "swap"])
def test_a_plugin_goes_past_us(how, build, out):
    """glibc's heap, called directly: releases that nobody saw given out are passed on and counted, and the other way round."""
    document, notes = same_with_us([build("g++"), how, plugin(build)], out)

    check_kept(document)
    assert not notes
    if how == "swap":
        assert document["losses"]["lost_unknown_frees"] > 0


def test_blocks_of_libc_s_private_functions(build, out):
    document, notes = same_with_us([build("gcc"), "libc"], out)

    check_kept(document)
    assert not notes
    assert document["losses"]["lost_unknown_frees"] >= 300  # an address may have been one that we know
    assert document["losses"]["lost_missed_frees"] <= 100


FORWARDS = """
#include <dlfcn.h>
#include <stddef.h>
#define PASS_ON(result, name, parameters, arguments) \\
	result name parameters { static result (*real) parameters; \\
	if (real == NULL) real = (result (*) parameters)dlsym(RTLD_NEXT, #name); return real arguments; }
PASS_ON(void *, malloc, (size_t bytes), (bytes))
PASS_ON(void *, realloc, (void *old, size_t bytes), (old, bytes))
void free(void *addr) { static void (*real)(void *); if (real == NULL) real = (void (*)(void *))dlsym(RTLD_NEXT, "free"); real(addr); }
"""


def test_a_preload_before_us_that_passes_on_hides_nothing(build, out, tmp_path):
    source = tmp_path / "forwards.c"
    source.write_text(FORWARDS)
    library = harness.compile_c(source, tmp_path / "forwards.so", "-shared", "-fPIC", "-fno-builtin")
    document, notes = same_with_us([build("g++")], out, before=[str(library)])

    assert not notes
    assert sum(site["live_count"] for site in document["sites"] if any(f["function"] == "keep" for f in site["frames"])) == KEPT


FAKES = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static int is_locked;
static void *volatile kept;
static void lock(void) { if (is_locked) write(STDERR_FILENO, "locked by itself\\n", 17); is_locked = 1; kept = malloc(100); }
static long unlock(long result) { free(kept); is_locked = 0; return result; }
int stat(const char *path, struct stat *to) { lock(); return unlock(syscall(SYS_newfstatat, AT_FDCWD, path, to, 0)); }
int fstat(int fd, struct stat *to) { lock(); return unlock(syscall(SYS_fstat, fd, to)); }
ssize_t readlink(const char *path, char *to, size_t bytes) { lock(); return unlock(syscall(SYS_readlinkat, AT_FDCWD, path, to, bytes)); }
"""


def test_a_preload_that_answers_for_the_kernel_under_a_lock(out, tmp_path):
    """fakeroot and its kind: a walk that asked it about a file would wait for the thread that it is on."""
    source = tmp_path / "fakes.c"
    source.write_text(FAKES)
    library = harness.compile_c(source, tmp_path / "fakes.so", "-shared", "-fPIC", "-fno-builtin")
    (tmp_path / "asks.c").write_text("#include <sys/stat.h>\nint main(void) { struct stat file; return stat(\"/\", &file); }")
    document, notes = same_with_us([harness.compile_c(tmp_path / "asks.c", tmp_path / "asks")], out, after=[str(library)])

    assert not notes and document["totals"]["heap"]["allocated_count"] >= 1


PYTHON = "kept = [bytes(1000) for _ in range(5000)]; import json, threading; print(len(json.dumps([1] * 100000)))"


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("name", ALLOCATORS)
def test_cpython(name, order, out):
    installed(name)
    document, notes = same_with_us(["/usr/bin/python3", "-c", PYTHON], out, **{order: [ALLOCATORS[name]]})

    assert bool(hides(notes, MALLOC_HIDDEN, name)) == (order == "before")
    held = sum(site["live_bytes"] for site in document["sites"] if site["domain"] == "heap" and (site["where"] or {}).get("file") == "<string>")
    assert (held >= 5000 * 1000) == (order == "after")


def sanitized(build, sanitizer, compiler="gcc", *flags):
    try:
        return build(compiler, f"-fsanitize={sanitizer}", "-w", *flags)
    except AssertionError as error:
        pytest.skip(f"-fsanitize={sanitizer} does not link here: {str(error)[:100]}")


def test_a_program_that_would_refuse_to_start_behind_us_runs_without(build, out):
    program = sanitized(build, "address")
    options = harness.plain_env(ASAN_OPTIONS="allocator_may_return_null=1:detect_leaks=0")
    done = harness.kmemshim("run", "-o", out, "--", program, env=options)

    assert (done.returncode, done.stdout) == (0, "0 failures\n")
    assert "nothing was recorded: it is built with the address sanitizer" in done.stderr
    assert "ASAN_OPTIONS=verify_asan_link_order=0" in done.stderr


@pytest.mark.parametrize("how", ["address", "address, first", "leak"])
def test_sanitizers_work_when_they_may_start(how, build, out):
    sanitizer = how.split(",")[0]
    before = ["libasan.so.8"] if "first" in how else []
    document, notes = same_with_us([sanitized(build, sanitizer)], out, before=before,
                                   ASAN_OPTIONS="verify_asan_link_order=0:allocator_may_return_null=1:detect_leaks=0",
                                   LSAN_OPTIONS="allocator_may_return_null=1:detect_leaks=0")

    check_kept(document, 0 if before else KEPT)
    assert bool(hides(notes, MALLOC_HIDDEN, "asan")) == bool(before)
