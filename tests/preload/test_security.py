"""What others can do to who records or reads: folders that they can write, files that they name, privileges that are not theirs."""
import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import harness

USAGE, NOT_EXECUTABLE = 2, 126
QUICK = 60  # seconds; what hangs, hangs for ever


@pytest.fixture(params=["fifo", "socket", "device", "folder"])
def strange(request, tmp_path):
    """Makes a file of that kind that nobody serves."""
    def make(path):
        path.parent.mkdir(exist_ok=True)
        if request.param == "fifo":
            os.mkfifo(path, 0o777)
        elif request.param == "socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(path))
        elif request.param == "folder":
            path.mkdir()
        else:
            path.symlink_to("/dev/ptmx")
        return path

    return make


def test_a_run_and_its_report_do_not_wait_for_a_strange_file_in_the_folder(programs, out, strange):
    strange(out / "zz.kmem")
    program = programs("leak_in_a_loop.c")
    done = harness.kmemshim("run", "-o", out, "--", program, timeout=QUICK)
    told = harness.kmemshim("report", out, timeout=QUICK)
    gate = harness.kmemshim("baseline", out, "-o", out / "base.json", timeout=QUICK)

    assert done.returncode == 0 and "\nHeld at the " in done.stderr, done.stderr
    assert told.returncode == 0 and "zz.kmem: is not a regular file" in told.stderr
    assert gate.stderr.count("\n") <= 1, gate.stderr


def test_a_strange_file_is_no_program(tmp_path, strange):
    command = strange(tmp_path / "made" / "command")
    done = harness.kmemshim("run", "-o", tmp_path / "out", "--", command, timeout=QUICK)
    asked = harness.kmemshim("doctor", "-o", tmp_path / "out", "--", command, timeout=QUICK)

    assert done.returncode == NOT_EXECUTABLE and done.stderr.count("\n") == 1, done.stderr
    assert asked.returncode == 1
    assert [line for line in asked.stdout.splitlines() if line.startswith("problem") and str(command) in line], asked.stdout


def test_a_strange_file_is_no_baseline(programs, tmp_path, out, strange):
    harness.record([programs("leak_in_a_loop.c")], out)
    done = harness.kmemshim("check", out, "--baseline", strange(tmp_path / "base.json"), timeout=QUICK)

    assert done.returncode == USAGE and done.stderr.count("\n") == 1, done.stderr


def test_a_report_is_not_written_to_a_fifo_that_nobody_reads(programs, tmp_path, out):
    harness.record([programs("leak_in_a_loop.c")], out)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    base = tmp_path / "base.json"
    assert harness.kmemshim("baseline", out, "-o", base).returncode == 0
    written = harness.kmemshim("baseline", out, "-o", fifo, timeout=QUICK)

    appended = harness.kmemshim("check", out, "--baseline", base, "--format", f"github-summary={fifo}", timeout=QUICK)

    for done in (written, appended):
        assert done.returncode == USAGE and done.stderr.count("\n") == 1 and "cannot write" in done.stderr


def test_a_path_that_is_longer_than_the_kernel_takes_leads_where_it_says(programs, tmp_path, out):
    harness.record([programs("leak_in_a_loop.c")], out)
    long = 195 * "d"
    for name in (long, "real", long[:4095 - 20 * 199]):  # to this one it leads when it is cut
        (tmp_path / name).mkdir()
    done = harness.kmemshim("baseline", out, "-o", f"{long}/../" * 21 + "real/base.json", cwd=tmp_path)

    assert done.returncode == 0 and [path.parent.name for path in tmp_path.rglob("base.json")] == ["real"], done.stderr


NOBODY = 65534


@pytest.fixture
def nobodys(tmp_path):
    """Gives files and folders to another user."""
    if os.geteuid() != 0:
        pytest.skip("needs root to give files to another user")

    def give(*paths):
        for path in paths:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        return paths[0]

    return give


KEEPS = "kept = []\nfor i in range(4000):\n    kept.append(bytearray(4000))  # SECRET\n"


@pytest.fixture
def script(tmp_path):
    file = tmp_path / "keeps.py"
    file.write_text(KEEPS)
    return file


def test_a_capture_of_another_user_shows_no_lines_of_files(script, out, nobodys):
    """It may name any file that the reader can read."""
    harness.record([harness.find_python(), script], out)
    own = harness.kmemshim("report", out)
    nobodys(*out.glob("*.kmem"))
    for words in (["report", out], ["leaks", out], ["leaks", out, "--json"], ["leaks", next(out.glob("*.kmem"))]):
        done = harness.ok(harness.kmemshim(*words))

        assert "keeps.py" in done.stdout and "SECRET" not in done.stdout + done.stderr
        assert "comes from user nobody" in done.stderr, done.stderr
    assert "kept.append(bytearray(4000))  # SECRET" in own.stdout and "belongs to" not in own.stdout + own.stderr


GIVES_UP = """
import os
def forked():
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
    return not pid
if forked():
    os.setgroups([])
    os.setgid(%d)
    os.setuid(%d)
    if forked():
        exec(compile("kept = [bytearray(9000) for i in range(2000)]", %r, "exec"))
"""


def test_a_copy_of_another_users_capture_shows_no_lines_either(tmp_path, nobodys):
    """It names files that only the reader may read; what was unpacked or copied belongs to the reader."""
    secret = tmp_path / "secret"
    secret.write_text("aws_access_key = SECRET\n")
    secret.chmod(0o600)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:  # where another user can write
        nobodys(folder)
        harness.record([harness.find_python(), "-c", GIVES_UP % (NOBODY, NOBODY, str(secret))], folder)
        captures = [path for path in Path(folder).glob("*.kmem") if path.stat().st_uid == NOBODY]
        assert len(captures) == 1
        (tmp_path / "copy.kmem").write_bytes(captures[0].read_bytes())
    for words in (["report"], ["leaks"], ["leaks", "--json"]):
        told = harness.kmemshim(*words, tmp_path / "copy.kmem")
        assert told.returncode == 0 and "SECRET" not in told.stdout + told.stderr, told.stderr
        assert "comes from user nobody" in told.stderr


@pytest.mark.parametrize("folder_mode, mode, is_shown", [(0o755, 0o600, False), (0o755, 0o640, False), (0o755, 0o644, True), (0o700, 0o644, False)])
def test_a_capture_that_claims_to_be_the_readers_shows_no_file_that_others_may_not_read(folder_mode, mode, is_shown, tmp_path, out):
    """Who forges a capture knows the reader's user id, and the boot's: it is as one that a program of the reader's has left."""
    secret, link = tmp_path / "home" / "credentials", tmp_path / "project" / "link"
    secret.parent.mkdir()
    secret.parent.chmod(folder_mode)
    secret.write_text("aws_access_key = SECRET\n")
    secret.chmod(mode)
    link.parent.mkdir()
    link.symlink_to(secret)  # so may what was unpacked there
    for named in (secret, link):
        folder = out / named.name
        program = f"exec(compile('kept = [bytearray(9000) for i in range(2000)]', {str(named)!r}, 'exec'))"
        harness.record([harness.find_python(), "-c", program], folder)
        for words in (["report", folder], ["leaks", folder], ["leaks", "--json", folder], ["annotate", named, folder],
                      ["report", "--html", "/dev/stdout", folder], ["leaks", "--project", named.parent if named == link else "/", folder]):
            done = harness.kmemshim(*words)
            is_named = is_shown or "/" in words
            assert ("SECRET" in done.stdout) == is_named, (words, done.stderr)
            assert done.stderr.count(f"{named}: not every user may read it, and a forged capture can name it") == (not is_named), (words, done.stderr)


@pytest.mark.parametrize("stands, is_shown", [("/", False), ("home", False), ("home/open/below", False), ("home/open", True), ("home/shut", False)])
def test_folders_above_the_one_where_the_reader_stands_may_be_closed(stands, is_shown, tmp_path, out):
    """A home that is closed says nothing of a project in it; but who stands in it did not choose to."""
    for name, mode in (("home/open/below", 0o755), ("home/shut", 0o700), ("home", 0o700)):
        (tmp_path / name).mkdir(parents=True, exist_ok=True)
        (tmp_path / name).chmod(mode)
    file = tmp_path / "home" / stands.removeprefix("home/") / "train.py" if stands == "home/shut" else tmp_path / "home" / "open" / "train.py"
    file.write_text(KEEPS)
    harness.record([harness.find_python(), file], out)
    done = harness.kmemshim("leaks", out, cwd=tmp_path / stands)

    assert ("SECRET" in done.stdout) == is_shown, done.stdout + done.stderr
    assert "SECRET" in harness.kmemshim("leaks", "--project", file.parent, out, cwd=tmp_path / stands).stdout


def test_a_source_file_that_is_none_is_not_opened(tmp_path, out):
    """To open a device may be to use it: of a watchdog's the machine starts anew."""
    fifo = tmp_path / "device.py"
    os.mkfifo(fifo)
    harness.record([harness.find_python(), "-c", f"exec(compile('kept = [bytearray(9000) for i in range(2000)]', {str(fifo)!r}, 'exec'))"], out)
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    assert libc.inotify_add_watch(watch, os.fsencode(fifo), 0x20) > 0  # IN_OPEN
    done = harness.kmemshim("leaks", out, timeout=QUICK)
    named = harness.kmemshim("report", fifo, timeout=QUICK)

    assert "device.py" in done.stdout and named.returncode == 3
    with pytest.raises(BlockingIOError):
        os.read(watch, 4096)
    os.close(watch)


def test_an_export_names_no_commit_that_is_a_secret(tmp_path, out):
    """A forged capture says in which folder the program ran; what lies there can lead to any file with a line of digits."""
    secret, work = tmp_path / "home" / "key", tmp_path / "work"
    secret.parent.mkdir(mode=0o700)
    secret.write_text(64 * "5" + "\n")
    (work / "git").mkdir(parents=True)
    (work / ".git").write_text("gitdir: git\n")
    (work / "git" / "commondir").write_text(f"{secret.parent}\n")
    (work / "git" / "HEAD").write_text("ref: key\n")
    for folder_mode in (0o700, 0o755):
        secret.parent.chmod(folder_mode)
        harness.record([harness.find_python(), "-c", "kept = [bytearray(9000) for i in range(2000)]"], out / str(folder_mode), cwd=work)
        done = harness.kmemshim("export", "--format", "ndjson", "-o", "/dev/stdout", out / str(folder_mode))
        assert done.returncode == 0 and (64 * "5" in done.stdout) == (folder_mode == 0o755), done.stderr


def test_lines_that_an_own_capture_names_too_are_shown(script, out, nobodys):
    """Of a session: a child that had given up root's rights left one of them."""
    program = f"import os\npid = os.fork()\nexec(compile(open({str(script)!r}).read(), {str(script)!r}, 'exec'))\nif pid: os.waitpid(pid, 0)\n"
    harness.record([harness.find_python(), "-c", program], out)
    captures = sorted(out.glob("*.kmem"), key=lambda path: path.stat().st_mtime_ns)
    assert len(captures) == 2
    nobodys(captures[0])
    done = harness.kmemshim("leaks", out)

    assert "SECRET" in done.stdout
    assert "1 of 2 captures come from other users" in done.stderr and "user nobody" in done.stderr


def test_the_newest_session_is_one_of_the_readers_own(programs, tmp_path, out, nobodys):
    """A session of somebody else's may say that it began at any time."""
    good = harness.kmemshim("run", "-o", out, "--", programs("gate.c"))
    own = set(out.glob("*.kmem"))
    base = tmp_path / "base.json"
    assert good.returncode == 0 and harness.kmemshim("baseline", out, "-o", base).returncode == 0
    harness.kmemshim("run", "-o", out, "--", programs("gate.c"), "leak")
    nobodys(*(set(out.glob("*.kmem")) - own))
    document = harness.report("report", out)
    check = harness.kmemshim("check", out, "--baseline", base)

    assert own.pop().name.split(".")[1] == str(document["processes"][0]["pid"])
    assert document["damages"] == []
    assert check.returncode == 0, check.stdout + check.stderr


@pytest.mark.parametrize("kind", ["folder", "link"])
def test_nothing_is_written_into_a_folder_that_another_user_put_there(kind, programs, tmp_path, nobodys):
    program = programs("leak_in_a_loop.c")
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    if kind == "folder":
        (here / "kmemshim.out").mkdir()
    else:
        (here / "kmemshim.out").symlink_to(there)
    nobodys(here / "kmemshim.out")
    launched = harness.kmemshim("run", "--", program, cwd=here)
    asked = harness.kmemshim("doctor", "--", program, cwd=here)
    preloaded = harness.run(["sh", "-c", f"{program}; ls / >/dev/null; exit 3"], harness.plain_env(LD_PRELOAD=harness.SHIM), cwd=here)

    assert launched.returncode == USAGE and launched.stderr.count("\n") == 1 and "belongs to user nobody" in launched.stderr
    assert asked.returncode == 1 and "belongs to user nobody" in asked.stdout
    assert preloaded.returncode == 3
    assert preloaded.stderr.count("\n") == 1 and f"belongs to user {NOBODY}; nothing is recorded" in preloaded.stderr
    assert not list(there.iterdir()) and not list((here / "kmemshim.out").iterdir())


def test_a_folder_of_another_user_that_was_named_is_used_and_told(programs, tmp_path, nobodys):
    folder = tmp_path / "theirs"
    folder.mkdir()
    nobodys(folder)
    program = programs("leak_in_a_loop.c")
    launched = harness.kmemshim("run", "-o", folder, "--", program)
    preloaded = harness.record([program], folder)

    assert launched.returncode == 0 and "belongs to user nobody: that user can replace and remove the captures" in launched.stderr
    assert preloaded.returncode == 0 and preloaded.stderr.count("\n") == 1 and f"belongs to user {NOBODY}: that user can" in preloaded.stderr
    assert len(list(folder.glob("*.kmem"))) == 2


def test_a_folder_that_is_made_can_be_written_by_its_owner_alone(programs, tmp_path):
    program = programs("leak_in_a_loop.c")
    env = harness.shim_env(tmp_path / "a" / "preloaded")
    done = harness.run(["sh", "-c", 'umask 0; "$0" run -o a/launched -- "$1"; LD_PRELOAD="$2" "$1"', harness.KMEMSHIM, program, harness.SHIM],
                       {**env, "LD_PRELOAD": ""}, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    for folder in ("a", "a/launched", "a/preloaded"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o755


# Preloads the library into all programs, by /etc/ld.so.preload, in a mount namespace of its own; then runs one as another user.
PRELOADED_BY_ALL = """set -e
mount -t tmpfs none /mnt
mkdir /mnt/ours /mnt/theirs /mnt/work
chmod 777 /mnt/theirs
cd /mnt/work
cp -a /etc /mnt/etc
cp "$1" /mnt/libkmemshim.so
cp "$2" /mnt/plain
cp "$2" /mnt/privileged
chmod 755 /mnt/plain
chmod 4755 /mnt/privileged
echo /mnt/libkmemshim.so >/mnt/etc/ld.so.preload
mount --bind /mnt/etc /etc
umask 0
nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
export KMEMSHIM_LOG=quiet
$nobody env KMEMSHIM_LOG=debug KMEMSHIM_OUT=/mnt/theirs/plain /mnt/plain >/mnt/ours/plain.out 2>/mnt/ours/plain.err
$nobody env KMEMSHIM_LOG=debug KMEMSHIM_OUT=/mnt/theirs/privileged /mnt/privileged >/mnt/ours/privileged.out 2>/mnt/ours/privileged.err
$nobody env KMEMSHIM_LOG=debug KMEMSHIM_OUT=/mnt/ours/made /mnt/privileged >/mnt/ours/other.out 2>/mnt/ours/other.err
unset KMEMSHIM_LOG
head -c 9999 /mnt/ours/*.out /mnt/ours/*.err
echo "--- folders"
find /mnt/ours /mnt/theirs -mindepth 1 -not -name "*.out" -not -name "*.err"
"""


def test_a_privileged_program_is_left_alone_where_all_are_preloaded(programs):
    """Its environment is another user's: it obeys nothing of it, and makes neither folder nor file."""
    if os.geteuid() != 0:
        pytest.skip("needs root to make a program setuid")
    program = programs("leak_in_a_loop.c")
    done = harness.run(["unshare", "-m", "--propagation", "private", "sh", "-c", PRELOADED_BY_ALL, "sh", harness.SHIM, program])
    if done.returncode != 0 and "Operation not permitted" in done.stderr:
        pytest.skip("no mount namespace can be made here")
    assert done.returncode == 0, done.stderr
    said, made = done.stdout.split("--- folders\n")
    texts = dict(part.split(" <==\n", 1) for part in said.split("==> ")[1:])
    plain = harness.run([program]).stdout

    for name in ("plain", "privileged", "other"):
        assert texts[f"/mnt/ours/{name}.out"].strip() == plain.strip()
    assert "recording process" in texts["/mnt/ours/plain.err"]
    assert not texts["/mnt/ours/privileged.err"].strip() and not texts["/mnt/ours/other.err"].strip()
    assert "/mnt/theirs/plain/plain." in made
    assert "privileged" not in made and "made" not in made, made


# Fills the pipe that is its error output, so that whoever writes there next waits.
FILLS_STDERR = """import os
os.set_blocking(2, False)
try:
    while True: os.write(2, b"." * 4096)
except BlockingIOError: pass
try:
    while True: os.write(2, b".")
except BlockingIOError: pass
os.set_blocking(2, True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_report_of_a_run_can_be_interrupted(number, out):
    argv = [str(harness.KMEMSHIM), "run", "-o", str(out), "--", harness.find_python(), "-c", FILLS_STDERR]
    # A job in the background, or under nohup, has signals that are ignored, and they are inherited.
    process = subprocess.Popen(argv, env=harness.plain_env(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    try:
        children = f"/proc/{process.pid}/task/{process.pid}/children"
        while not list(out.glob("*.kmem")) or open(children).read():  # until the program was waited for
            assert process.poll() is None
        for _ in range(QUICK * 10):  # the first may come just before it is our own
            process.send_signal(number)
            try:
                process.wait(0.1)
                break
            except subprocess.TimeoutExpired:
                pass
    finally:
        process.kill()
        process.communicate(timeout=QUICK)
    assert process.returncode == -number


@pytest.mark.parametrize("command", [["lost"], ["holders"], ["top", "--once"], ["report"], ["mark"]])
def test_a_pipe_in_the_place_of_a_running_capture_is_not_waited_for(command, out):
    """The list of a process's memory tells a newline in a name as four characters; who runs it can put a pipe of that name beside it."""
    program = "import sys; kept = bytearray(9000000); print('ready', flush=True); sys.stdin.readline()"
    with subprocess.Popen([harness.find_python(), "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=harness.shim_env(out)) as process:
        assert process.stdout.readline() == b"ready\n"
        next(out.glob("*.kmem")).rename(out / "new\nline.kmem")
        os.mkfifo(out / "new\\012line.kmem")
        done = harness.kmemshim(command[0], str(process.pid), *command[1:], *(["name"] if command == ["mark"] else []), timeout=QUICK)
        process.stdin.close()
    assert done.returncode == 3 and "is not a regular file" in done.stderr and done.stderr.count("\n") == 1, done.stderr


WATCH = """
import os, sys
folder, target = sys.argv[1:]
pid = int(open("/proc/loadavg").read().split()[-1])
for number in range(pid, pid + 300):
    os.symlink(target, "%s/page.html.%d.new" % (folder, number))
"""


@pytest.fixture
def planted(programs, tmp_path, out, nobodys):
    """(a folder of another user's, a file of ours that only we may read); the captures are recorded."""
    harness.record([programs("leak_in_a_loop.c")], out)
    folder, own = tmp_path / "theirs", tmp_path / "own"
    folder.mkdir()
    own.write_text("ours")
    own.chmod(0o600)
    return nobodys(folder), own


LINKED = "a link on the way is another user's"


def is_untouched(own):
    return own.read_text() == "ours" and (own.stat().st_uid, own.stat().st_mode & 0o777) == (os.geteuid(), 0o600)


def test_a_link_that_waits_beside_a_file_is_not_followed(planted, out, nobodys):
    folder, own = planted
    page = folder / "page.html"
    page.write_text("old")
    nobodys(page)
    subprocess.run([sys.executable, "-c", WATCH, folder, own], check=True)
    harness.ok(harness.kmemshim("report", "--html", page, "--force", out))

    assert is_untouched(own)
    assert page.read_text().startswith("<!DOCTYPE html>") and not page.is_symlink()
    assert page.stat().st_uid == os.geteuid() and page.stat().st_mode & 0o777 == 0o600  # whom the older one belonged to may not read it


@pytest.mark.parametrize("words", [("report", "--html"), ("export", "--format", "speedscope", "-o"), ("baseline", "-o")])
def test_a_link_that_another_user_put_in_the_place_of_a_file_is_replaced(words, planted, out, nobodys):
    folder, own = planted
    page = folder / "page"
    page.symlink_to(own)
    nobodys(page)
    harness.ok(harness.kmemshim(*words, page, "--force", out))

    assert is_untouched(own) and not page.is_symlink() and page.stat().st_size > 100


def test_nothing_is_appended_through_a_link_of_another_user(planted, programs, tmp_path, out, nobodys):
    folder, own = planted
    page = folder / "summary.md"
    page.symlink_to(own)
    nobodys(page)
    assert harness.kmemshim("baseline", out, "-o", tmp_path / "base.json").returncode == 0
    done = harness.kmemshim("check", out, "--baseline", tmp_path / "base.json", "--format", f"github-summary={page}")

    assert done.returncode == USAGE and LINKED in done.stderr, done.stderr
    assert is_untouched(own)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_what_is_open_already_is_written_to(name, programs, tmp_path, out):
    """A pipe, too: the text of such a link is no path."""
    harness.record([programs("leak_in_a_loop.c")], out)
    assert harness.kmemshim("baseline", out, "-o", tmp_path / "base.json").returncode == 0
    for kind in ("markdown", "github-summary"):
        done = harness.kmemshim("check", out, "--baseline", tmp_path / "base.json", "--format", f"{kind}={name}")
        assert done.returncode == 0 and done.stdout.startswith("### Memory: ok"), (kind, done.stderr)


def commands_that_write(page, out, base):
    """Of each kind of output one."""
    return (("report", "--html", page, "--force", out), ("export", "--format", "speedscope", "-o", page, "--force", out),
            ("baseline", "-o", page, "--force", out), ("check", out, "--baseline", base, "--format", f"junit={page}"),
            ("check", out, "--baseline", base, "--format", f"github-summary={page}"))


@pytest.mark.parametrize("is_there", [False, True])
def test_a_folder_on_the_way_may_be_no_link_of_another_user(is_there, programs, tmp_path, out, nobodys):
    """In /tmp anybody can make /tmp/x, which leads to /etc. The name of the file there is the reader's, and what is there may be replaced."""
    harness.record([programs("leak_in_a_loop.c")], out)
    base, target, sticky = tmp_path / "base.json", tmp_path / "target", tmp_path / "sticky"
    assert harness.kmemshim("baseline", out, "-o", base).returncode == 0
    (target / "in").mkdir(parents=True)
    sticky.mkdir()
    sticky.chmod(0o1777)
    (sticky / "theirs").symlink_to(target)
    (sticky / "ours").symlink_to(sticky / "theirs" / "in")  # ours, by way of theirs
    nobodys(sticky / "theirs")
    if is_there:
        (target / "page").write_text("ours")
        (target / "in" / "page").write_text("ours")
    before = sorted(target.rglob("*"))
    for page in (sticky / "theirs" / "page", sticky / "theirs" / "in" / ".." / "page", sticky / "ours" / "page"):
        for words in commands_that_write(page, out, base):
            done = harness.kmemshim(*words)
            assert done.returncode == USAGE and LINKED in done.stderr and done.stderr.count("\n") == 1, (words, done.stderr)
    assert sorted(target.rglob("*")) == before and {path.read_text() for path in before if path.is_file()} <= {"ours"}


def test_a_user_whom_a_namespace_does_not_map_is_nobody(programs, tmp_path, out, nobodys):
    """All of them are shown as 65534 there; so is the reader, where that one is not mapped either."""
    harness.record([programs("leak_in_a_loop.c")], out)
    target, page = tmp_path / "target", tmp_path / "page"
    target.write_text("ours")
    page.symlink_to(target)
    os.chown(page, 2001, 2001, follow_symlinks=False)
    tmp_path.chmod(0o777)
    target.chmod(0o666)
    (out / "kmemshim.out").mkdir()
    os.chown(out / "kmemshim.out", 2001, 2001)
    (out / "kmemshim.out").chmod(0o777)
    out.chmod(0o777)
    for path in out.glob("*.kmem"):
        path.chmod(0o644)
    for flags in (["-U"], ["-U", "--map-user=65534"]):
        done = harness.run(["unshare", *flags, harness.KMEMSHIM, "report", "--html", page, "--force", out])
        if "unshare" in done.stderr:
            pytest.skip("no user namespace can be made here")
        made = harness.run(["unshare", *flags, harness.KMEMSHIM, "run", "--", programs("leak_in_a_loop.c")], cwd=out)
        preloaded = harness.run(["unshare", *flags, "env", f"LD_PRELOAD={harness.SHIM}", programs("leak_in_a_loop.c")], cwd=out)
        assert target.read_text() == "ours", (flags, done.stderr)
        assert f"belongs to user {NOBODY}; nothing is recorded" in preloaded.stderr and not list((out / "kmemshim.out").iterdir())
        assert made.returncode == USAGE and "belongs to user" in made.stderr, made.stderr


@pytest.mark.parametrize("parts, is_taken", [(1200, True), (40000, False)])
def test_a_long_path_takes_two_descriptors(parts, is_taken, programs, tmp_path, out):
    harness.record([programs("leak_in_a_loop.c")], out)
    done = harness.run(["bash", "-c", f'ulimit -n 24; cd "$2"; exec "$0" baseline -o "$(printf "./%.0s" {{1..{parts}}})base.json" "$1"',
                        harness.KMEMSHIM, out, tmp_path])

    assert done.returncode == (0 if is_taken else USAGE) and done.stderr.count("\n") == 1, done.stderr
    assert (tmp_path / "base.json").exists() == is_taken


def test_an_own_link_on_the_way_is_followed(programs, tmp_path, out):
    harness.record([programs("leak_in_a_loop.c")], out)
    base = tmp_path / "base.json"
    assert harness.kmemshim("baseline", out, "-o", base).returncode == 0
    (tmp_path / "target" / "in").mkdir(parents=True)
    (tmp_path / "link").symlink_to("target/./in/")
    (tmp_path / "again").symlink_to(tmp_path / "link")
    for words in commands_that_write(Path("again/../in/../../link") / "page", out, base):
        (tmp_path / "target" / "in" / "page").unlink(missing_ok=True)
        done = harness.kmemshim(*words, cwd=tmp_path)
        assert done.returncode == 0 and (tmp_path / "target" / "in" / "page").stat().st_size > 100, (words, done.stderr)


def test_an_own_link_stays_one(programs, tmp_path, out):
    harness.record([programs("leak_in_a_loop.c")], out)
    (tmp_path / "page.html").write_text("old")
    (tmp_path / "link.html").symlink_to("page.html")
    done = harness.kmemshim("report", "--html", tmp_path / "link.html", "--force", out)

    assert done.returncode == 0 and (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_pages_and_exports_are_the_users_alone(programs, tmp_path, out):
    """They tell what a capture tells. What is there already keeps its mode."""
    harness.record([programs("leak_in_a_loop.c")], out)
    old = os.umask(0o022)
    try:
        for words, mode in ((("report", "--html"), 0o600), (("export", "--format", "pprof", "-o"), 0o600), (("baseline", "-o"), 0o644)):
            file = tmp_path / words[0]
            assert harness.kmemshim(*words, file, out).returncode == 0
            assert file.stat().st_mode & 0o777 == mode, words
            file.chmod(0o640)
            assert harness.kmemshim(*words, file, "--force", out).returncode == 0
            assert file.stat().st_mode & 0o777 == 0o640, words
    finally:
        os.umask(old)


def test_a_page_runs_its_own_scripts_alone(programs, tmp_path, out):
    harness.record([programs("leak_in_a_loop.c")], out)
    policies = []
    for name in ("one", "two"):
        assert harness.kmemshim("report", "--html", tmp_path / name, out).returncode == 0
        page = (tmp_path / name).read_text()
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page).group(1)
        once = re.search(r"script-src 'nonce-([0-9a-f]{16})'", policy).group(1)
        assert "unsafe" not in policy and "base-uri 'none'" in policy and "form-action 'none'" in policy
        assert len(re.findall(f'<(?:script|style) nonce="{once}">', page)) == 3 and once not in page.split('type="application/json">')[1].split("</script>")[0]
        policies.append(policy)
    assert policies[0] != policies[1]  # what a capture says cannot know it
