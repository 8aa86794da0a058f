"""The shim's Python frames against what the interpreter says, for every interpreter that this machine has.

A small preload library (probe.c and the shim's objects python_*.o) is linked once; all cases of frames_cases.py run in one process
for each interpreter, which forks for each case. EVENTS=n: of the oracle.
"""
import glob
import os
import re
import subprocess

import pytest

import interpreters

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CASES = re.findall(r"^def case_(\w+)", open(os.path.join(HERE, "frames_cases.py")).read(), re.M)
CASES.remove("speed")
EVENTS = os.environ.get("EVENTS", "3000")
FLAGS = ("-std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden -fno-omit-frame-pointer -fno-lto "
         "-ftls-model=initial-exec -mcx16 -pthread -shared -Wl,-z,now -Wl,-z,defs").split()
PARTS = ["base/checked_memory.o", "base/clock.o", "base/diag.o", "base/effort.o", "base/elf_symbols.o", "base/loaded_object.o", "base/loader_list.o",
         "base/raw_sys.o", "base/raw_syscall.o", "base/settings.o", "base/thread_stack.o", "base/turn.o"]


def build(folder, name):
    """From the shim's own objects, and the analyzer's reader of lines, whose object is none for a library."""
    library = os.path.join(str(folder), name)
    objects = os.path.join(interpreters.BUILD, "obj", "shim")
    subprocess.run([os.environ.get("CC", "gcc"), *FLAGS, *("-I" + os.path.join(ROOT, each) for each in ("shim", "analyzer", "include")),
                    "-o", library, os.path.join(HERE, "probe.c"), os.path.join(ROOT, "analyzer", "symbols", "python_text.c"),
                    *(os.path.join(objects, part, os.path.basename(source)[:-1] + "o") for part in ("capture", "python")
                      for source in sorted(glob.glob(os.path.join(ROOT, "shim", part, "*.c")))),
                    *(os.path.join(objects, part) for part in PARTS)], check=True)
    return library


@pytest.fixture(scope="session")
def probe(tmp_path_factory):
    return build(tmp_path_factory.mktemp("probe"), "probe.so")


def run(probe, path, *arguments, **environment):
    return subprocess.run([path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=240,
                          env={"PATH": os.environ["PATH"], "LD_PRELOAD": probe, **environment})


def run_cases(probe, interpreter, *cases, timeout=600, **environment):
    """{case: what it wrote, without its last line "ok N"}. Fails when one failed."""
    if interpreter.has_symbols:
        environment["HAS_SYMBOLS"] = "1"
    if interpreter.is_debug:
        environment["SLOW"] = "10"
    environment["KMEMSHIM_NATIVE"] = "all"  # else the evaluators of frames that are not shown are not looked for
    done = interpreter.run(os.path.join(HERE, "frames_cases.py"), *cases, timeout=timeout, LD_PRELOAD=probe, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    written = dict(re.findall(r"^case (\w+)\n(.*?)(?=^case |\Z)", done.stdout, re.M | re.S))
    failed = [case for case in cases if not re.search(r"^ok [1-9][0-9]*$", written.get(case, ""), re.M) or
              len(cases) > 1 and not re.search(r"^status 0$", written[case], re.M)]
    assert not failed, (failed, [written.get(case) for case in failed], done.stderr)
    assert done.stderr == ""
    return written


def cases_of(interpreter):
    """Without those that this interpreter cannot run, and these."""
    without = []
    if interpreter.run("-c", "import greenlet").returncode != 0 or interpreter.is_free_threaded:
        without.append("greenlets")  # not there; or it aborts when it switches inside a sort, with and without us
    if interpreter.version.startswith("3.13.") and interpreter.is_debug:
        # Its daemon threads read their freed thread state in take_gil(): 13 of 400 runs without us.
        without.append("daemon_threads")
    no_need = [] if interpreter.name == "system" else ["hostile_line_tables"]  # which is about no interpreter
    return [case for case in CASES if case not in without + no_need], without


@pytest.mark.parametrize("name", interpreters.NAMES)
def test_frames_are_the_interpreters_own(probe, name):
    interpreter = interpreters.get(name)
    events = str(int(EVENTS) // 10) if interpreter.is_debug and EVENTS == "3000" else EVENTS
    cases, without = cases_of(interpreter)
    written = run_cases(probe, interpreter, *cases, EVENTS=events)

    assert int(re.search(r"^events (\d+)$", written["oracle"], re.M).group(1)) >= int(events)
    if name in ("3.8", "3.9", "3.10"):  # guards the guard: without reuse, exec_loop would pass without any care
        assert int(re.search(r"^reused (\d+)$", written["exec_loop"], re.M).group(1)) > 10000
    assert re.search(r"^atexit [1-9]", written["teardown"], re.M), written["teardown"]
    assert re.search(r"^teardown 1 [1-9]", written["teardown"], re.M), written["teardown"]
    frames = re.search(r"^ok (\d+)$", written["oracle"], re.M).group(1)
    interpreters.rows.append("%-15s %-9s %2d cases of frames right; oracle: %s frames, 0 wrong%s" % (
        name, interpreter.version, len(cases), frames, "; not run: " + ", ".join(without) if without else ""))


@pytest.mark.parametrize("name", interpreters.NAMES)
def test_other_allocators(probe, name):
    """The debug allocator fills freed memory: what was read too late would not be found again."""
    interpreter = interpreters.get(name)
    allocators = ["debug"] if interpreter.is_free_threaded else ["malloc", "debug", "pymalloc_debug"]
    if os.environ.get("MATRIX") != "full":
        allocators = [allocators[interpreters.NAMES.index(name) % len(allocators)]]
    cases = ["generators", "finalizers", "threads", "exec_loop"]
    for allocator in allocators:
        # Forked children of 3.8 end with "bad ID" of the debug allocator, with and without us: there, each by itself.
        for together in [[case] for case in cases] if interpreter.minor == (3, 8) else [cases]:
            run_cases(probe, interpreter, *together, PYTHONMALLOC=allocator)


@pytest.mark.parametrize("name", ["system"])
def test_switched_off_means_off(probe, name):
    done = interpreters.get(name).run(os.path.join(HERE, "frames_cases.py"), "nested", LD_PRELOAD=probe, KMEMSHIM_PYTHON="0")
    assert done.returncode == 1
    assert done.stderr == "not available: \n"  # and no note: it was asked for


STRANGE = r"""
#include <dlfcn.h>
#include <stdio.h>

unsigned long _PyRuntime[200];
unsigned long Py_Version = VERSION;
#ifdef TYPES
unsigned long PyType_Type[50], PyCode_Type[50] = { 0, (unsigned long)PyType_Type };
unsigned long PyFrame_Type[50], PyGen_Type[50], PyUnicode_Type[50], PyBytes_Type[50];
void *_PyThreadState_UncheckedGet(void) { return 0; }
void *PyGILState_GetThisThreadState(void) { return 0; }
#endif

int main(void)
{
	void (*note)(char *, unsigned) = (void (*)(char *, unsigned))dlsym(RTLD_DEFAULT, "probe_note");
	unsigned (*available)(void) = (unsigned (*)(void))dlsym(RTLD_DEFAULT, "probe_available");
	char text[300];

	note(text, sizeof(text));
	printf("%u %s", available(), text);
	return 0;
}
"""


@pytest.mark.parametrize("flags, says", [
    (["-DVERSION=0x031000f0"], "Python 3.16.0: no table of offsets for this version"),
    (["-DVERSION=0x02070ff0"], "Python 2.7.15: no table of offsets for this version"),
    (["-DVERSION=0x030b07f0"], "Python 3.11.7: symbol PyType_Type is not exported"),
    (["-DVERSION=0x030b07f0", "-DTYPES"], "Python 3.11.7: type code has 0 bytes, 184 expected"),
    (["-DVERSION=0x030d01f0", "-DTYPES"], "Python 3.13.1: _PyRuntime does not begin with xdebugpy"),
])
def test_an_interpreter_that_does_not_fit_is_refused_once(probe, tmp_path, flags, says):
    source = tmp_path / "strange.c"
    source.write_text(STRANGE)
    program = str(tmp_path / "strange")
    subprocess.run(["gcc", "-w", *flags, "-rdynamic", "-o", program, str(source), "-ldl"], check=True)
    done = run(probe, program)
    assert done.stdout == "0 %s; stacks are native only" % says
    assert (done.returncode, done.stderr) == (0, "")


def test_programs_without_python_are_left_alone(probe):
    done = run(probe, "/bin/echo", "hello")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


EMBEDDED = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdint.h>

struct frame { uint32_t code, offset; uint16_t flags; uint64_t anchor; };
struct stack { uint32_t count, is_cut; struct frame frames[160]; };

static struct stack stack;
static void (*walk)(struct stack *);

static int hook(void *argument, void *frame, int what, void *value)
{
	walk(&stack);
	return 0;
}

int main(int count, char **arguments)
{
	void *probe = dlopen(arguments[2], RTLD_NOW);
	unsigned (*available)(void) = (unsigned (*)(void))dlsym(probe, "probe_available");
	void (*start)(void) = (void (*)(void))dlsym(probe, "probe_start");
	walk = (void (*)(struct stack *))dlsym(probe, "probe_walk");

	walk(&stack);
	printf("%u %u\n", available(), stack.count);
	void *python = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
	start();
	printf("%u\n", available());
	((void (*)(int))dlsym(python, "Py_InitializeEx"))(0);
	((void (*)(void *, void *))dlsym(python, "PyEval_SetProfile"))((void *)hook, NULL);
	((int (*)(const char *))dlsym(python, "PyRun_SimpleString"))("def f():\n return 1\nf()\n");
	printf("%u\n", stack.count != 0);
	return 0;
}
"""


@pytest.mark.parametrize("version", interpreters.PYENV)
def test_late_private_libpython_is_found(probe, version, tmp_path):
    """A program that opens libpython for itself, after the shim has looked once."""
    prefix = interpreters.get(version).prefix
    libraries = glob.glob(os.path.join(prefix, "lib", "libpython%s.so*" % version))
    if not libraries:
        pytest.skip("this Python %s has no shared library" % version)
    source = tmp_path / "embedded.c"
    source.write_text(EMBEDDED)
    program = str(tmp_path / "embedded")
    subprocess.run(["gcc", "-w", "-o", program, str(source), "-ldl"], check=True)
    done = run(probe, program, libraries[0], probe, PYTHONHOME=prefix)
    assert done.stdout.split() == ["0", "0", "1", "1"], done.stdout + done.stderr
    assert done.returncode == 0
