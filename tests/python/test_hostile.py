"""Bad input: no crash, counted losses, valid UTF-8 and valid JSON in every output. SEED= repeats a run."""
import json
import os
import random
import subprocess

import jsonschema
import pytest

import interpreters
from test_frames import STRANGE
from test_matrix import HERE, KMEMSHIM, SHIM, report

with open(os.path.join(interpreters.ROOT, "analyzer", "report.schema.json")) as schema:
    SCHEMA = json.load(schema)


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
    done = interpreter.run(os.path.join(HERE, "hostile.py"), seed, LD_PRELOAD=SHIM, KMEMSHIM_OUT=capture)
    assert (done.returncode, done.stderr) == (0, "")

    document = report(capture)
    jsonschema.validate(document, SCHEMA)
    assert document["losses"]["lost_python_frames"] == 0, document["losses"]
    if not interpreter.is_free_threaded:  # whose blocks do not come from malloc
        assert sum(site["frames_omitted"] != 0 for site in document["sites"]) >= 2
        functions = [frame["function"] or "" for site in document["sites"] for frame in site["frames"][:1]]
        assert sum(len(function) > 4000 for function in functions) >= 5
        assert sum("\ufffd" in function for function in functions) >= 5
    for command in ("report", "peak", "leaks", "sites", "why"):
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


def test_a_build_with_traced_references_is_refused(tmp_path):
    interpreter = interpreters.get("3.11-trace-refs")
    capture = str(tmp_path / "capture")
    done = interpreter.run("-c", "kept = bytearray(1 << 20)", LD_PRELOAD=SHIM, KMEMSHIM_OUT=capture)
    assert (done.returncode, done.stderr) == (0, "")
    assert report(capture)["processes"][0]["notes"] == [
        "Python %s: the type of type code is not type; stacks are native only" % interpreter.version]
