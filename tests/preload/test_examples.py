"""Each C example: the same behaviour with and without the shim, and the report line its first comment promises."""
import os

import jsonschema
import pytest

import harness

EXAMPLES = sorted(path.name for path in harness.EXAMPLES.glob("*.c"))


@pytest.mark.parametrize("example", EXAMPLES)
def test_example_behaves_the_same_and_reports_its_line(example, programs, out):
    program = programs(example)
    plain = harness.run([program])
    watched = harness.record([program], out)

    assert (watched.returncode, watched.stdout, watched.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    harness.check_expectations(harness.EXAMPLES / example, out)


def test_run_leaves_stdout_to_the_program_and_reports_after_it(tmp_path, out):
    """`kmemshim run -- program > file`: the file is the program's."""
    program = tmp_path / "program.py"
    program.write_text("import sys\nprint('result')\nprint('its own word', file=sys.stderr)\nkept = bytearray(5 << 20)\n")
    done = harness.kmemshim("run", "-o", out, "--", harness.find_python(), program)

    assert (done.returncode, done.stdout) == (0, "result\n")
    assert done.stderr.startswith("its own word\n\n--- kmemshim ---\nprogram.py (pid ")
    assert "program.py:4 <module>" in done.stderr
    capture = next(out.glob("*.kmem"))
    assert done.stderr.endswith(f"\nMore: kmemshim report {capture}\n")


def test_what_a_report_advises_can_be_pasted(programs, tmp_path):
    """From wherever it was asked for, and whatever the folder is called."""
    folder = tmp_path / "two words"
    harness.record([programs("peak_at_start.c")], folder)
    said = harness.kmemshim("why", folder).stdout
    command = said[said.index("`") + 1:].split("`")[0]
    done = harness.run(["sh", "-c", command], harness.plain_env(PATH=f"{harness.BUILD}:{os.environ['PATH']}"))

    assert done.returncode == 0, (command, done.stderr)
    assert done.stdout.startswith("Held at the peak\n")


def test_of_several_sessions_the_newest_is_read_and_the_others_are_told(programs, out):
    for _ in range(2):
        done = harness.kmemshim("run", "-o", out, "--", programs("leak_in_a_loop.c"))
        assert "this is the newest" not in done.stderr
    told = harness.kmemshim("report", out)
    one = harness.kmemshim("report", next(out.glob("*.kmem")))

    assert told.stderr == f"kmemshim: {out}: has 2 sessions, this is the newest: give a file to see another one\n"
    assert (told.returncode, one.returncode, one.stderr) == (0, 0, "")


@pytest.mark.parametrize("command", ["report", "why", "peak", "leaks", "sites"])
def test_every_command_prints_text_and_json(command, programs, out):
    harness.record([programs("leak_in_a_loop.c")], out)
    text = harness.ok(harness.kmemshim(command, out))

    assert text.stdout.strip() and not text.stderr
    document = harness.report(command, out)
    jsonschema.validate(document, harness.schema("report"))  # who reads schemas by the letter agrees with who is quick; and it is a schema itself
    assert document["schema"] == 2
    assert command not in ("why", "report") or all(document["verdict"][part] in harness.unwrapped(text.stdout) for part in ("headline", "evidence"))
    assert harness.kmemshim(command, "--help").returncode == 0


def test_top_cuts_and_a_huge_top_does_not(programs, out):
    harness.record([programs("leak_in_a_loop.c")], out)
    everything = harness.report("sites", out, "--top", "1000000")["sites"]

    assert len(everything) > 1
    assert harness.report("sites", out, "--top", "1")["sites"] == everything[:1]
    assert {site["domain"] for site in harness.report("sites", out)["sites"]} >= {"heap"}


def test_optimised_and_stripped_programs_keep_their_frames(programs, out):
    """Without line tables the function's own name is still there, without symbols the module."""
    program = programs("leak_in_a_loop.c", "-O2", "-g0")
    harness.record([program], out)
    names = [frame["function"] for frame in harness.report("leaks", out, "--domain", "heap")["sites"][0]["frames"]]

    assert "main" in names
