"""What a person sees when the program has ended: a few lines, the right ones, on any terminal, and nothing where nothing is wanted."""
import os
import re

import pytest

import harness

PYTHON = harness.find_python()
KEEPS = "kept = bytearray(40 << 20)  # which is all that can be seen\n"
FAILS = KEEPS + "raise ValueError('stop')\n"
TWO_KINDS = "kept = {i: str(i) * 30 for i in range(100000)}\n"  # 20 MiB of small objects beside 5 MiB: `why` tells nearly equal ones apart
CONTROL = re.compile("\x1b|[\x00-\x08\x0b-\x1f\x7f]")


def glance(tmp_path, text, *options, name="program.py", **more):
    program = tmp_path / name
    program.write_text(text)
    done = harness.kmemshim("run", "-o", tmp_path / "out", *options, "--", PYTHON, program, **more)
    return done, done.stderr.partition("\n--- kmemshim ---\n")[2].splitlines()


def test_all_is_well_in_eight_lines(tmp_path):
    done, lines = glance(tmp_path, KEEPS)
    assert done.returncode == 0 and len(lines) < 8, done.stderr
    assert re.fullmatch(r"program.py \(pid \d+\) exited normally, with status 0.", lines[0])
    assert re.fullmatch(r"It had at most [\d.]+ MiB in memory: [\d.]+ % of the .* [\d.]+ [MG]iB\.", lines[1])
    assert re.fullmatch(r"Held at the peak \([\d.]+ MiB in all\):", lines[2])
    assert re.match(r" +40\.0 MiB +\d+ %  █+[▏▎▍▌▋▊▉]? +program.py:1 <module>  kept = ", lines[3])
    assert lines[-1].startswith("More: kmemshim report ") and not any("Next" in line for line in lines)
    assert all(len(line) <= 80 for line in lines[:-1])


def test_of_a_program_that_held_far_more_before_that_is_shown(tmp_path):
    """What it dropped is the question, and not the little that leaks beside it."""
    text = "pins = []\ndef work():\n    kept = []\n    for n in range(12000):\n        kept.append(bytearray(9000))\n" \
           "        if n % 60 == 0:\n            pins.append(bytearray(3000))\nwork()\n"
    _, lines = glance(tmp_path, text)
    said = " ".join(line.strip() for line in lines)
    assert re.search(r"Held at the peak \(1\d\d MiB in all, [\d.]+ MiB at the end\): ≈?10\d MiB +9\d % .*program\.py:5 work", said), said


def test_generated_code_is_its_callers(tmp_path):
    text = "scope = {}\nexec(compile('def split(text):\\n    return text.split()\\n', '<genlib generated split>', 'exec'), scope)\n" \
           "kept = []\ndef store(n):\n    kept.append(scope['split']('a%d ' % n * 300))\nfor n in range(3000):\n    store(n)\n"
    _, lines = glance(tmp_path, text)
    assert "program.py:5 store" in "".join(lines) and "genlib" not in " ".join(lines), lines


def test_lines_that_asked_for_more_than_was_ever_in_memory_say_so(tmp_path):
    text = "import mmap\nshared = mmap.mmap(-1, 300 << 20)\nshared[:10 << 20] = bytes(10 << 20)\nshared.close()\n"
    _, lines = glance(tmp_path, text)
    assert re.fullmatch(r"Held at the peak \(3\d\d MiB in all, at most \d\d(\.\d)? MiB of it in memory\):", lines[2]), lines


WRITTEN_BY_A_CHILD = """
import mmap, os, time
shared = mmap.mmap(-1, 200 << 20)
if os.fork() == 0:
    own = [bytearray(3000) for _ in range(1000)]
    for at in range(0, 200 << 20, 4096):
        shared[at] = 1
    os._exit(0)
os.wait()
time.sleep(1.5)  # a look
kept = bytearray(b"x") * (20 << 20)
os._exit(3)
"""


def test_shared_memory_that_another_process_wrote_is_in_memory(tmp_path):
    """What this one has mapped of it says nothing."""
    _, lines = glance(tmp_path, WRITTEN_BY_A_CHILD)
    said = " ".join(line.strip() for line in lines)
    assert re.search(r" 200 MiB +\d+ %  █+\S* +program\.py:3 ", said), said


def test_the_line_that_maps_a_file_is_named(tmp_path):
    (tmp_path / "data").write_bytes(bytes(100 << 20))
    text = "import mmap, sys\ndata = open(sys.argv[0].replace('program.py', 'data'), 'rb')\n" \
           "seen = mmap.mmap(data.fileno(), 0, access=mmap.ACCESS_READ)\nsum(seen[::4096])\n"
    _, lines = glance(tmp_path, text)
    said = " ".join(lines)
    assert re.search(r"100 MiB( \(\d+ %\))? was pages of files and shared memory", said), said
    assert "Most of the files were mapped at program.py:3 <module>." in said, said


INHERITS = """
import os, time
def main():
    rows = [{"id": i, "name": "n%d" % i} for i in range(300_000)]
    for child in range(2):
        if os.fork() == 0:
            sum(len(row["name"]) for row in rows)
            own = [bytearray(3000) for _ in range(1000)]
            time.sleep(1)
            os._exit(0)
    os.wait(), os.wait()
main()
"""


def test_the_line_that_built_what_children_inherited_is_named(tmp_path):
    glance(tmp_path, INHERITS)
    said = harness.unwrapped(harness.kmemshim("why", tmp_path / "out").stdout)
    # Whether a look saw the children's copies depends on how long they lived.
    assert re.search(r"memory from before the fork.* Most of what was there before the fork was allocated at program\.py:4 |"
                     r"child processes copied .* had built before it forked: [\d.]+ MiB allocated at program\.py:4 ", said), said


def test_a_failure_says_what_to_do_in_fifteen_lines(tmp_path):
    done, lines = glance(tmp_path, FAILS)
    assert done.returncode == 1 and len(lines) < 15
    assert "exited with status 1" in lines[0]
    assert any(line.startswith("Next: read the program's own error message") for line in lines)


def test_a_kill_says_why_in_eighteen_lines(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("kept = []\nwhile True: kept.append(bytearray(b'x') * 100000)\n")
    with harness.memory_group(100 << 20) as group:
        done = harness.run(["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', group, harness.KMEMSHIM, "run", "-o", tmp_path / "out",
                            "--", PYTHON, program])
    lines = done.stderr.partition("--- kmemshim ---\n")[2].splitlines()
    text = " ".join(lines)
    assert done.returncode == 137 and len(lines) <= 18, done.stderr
    assert "was killed by the kernel because the container's memory limit of 100 MiB was reached, with " in text
    assert "Held at the end" in text and "program.py:2 <module>  (leak?)" in text and "Next: " in text


def test_a_line_is_one_row_whatever_its_memory_is(tmp_path):
    """A dictionary, and what is in it. `why` names the same sum."""
    _, lines = glance(tmp_path, TWO_KINDS)
    rows = [line for line in lines if re.match(" .* program.py:1 ", line)]
    assert len(rows) == 1 and "≈" in rows[0], lines
    why = harness.kmemshim("why", tmp_path / "out").stdout.replace("\n", " ")
    assert f" {rows[0].split('B')[0].strip()}B of it (" in why, (why, rows)


def test_an_error_that_is_not_seen_in_a_figure_has_no_mark(tmp_path):
    """40 MiB that are exact, and a hundred small objects."""
    _, lines = glance(tmp_path, "kept = [bytearray(400000) for _ in range(100)]\n")
    row, = [line for line in lines if "program.py:1 " in line and "█" in line]
    assert ("≈" in row) == ("38.1 MiB" not in row), lines  # one of the small objects may be a sample, which stands for 256 KiB


def test_what_threads_of_a_pool_held_is_said_in_words(tmp_path):
    _, lines = glance(tmp_path, """
import concurrent.futures, json
text = json.dumps([[0.5] * 100] * 4000)
with concurrent.futures.ThreadPoolExecutor(2) as pool:
    kept = list(pool.map(json.loads, [text] * 4))
""")
    assert any("program.py:5 <module> [in threads it gave work to]" in line for line in lines), lines


def test_rows_have_one_unit(tmp_path):
    """40 MiB, and less than one: they compare at a glance. Beside GiB a hundredth is told."""
    _, lines = glance(tmp_path, "kept = bytearray(40 << 20)\nmore = bytearray(600 << 10)\n")
    assert {row.split()[1] for row in lines if "█" in row or "▏" in row} == {"MiB"} and any(re.search(r"[ ≈]0\.\d MiB", row) for row in lines), lines
    _, lines = glance(tmp_path, "kept = bytearray(1100 << 20)\nmore = bytearray(30 << 20)\n")
    rows = [row.split()[:2] for row in lines if "program.py:" in row and "%" in row]
    assert rows == [["1.07", "GiB"], ["0.03", "GiB"]], lines


def test_what_many_small_lines_hold_is_a_row(tmp_path):
    """Of none of them is it worth a row, and the rows say where most of it is all the same."""
    many = "\n".join(f"kept.append(bytearray({40000 + i}))" for i in range(1000))
    _, lines = glance(tmp_path, f"kept = []\n{many}\n")
    row, = [line for line in lines if line.endswith("  in other lines")]
    assert 80 < int(row.split()[2]) <= 100, lines


def test_a_memory_error_has_its_name_and_its_limit(tmp_path):
    """Where addresses are short, the newest block is in no leaf of the map of addresses: its pages are the heap's all the same."""
    program = tmp_path / "program.py"
    program.write_text("kept = []\nwhile True: kept.append(bytearray(64 << 20))\n")
    done = harness.run(["sh", "-c", 'ulimit -v 800000; exec "$@"', "sh", harness.KMEMSHIM, "run", "-o", tmp_path / "out", "--", PYTHON,
                        program])
    text = done.stderr.partition("--- kmemshim ---\n")[2].replace("\n", " ")
    assert done.returncode == 1 and re.match(r"program.py \(pid \d+\) ended by MemoryError \(status 1\) after a request for 64.0 MiB", text)
    assert "The limit was its address space: 781 MiB (ulimit -v), of which the recorder takes " in text and "of the machine's" not in text
    parts = harness.report("report", tmp_path / "out")["processes"][0]["resident"]["parts"]
    assert parts["not attributed"] < 16 << 20 < parts["heap"], parts


def test_an_error_that_a_library_raises_is_not_called_a_memory_error(tmp_path):
    (tmp_path / "library.c").write_text("#include <stdlib.h>\n#include <string.h>\n"
                                        "void *take(long size) { void *block = malloc(size); return block ? memset(block, 1, size) : 0; }\n")
    harness.compile_c(tmp_path / "library.c", tmp_path / "library.so", "-shared", "-fPIC")
    program = tmp_path / "program.py"
    program.write_text(f"import ctypes\nlibrary = ctypes.CDLL('{tmp_path}/library.so')\nlibrary.take.restype = ctypes.c_void_p\n"
                       "while library.take(64 << 20): pass\nraise RuntimeError('no memory')\n")
    done = harness.run(["sh", "-c", 'ulimit -v 800000; exec "$@"', "sh", harness.KMEMSHIM, "run", "-o", tmp_path / "out", "--", PYTHON,
                        program])
    text = done.stderr.partition("--- kmemshim ---\n")[2].replace("\n", " ")
    assert re.match(r"program.py \(pid \d+\) exited with status 1 after a request for 64.0 MiB", text), text


def test_a_request_beyond_the_machine_is_what_is_more_than_it_has(tmp_path):
    _, lines = glance(tmp_path, "def load(n):\n    return bytearray(n)\nload(200_000_000)\nload(10**14)\n")
    assert re.search(r"What was asked for is more than the machine has \([\d.]+ [GT]iB\)", " ".join(lines)), lines


def test_a_peak_of_an_import_and_what_was_made_there_is_no_leak(tmp_path):
    """A third of what it took to make a table is kept."""
    (tmp_path / "tables.py").write_text("lines = [str(i) * 20 for i in range(400000)]\nTABLE = lines[::3]\ndel lines\n")
    done, lines = glance(tmp_path, "import tables\nkept = [bytearray(1 << 20) for _ in range(8)]\nprint(len(tables.TABLE))\n", "--python-objects")
    text = " ".join(lines)
    assert done.returncode == 0 and "The peak came while it imported tables" in text and "(leak" not in text, lines


def test_a_line_that_grew_until_the_program_was_done_is_marked(tmp_path):
    """A history of each round, which is gone when the function returns: nothing is left that a look at the end could find."""
    _, lines = glance(tmp_path, "def train():\n    history = []\n    for i in range(400):\n        work = bytearray(300_000)\n"
                                "        history.append(bytearray(100_000))\ntrain()\n")
    row, = [line for line in lines if "program.py:5" in line and "%" in line]
    assert "program.py:5 train  (grew until the peak)" in row, lines
    why = harness.kmemshim("why", tmp_path / "out").stdout
    assert "program.py:5 train" in why.partition("\nNext: ")[2], why


def test_much_that_was_needed_for_a_while_alone_is_told_by_what_was_left(tmp_path):
    _, lines = glance(tmp_path, "parts = [bytes(b'x' * 5_000_000) for _ in range(40)]\ndel parts\nfor i in range(3000): work = bytearray(50_000)\n")
    assert re.search(r"At the end it had [\d.]+ MiB\. It had at most [\d.]+ MiB in memory: ", " ".join(lines)), lines


def test_quiet_is_quiet_and_the_capture_is_there(tmp_path):
    done, _ = glance(tmp_path, FAILS, "--quiet")
    assert done.returncode == 1 and "kmemshim" not in done.stderr
    assert harness.kmemshim("why", tmp_path / "out").returncode == 0


@pytest.mark.parametrize("options, setting, is_colored", [
    ((), {}, False), (("--color", "always"), {}, True), (("--color", "never"), {}, False), (("--color", "always"), {"NO_COLOR": "1"}, True)])
def test_colours_of_what_is_no_terminal(options, setting, is_colored, tmp_path):
    done, _ = glance(tmp_path, KEEPS, *options, env=harness.plain_env(**setting))
    assert ("\x1b[" in done.stderr) == is_colored


def on_a_terminal(tmp_path, columns, **settings):
    (tmp_path / "program.py").write_text(KEEPS)
    return harness.on_a_terminal(columns, [harness.KMEMSHIM, "run", "-o", tmp_path / "out", "--", PYTHON, tmp_path / "program.py"], **settings)


@pytest.mark.parametrize("columns", [20, 50, 80, 200])
def test_a_terminal_has_colours_and_its_width_is_used(columns, tmp_path):
    text = on_a_terminal(tmp_path, columns)
    assert "\x1b[1m--- kmemshim ---\x1b[0m" in text
    lines = re.sub("\x1b\\[[0-9;]*m", "", text).splitlines()
    row = next(line for line in lines if "program.py:1 " in line)
    assert ("█" in row) == (columns >= 60)
    assert all(len(line) <= max(columns, 40) for line in lines if not line.startswith(("More:", " "))), lines
    assert ("can be seen" in row) == (columns == 200)


@pytest.mark.parametrize("setting", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_who_wants_no_colours_gets_none(setting, tmp_path):
    text = on_a_terminal(tmp_path, 80, **setting)
    assert "\x1b" not in text and "--- kmemshim ---" in text


def test_a_wrong_word_for_colours(tmp_path):
    done, _ = glance(tmp_path, KEEPS, "--color", "red")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "auto, always or never" in done.stderr


def test_hostile_names_and_texts_do_not_steer_the_terminal(tmp_path):
    name = "evil\x1b[2J\u202e\nrow.py"
    done, lines = glance(tmp_path, "kept = [bytearray(1 << 20) for _ in range(40)] # \x1b[31m\u202e\n", name=name)
    assert done.returncode == 0 and lines
    assert not any(CONTROL.search(line) or "\u202e" in line for line in lines), lines
