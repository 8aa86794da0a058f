"""Each C example: the same behaviour with and without the shim, and the report line its first comment promises."""
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


def test_run_prints_the_program_first_and_then_the_verdict(programs, out):
    program = programs("leak_in_a_loop.c")
    plain = harness.run([program])
    done = harness.kmemshim("run", "-o", out, "--", program)

    assert done.returncode == plain.returncode
    assert done.stdout.startswith(plain.stdout)
    assert "leak_in_a_loop.c:18" in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["report", "why", "peak", "leaks", "sites"])
def test_every_command_prints_text_and_json(command, programs, out):
    harness.record([programs("leak_in_a_loop.c")], out)
    text = harness.kmemshim(command, out)

    assert text.returncode == 0, text.stderr
    assert text.stdout.strip() and not text.stderr
    document = harness.report(command, out)
    assert document["schema"] == 1
    assert document["verdict"]["text"] in text.stdout.replace("\n", " ") or command not in ("why", "report")
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
