"""Bad input: no crash, counted losses, valid UTF-8 and valid JSON in every output. SEED= repeats a run."""
import os
import random
import subprocess

import pytest

import interpreters
from harness import silent, validate
from test_frames import STRANGE
from test_matrix import HERE, KMEMSHIM, SHIM, report


def text_of(*words):
    done = subprocess.run([KMEMSHIM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode("utf-8")  # strictly


@pytest.mark.parametrize("name", interpreters.NAMES)
def test_hostile_code_objects(name, tmp_path):
    interpreter = interpreters.get(name)
    seed = os.environ.get("SEED") or str(random.SystemRandom().randrange(1 << 32))
    print("SEED=" + seed)
    capture = str(tmp_path / "capture")
    silent(interpreter.run(os.path.join(HERE, "hostile.py"), seed, LD_PRELOAD=SHIM, KMEMSHIM_OUT=capture))

    document = report(capture)
    validate(document)
    assert document["losses"]["lost_python_frames"] == 0, document["losses"]
    if not interpreter.is_free_threaded:  # whose blocks do not come from malloc
        long = [site for site in document["sites"] if site["frames_omitted"] != 0]
        assert len(long) >= 2
        for site in long:  # also where the evaluator is further away than frames are looked at: what lies outside of it is no part of the stack
            assert not [frame for frame in site["frames"] if frame["kind"] == "native" and frame["module"].startswith("libc.")]
        functions = [frame["function"] or "" for site in document["sites"] for frame in site["frames"][:1]]
        assert sum(len(function) > 4000 for function in functions) >= 5
        assert sum("\ufffd" in function for function in functions) >= 5
    for command in ("report", "peak", "leaks", "sites", "why"):
        text = text_of(command, capture)
        assert not any(line.startswith("INJECTED") for line in text.splitlines())
        assert not set("\0\x1b\x7f") & set(text)


TYPES = """
import os
kept = []
for name in ("plain", "new\\nINJECTED", "\\x1b[31mred", "n" * (1 << 20), "\u6f22" * 31, "\u6f22" * 32, "\\x7f", "\u202ebackwards"):
    for module in ("shapes", "new\\nINJECTED", "m" * (1 << 20), "\u6f22", "\\udcff", None):
        made = type(name, (), {"__slots__": ("a", "b"), "__module__": module})
        kept += [[made() for _ in range(1000)]]
os._exit(0)
"""


@pytest.mark.parametrize("name", ["3.8", "3.13"])
def test_hostile_names_of_types(name, tmp_path):
    """What has no short printable name has none; the objects are counted all the same."""
    interpreter = interpreters.get(name)
    capture = str(tmp_path / "capture")
    silent(interpreter.run("-c", TYPES, LD_PRELOAD=SHIM, KMEMSHIM_OUT=capture, KMEMSHIM_PYTHON_OBJECTS="1"))
    document = report(capture)
    found = {kind["name"] for row in document["lines"] for kind in row["types"]}
    assert found & {"shapes.plain", "plain", "\u6f22" * 31, "shapes." + "\u202ebackwards"}, found
    assert not any(set(kind) & set("\n\x1b\x7f") or len(kind.encode()) > 95 for kind in found), found
    assert sum(row["live_count"] for row in document["lines"]) > 48 * 1000
    for command in ("report", "sites"):
        text = text_of(command, capture)
        assert not any(line.startswith("INJECTED") for line in text.splitlines())
        assert not set("\0\x1b\x7f") & set(text)


def test_an_interpreter_that_does_not_fit_is_named_once(tmp_path):
    """The same in the report: which check failed, and native frames."""
    source = tmp_path / "strange.c"
    source.write_text(STRANGE.replace("int main(void)\n{", "#include <stdlib.h>\nint main(void)\n{ return malloc(99999) == 0;"))
    program = str(tmp_path / "strange")
    subprocess.run(["gcc", "-w", "-g", "-DVERSION=0x030b07f0", "-DTYPES", "-rdynamic", "-o", program, str(source), "-ldl"], check=True)
    capture = str(tmp_path / "capture")
    done = subprocess.run([program], env={"LD_PRELOAD": SHIM, "KMEMSHIM_OUT": capture}, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (0, b"")
    says = "Python 3.11.7: type code has 0 bytes, 184 expected; stacks are native only"
    assert text_of("report", capture).count(says) == 1
    document = report(capture)
    assert document["processes"][0]["notes"] == [says]
    assert ["main"] in [[frame["function"] for frame in site["frames"][:1]]
                        for site in document["sites"] if site["live_bytes"] == 99999]


STRANGE_PROGRAM = """
import ctypes, json, os, sys, threading
malloc = ctypes.CDLL(None).malloc
malloc.argtypes, malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
kept = []

def work(times):
    for i in range(times):  # until it is compiled, and over collections of garbage
        kept.append(json.loads('{"a": [1, 2, {"b": 3}]}'))
        kept.append(bytearray(20000))
        del kept[:-5]

thread = threading.Thread(target=work, args=(3000,))
thread.start()
thread.join()
child = os.fork()
work(1000)
if child == 0:
    os._exit(0)
print(os.waitpid(child, 0)[1], [malloc(123456) != 0 for _ in range(50)].count(True))
"""


@pytest.mark.parametrize("name, who", [("pypy3", "PyPy"), ("graalpy", "GraalPy")])
def test_other_pythons_have_native_stacks_and_one_line_says_so(name, who, tmp_path):
    interpreter = interpreters.get(name)
    capture = str(tmp_path / "capture")
    done = interpreter.run("-c", STRANGE_PROGRAM, LD_PRELOAD=SHIM, KMEMSHIM_OUT=capture, KMEMSHIM_VERIFY="64")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 50\n", "")

    says = who + ": only the frames of CPython are read; stacks are native only"
    document = report(capture)
    assert text_of("report", capture).count(says) == len(document["processes"])
    assert all(process["notes"] == [says] for process in document["processes"])
    assert document["verify"]["checked"] > 0 and document["verify"]["mismatched"] == 0
    assert not any(frame["kind"] == "python" for site in document["sites"] for frame in site["frames"])
    assert sum(site["allocated_count"] for site in document["sites"]
               if site["allocated_bytes"] == 123456 * site["allocated_count"]) == 50
    interpreters.rows.append("%-15s %-9s native stacks only, and the report says so" % (name, interpreter.version))


def test_a_build_with_traced_references_is_refused(tmp_path):
    interpreter = interpreters.get("3.11-trace-refs")
    capture = str(tmp_path / "capture")
    silent(interpreter.run("-c", "kept = bytearray(1 << 20)", LD_PRELOAD=SHIM, KMEMSHIM_OUT=capture))
    assert report(capture)["processes"][0]["notes"] == [
        "Python %s: the type of type code is not type; stacks are native only" % interpreter.version]
