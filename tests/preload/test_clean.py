"""kmemshim clean: what recordings left is told with its age, and removed where it was asked for; what runs and what is not ours stays."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

import harness


@pytest.fixture
def folder(tmp_path):
    """A folder with kmemshim.out: two captures, one of which is old, and a file of somebody else's."""
    for _ in range(2):
        harness.record(["/bin/true"], tmp_path / "kmemshim.out")
    old = sorted((tmp_path / "kmemshim.out").glob("*.kmem"))[0]
    os.utime(old, (1767225600, 1767225600))  # 2026-01-01
    (tmp_path / "kmemshim.out" / "notes.txt").write_text("mine")
    return tmp_path


def clean(folder, *words):
    done = harness.silent(harness.run([harness.KMEMSHIM, "clean", *words], harness.plain_env(XDG_STATE_HOME=folder / "state", TZ="UTC"), cwd=folder))
    return done.stdout


def test_what_is_left_is_told_and_removed_when_asked(folder):
    told = clean(folder)
    assert " 2 captures  2026-01-01 to " in told and told.endswith("kmemshim clean --remove\n"), told
    assert clean(folder) == told
    assert "kmemshim.out  removed\n" in clean(folder, "--remove")
    assert [path.name for path in (folder / "kmemshim.out").iterdir()] == ["notes.txt"]
    assert clean(folder).startswith("nothing is left: ")


def test_a_capture_of_a_program_that_runs_stays(folder):
    program = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, env=harness.shim_env(folder / "kmemshim.out"))
    try:
        harness.wait_for(lambda: len(list((folder / "kmemshim.out").glob("*.kmem"))) == 3)
        assert "  removed  (1 more may still be written)\n" in clean(folder, "--remove")
        assert [path.suffix for path in sorted((folder / "kmemshim.out").iterdir())] == [".kmem", ".txt"]
    finally:
        program.communicate()


def test_captures_of_kernels_go_with_their_folders(folder):
    life = folder / "state" / "kmemshim" / "kernels" / "20260101T000000.000000-1"
    harness.record(["/bin/true"], life)
    assert "  1 capture " in clean(folder).splitlines()[1]
    clean(folder, "--remove")
    assert not life.exists()


def test_a_current_folder_that_is_closed_hides_nothing(folder):
    """Of a user who came here by `su` in /root: what has a whole path is written, and checked, all the same."""
    if os.geteuid() != 0:
        pytest.skip("needs root to be another user")
    capture = next((folder / "kmemshim.out").glob("*.kmem"))
    with tempfile.TemporaryDirectory() as home:  # pytest's own folders are closed
        kernels = pathlib.Path(home) / ".local" / "state" / "kmemshim" / "kernels"
        kernels.mkdir(parents=True)
        shutil.copy(capture, home)
        shutil.copy(harness.KMEMSHIM, home)  # the checkout may be closed, too
        subprocess.run(["chmod", "-R", "a+rX", home], check=True)
        os.chown(home, 65533, 65533)
        kernels.parent.chmod(0o777)
        (folder / "closed").mkdir()
        (folder / "closed").chmod(0o700)

        def asked(*words):
            return subprocess.run(["setpriv", "--reuid=65533", "--clear-groups", f"{home}/kmemshim", *words], cwd=folder / "closed",
                                  env=harness.plain_env(HOME=home), capture_output=True, text=True, timeout=60)
        done = asked("export", "--format", "folded", "-o", f"{home}/stacks", f"{home}/{capture.name}")
        assert done.returncode == 0 and os.path.exists(f"{home}/stacks"), done
        done = asked("why", "--kernel")
        assert done.returncode == 2 and "other users can change" in done.stderr, done


@pytest.mark.parametrize("is_first", [False, True])
def test_nothing_is_removed_where_another_user_has_put_it(is_first, folder):
    """In a home that all can write, as /tmp is: the folder of kernels leads to where somebody has folders that begin with a date."""
    if os.geteuid() != 0:
        pytest.skip("needs root to give files to another user")
    (folder / "2026-01-01").mkdir()
    (folder / "2026-01-01" / "kept").write_text("kept")
    home = "/mnt" if is_first else f"{folder}/home"  # also where it is the first folder of the path
    kernels = f"{home}/kmemshim/kernels"
    plant = f"cp -r {folder} {kernels}" if is_first else f"ln -s {folder} {kernels} && chown -h 65534 {kernels}"
    plant = f'mount -t tmpfs -o mode=777 none /mnt && mkdir -p {home}/kmemshim && {plant} && "$0" clean --remove; status=$?; ls {kernels}/2*; exit $status'
    done = harness.run(["unshare", "-m", "--propagation", "private", "sh", "-c", plant, harness.KMEMSHIM], harness.plain_env(XDG_STATE_HOME=home),
                       cwd=folder)
    if done.returncode != 0 and "unshare" in done.stderr + done.stdout:
        pytest.skip("no mount namespace can be made here")
    assert done.stdout.endswith("kept\n"), done.stdout
    assert done.returncode == 2 and "other users can change what lies in" in done.stderr, done.stderr


def test_a_folder_that_is_not_there_is_an_error(folder):
    done = harness.run([harness.KMEMSHIM, "clean", "nowhere"], harness.plain_env(), cwd=folder)
    assert (done.returncode, done.stderr) == (2, "kmemshim: nowhere: No such file or directory\n")
