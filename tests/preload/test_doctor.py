"""kmemshim doctor: real programs that cannot be recorded are told from those that can, before they run."""
import json
import os
import re
import shutil
import stat

import pytest

import harness

OK, PROBLEM = 0, 1

OWN_MALLOC = """
#include <stddef.h>
static char heap[1 << 20];
static size_t used;
void *malloc(size_t bytes) { void *block = heap + used; used += (bytes + 15) & ~(size_t)15; return block; }
void free(void *block) { (void)block; }
void *calloc(size_t count, size_t bytes) { return malloc(count * bytes); }
void *realloc(void *old, size_t bytes) { return old ? old : malloc(bytes); }
int main(void) { return malloc(100) == NULL; }
"""


def compiled(tmp_path, text, *flags, compiler="gcc", name="program"):
    source = tmp_path / f"{name}.c"
    source.write_text(text)
    program = tmp_path / name
    done = harness.run([compiler, "-O1", "-g", source, "-o", program, *flags])
    if done.returncode != 0:
        pytest.skip(f"{compiler} {' '.join(flags)} does not link here")
    return program


def findings(*words, status, env=None, **more):
    """What doctor finds; the text says the same as the JSON."""
    done = harness.kmemshim("doctor", "--json", *words, env=env, **more)
    assert done.returncode == status, (done.stdout, done.stderr)
    harness.validate(json.loads(done.stdout), "doctor")
    found = json.loads(done.stdout)["findings"]
    assert (PROBLEM if any(one["level"] == "problem" for one in found) else OK) == status
    text = harness.kmemshim("doctor", *words, env=env, **more)
    assert text.returncode == status
    assert [line.split()[0] for line in text.stdout.splitlines()] == [one["level"] for one in found]
    return found


def assert_problem(text, *words, **more):
    found = [one for one in findings(*words, status=PROBLEM, **more) if one["level"] == "problem"]
    assert len(found) == 1, found
    assert text in found[0]["what"], found
    assert found[0]["where"] and (found[0]["next"] or ":" in found[0]["what"])


def test_all_is_well(tmp_path):
    found = findings("/bin/ls", "--color", status=OK, cwd=tmp_path)
    of_machine = {str(tmp_path), "memory limit", "swap limit", "process limit", "/dev/shm"}  # they may be small where tests run
    assert {one["level"] for one in found if one["where"] not in of_machine and "no debug symbols" not in one["what"]} == {"ok"}, found
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("flags, compiler, said", [
    (["-static"], "gcc", "static"),
    (["-fsanitize=address"], "gcc", "address sanitizer"),
    (["-fsanitize=address"], "clang", "address sanitizer"),
    (["-Wl,-Bstatic", "-ljemalloc_pic", "-Wl,-Bdynamic", "-lm", "-lstdc++", "-pthread"], "gcc", "jemalloc"),
    (["-m32"], "gcc", "architecture"),
    ([], "musl-gcc", "musl"),
], ids=["static", "asan", "static asan", "jemalloc", "32 bit", "musl"])
def test_a_build_that_cannot_be_recorded(flags, compiler, said, tmp_path):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    text = "#include <stdlib.h>\nint main(void) { void *volatile p = malloc(10); free(p); return 0; }"
    assert_problem(said, compiled(tmp_path, text, *flags, compiler=compiler), cwd=tmp_path)


def test_a_program_with_a_malloc_of_its_own(tmp_path, out):
    program = compiled(tmp_path, OWN_MALLOC, "-fno-builtin")
    assert_problem("defines malloc itself", program, cwd=tmp_path)
    done = harness.kmemshim("run", "-o", out, "--", program)
    assert done.returncode == 0 and "defines malloc itself" in done.stderr


def test_an_allocator_that_is_a_shared_library_is_no_problem(tmp_path):
    text = "#include <stdlib.h>\nint main(void) { void *volatile p = malloc(10); free(p); return 0; }"
    findings(compiled(tmp_path, text, "-Wl,--no-as-needed", "-ljemalloc"), status=OK, cwd=tmp_path)


def test_a_sanitized_program_runs_as_without_us(tmp_path, out):
    """Its library ends the program when another one comes first: then ours stays out."""
    program = compiled(tmp_path, "#include <stdio.h>\nint main(void) { puts(\"here\"); return 7; }", "-fsanitize=address")
    done = harness.kmemshim("run", "-o", out, "--", program)
    assert (done.returncode, done.stdout) == (7, "here\n"), done.stderr
    assert "address sanitizer" in done.stderr and done.stderr.count("\n") == 1


def test_a_setuid_program(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to make a program setuid")
    program = tmp_path / "setuid"
    shutil.copy("/bin/ls", program)
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    assert program.stat().st_mode & stat.S_ISUID
    assert_problem("setuid", program, cwd=tmp_path)


def test_a_library_that_is_missing(tmp_path):
    compiled(tmp_path, "int gone(void) { return 0; }", "-shared", "-fPIC", "-Wl,-soname,libgone.so", name="libgone.so")
    program = compiled(tmp_path, "int gone(void);\nint main(void) { return gone(); }", tmp_path / "libgone.so")
    (tmp_path / "libgone.so").unlink()
    assert_problem("libgone.so: cannot open", program, cwd=tmp_path)


@pytest.mark.parametrize("command", [["/nonexistent/program"], ["no-such-command-anywhere"], ["./text"]])
def test_what_is_no_program(command, tmp_path):
    (tmp_path / "text").write_text("#!/nonexistent/interpreter\n")
    (tmp_path / "text").chmod(0o755)
    assert_problem("not found", *command, cwd=tmp_path)


@pytest.mark.parametrize("text, mode, said", [
    ("#!/bin/sh\n", 0o644, "is not executable"),
    ("#!/nonexistent/interpreter\n", 0o755, "needs /nonexistent/interpreter, which was not found"),
    ("#!/usr/bin/env no-such-interpreter -u\n", 0o755, "needs no-such-interpreter, which was not found"),
])
def test_a_script_that_cannot_be_started(text, mode, said, tmp_path, out):
    script = tmp_path / "script"
    script.write_text(text)
    script.chmod(mode)
    assert_problem(said, script, cwd=tmp_path)
    if "/env" in text:
        return  # it is env that says so, and it is recorded
    done = harness.kmemshim("run", "-o", out, "--", script)
    hint = "chmod +x" if mode == 0o644 else "/nonexistent/interpreter"
    assert done.returncode in (126, 127) and done.stderr.count("\n") == 1 and hint in done.stderr, done.stderr


@pytest.mark.parametrize("words, is_missing", [
    (["-u", "-X", "dev", "-Wignore", "trian.py", "--lr", "1"], True), (["-X", "dev", "script.py", "trian.py"], False),
    (["-Sm", "trian"], False), (["-c", "pass", "trian.py"], False),
])
def test_a_script_that_is_not_there(words, is_missing, tmp_path):
    (tmp_path / "script.py").write_text("print('must not run')\n")
    python = harness.find_python()
    if is_missing:
        assert_problem("was not found", python, *words, cwd=tmp_path)
    else:
        findings(python, *words, status=OK, cwd=tmp_path)


def test_settings_that_are_misspelt(tmp_path):
    names = ["KMEMSHIN_OUT", "KMEM_SHIM_LOG", "kmemshim_out"]
    env = harness.plain_env(KMEMSHIM_OTU="x", **{name: "x" for name in names})
    assert_problem("unknown setting KMEMSHIM_OTU", "/bin/ls", cwd=tmp_path, env=env)
    notes = [one["what"].split()[0] for one in findings("/bin/ls", status=PROBLEM, cwd=tmp_path, env=env)
             if (one["level"], one["where"]) == ("note", "environment")]
    assert sorted(notes) == sorted(names)


def test_a_wrapper_that_hands_the_program_to_somebody_else(tmp_path):
    (tmp_path / "docker").write_text("#!/bin/sh\n")
    (tmp_path / "docker").chmod(0o755)
    assert_problem("daemon", tmp_path / "docker", "run", "image", cwd=tmp_path)


@pytest.mark.parametrize("head", ["#!{}", "#!/usr/bin/env {}", "#!/usr/bin/env -S -u B A=1 {} -u"])
def test_a_script_is_judged_by_its_interpreter(head, tmp_path):
    python = harness.find_python()
    script = tmp_path / "script"
    script.write_text(head.format(python) + "\nprint('must not run')\n")
    script.chmod(0o755)
    found = findings(script, status=OK, cwd=tmp_path)
    assert any(one["where"] == python and "Python frames are recorded" in one["what"] for one in found), found

    script.write_text(head.format(compiled(tmp_path, "int main(void) { return 0; }", "-static")) + "\n")
    assert_problem("static", script, cwd=tmp_path)
    assert_problem("static", "env", "-u", "B", "A=1", script, cwd=tmp_path)


def interpreter(*versions):
    paths = [os.path.expanduser(f"~/.pyenv/versions/{version}/bin/python") for version in versions]
    found = [path for path in paths if os.path.exists(path)]
    if not found:
        pytest.skip(f"no Python {' or '.join(versions)}")
    return found[0]


@pytest.mark.parametrize("versions, said", [(("3.7.16", "3.6.15"), "no table of offsets for this version; stacks are native only"),
                                            (("2.7.18",), "is not a supported CPython: stacks are native only")])
def test_a_python_that_is_too_old(versions, said, tmp_path):
    """The versions that are named are those of the table."""
    notes = [one for one in findings(interpreter(*versions), status=OK, cwd=tmp_path) if one["level"] == "note" and one["where"] != str(tmp_path)]
    assert len(notes) == 1 and said in notes[0]["what"], notes
    rows = re.findall(r"\.version = 0x03(\w\w),", (harness.ROOT / "include" / "kmem_python.h").read_text())
    versions = sorted(int(row, 16) for row in rows)
    assert f"take CPython 3.{versions[0]} to 3.{versions[-1]}," in notes[0]["next"]


UNLIKE_ITS_VERSION = """
#include <stdlib.h>
unsigned long _PyRuntime[200], Py_Version = 0x030b07f0;
unsigned long PyType_Type[50], PyCode_Type[50] = { 0, (unsigned long)PyType_Type };
unsigned long PyFrame_Type[50], PyGen_Type[50], PyUnicode_Type[50], PyBytes_Type[50];
void *_PyThreadState_UncheckedGet(void) { return 0; }
void *PyGILState_GetThisThreadState(void) { return 0; }
int main(void) { return malloc(99999) == NULL; }
"""


def test_a_python_that_is_not_like_its_version(tmp_path):
    """A changed build: the self check finds it, and the doctor says what."""
    python = compiled(tmp_path, UNLIKE_ITS_VERSION, "-rdynamic", "-w", name="python3.11")
    notes = [one for one in findings(python, status=OK, cwd=tmp_path) if "native only" in one["what"]]
    assert len(notes) == 1 and notes[0]["what"] == "Python 3.11.7: type code has 0 bytes, 184 expected; stacks are native only"
    assert notes[0]["next"].startswith("take CPython 3.8 to 3.")


# --- where captures go, limits, the environment -------------------------------------------------

def test_a_folder_that_cannot_be_written(tmp_path):
    assert_problem("cannot write captures", "-o", "/proc/1/x", "/bin/ls", cwd=tmp_path)


def test_a_folder_in_memory():
    if "tmpfs" not in harness.run(["stat", "-f", "-c", "%T", "/dev/shm"]).stdout:
        pytest.skip("/dev/shm is no tmpfs")
    found = findings("-o", f"/dev/shm/kmemshim-{os.getpid()}", status=OK)
    assert any(one["level"] == "note" and "memory limit" in one["what"] for one in found), found
    assert not os.path.exists(f"/dev/shm/kmemshim-{os.getpid()}")


@pytest.mark.parametrize("folder", ["new", "a/b//c/", "there/new", "there"])
def test_what_it_made_is_gone_and_what_was_there_stays(folder, tmp_path):
    (tmp_path / "there").mkdir()
    findings("-o", folder, "/bin/ls", status=OK, cwd=tmp_path)
    assert [str(path) for path in tmp_path.rglob("*")] == [str(tmp_path / "there")]


@pytest.mark.parametrize("folder", ["new/./deep", "./new", "new/../deep", "./././new"])
def test_a_folder_that_was_there_empty_stays(folder, tmp_path):
    (tmp_path / "empty").mkdir()
    findings("-o", folder, "/bin/ls", status=OK, cwd=tmp_path / "empty")
    assert (tmp_path / "empty").is_dir()


def test_limits(tmp_path):
    def limited(option):
        return harness.run(["bash", "-c", f"ulimit {option}; exec \"$@\"", "x", harness.KMEMSHIM, "doctor", "/bin/ls"], cwd=tmp_path)
    small_files, addresses = limited("-f 100"), limited("-v 4000000")
    assert small_files.returncode == PROBLEM and "files are limited to" in small_files.stdout
    assert addresses.returncode == OK and "note     ulimit -v" in addresses.stdout


@pytest.mark.parametrize("preload, level, said", [
    ("/nonexistent/libx.so", "problem", "cannot be preloaded"),  # the loader's own words, at every start
    ("/nonexistent/libheaptrack_preload.so", "problem", "records allocations too"),
    (harness.SHIM, "note", "every program that you start here is recorded"),
])
def test_what_is_preloaded_already(preload, level, said, tmp_path):
    status = PROBLEM if level == "problem" else OK
    found = findings("/bin/ls", status=status, env=harness.plain_env(LD_PRELOAD=preload), cwd=tmp_path)
    assert any(one["level"] == level and said in one["what"] for one in found), found


def test_the_library_is_missing(tmp_path):
    shutil.copy(harness.KMEMSHIM, tmp_path / "kmemshim")
    done = harness.run([tmp_path / "kmemshim", "doctor", "/bin/ls"], cwd=tmp_path)
    assert done.returncode == PROBLEM and "cannot find libkmemshim.so in" in done.stdout


def test_it_is_in_the_help():
    assert "doctor" in harness.kmemshim("--help").stdout


def test_a_schema_that_is_none():
    done = harness.kmemshim("schema", "nonsense")
    assert (done.returncode, done.stderr) == (2, "kmemshim: schema: nonsense: there are report, diff, doctor, holders and lost\n")
