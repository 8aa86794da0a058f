"""kmemshim holders --core FILE CAPTURE: who held the memory of a program that left a core."""
import json
import random
import re
import resource
import subprocess
import sys

import fastjsonschema
import pytest

import harness
from harness import KMEMSHIM, ROOT, compile_c, kmemshim, plain_env

PYTHON = """
import os
class Cache:
    def __init__(self):
        self.pages = {}
    def get(self, name):
        self.pages[name] = bytearray(60000)
def main(count):
    service = Cache()
    for number in range(count):
        service.get("page%d" % number)
    os.abort()
main(%d)
"""
TABLE = """
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *volatile table[300]; /* else nobody reads it, and it is left out */
static void fill(int i)
{
    table[i] = malloc(60000);
    memset((void *)table[i], 1, 60000);
}
static void *wait_with_block(void *nothing)
{
    void *volatile block = malloc(900000);
    (void)nothing;
    pause();
    return block;
}
int main(void)
{
    pthread_t thread;
    for (int i = 0; i < 300; i++)
        fill(i);
    pthread_create(&thread, NULL, wait_with_block, NULL);
    usleep(100000);
    abort();
}
"""


def core_of(folder, *argv, **environment):
    """(core, folder of captures)"""
    if "|" in open("/proc/sys/kernel/core_pattern").read() or "/" in open("/proc/sys/kernel/core_pattern").read():
        pytest.skip("cores go elsewhere here: /proc/sys/kernel/core_pattern")
    done = subprocess.run([KMEMSHIM, "run", "-q", "-o", folder / "out", "--", *argv], cwd=folder, env=plain_env(**environment),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=harness.TIMEOUT,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2))
    assert done.returncode == 134, done.stderr
    cores = list(folder.glob("core*"))
    if not cores:
        pytest.skip("no core was written")
    return cores[0], folder / "out"


def compile_c_of(folder):
    (folder / "table.c").write_text(TABLE)
    return compile_c(folder / "table.c", folder / "table", "-g", "-pthread")


def document_of(core, out):
    done = kmemshim("holders", "--json", "--core", core, out)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    fastjsonschema.validate(json.loads((ROOT / "analyzer/holders/holders.schema.json").read_text()), document)
    return document


@pytest.fixture
def of_python(tmp_path):
    (tmp_path / "cache.py").write_text(PYTHON.replace("%d)\n", "300)\n"))
    return core_of(tmp_path, sys.executable, tmp_path / "cache.py")


def test_what_python_held_when_it_died(of_python):
    line = document_of(*of_python)["holders"][0]
    assert (line["place"], line["samples"]) == ("cache.py:7 Cache.get", 32)
    assert line["ways"][0]["text"] == ("local `service` of main() (cache.py:8) -> Cache .pages -> dict of 300, grown at cache.py:7 Cache.get, "
                                       "[*] -> bytearray")
    text = kmemshim("holders", "--core", *of_python).stdout
    assert re.search(r"^[\d.]+ MiB were read in \d+ passes$", text, re.M) and "stood still" not in text


def test_what_c_held_by_its_variables_and_stacks(tmp_path):
    document = document_of(*core_of(tmp_path, compile_c_of(tmp_path)))
    found = {line["function"]: line["ways"][0]["text"] for line in document["holders"]}
    assert found["fill"] == "static variable `table` of table"
    assert re.fullmatch(r"the stack of thread \d+", found["wait_with_block"])


def test_keys_are_left_out_where_the_program_was_recorded_so(tmp_path):
    (tmp_path / "cache.py").write_text(PYTHON.replace("%d)\n", "3)\n").replace("60000", "600000"))
    document = document_of(*core_of(tmp_path, sys.executable, tmp_path / "cache.py", KMEMSHIM_PRIVATE="1"))
    assert "dict [*] -> bytearray" in document["holders"][0]["ways"][0]["text"] and "page" not in json.dumps(document).replace(".pages", "")


def test_it_must_be_the_capture_of_the_same_process(of_python, tmp_path):
    (tmp_path / "other").mkdir()
    kmemshim("run", "-q", "-o", tmp_path / "other", "--", "true")
    done = kmemshim("holders", "--core", of_python[0], tmp_path / "other")
    assert done.returncode == 2 and re.search(r"this is of process \d+, and the capture of process \d+$", done.stderr)


def test_no_core(of_python, tmp_path):
    for path, said in (("/etc/passwd", "this is no core of a process of this processor"), (tmp_path / "none", "No such file or directory"),
                       (sys.executable, "this is no core of a process of this processor")):
        done = kmemshim("holders", "--core", path, of_python[1])
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_a_core_that_is_cut_or_damaged_ends_nothing(of_python, tmp_path):
    content = of_python[0].read_bytes()
    draw = random.Random(21)
    for i in range(8):
        damaged = bytearray(content[:draw.randrange(64, len(content))] if i % 4 == 0 else content)
        for _ in range(20 if i % 4 else 0):
            damaged[draw.randrange(1 << 16)] = draw.randrange(256)
        (tmp_path / "damaged").write_bytes(damaged)
        done = kmemshim("holders", "--stop", "2s", "--core", tmp_path / "damaged", of_python[1])
        assert done.returncode in (0, 2), (i, done.returncode, done.stderr)
