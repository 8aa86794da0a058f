"""The shim's Python frames against what the interpreter says, for every interpreter that this machine has.

A small preload library (probe.c and the shim's python_*.c) is built once; each case of frames_cases.py runs in a
process of its own. Interpreters: those of pyenv in the home folder, and the system's.
"""
import glob
import os
import re
import subprocess

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
VERSIONS = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14", "3.15", "system"]
CASES = re.findall(r"^def case_(\w+)", open(os.path.join(HERE, "frames_cases.py")).read(), re.M)
CASES.remove("speed")
CASES.remove("greenlets")  # not every interpreter has them
FLAGS = ("-std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -fvisibility=hidden -fno-omit-frame-pointer "
         "-ftls-model=initial-exec -mcx16 -pthread -shared -Wl,-z,now -Wl,-z,defs").split()
SOURCES = ["capture_file.c", "checked_memory.c", "diag.c", "elf_symbols.c", "settings.c", "thread_stack.c"]


def build(folder, name):
    library = os.path.join(str(folder), name)
    shim = os.path.join(ROOT, "shim")
    subprocess.run([os.environ.get("CC", "gcc"), *FLAGS, "-I" + shim,
                    "-I" + os.path.join(ROOT, "include"), "-o", library, os.path.join(HERE, "probe.c"),
                    *sorted(glob.glob(os.path.join(shim, "python_*.c"))),
                    os.path.join(ROOT, "analyzer", "python_text.c"),
                    *(os.path.join(shim, source) for source in SOURCES)], check=True)
    return library


@pytest.fixture(scope="session")
def probe(tmp_path_factory):
    return build(tmp_path_factory.mktemp("probe"), "probe.so")


def interpreter_of(version):
    """Path of an interpreter, or a skip that names what is missing."""
    if version == "system":
        paths = ["/usr/bin/python3"]
    else:
        paths = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/%s.*/bin/python3" % version)))
    paths = [path for path in paths if os.access(path, os.X_OK)]
    if not paths:
        pytest.skip("no Python %s on this machine" % version)
    return paths[-1]


def run(probe, path, *arguments, **environment):
    return subprocess.run([path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          universal_newlines=True, timeout=240,
                          env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1",
                               "PYTHONIOENCODING": "utf-8", "LD_PRELOAD": probe, **environment})


def run_case(probe, path, case, **environment):
    return run(probe, path, os.path.join(HERE, "frames_cases.py"), case, **environment)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", VERSIONS)
def test_frames_are_the_interpreters_own(probe, version, case):
    done = run_case(probe, interpreter_of(version), case)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^ok [1-9][0-9]*$", done.stdout, re.M), done.stdout + done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("version", VERSIONS)
def test_oracle_compares_enough(probe, version):
    done = run_case(probe, interpreter_of(version), "oracle")
    events = int(re.search(r"^events (\d+)$", done.stdout, re.M).group(1))
    assert events >= 20000
    unchanged = float(re.search(r"^unchanged (\S+)$", done.stdout, re.M).group(1))
    assert unchanged > 0.5, unchanged  # else the walks with memory were walks without


@pytest.mark.parametrize("version", VERSIONS)
def test_greenlets(probe, version):
    path = os.environ.get("GREENLET_PYTHON") or interpreter_of(version)
    if subprocess.run([path, "-c", "import greenlet"], stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip("%s has no greenlet" % path)
    done = run_case(probe, path, "greenlets")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_teardown_is_told_from_running(probe, version):
    done = run_case(probe, interpreter_of(version), "teardown")
    lines = done.stdout.splitlines()
    assert re.match(r"atexit [1-9]", lines[-2]), done.stdout
    assert re.match(r"teardown 1 [1-9]", lines[-1]), done.stdout


@pytest.mark.parametrize("allocator", ["malloc", "debug", "pymalloc_debug"])
@pytest.mark.parametrize("version", VERSIONS)
def test_other_allocators(probe, version, allocator):
    """The debug allocator fills freed memory: what was read too late would not be found again."""
    for case in ("generators", "finalizers", "threads", "exec_loop"):
        done = run_case(probe, interpreter_of(version), case, PYTHONMALLOC=allocator)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_switched_off_means_off(probe, version):
    done = run_case(probe, interpreter_of(version), "nested", KMEMSHIM_PYTHON="0")
    assert done.returncode == 1
    assert done.stderr == "not available: \n"  # and no note: it was asked for


def test_reused_addresses_are_what_the_exec_loop_meets(probe):
    """Guards the guard: without reuse, exec_loop would pass without any care for dead code objects."""
    reused = 0
    for version in VERSIONS[:3]:
        path = glob.glob(os.path.expanduser("~/.pyenv/versions/%s.*/bin/python3" % version))
        if path:
            done = run_case(probe, path[-1], "exec_loop", SHOW_REUSE="1")
            reused += int(re.search(r"^ok (\d+)$", done.stdout, re.M).group(1))
    if reused == 0:
        pytest.skip("no interpreter here reuses the addresses of code objects in this loop")
    assert reused > 10000


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
struct stack { uint32_t count, omitted; struct frame frames[160]; };

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


@pytest.mark.parametrize("version", VERSIONS[:-1])
def test_late_private_libpython_is_found(probe, version, tmp_path):
    """A program that opens libpython for itself, after the shim has looked once."""
    prefix = os.path.dirname(os.path.dirname(interpreter_of(version)))
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
