"""Under kmemshim run captures lie in memory while their programs run, and nothing is lost by that, however who ends."""
import ctypes
import functools
import json
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

import harness

MEMORY = Path("/dev/shm")
KEPT = 24 << 20
MOUNTS = ["unshare", "-m", "--propagation", "private", "sh", "-c"]

# It keeps blocks from many lines, says so, and waits.
PROGRAM = """
import os, sys
kept = []
def keep(count):
    for i in range(count):
        space = {}
        exec(compile(f"def f{i}():\\n    return bytearray({(24 << 20) // count})\\n", f"made_{i}.py", "exec"), space)
        kept.append(space[f"f{i}"]())
keep(8)
print(os.getpid(), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


started = []


@functools.cache
def why_not():
    """What the doctor says where captures cannot lie in memory; None = they can."""
    with tempfile.TemporaryDirectory() as folder:
        found = json.loads(harness.kmemshim("doctor", "--json", "-o", folder).stdout)["findings"]
    return next((one["what"] for one in found if re.search("a malloc waits for it|is in memory", one["what"])), None)


@pytest.fixture(scope="module", autouse=True)
def memory_of_our_own():
    """Each launcher sweeps what dead ones left in /dev/shm, those of the tests beside these too: here they see another one, where that can be had."""
    CLONE_NEWNS = 0x20000
    libc = ctypes.CDLL(None, use_errno=True)
    outside = os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
    folder = os.getcwd()
    is_ours = libc.unshare(CLONE_NEWNS) == 0
    if is_ours and subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True).returncode == 0:
        subprocess.run(["mount", "-t", "tmpfs", "none", MEMORY], capture_output=True)
    yield
    if is_ours:
        assert libc.setns(outside, CLONE_NEWNS) == 0, os.strerror(ctypes.get_errno())
        os.chdir(folder)
    os.close(outside)


@pytest.fixture(autouse=True)
def nothing_stays_in_memory():
    if why_not() is not None:
        pytest.skip(why_not())
    started.clear()
    yield
    assert not [path for pid in started for path in MEMORY.glob(f"kmemshim.*.{pid}")]


def start(argv, out, *words, **more):
    """The launcher, when its program waits; and the program's pid."""
    launcher = subprocess.Popen([*words, harness.KMEMSHIM, "run", "-q", "-o", out, "--", *argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                env=harness.plain_env(**more))
    started.append(launcher.pid)
    return launcher, int(launcher.stdout.readline())


def end(launcher):
    launcher.stdin.close()
    launcher.stdout.close()
    return launcher.wait(harness.TIMEOUT)


def kill_both(launcher, pid, out, between=lambda: None):
    """The launcher first."""
    with harness.adopting():
        launcher.kill()
        launcher.wait()
        between()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    end(launcher)
    harness.wait_for(lambda: not list(out.glob(".kmemshim.*")))  # the one that looks ends, too, and takes its pipe away


def kept_of(capture):
    """What the lines of the program hold, by the report."""
    return sum(site["live_bytes"] for site in harness.report("sites", capture, "--top", "100000")["sites"]
               if site["where"] and site["where"]["file"].startswith("made_"))


def only_capture(out):
    captures = list(out.glob("*.kmem"))
    assert len(captures) == 1 and not list(out.glob("*.new"))
    return captures[0]


def test_it_lies_in_memory_and_ends_in_the_folder(program, out):
    launcher, pid = start(["/usr/bin/python3", program], out)
    link = only_capture(out)
    place = Path(os.readlink(link))
    mapped = Path(f"/proc/{pid}/maps").read_text()
    assert MEMORY in place.parents and str(place) in mapped and str(out) not in mapped
    assert kept_of(str(pid)) == kept_of(out) == kept_of(link) >= KEPT
    for command in ("holders", "lost"):
        assert harness.kmemshim(command, pid).returncode == 0, command
    said = harness.kmemshim("report", str(pid)).stdout
    assert str(link) in said and str(place) not in said
    assert end(launcher) == 0

    assert not link.is_symlink() and link.stat().st_mode & 0o777 == 0o600
    assert kept_of(out) >= KEPT
    assert harness.report("report", out)["processes"][0]["state"] == "exited"


def test_a_killed_program(program, out):
    launcher, pid = start(["/usr/bin/python3", program], out)
    held = kept_of(out)
    os.kill(pid, signal.SIGKILL)
    assert end(launcher) == 128 + signal.SIGKILL

    assert not only_capture(out).is_symlink() and kept_of(out) == held >= KEPT
    assert "SIGKILL" in harness.kmemshim("why", out).stdout


def test_a_killed_launcher(program, out):
    """The next command that reads the folder does what the launcher cannot do any more, when the process has ended."""
    launcher, pid = start(["/usr/bin/python3", program], out)
    held = kept_of(out)

    def look():
        assert kept_of(out) == held and only_capture(out).is_symlink()

    kill_both(launcher, pid, out, look)
    assert kept_of(out) == held >= KEPT
    assert not only_capture(out).is_symlink()


@pytest.mark.parametrize("is_kept", [True, False], ids=["folder is kept", "folder is removed"])
def test_the_next_launcher_sweeps(is_kept, program, out, tmp_path):
    launcher, pid = start(["/usr/bin/python3", program], out)
    place = Path(os.readlink(only_capture(out)))
    kill_both(launcher, pid, out)
    if not is_kept:
        shutil.rmtree(out)
    assert place.exists()
    assert harness.kmemshim("run", "-q", "-o", tmp_path / "other", "--", "/bin/true").returncode == 0
    assert not place.parent.exists()
    assert not is_kept or not only_capture(out).is_symlink() and kept_of(out) >= KEPT


def test_names_that_somebody_removes_from_memory(program, out):
    """As logind does when the user logs out."""
    launcher, pid = start(["/usr/bin/python3", program], out)
    place = Path(os.readlink(only_capture(out)))
    held = kept_of(out)
    real = os.path.realpath(place)  # which says nothing of a descriptor that is closed meanwhile
    harness.wait_for(lambda: any(os.path.realpath(link) == real for link in Path(f"/proc/{launcher.pid}/fd").iterdir()))
    shutil.rmtree(place.parent)
    os.kill(pid, signal.SIGKILL)
    assert end(launcher) == 128 + signal.SIGKILL
    assert not only_capture(out).is_symlink() and kept_of(out) == held


def test_a_folder_that_somebody_removes(program, out):
    launcher, _ = start(["/usr/bin/python3", program], out)
    shutil.rmtree(out)
    assert end(launcher) == 0
    assert not out.exists()


def test_memory_that_is_gone_is_one_line(program, out, tmp_path):
    launcher, pid = start(["/usr/bin/python3", program], out)
    link = only_capture(out)
    lost = tmp_path / "lost"
    lost.mkdir()
    (lost / link.name).symlink_to(os.readlink(link) + ".gone")
    assert end(launcher) == 0

    for argument in (lost, lost / link.name):
        done = harness.kmemshim("report", argument)
        assert done.returncode == 3 and done.stderr.count("\n") == 1, done.stderr
        assert "it lay in memory" in done.stderr and "the machine was started anew" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs the right to give files away")
def test_what_another_user_put_there_stays(program, out, tmp_path):
    """A link, or a folder in memory, of another user's may lead anywhere by the time that something is removed there."""
    launcher, pid = start(["/usr/bin/python3", program], out)
    link = only_capture(out)
    kill_both(launcher, pid, out)
    place = Path(os.readlink(link))
    folder, away = place.parent, tmp_path / "away"
    shutil.move(folder, away)
    folder.symlink_to(away)
    assert kept_of(out) >= KEPT and link.is_symlink() and (away / place.name).exists()
    folder.unlink()
    os.chown(link, 65534, 65534, follow_symlinks=False)  # before there is something that another launcher could sweep
    shutil.move(away, folder)
    assert kept_of(out) >= KEPT and link.is_symlink() and place.exists()
    os.chown(link, os.geteuid(), -1, follow_symlinks=False)
    assert kept_of(out) >= KEPT and not link.is_symlink()


def test_children_that_end_before_the_launcher(out, tmp_path):
    """Each is copied when it has ended, and more than the launcher can hold open at a time."""
    text = ("import os, sys\nkept = []\nfor i in range(300):\n    if os.fork() == 0:\n        kept.append(bytearray(1 << 20))\n"
            "        os._exit(0)\n    os.wait()\nprint(os.getpid(), flush=True)\nsys.stdin.readline()\n")
    (tmp_path / "forks.py").write_text(text)
    launcher, _ = start(["/usr/bin/python3", tmp_path / "forks.py"], out)
    harness.wait_for(lambda: sum(path.is_symlink() for path in out.glob("*.kmem")) == 1)
    assert end(launcher) == 0
    document = harness.report("report", out)
    assert len(document["processes"]) == 301 and {process["state"] for process in document["processes"]} == {"exited"}


def test_a_process_that_outlives_its_launcher(out, tmp_path):
    # The launcher takes its folder in memory away with the last process that has a capture there: so the child has one first.
    text = ("import os, sys\nkept = [bytearray(8 << 20)]\nreader, writer = os.pipe()\nif os.fork() == 0:\n    os.setsid()\n"
            "    kept.append(bytearray(4 << 20))\n    print(os.getpid(), flush=True)\n    os.write(writer, b'.')\n"
            "    sys.stdin.readline()\n    os._exit(0)\nos.read(reader, 1)\nos._exit(0)\n")
    (tmp_path / "daemon.py").write_text(text)
    with harness.adopting():
        launcher, pid = start(["/usr/bin/python3", tmp_path / "daemon.py"], out)
        assert launcher.wait(harness.TIMEOUT) == 0
        links = [path for path in out.glob("*.kmem") if path.is_symlink()]
        assert len(links) == 1 and f".{pid}." in links[0].name
        assert {process["state"] for process in harness.report("report", out)["processes"]} == {"exited", "running"}
        end(launcher)
        os.waitpid(pid, 0)
    assert {process["state"] for process in harness.report("report", out)["processes"]} == {"exited"}
    assert not any(path.is_symlink() for path in out.glob("*.kmem"))


def test_asked_to_end_it_is_copied_at_once(out, tmp_path):
    """A pod that is deleted is asked, and killed as a whole some time later."""
    text = PROGRAM.replace("import os, sys", "import os, signal, sys\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)")
    (tmp_path / "stays.py").write_text(text)
    launcher, pid = start(["/usr/bin/python3", tmp_path / "stays.py"], out)
    place = Path(os.readlink(only_capture(out)))
    launcher.send_signal(signal.SIGTERM)
    harness.wait_for(lambda: [path.is_symlink() for path in out.glob("python*")] == [False])  # and no copy in progress
    kill_both(launcher, pid, out)
    shutil.rmtree(place.parent)
    assert kept_of(out) >= KEPT


def test_a_link_that_takes_the_place_of_the_folder_is_not_followed(program, tmp_path):
    """Its owner can put one there while the program runs."""
    if os.geteuid() != 0:
        pytest.skip("needs root to give folders to another user")
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    (theirs / "out").mkdir(parents=True)
    ours.mkdir()
    launcher, _ = start(["/usr/bin/python3", program], theirs / "out")
    name = only_capture(theirs / "out").name
    (ours / name).write_text("ours")
    (theirs / "out").rename(theirs / "kept")
    (theirs / "out").symlink_to(ours)
    os.chown(theirs, 65534, 65534)
    os.chown(theirs / "out", 65534, 65534, follow_symlinks=False)
    assert end(launcher) == 0
    assert [path.name for path in ours.iterdir()] == [name] and (ours / name).read_text() == "ours"
    assert kept_of(theirs / "kept") >= KEPT and not (theirs / "kept" / name).is_symlink()  # who reads it there copies it


def test_what_waits_beside_the_copy_is_nothing_to_it(program, out):
    launcher, pid = start(["/usr/bin/python3", program], out)
    capture = only_capture(out)
    planted = out.with_name("planted")
    planted.write_text("ours")
    guessed = [Path(f"{capture}.part.{launcher.pid}"), Path(f"{capture}.new")]
    for path in guessed:
        path.symlink_to(planted)
    assert end(launcher) == 0
    assert planted.read_text() == "ours" and all(path.is_symlink() for path in guessed)
    assert not capture.is_symlink() and kept_of(capture) >= KEPT and sorted(out.iterdir()) == sorted([capture, *guessed])


@pytest.mark.parametrize("size, is_in_memory", [("64m", False), ("1g", True)])
def test_how_much_room_there_is_in_memory(size, is_in_memory, program, out):
    mounted = [*MOUNTS, f'mount -t tmpfs -o size={size} none /dev/shm && exec "$@"', "sh"]
    if harness.run([*mounted, "true"]).returncode != 0:
        pytest.skip("needs the right to mount")
    launcher, _ = start(["/usr/bin/python3", program], out, *mounted)
    assert only_capture(out).is_symlink() == is_in_memory
    assert end(launcher) == 0
    assert not only_capture(out).is_symlink() and kept_of(out) >= KEPT
    found = json.loads(harness.run([*mounted, harness.KMEMSHIM, "doctor", "--json"], cwd=out.parent).stdout)["findings"]
    assert any("a malloc waits for it: /dev/shm has little room" in one["what"] for one in found) == (not is_in_memory)


@pytest.fixture
def frozen(tmp_path):
    """A folder on a disk that can be stopped: whoever writes there waits."""
    image, folder = tmp_path / "disk.img", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    if shutil.which("fsfreeze") is None or harness.run(["mkfs.ext4", "-q", image]).returncode != 0 or \
            harness.run(["mount", "-o", "loop", image, folder]).returncode != 0:
        pytest.skip("needs the right to mount a disk, and fsfreeze")
    yield folder
    harness.run(["fsfreeze", "-u", folder])
    assert harness.run(["umount", folder]).returncode == 0


def test_no_event_waits_for_the_disk(frozen, tmp_path):
    """Also what comes for the first time: new lines, new stacks, a capture that grows."""
    text = PROGRAM + "keep(2000)\nprint(len(kept), flush=True)\nsys.stdin.readline()\n"
    (tmp_path / "goes_on.py").write_text(text)
    launcher, pid = start(["/usr/bin/python3", tmp_path / "goes_on.py"], frozen / "out")
    assert harness.run(["fsfreeze", "-f", frozen]).returncode == 0
    before = waits_of(pid)
    launcher.stdin.write(b"\n")
    launcher.stdin.flush()
    assert select.select([launcher.stdout], [], [], harness.TIMEOUT)[0], "it waits for the disk"
    assert launcher.stdout.readline() == b"2008\n"
    assert waits_of(pid) - before <= 2  # for its two lines
    os.kill(pid, signal.SIGKILL)
    assert harness.run(["fsfreeze", "-u", frozen]).returncode == 0
    assert end(launcher) == 128 + signal.SIGKILL
    assert kept_of(frozen / "out") >= 2 * KEPT - 2000 * 2000


def waits_of(pid):
    """How often its threads gave up the processor to wait."""
    return sum(int(line.split()[1]) for status in Path(f"/proc/{pid}/task").glob("*/status")
               for line in status.read_text().splitlines() if line.startswith("voluntary_ctxt_switches"))
