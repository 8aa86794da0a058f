"""Debug files that others may have made: too large when unpacked, endless, not files at all; and where they are looked for."""
import os
import resource
import subprocess
import zlib

import pytest

from harness import KMEMSHIM, kmemshim, plain_env, record, report, run, shim_env, unwrapped
from test_symbols import SOURCE, build, frames_of, line_of, sh

MEMORY = 512 << 20


def bounded(*words):
    """A command that may not take more than the memory that a report may cost; as one that waits for ever is ended."""
    def limit():
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    done = subprocess.run([str(word) for word in (KMEMSHIM, *words)], env=plain_env(), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120, preexec_fn=limit)
    assert done.returncode == 0, done.stderr
    return unwrapped(done.stdout) + "\n"


def unit(kinds):
    """How debug information of one unit begins; the kinds of its entries."""
    return f"""
    .section .note.GNU-stack,"",@progbits
    .section .debug_abbrev,"",@progbits
    .byte {kinds}
    .byte 0
    .section .debug_info,"",@progbits
    .long 2f-1f
1:  .short 4
    .long .debug_abbrev
    .byte 8
    .byte 1
    .quad 1, 0x7fffffff
"""


def endless_ranges(functions, ranges):
    """Debug information of so many functions that share one list of ranges."""
    return unit("1,0x11,1, 0x11,0x01, 0x12,0x07, 0,0, 2,0x2e,0, 0x55,0x17, 0,0") + f"""\
    .rept {functions}
    .byte 2
    .long 0
    .endr
    .byte 0
2:
    .section .debug_ranges,"",@progbits
    .rept {ranges}
    .quad 0x10, 0x7fffff00
    .endr
    .quad 0, 0
"""


def test_endless_lists_of_ranges_lose_names_and_not_the_report(tmp_path, out):
    (tmp_path / "bomb.s").write_text(endless_ranges(20000, 20000))
    (tmp_path / "main.c").write_text(SOURCE)
    sh("gcc", "-O1", "main.c", "bomb.s", "-o", "program", cwd=tmp_path)
    assert (tmp_path / "program").stat().st_size < 1 << 20
    assert record([tmp_path / "program"], out).returncode == 0
    text = bounded("report", out)
    assert " keep " in text and "has more debug information than is read of one file" in text


def endless_lines(count):
    """A line table of one unit, of which every byte is a line."""
    return unit("1,0x11,0, 0x11,0x01, 0x12,0x07, 0x10,0x17, 0,0") + f"""\
    .long 3f
2:
    .section .debug_line,"",@progbits
3:  .long 5f-4f
4:  .short 4
    .long 7f-6f
6:  .byte 1, 1, 1, 0, 1, 10, 0,1,1,1,1,0,0,0,1
    .byte 0
    .asciz "huge.c"
    .byte 0, 0, 0, 0
7:  .byte 0, 9, 2
    .quad 1
    .fill {count}, 1, 10
    .byte 0, 1, 1
5:
"""


def test_debug_information_that_is_all_lines_loses_its_lines_alone(tmp_path, out):
    """A unit with 20 million lines would take 2 GiB."""
    (tmp_path / "bomb.s").write_text(endless_lines(20_000_000))
    (tmp_path / "main.c").write_text(SOURCE)
    sh("gcc", "-O1", "main.c", "bomb.s", "-o", "program", cwd=tmp_path)
    assert record([tmp_path / "program"], out).returncode == 0
    text = bounded("report", out)
    assert " keep " in text and "has more debug information than is read of one file" in text


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A gibibyte of nothing, as GNU's tools packed sections before ELF knew how."""
    size, part = 1 << 30, 1 << 20
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    packed_part = packer.compress(bytes(part)) + packer.flush(zlib.Z_FULL_FLUSH)  # which stands by itself: packing it once is enough
    sum_of_nothing = size % 65521 << 16 | 1  # RFC 1950
    text = b"\x78\xda" + packed_part * (size // part) + b"\x03\x00" + sum_of_nothing.to_bytes(4, "big")
    path = tmp_path_factory.mktemp("packed") / "section"
    path.write_bytes(b"ZLIB" + size.to_bytes(8, "big") + text)
    return path


@pytest.mark.parametrize("place", ["program", "debug file"])
def test_packed_debug_information_that_is_huge_is_not_unpacked(place, packed, tmp_path, out):
    program = build(tmp_path, SOURCE, "-O1", "-Wl,--build-id")
    carrier = program
    if place == "debug file":
        carrier = tmp_path / "program.debug"
        sh("objcopy", "--only-keep-debug", program, carrier)
        sh("objcopy", "--strip-debug", f"--add-gnu-debuglink={carrier}", program)
    sh("objcopy", "--add-section", f".zdebug_macinfo={packed}", carrier)
    assert 1 << 20 < carrier.stat().st_size < 4 << 20
    assert record([program], out).returncode == 0
    text = bounded("report", out)
    assert " keep " in text and "has more debug information than is read of one file" in text
    assert frames_of(out)[0] == "keep:0", "of its symbols"


def links(program, kind):
    """Where a debug file is looked for; nothing but a FIFO is there."""
    if kind == "debuglink":
        (program.parent / "link.debug").write_text("x")
        sh("objcopy", "--strip-debug", "--add-gnu-debuglink=link.debug", program, cwd=program.parent)
        (program.parent / "link.debug").unlink()
        return program.parent / ".debug" / "link.debug"
    return program.parent / "program-program.dwo"


@pytest.mark.parametrize("kind", ["debuglink", "dwo"])
def test_a_debug_file_that_is_a_fifo_is_not_waited_for(kind, tmp_path, out):
    program = build(tmp_path, SOURCE, "-O1", *([] if kind == "debuglink" else ["-gsplit-dwarf"]))
    fifo = links(program, kind)
    for file in tmp_path.glob("*.dwo"):
        file.unlink()
    fifo.parent.mkdir(exist_ok=True)
    os.mkfifo(fifo)
    assert record([program], out).returncode == 0
    assert " keep " in bounded("report", out)


def test_debug_files_below_a_relative_sysroot(tmp_path, out):
    """As a capture of another machine is read: its files were copied below a folder."""
    program = build(tmp_path, SOURCE, "-O1", "-Wl,--build-id")
    root = tmp_path / "root"
    below = root / "usr" / "lib" / "debug" / str(tmp_path)[1:]
    below.mkdir(parents=True)
    sh("objcopy", "--only-keep-debug", program, below / "program.debug")
    sh("objcopy", "--strip-debug", f"--add-gnu-debuglink={below / 'program.debug'}", program)
    assert record([program], out).returncode == 0
    for sysroot in (root, "root", "./root/", "../" + tmp_path.name + "/root"):
        done = kmemshim("leaks", out, "--sysroot", sysroot, cwd=tmp_path)
        assert f" program.c:{line_of(SOURCE, 'keeps')} keep\n" in done.stdout, sysroot


@pytest.mark.parametrize("kind", ["c", "python"])
def test_folders_whose_names_are_not_utf8(kind, tmp_path, out):
    folder = os.fsencode(tmp_path) + b"/jos\xe9"
    os.mkdir(folder)
    if kind == "c":
        program = build(tmp_path, SOURCE, "-O1")
        os.rename(program, folder + b"/program")
        argv = [folder + b"/program"]
        place = f"program.c:{line_of(SOURCE, 'keeps')} keep"
    else:
        with open(folder + b"/run.py", "w") as script:
            script.write("import os\nkept = bytearray(3000000)\nos._exit(0)\n")
        argv = [b"/usr/bin/python3", folder + b"/run.py"]
        place = "run.py:2 <module>"
    done = subprocess.run(argv, env=shim_env(out), stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    text = kmemshim("peak", out).stdout
    assert f" {place}\n" in text and "line " in text, text


def test_a_stripped_program_has_callers(tmp_path, out):
    program = build(tmp_path, SOURCE, "-O1", "-s")
    assert record([program], out).returncode == 0
    text = kmemshim("peak", out).stdout.splitlines()
    row = next(i for i, line in enumerate(text) if " program+0x" in line)
    assert text[row + 1].split()[0] == "from" and text[row + 1].split()[1].startswith("program+0x"), text
    assert text[row + 1].split()[1] != text[row].split()[-1]
    assert "from" not in text[row + 2], text  # main is called by what every program starts with


def test_compiled_lines_have_their_text_while_it_is_theirs(tmp_path, out):
    program = build(tmp_path, SOURCE, "-O1")
    source = tmp_path / "program.c"
    assert record([program], out).returncode == 0
    assert "line kept[i] = malloc(1000); // keeps\n" in kmemshim("peak", out).stdout
    text = source.read_text()
    source.write_text("\n" + text)
    assert "line " not in kmemshim("peak", out).stdout
    again = record([program], out / "again")  # the source is older than the start, and newer than the program
    assert again.returncode == 0 and "line " not in kmemshim("peak", out / "again").stdout


LIBRARY_START = """#include <vector>
#include <unistd.h>
int main() {
    auto *kept = new std::vector<int>(100000, 1); // made
    _exit(kept->size() == 0);
}
"""


def test_what_a_library_takes_when_it_is_loaded_is_not_the_loaders(tmp_path, out):
    assert record([build(tmp_path, LIBRARY_START)], out).returncode == 0
    lines = report("peak", out, "--domain", "heap")["lines"]
    functions = [line["where"]["function"] for line in lines if line["where"]]
    assert not {"call_init", "_dl_init", "_dl_relocate_object"} & set(functions), functions
    assert any(line["where"]["module"].startswith("libstdc++") for line in lines if line["where"])


def test_what_cannot_be_run_is_named_in_one_clean_line(tmp_path):
    done = run([KMEMSHIM, "run", "-o", tmp_path, "--", "./a\033[31m\nb"])
    assert done.returncode == 127
    assert done.stderr == "kmemshim: ./a?[31m?b: cannot be run: No such file or directory\n"
