"""A program that takes system calls from itself is not killed for those of ours (shim/hooks/hooks_sandbox.c)."""
import os
import shutil
import tempfile
from pathlib import Path

import pytest

import harness

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def confined(tmp_path_factory):
    return harness.compile_c(HERE / "confined.c", tmp_path_factory.mktemp("confined") / "confined", "-fno-optimize-sibling-calls")


@pytest.fixture(scope="session")
def small_children(tmp_path_factory):
    return harness.compile_c(HERE / "small_children.c", tmp_path_factory.mktemp("children") / "small_children")


def heap_of(out):
    document = harness.report("sites", out, "--top", "1")
    # That it could not be sealed is no damage: a gate takes it. Whose it is is told.
    assert [damage for damage in document["damages"] if "comes from user nobody" not in damage] == []
    heap = document["totals"]["heap"]
    notes = [note for process in document["processes"] for note in process["notes"]]
    return {name: heap[name] for name in ("live_bytes", "live_count", "allocated_bytes", "allocated_count")}, document["losses"], notes


@pytest.fixture(scope="session")
def unconfined(confined, tmp_path_factory):
    """What is recorded of the same program when it does not confine itself."""
    folder = tmp_path_factory.mktemp("unconfined")
    assert harness.record([confined, "none"], folder).returncode == 11
    return heap_of(folder)[0]


@pytest.mark.parametrize("how", ["prctl", "seccomp", "raw", "rootly", "nnp", "strict", "raw-strict", "seccomp-strict"])
def test_a_program_that_confines_itself_lives_and_what_it_did_then_is_recorded(how, confined, unconfined, out):
    plain = harness.run([confined, how])
    if plain.returncode == 77:
        pytest.skip("such a filter cannot be installed here")
    done = harness.record([confined, how], out)

    assert plain.returncode in (9, 11)
    assert (done.returncode, done.stdout, done.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    heap, losses, notes = heap_of(out)
    assert any("confined itself" in note for note in notes), notes
    if "strict" not in how:
        assert heap["allocated_count"] == unconfined["allocated_count"]
        assert heap["allocated_bytes"] == unconfined["allocated_bytes"]
        assert losses["lost_events"] == 0 < losses["lost_sites"] < 30000  # past the room that was made beforehand


def test_a_program_that_may_not_look_at_the_processors_clock_is_recorded_on(confined, unconfined, out):
    done = harness.record([confined, "no-clock"], out)

    assert (done.returncode, done.stderr) == (11, "")
    assert heap_of(out)[0]["allocated_count"] == unconfined["allocated_count"]


def test_a_small_child_that_gave_up_its_rights_ended_normally_and_leaves_nothing(small_children, out):
    """Its capture is removed by who forked it."""
    for how in ["nnp"] + ["setuid"] * (os.geteuid() == 0):
        harness.silent(harness.record([small_children, how, "5000"], out / how))

        assert len(list((out / how).glob("*.kmem"))) == 1, how


def test_a_child_that_held_more_and_gave_up_its_rights_ended_normally(small_children, out):
    done = harness.record([small_children, "nnp", "3000000"], out)
    children = harness.report("sites", out)["processes"][1:]

    assert (done.returncode, done.stderr) == (0, "")
    assert [process["state"] for process in children] == ["exited"] * 3, children


@pytest.fixture
def open_folder():
    """One that every user can reach; `out` is its owner's alone."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def check_as_root(argv, out, unconfined, lines):
    if os.geteuid() != 0:
        pytest.skip("needs root, to give it up")
    done = harness.record(argv, out)

    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (11, "2\n", lines), done.stderr
    heap, losses, notes = heap_of(out)
    assert heap["allocated_count"] >= unconfined["allocated_count"]
    assert losses["lost_events"] == 0
    return losses, notes


def test_a_program_that_becomes_another_user_is_recorded_on(confined, unconfined, open_folder):
    losses, notes = check_as_root([confined, "setresuid"], open_folder, unconfined, 0)

    assert losses["lost_sites"] == 0
    assert len(list(open_folder.iterdir())) == 1  # the child's was small


def test_where_the_other_user_cannot_reach_the_capture_it_has_the_room_that_was_left(confined, unconfined, tmp_path):
    tmp_path.chmod(0o700)
    losses, notes = check_as_root([confined, "setuid"], tmp_path / "out", unconfined, 2)

    assert 0 < losses["lost_sites"] < 30000


def test_a_program_in_another_root_leaves_nothing_there(confined, unconfined, out, tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    losses, notes = check_as_root([confined, root], out, unconfined, 1)

    assert 0 < losses["lost_sites"] < 30000
    assert any("chroot" in note for note in notes), notes
    assert list(root.iterdir()) == []


def test_in_another_root_with_such_a_folder_a_failed_exec_makes_no_capture(confined, unconfined, out, tmp_path):
    root = tmp_path / "root"
    (root / out.relative_to("/")).mkdir(parents=True)
    (root / "no-program").touch(0o755)
    check_as_root([confined, root], out, unconfined, 1)

    assert list(root.rglob("*.kmem")) == []
