"""kmemshim holders --core FILE CAPTURE: who held the memory of a program that left a core."""
import json
import random
import os
import re
import resource
import struct
import subprocess
import sys

import pytest

import harness
from harness import KMEMSHIM, compile_c, kmemshim, plain_env

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
static volatile int has_block;
static void *wait_with_block(void *nothing)
{
    void *volatile block = malloc(900000);
    (void)nothing;
    has_block = 1;
    pause();
    return block;
}
int main(void)
{
    pthread_t thread;
    for (int i = 0; i < 300; i++)
        fill(i);
    pthread_create(&thread, NULL, wait_with_block, NULL);
    while (!has_block)
        usleep(1000);
    abort();
}
"""


PHDR = struct.Struct("<IIQQQQQQ")


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
    done = harness.ok(kmemshim("holders", "--json", "--core", core, out))
    document = json.loads(done.stdout)
    harness.validate(document, "holders")
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
    assert re.fullmatch(r"local `block` of wait_with_block\(\) \(table\.c:\d+\)", found["wait_with_block"])


def test_a_core_in_which_code_is_not_even_named_tells_the_same(tmp_path):
    """As gcore writes it."""
    core, out = core_of(tmp_path, compile_c_of(tmp_path))
    content = bytearray(core.read_bytes())
    offset, count = struct.unpack_from("<Q", content, 32)[0], struct.unpack_from("<H", content, 56)[0]
    for at in range(offset, offset + count * PHDR.size, PHDR.size):
        kind, flags, _, _, _, file_bytes, *_ = PHDR.unpack_from(content, at)
        if kind == 1 and flags & 1 and file_bytes == 0:
            struct.pack_into("<I", content, at, 0)
    core.write_bytes(content)
    found = {line["function"]: line["ways"][0]["text"] for line in document_of(core, out)["holders"]}
    assert found["fill"] == "static variable `table` of table"


def test_keys_are_left_out_where_the_program_was_recorded_so(tmp_path):
    (tmp_path / "cache.py").write_text(PYTHON.replace("%d)\n", "3)\n").replace("60000", "600000"))
    document = document_of(*core_of(tmp_path, sys.executable, tmp_path / "cache.py", KMEMSHIM_PRIVATE="1"))
    assert "dict [*] -> bytearray" in document["holders"][0]["ways"][0]["text"] and "page" not in json.dumps(document).replace("pages", "")


def test_it_must_be_the_capture_of_the_same_process(of_python, tmp_path):
    (tmp_path / "other").mkdir()
    kmemshim("run", "-q", "-o", tmp_path / "other", "--", "true")
    done = kmemshim("holders", "--core", of_python[0], tmp_path / "other")
    assert done.returncode == 2 and re.search(r"this is of process \d+, and the capture of process \d+$", done.stderr)


def test_no_core(of_python, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, said in ((tmp_path / "pipe", "is not a regular file"), ("/etc/passwd", "this is no core of a process of this processor"), (tmp_path / "none", "No such file or directory"),
                       (sys.executable, "this is no core of a process of this processor")):
        done = kmemshim("holders", "--core", path, of_python[1], timeout=60)
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


def test_a_part_of_the_interpreter_that_is_not_there_ends_nothing(of_python, tmp_path):
    """Its types are in one part, and what tells an object from other memory in another."""
    content = bytearray(of_python[0].read_bytes())
    parts = [found.start() for found in re.finditer(re.escape(os.path.realpath(sys.executable).encode()) + b"\0", content[:1 << 16])]
    assert len(parts) >= 3
    for at in parts:
        content[at] ^= 1
        (tmp_path / "part").write_bytes(content)
        content[at] ^= 1
        done = kmemshim("holders", "--core", tmp_path / "part", of_python[1])
        assert done.returncode == 0, (at, done.returncode, done.stderr)


def test_a_core_with_two_things_at_one_address_is_refused(of_python, tmp_path):
    """A node that lost its object while it owned buffers was followed: a segmentation fault."""
    content = bytearray(of_python[0].read_bytes())
    offset, count = struct.unpack_from("<Q", content, 32)[0], struct.unpack_from("<H", content, 56)[0]
    parts = [(offset + i * PHDR.size, list(PHDR.unpack_from(content, offset + i * PHDR.size))) for i in range(count)]
    at, part = next((at, part) for at, part in parts if part[0] == 1)
    part[6] = 0xffffffff
    PHDR.pack_into(content, at, *part)
    (tmp_path / "damaged").write_bytes(content)
    done = kmemshim("holders", "--core", tmp_path / "damaged", of_python[1])
    assert done.returncode == 2 and "this is no core of a process" in done.stderr, (done.returncode, done.stderr)


def test_a_library_that_does_not_end_is_searched_for_as_long_as_was_asked(out, tmp_path):
    files = struct.pack("<QQQQQ", 1, 4096, 0x10000, 0x10000 + (1 << 46), 0) + bytes(tmp_path / "libkmemshim.so") + b"\0"
    made_core(tmp_path / "core", note(1, bytes(512)) + note(0x46494c45, files), memory_bytes=1 << 46)
    done = kmemshim("holders", "--stop", "100ms", "--core", tmp_path / "core", out, timeout=60)
    assert done.returncode == 2 and "allow more with --stop" in done.stderr, done.stderr


PLANT = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
class Keeper: pass
name = libc.mmap(None, ctypes.c_size_t(4096), 1, 2, os.open(sys.argv[1], os.O_RDONLY), ctypes.c_long(0))
ctypes.c_void_p.from_address(id(Keeper) + 24).value = name  # tp_name
keeper = Keeper()
keeper.kept = [bytearray(60000) for _ in range(300)]
os.abort()
"""


def test_a_core_shows_no_file_that_it_names(tmp_path):
    """The name of a class stands in a file that is mapped. Who sends the core chooses which: it is read by who looks."""
    (tmp_path / "plant.py").write_text(PLANT)
    (tmp_path / "pub.txt").write_text("Published\0".ljust(4096))
    (tmp_path / "sec.txt").write_text("TOPSECRET\0".ljust(4096))
    core, out = core_of(tmp_path, sys.executable, tmp_path / "plant.py", tmp_path / "pub.txt")
    content = core.read_bytes()
    assert content.count(b"/pub.txt\0") != 0
    core.write_bytes(content.replace(b"/pub.txt\0", b"/sec.txt\0"))
    done = kmemshim("holders", "--core", core, out)
    assert done.returncode == 0 and "-> list of 300, grown at plant.py:9" in done.stdout, done.stdout
    assert "TOPSECRET" not in done.stdout + done.stderr


def made_core(path, notes, note_bytes=None, memory_bytes=0x1000):
    """A core of writable memory at 0x10000, and these notes; `note_bytes`: as long as they are said to be."""
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 4, {"x86_64": 62, "aarch64": 183}[os.uname().machine], 1, 0, 64, 0,
                                                       0, 64, 56, 2, 0, 0, 0)
    parts = (struct.pack("<IIQQQQQQ", 4, 0, 64 + 2 * 56, 0, 0, note_bytes or len(notes), 0, 4),
             struct.pack("<IIQQQQQQ", 1, 6, 0, 0x10000, 0, 0, memory_bytes, 0x1000))
    path.write_bytes(head + b"".join(parts) + notes)


def note(kind, content, length=None):
    return struct.pack("<III", 5, len(content) if length is None else length, kind) + b"CORE\0\0\0\0" + content + bytes(-len(content) % 4)


@pytest.fixture
def out(tmp_path):
    kmemshim("run", "-q", "-o", tmp_path / "out", "--", "true")
    return tmp_path / "out"


def test_a_note_that_is_longer_than_the_core_is_not_read(out, tmp_path):
    begin = 64 + 2 * 56
    for length in (0xfffffffd, 0xffffffff, 400):
        made_core(tmp_path / "core", note(2, bytes(4096 - begin - 40)) + note(1, b"", length))
        done = kmemshim("holders", "--core", tmp_path / "core", out)
        assert done.returncode == 2 and "this is no core of a process" in done.stderr, (length, done.stderr)


def test_a_core_that_names_a_pipe_waits_for_nobody(out, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    files = struct.pack("<QQQQQ", 1, 4096, 0x10000, 0x11000, 0) + bytes(tmp_path / "pipe") + b"\0"
    made_core(tmp_path / "core", note(1, bytes(512)) + note(0x46494c45, files))
    done = kmemshim("holders", "--core", tmp_path / "core", out)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
