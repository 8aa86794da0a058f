"""Real programs that are there anyway do under the shim what they do without; make real-programs runs many more, and measures."""
import sys

import pytest

import harness

sys.path.insert(0, str(harness.ROOT / "tests" / "real"))
import real_programs  # noqa: E402


@pytest.mark.parametrize("name", ["perl", "sqlite", "node", "redis"])
def test_the_same_output(name, tmp_path):
    program = real_programs.Program(real_programs.SCRIPTS / f"{name}.sh")
    if program.missing():
        pytest.skip(f"not installed: {' '.join(program.missing())}")
    plain = real_programs.run(program, tmp_path / "plain")
    watched = real_programs.run(program, tmp_path / "watched", harness.SHIM, KMEMSHIM_VERIFY="64")
    assert (watched["status"], watched["output"]) == (plain["status"], plain["output"]), watched["errors"]
    assert plain["status"] == 0, plain["errors"]
    assert "kmemshim:" not in watched["errors"]
    ledger = real_programs.ledger(watched["capture"])
    assert "error" not in ledger and not ledger["damages"], ledger
    assert ledger["verify"]["mismatched"] == 0
    assert not any(ledger["losses"].get(name) for name in ("lost_events", "lost_sites", "lost_stacks")), ledger


@pytest.mark.parametrize("plain, other, different", [
    (["a\nb\n", "a\nb\n"], "a\nb\n", []),
    (["a\nb\n", "a\nb\n"], "b\na\n", ["the order of lines"]),
    (["a\nb\n", "a\nb\n"], "a\nc\n", ["b", "c"]),
    (["a\nb 1\n", "a\nb 2\n"], "a\nb 3\n", []),    # it differs from itself
    (["a\nb 1\n", "a\nb 2\n"], "b 1\n", ["a"]),
])
def test_the_comparison_sees_what_differs(plain, other, different):
    assert real_programs.differing_lines(plain, other) == different


def test_a_program_that_the_shim_changes_is_told(tmp_path, monkeypatch):
    script = tmp_path / "changed.sh"
    script.write_text("# packages: bash\n# version: echo 1\necho ${LD_PRELOAD:-none}; [ -z \"${LD_PRELOAD:-}\" ] || exit 3\n")
    monkeypatch.setattr(real_programs, "ROUNDS", 1)
    monkeypatch.setattr(real_programs, "BUILD", harness.BUILD)
    row = real_programs.examine(real_programs.Program(script), tmp_path / "kept")
    # Alone, alone again for it may differ from itself, recorded, recorded and verified.
    assert row["statuses"] == [0, 0, 3, 3]
    assert [fault.split()[0] for fault in real_programs.faults(row)] == ["status", "differs:", "differs:"]
