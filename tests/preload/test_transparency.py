"""The program sees the real results, the real errno and its own signals, and nothing is printed that it did not print."""
import os
import signal
import subprocess
import sys

import pytest

import harness


@pytest.mark.parametrize("ending", ["return", "_exit", "abort"])
def test_results_errno_output_and_status_are_the_same(ending, programs, out):
    program = programs("transparent.c", "-O0", "-w", "-fno-builtin")
    plain = harness.run([program, ending])
    watched = harness.record([program, ending], out)

    assert plain.returncode in (42, 4, -6)
    assert (watched.returncode, watched.stdout, watched.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_pipelines_and_shells_work(out):
    script = "seq 1 1000 | sort -rn | head -n 1; (exit 3); echo $?; ls /nonexistent; exit 7"
    plain = harness.run(["sh", "-c", script])
    watched = harness.record(["sh", "-c", script], out)

    assert (watched.returncode, watched.stdout, watched.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_small_children_leave_no_file_and_the_first_process_does(out):
    harness.record(["sh", "-c", "for i in 1 2 3 4 5; do (:); /bin/true; done"], out)

    assert len(list(out.glob("*.kmem"))) == 1


def test_a_start_reads_no_symbol_table(out):
    """All that is read of files before main: what /proc says, and headers. libc's symbols alone are 72 KiB."""
    def read_bytes(**more):
        done = harness.run(["cat", "/proc/self/io"], **more)
        if done.returncode != 0 or "rchar" not in done.stdout:
            pytest.skip("the kernel does not count what is read")
        return int(done.stdout.split("rchar:")[1].split()[0])
    assert read_bytes(env=harness.shim_env(out)) - read_bytes() < 32 << 10


def test_run_returns_the_status_of_the_program_or_128_and_its_signal(out):
    assert harness.kmemshim("run", "-o", out / "a", "--", "sh", "-c", "exit 9").returncode == 9
    assert harness.kmemshim("run", "-o", out / "b", "--", "sh", "-c", "kill -KILL $$").returncode == 137
    assert harness.kmemshim("run", "-o", out / "c", "--", "sh", "-c", "kill -TERM $$").returncode == 143


def test_run_returns_the_status_where_its_caller_ignores_children(out):
    program = "import signal, sys; sys.exit(7 if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN else 8)"
    done = harness.run([harness.KMEMSHIM, "run", "-o", out, "--", sys.executable, "-c", program],
                       preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))

    assert done.returncode == 7, done.stderr


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGUSR2"])
def test_run_passes_on_what_is_sent_to_it_alone(name, out):
    number = getattr(signal, name)
    program = (f"import signal, sys; signal.alarm({harness.TIMEOUT}); signal.pthread_sigmask(signal.SIG_BLOCK, [{number:d}]); "
               f"print('ready', flush=True); signal.sigwait([{number:d}]); sys.exit(9)")
    with subprocess.Popen([harness.KMEMSHIM, "run", "-o", out, "--", sys.executable, "-c", program], env=harness.plain_env(),
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as running:  # in the background it is ignored
        assert running.stdout.readline() == "ready\n"
        running.send_signal(number)

        assert running.wait() == 9


@pytest.fixture(scope="module")
def early(tmp_path_factory):
    folder = tmp_path_factory.mktemp("early")
    library = harness.compile_c(harness.HERE / "early.c", folder / "early.so", "-shared", "-fPIC")
    return harness.compile_c(harness.HERE / "early.c", folder / "early", "-DPROGRAM", "-Wl,--no-as-needed", library)


@pytest.mark.parametrize("how", ["atexit", "at_quick_exit", "pthread_atfork", "setenv"])
def test_a_constructor_may_be_the_first_to_allocate_under_a_lock_of_libc(how, early, out):
    harness.silent(harness.run([early], harness.shim_env(out, EARLY=how)))

    assert len(os.listdir(out)) == 1


def test_handlers_of_fork_around_ours_are_recorded(early, out):
    harness.silent(harness.run([early], harness.shim_env(out, EARLY="handlers")))

    document = harness.report("sites", out)
    assert [process["state"] for process in document["processes"]] == ["exited", "exited"]
    assert not any(document["losses"].values()), document["losses"]
    held = document["totals"]["heap"]["live_bytes"] - sum(line["released_at_exit_bytes"] for line in document["lines"])
    assert held < 1 << 20  # what its handler of exit frees is gone


def test_condition_variables_of_old_programs_wake_who_waits(programs, out):
    done = harness.record([programs("old_conditions.c", "-fno-lto")], out)

    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_a_program_without_the_processors_clock_is_not_looked_at_by_it(programs, out):
    done = harness.record([programs("no_clock.c")], out)

    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr


def test_the_shim_needs_libc_and_libunwind_only():
    needed = [line.split("[")[1].rstrip("]") for line in harness.run(["readelf", "-d", harness.SHIM]).stdout.splitlines()
              if "(NEEDED)" in line]

    assert {name.split(".so")[0] for name in needed} <= {"libc", "libunwind", "ld-linux-x86-64"}, needed


def test_debug_log_goes_to_stderr(out):
    done = harness.run(["echo", "words"], harness.shim_env(out, KMEMSHIM_LOG="debug"))

    assert done.stdout == "words\n"
    assert all(line.startswith("kmemshim:") for line in done.stderr.splitlines())


PROBE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
static void look(const char *where, void *handle, const char *name) {
	void *found = dlsym(handle, name);
	const char *error = dlerror();
	printf("%s %s: %s %s %s\\n", where, name, found != NULL ? "found" : "absent", error == NULL ? "no error" : "error", dlerror() == NULL ? "once" : "twice");
}
int main(int count, char **arguments) {
	static const char *const names[] = { "cudaMalloc", "cuMemAlloc_v2", "hipMalloc", "cudaNone", "puts", "c", "" };
	void *apart = count > 1 ? dlmopen(LM_ID_NEWLM, arguments[1], RTLD_NOW) : NULL;
	for (int with = 0; with <= (count > 1); with++) {
		if (with && dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL) == NULL) return 1;
		for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			look("default", RTLD_DEFAULT, names[i]);
			look("next", RTLD_NEXT, names[i]);
			look("program", dlopen(NULL, RTLD_NOW), names[i]);
			if (apart != NULL) look("apart", apart, names[i]);
		}
	}
	return 0;
}
"""


def test_a_program_that_looks_for_cuda_finds_it_where_it_is_only(tmp_path, out):
    """The names that the shim exports are no sign of it. What is there later is found later."""
    (tmp_path / "probe.c").write_text(PROBE)
    (tmp_path / "runtime.c").write_text("int cudaMalloc(void **p, unsigned long n) { return p == 0 && n == 0; }\n")
    program = harness.compile_c(tmp_path / "probe.c", tmp_path / "probe", "-ldl")
    runtime = harness.compile_c(tmp_path / "runtime.c", tmp_path / "libcudart.so.12", "-shared", "-fPIC")
    plain = harness.run([program, runtime])
    watched = harness.record([program, runtime], out)

    assert plain.returncode == 0 and all(words in plain.stdout for words in ("default cudaMalloc: found", "default cudaMalloc: absent error", "apart cudaMalloc: found"))
    assert (watched.returncode, watched.stdout, watched.stderr) == (0, plain.stdout, "")


def test_memory_that_the_program_trims_is_given_back_by_us_too(programs, out):
    """128 MiB of blocks of 32 bytes make 32 MiB of map."""
    program = programs("trim.c")
    plain, recorded = harness.run([program]), harness.record([program], out)

    assert recorded.returncode == plain.returncode == 0, recorded.stderr
    assert int(recorded.stdout) < int(plain.stdout) + (8 << 10), (recorded.stdout, plain.stdout)


def test_address_space_limits_are_survived(programs, out):
    """`ulimit -v` below what tables reserve must not stop the program."""
    program = programs("leak_in_a_loop.c")
    done = harness.ok(harness.run(["sh", "-c", f"ulimit -v 200000; exec {program}"], harness.shim_env(out)))

    assert done.stdout == harness.run([program]).stdout
    assert os.path.isdir(out)


@pytest.mark.parametrize("mistake", ["free(block); free(block);", "free(block + 16);", "free(&block);", "block[-8] = 1; free(block);",
                                     "*(volatile int *)0 = 1;"])
def test_mistakes_of_the_program_end_as_without(mistake, tmp_path, out):
    """libc's own checks see what they always saw: the same message, the same signal."""
    source = tmp_path / "mistake.c"
    source.write_text("#include <stdlib.h>\n#include <stdio.h>\nint main(void) { char *volatile block = malloc(64);\n"
                      f"free(malloc(64)); puts(\"here\"); fflush(stdout); {mistake} return 0; }}\n")
    program = harness.compile_c(source, tmp_path / "mistake", "-w", "-O0")
    plain, watched = harness.run([program]), harness.record([program], out)

    assert plain.returncode < 0
    assert (watched.returncode, watched.stdout, watched.stderr) == (plain.returncode, plain.stdout, plain.stderr)
