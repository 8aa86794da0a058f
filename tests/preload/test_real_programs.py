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
