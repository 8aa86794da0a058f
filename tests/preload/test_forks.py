"""
Ordinary programs fork beside threads that allocate, all on one core: each child ends by itself. So a fork meets the recorder in the
middle of an event, and no child waits for what a thread of its parent held then. FORKS=200 asks for more of them.
"""
import os
import re

import pytest

import harness

FORKS = int(os.environ.get("FORKS", 30))
CORE = min(os.sched_getaffinity(0))
SCRIPT = harness.HERE / "forks.py"
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "KMEMSHIM_VERIFY": "0"}  # verified, a child walks with libunwind, too


def check_all_end(command, out):
    done = harness.run(["taskset", "-c", CORE, *command, FORKS], harness.shim_env(out, **QUIET), timeout=4 * harness.TIMEOUT)

    assert (done.returncode, done.stdout) == (0, f"{FORKS} of {FORKS}\n"), done.stderr
    harness.ok(harness.kmemshim("report", out))


def test_children_of_c_plus_plus_end(tmp_path, out):
    check_all_end([harness.compile_cc(tmp_path, "forks")], out)


@pytest.mark.framework
@pytest.mark.parametrize("kind, environment", [("torch", "torch"), ("keras", "keras"), ("jax", "jax"), ("sklearn", "sklearn"), ("joblib", "sklearn")])
def test_children_of_frameworks_end(kind, environment, out):
    check_all_end([harness.venv(environment), SCRIPT, kind], out)


@pytest.mark.parametrize("what", ["looks_up", "closes"])
def test_a_forked_child_waits_for_no_look_at_what_is_loaded(what, tmp_path, out):
    program = harness.compile_c(harness.HERE / "loader_asked.c", tmp_path / "loader_asked")
    done = harness.record([program, what, "libz.so.1"], out)

    assert (done.returncode, done.stdout, done.stderr) == (0, "200 of 200\n", "")


@pytest.mark.parametrize("where", ["here", "confined"])
def test_what_is_unloaded_meanwhile_is_not_read(where, tmp_path, out):
    """Also where the last of what was there in the beginning is gone."""
    source, empty = harness.HERE / "loader_changes.c", tmp_path / "plugin.c"
    empty.write_text("int plugin_value = 1;\n")
    for name in ("first", "second"):
        harness.compile_c(empty, tmp_path / f"{name}.so", "-shared", "-fPIC")
    early = harness.compile_c(source, tmp_path / "libearly.so", "-shared", "-fPIC", "-DEARLY")
    program = harness.compile_c(source, tmp_path / "loader_changes", "-Wl,--no-as-needed", early, f"-Wl,-rpath,{tmp_path}")
    done = harness.run([program, where], harness.shim_env(out, LOADER_PLUGINS=str(tmp_path)))

    assert (done.returncode, done.stdout, done.stderr) == (0, "0 found\n", "")


# What the library calls of libc and the loader, and takes no lock there: fork copies a lock as it is, and a child would wait for a thread
# that it does not have.
LOCKLESS = re.compile(
    r"_ITM_\w+|__cxa_finalize|__gmon_start__|(mem|str)[a-z]+(_np)?|__(mem|str)\w+_chk|__stack_chk_\w+|__errno_location|_?_?environ|"
    r"__libc_stack_end|_r_debug|_setjmp|[gm][ea][tk]e?context|f?access(at)?|statvfs|clock_gettime|sysconf|"
    r"get(auxval|env|ppid|rlimit|uid)|gnu_get_libc_version|pthread_(self|setspecific|key_create|key_delete)|__sigaction|ssignal|dlerror")
# A lock that fork makes anew in the child; a lock that is taken before there is a second thread.
ANEW_IN_A_CHILD = {"dlopen", "dlvsym", "dlinfo"}
AT_THE_START = {"__register_atfork", "__cxa_at_quick_exit", "setenv"}


def test_the_library_calls_nothing_whose_lock_a_child_would_find_taken():
    lines = harness.run(["nm", "--dynamic", "--undefined-only", harness.SHIM]).stdout.splitlines()
    names = {line.split()[-1].partition("@")[0] for line in lines}

    assert {"dlopen", "memcpy"} <= names
    assert {name for name in names if not LOCKLESS.fullmatch(name)} - ANEW_IN_A_CHILD - AT_THE_START == set()
