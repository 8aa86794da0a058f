"""run --kernel: a notebook's server sees its kernel as without us, and the next life of the kernel learns how this one died."""
import fcntl
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

import harness
from harness import wait_for

HOLD = "kept = [bytearray(1 << 20) for i in range(40)]\n"
ENVIRONMENT = """
import json, os
open(os.environ["SEEN"], "w").write(json.dumps(dict(os.environ)))
"""


class Server:
    """Starts kernels as Jupyter does: leaders of a session, with a connection file."""

    def __init__(self, folder):
        self.folder = folder
        self.connection = folder / "kernel-1.json"
        self.connection.write_text("{}")
        self.home = folder / "state" / "kmemshim" / "kernels"
        self.seen = folder / "seen.json"
        self.command = harness.KMEMSHIM

    def argv(self, text, *options):
        script = self.folder / "kernel.py"
        script.write_text(ENVIRONMENT + text)
        return [self.command, "run", "--kernel", *options, "--", "/usr/bin/python3", script, "-f", self.connection]

    def start(self, text, *options, is_leader=True, **more):
        self.seen.unlink(missing_ok=True)
        env = harness.plain_env(XDG_STATE_HOME=self.folder / "state", SEEN=self.seen, **more)
        kernel = subprocess.Popen([str(word) for word in self.argv(text, *options)], env=env, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=is_leader)
        return kernel

    def run(self, text, *options, **more):
        """Its status and what it wrote to the server's log."""
        kernel = self.start(text, *options, **more)
        log = kernel.communicate(timeout=harness.TIMEOUT)[1]
        return kernel.returncode, log

    def environment(self):
        """Of the last kernel that was started."""
        return json.loads(self.seen.read_text())

    def lives(self):
        """The newest last."""
        return sorted(self.home.iterdir()) if self.home.exists() else []

    def life(self, number=-1):
        return json.loads((self.lives()[number] / "life.json").read_text())


@pytest.fixture
def server(tmp_path):
    return Server(tmp_path)


def test_an_ordinary_end_is_not_told(server):
    assert server.run(HOLD) == (0, "")
    life = server.life()
    assert (life["is_death"], life["exit_status"]) == (False, 0)
    assert life["connection_file"] == str(server.connection)
    assert server.run(HOLD)[0] == 0
    assert "KMEMSHIM_PREVIOUS" not in server.environment()


@pytest.mark.parametrize("end, status, cause", [
    ("import os; os._exit(1)", 1, "failed"),
    ("import ctypes; ctypes.string_at(0)", -signal.SIGSEGV, "crashed"),
    ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, "signal"),
    ("raise ValueError(1)", 1, "failed"),
])
def test_a_death_is_told_to_the_next_life(server, end, status, cause):
    seen, log = server.run(HOLD + end)
    assert seen == status
    life, folder = server.life(), server.lives()[-1]
    assert (life["is_death"], life["cause"]) == (True, cause)
    assert life["signal" if status < 0 else "exit_status"] == abs(status)
    text = (folder / "verdict.txt").read_text()
    assert "kernel.py" in text and text in log and f"{folder}/verdict.txt" in log
    assert list(folder.glob("*.kmem"))

    assert server.run(HOLD)[0] == 0
    assert server.environment()["KMEMSHIM_PREVIOUS"] == str(folder)


def test_what_was_told_is_not_told_again(server):
    server.run(HOLD + "import os; os._exit(1)")
    (server.lives()[-1] / "told").touch()
    server.run(HOLD)
    assert "KMEMSHIM_PREVIOUS" not in server.environment()


def test_a_death_is_told_after_a_restart_too(server):
    """The server starts the kernel again, its user restarts it before any cell was run: nobody has seen why it died."""
    server.run(HOLD + "import os; os._exit(1)")
    server.run(HOLD)
    server.run(HOLD)
    assert server.environment()["KMEMSHIM_PREVIOUS"] == str(server.lives()[0])


def test_only_the_last_death_is_told(server):
    server.run(HOLD + "import os; os._exit(1)")
    server.run(HOLD + "import os; os._exit(1)")
    (server.lives()[-1] / "told").touch()
    server.run(HOLD)
    assert "KMEMSHIM_PREVIOUS" not in server.environment()


def test_a_life_that_somebody_else_looks_at_is_told(server):
    """Two kernels that died at once are started at once, and each looks at all lives."""
    server.run(HOLD + "import os; os._exit(1)")
    with open(server.lives()[0] / "life.json") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        server.run(HOLD)
    assert server.environment()["KMEMSHIM_PREVIOUS"] == str(server.lives()[0])


def test_another_kernels_death_is_not_told(server):
    server.run(HOLD + "import os; os._exit(1)")
    server.connection = server.folder / "kernel-2.json"
    server.run(HOLD)
    assert "KMEMSHIM_PREVIOUS" not in server.environment()


def test_the_environment_of_a_kernel(server):
    server.run(HOLD, PYTHONPATH="/mine", JPY_SESSION_NAME="/home/me/a.ipynb", KMEMSHIM_PREVIOUS="/somebody/elses")
    seen, folder = server.environment(), str(server.lives()[-1])
    assert seen["KMEMSHIM_KERNEL"] == seen["KMEMSHIM_OUT"] == folder
    assert seen["KMEMSHIM_COMMAND"] == os.path.realpath(harness.KMEMSHIM)
    assert "KMEMSHIM_PREVIOUS" not in seen
    assert seen["PYTHONPATH"].endswith("/mine")
    assert server.life()["notebook"] == "/home/me/a.ipynb"
    assert os.stat(folder).st_mode & 0o777 == 0o700


COUNT = """
import os, signal, time
count = 0
def handler(number, frame):
    global count
    count += 1
signal.signal(signal.SIGINT, handler)
open(os.environ["READY"], "w").close()
end = time.monotonic() + 300
while count == 0 and time.monotonic() < end:
    time.sleep(.05)
time.sleep(.5)
os._exit(20 + count)
"""


@pytest.mark.parametrize("is_leader", [True, False])
def test_an_interrupt_arrives_once(server, is_leader):
    """Jupyter signals the group of a leader; VS Code signals the process that it started."""
    ready = server.folder / "ready"
    kernel = server.start(COUNT, is_leader=is_leader, READY=ready)
    wait_for(ready.exists)
    if is_leader:
        os.killpg(kernel.pid, signal.SIGINT)
    else:
        os.kill(kernel.pid, signal.SIGINT)
    kernel.communicate(timeout=harness.TIMEOUT)
    assert kernel.returncode == 21


WAIT = HOLD + """
import os, time
open(os.environ["READY"], "w").write(str(os.getpid()))
time.sleep(300)
"""


def started(server, *options, **more):
    ready = server.folder / "ready"
    ready.unlink(missing_ok=True)
    kernel = server.start(WAIT, *options, READY=ready, **more)
    wait_for(lambda: ready.exists() and ready.read_text())
    return kernel, int(ready.read_text())


def test_a_kernel_that_is_sent_away_did_not_die(server):
    kernel, _ = started(server)
    os.killpg(kernel.pid, signal.SIGTERM)
    assert kernel.communicate(timeout=harness.TIMEOUT)[1] == ""
    assert kernel.returncode == -signal.SIGTERM
    assert server.life()["is_death"] is False


def has_ended(pid):
    try:
        return ") Z" in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True


def test_an_impatient_restart_is_not_told(server):
    """The server ends a kernel that does not answer with SIGKILL to the whole group."""
    kernel, pid = started(server)
    os.kill(kernel.pid, signal.SIGKILL)
    kernel.communicate(timeout=harness.TIMEOUT)
    wait_for(lambda: has_ended(pid))
    assert "ended" not in server.life()
    assert server.run(HOLD)[0] == 0
    assert "KMEMSHIM_PREVIOUS" not in server.environment()
    assert server.life(0)["is_death"] is False


@pytest.mark.parametrize("is_told", [True, False])
def test_a_kernel_ends_with_its_server(server, is_told):
    """JPY_PARENT_PID says that the server wants that. A kernel would see it by itself if we were not in between."""
    ready, names = server.folder / "ready", server.folder / "names"
    argv = [str(word) for word in server.argv(WAIT)]
    text = f"""
import os, subprocess, time
if {is_told}: os.environ["JPY_PARENT_PID"] = str(os.getpid())
kernel = subprocess.Popen({argv!r}, start_new_session=True)
open({str(names)!r}, "w").write(str(kernel.pid))
time.sleep(300)
"""
    env = harness.plain_env(XDG_STATE_HOME=server.folder / "state", SEEN=server.seen, READY=ready)
    parent = subprocess.Popen(["/usr/bin/python3", "-c", text], env=env)
    wait_for(lambda: ready.exists() and ready.read_text())
    launcher = int(names.read_text())
    parent.kill()
    parent.wait()
    try:
        if is_told:
            wait_for(lambda: has_ended(int(ready.read_text())) and has_ended(launcher))
            assert server.life()["is_death"] is False
        else:
            time.sleep(3)
            assert not has_ended(int(ready.read_text()))
    finally:
        if not has_ended(launcher):
            os.killpg(launcher, signal.SIGKILL)


def test_a_group_that_was_killed_for_memory_is_told(server, out):
    """memory.oom.group ends the launcher too. Here it is stopped, and killed after its kernel."""
    grow = "import os, time\nopen(os.environ['READY'], 'w').write(str(os.getpid()))\n" \
           "while not os.path.exists(os.environ['READY'] + ' go on'): time.sleep(.01)\n" \
           "kept = []\nwhile True: kept.append(bytearray(1 << 20))\n"
    ready = server.folder / "ready"
    with harness.memory_group(200 << 20) as group:
        kernel = server.start(f"open('{group}/cgroup.procs', 'w').write(str(os.getpid()))\n"
                              f"os.execv('/usr/bin/python3', ['python3', '-c', '''{grow}'''])", READY=ready)
        wait_for(lambda: ready.exists() and ready.read_text())
        os.kill(kernel.pid, signal.SIGSTOP)
        wait_for(lambda: ") T" in Path(f"/proc/{kernel.pid}/stat").read_text())
        (server.folder / "ready go on").touch()
        pid = int(ready.read_text())
        wait_for(lambda: "Z" in Path(f"/proc/{pid}/stat").read_text())
        os.kill(kernel.pid, signal.SIGKILL)
        kernel.communicate(timeout=harness.TIMEOUT)
        assert server.run(HOLD)[0] == 0
        assert server.environment()["KMEMSHIM_PREVIOUS"] == str(server.lives()[0])
    assert server.life(0)["cause"] == "container-limit"


def test_the_newest_lives_are_kept(server):
    kernel, _ = started(server, "--keep", "2")
    first = server.lives()[0]
    server.connection = server.folder / "kernel-2.json"
    for _ in range(4):
        assert server.run(HOLD, "--keep", "2")[0] == 0
    assert first in server.lives() and len(server.lives()) == 3  # what runs is not removed, and not counted away
    os.killpg(kernel.pid, signal.SIGTERM)
    kernel.communicate(timeout=harness.TIMEOUT)


def test_a_death_that_nobody_has_seen_is_kept(server):
    """Others start meanwhile. What was shown, and what nobody can be shown any more, goes."""
    for connection in ("told", "gone", "pending"):
        server.connection = server.folder / f"{connection}.json"
        server.connection.write_text("{}")
        assert server.run(HOLD + "import os; os._exit(1)", "--keep", "2")[0] == 1
    told, gone, pending = server.lives()
    (told / "told").touch()
    (server.folder / "gone.json").unlink()  # its server removed it: there will be no further life
    server.connection = server.folder / "kernel-2.json"
    for _ in range(3):
        assert server.run(HOLD, "--keep", "2")[0] == 0
    assert server.lives()[0] == pending and len(server.lives()) == 3
    server.connection = server.folder / "pending.json"
    assert server.run(HOLD, "--keep", "2")[0] == 0
    assert server.environment()["KMEMSHIM_PREVIOUS"] == str(pending)


def test_no_more_unseen_deaths_are_kept_than_asked_for(server):
    for number in range(5):
        server.connection = server.folder / f"kernel-{number}.json"
        server.connection.write_text("{}")
        assert server.run(HOLD + "import os; os._exit(1)", "--keep", "2")[0] == 1
    assert len(server.lives()) == 4


def kernel_report(server, *words):
    env = harness.plain_env(XDG_STATE_HOME=server.folder / "state")
    return harness.run([harness.KMEMSHIM, *words], env)


def test_the_report_finds_the_newest_kernel(server):
    done = kernel_report(server, "report", "--kernel")
    assert done.returncode == 2 and "no kernel was recorded" in done.stderr
    server.run(HOLD + "import os; os._exit(7)")
    kernel, _ = started(server)
    done = kernel_report(server, "why", "--kernel")
    assert "status 7" in done.stdout  # the death, not the life that came after it
    os.killpg(kernel.pid, signal.SIGTERM)
    kernel.communicate(timeout=harness.TIMEOUT)
    done = kernel_report(server, "why", "--kernel")
    assert str(server.lives()[-1]) in done.stderr and "SIGTERM" in done.stdout
    done = kernel_report(server, "why", "--kernel", "x")
    assert done.returncode == 2 and "not both" in done.stderr


# --- what can go wrong --------------------------------------------------------------------------

def test_a_kernel_starts_without_the_library(server):
    server.command = server.folder / "moved" / "kmemshim"
    server.command.parent.mkdir()
    shutil.copy(harness.KMEMSHIM, server.command)
    status, log = server.run(HOLD + "import os; os._exit(3)")
    assert status == 3
    lines = [line for line in log.splitlines() if "libkmemshim.so" in line]
    assert len(lines) == 1 and "the kernel is not recorded" in lines[0]


def test_a_kernel_starts_without_a_state_folder(server):
    (server.folder / "state").write_text("a file is in the way")
    status, log = server.run(HOLD + "import os; os._exit(3)")
    assert status == 3
    assert len(log.splitlines()) == 1 and "the kernel is not recorded" in log


def of_another(folder):
    os.chown(folder, 65534, 65534)


@pytest.mark.parametrize("where", ["state", "state/kmemshim", "state/kmemshim/kernels"])
@pytest.mark.parametrize("make", [of_another, lambda folder: folder.chmod(0o777), lambda folder: folder.chmod(0o3777)])
def test_nothing_is_kept_where_others_can_change_it(server, make, where):
    """Texts of cells went to who had made the folder first, and a life that lay there was told as the kernel's own."""
    if os.geteuid() != 0:
        pytest.skip("needs root to give files to another user")
    assert server.run(HOLD) == (0, "")
    folder = server.folder / where
    make(folder)
    lives = server.lives()
    may_be_shared = folder.stat().st_mode & 0o1000 and folder != server.home  # as /tmp: the next folder is ours
    status, log = server.run(HOLD)
    assert status == 0
    told = harness.kmemshim("report", "--kernel", env=harness.plain_env(XDG_STATE_HOME=server.folder / "state"))
    if may_be_shared:
        assert log == "" and len(server.lives()) == len(lives) + 1 and told.returncode == 0
    else:
        assert server.lives() == lives and "other users can change what lies in" in log and str(folder) in log, log
        assert told.returncode == 2 and "other users can change what lies in" in told.stderr


def plant_cells(path, kind):
    if kind == "theirs":
        path.touch(0o600)
        of_another(path)
    elif kind == "readable":
        path.touch()
        path.chmod(0o644)
    elif kind == "pipe":
        os.mkfifo(path, 0o600)
    else:
        path.symlink_to(path.parent / "elsewhere")


@pytest.mark.parametrize("kind", ["theirs", "readable", "pipe", "link"])
def test_texts_of_cells_go_into_no_file_of_others(kind, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to give files to another user")
    monkey = f"import sys; sys.path.insert(0, {str(harness.ROOT / 'python')!r}); from kmemshim.cells import Cells; " \
             f"Cells({str(tmp_path / 'cells.jsonl')!r}).write('cell', 1, 'SECRET')"
    plant_cells(tmp_path / "cells.jsonl", kind)
    done = harness.run(["/usr/bin/python3", "-c", monkey], harness.plain_env(), timeout=60)
    assert done.returncode == 1 and "OSError" in done.stderr, done.stderr
    assert not [path for path in tmp_path.iterdir() if path.is_file() and "SECRET" in path.read_text()]


@pytest.mark.parametrize("name", ["20991231T235959.000007-77", "20991231T235959.999999-77", "20991231T235959-77", "9-"])
def test_a_clock_that_was_set_back_hides_no_death(server, name):
    """Lives are in the order of their names: one that began before the clock was set has a name of the future."""
    server.run(HOLD + "import os; os._exit(7)")
    first = server.lives()[0]
    first.rename(first.parent / name)
    assert server.run(HOLD + "import os; os._exit(8)")[0] == 8
    assert server.environment()["KMEMSHIM_PREVIOUS"] == str(first.parent / name)
    (first.parent / name / "told").touch()
    kernel, _ = started(server)
    second = server.environment()["KMEMSHIM_PREVIOUS"]
    assert json.loads((Path(second) / "life.json").read_text())["exit_status"] == 8
    assert "status 8" in kernel_report(server, "why", "--kernel").stdout
    os.killpg(kernel.pid, signal.SIGTERM)
    kernel.communicate(timeout=harness.TIMEOUT)


@pytest.mark.parametrize("kib", [4, 64])
def test_a_kernel_starts_with_a_state_folder_that_is_full(server, kib):
    state = server.folder / "state"
    state.mkdir()
    mounted = ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs -o size={kib}k tmpfs "$0" && "$@"; status=$?; '
               'find "$0" -name verdict.txt -size 0 -printf "empty"; exit $status', state]
    if harness.run([*mounted, "true"]).returncode != 0:
        pytest.skip("no file system can be mounted here")
    env = harness.plain_env(XDG_STATE_HOME=state, SEEN=server.seen)
    done = harness.run([*mounted, *server.argv(HOLD + "import os; os._exit(3)")], env)
    assert done.returncode == 3 and server.environment()
    assert "ENOSPC" in done.stderr.splitlines()[0] and "nothing is recorded" in done.stderr.splitlines()[0]
    assert done.stdout == "", "a verdict without a word is left behind"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"ended": 3}', "\0" * 4000])
def test_a_damaged_life_is_passed_over(server, text):
    server.run(HOLD + "import os; os._exit(1)")
    (server.lives()[0] / "life.json").write_text(text)
    status, log = server.run(HOLD)
    assert (status, log) == (0, "")
    assert "KMEMSHIM_PREVIOUS" not in server.environment()


def test_a_kernel_that_cannot_be_started(server):
    env = harness.plain_env(XDG_STATE_HOME=server.folder / "state")
    done = harness.run([harness.KMEMSHIM, "run", "--kernel", "--", "/no/such/python"], env)
    assert done.returncode == 127 and len(done.stderr.splitlines()) == 1
    assert server.life()["is_death"] is False


@pytest.mark.parametrize("keep", ["0", "x", "-1"])
def test_a_wrong_number_of_lives(server, keep):
    status, log = server.run(HOLD, "--keep", keep)
    assert status == 2 and "a number of 1 or more" in log


def test_keep_is_for_kernels():
    done = harness.kmemshim("run", "--keep", "3", "--", "true")
    assert done.returncode == 2 and "--kernel" in done.stderr


def test_options_of_a_run_hold_for_a_kernel(server):
    server.run(HOLD, "--guard", "90%", "--guard-action", "note", "--python-objects")
    seen = server.environment()
    assert (seen["KMEMSHIM_GUARD"], seen["KMEMSHIM_GUARD_ACTION"], seen["KMEMSHIM_PYTHON_OBJECTS"]) == ("90%", "note", "1")
