"""kmemshim top: driven in a terminal, on programs that grow, die, or have names that steer terminals."""
import fcntl
import os
import pathlib
import pty
import re
import resource
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

import harness
from harness import BUILD, find_python, record, run, shim_env

pyte = pytest.importorskip("pyte", reason="python3-pyte is missing: tools/install-deps test")

KMEMSHIM = BUILD / "kmemshim"
PYTHON = find_python()
GROWS = """
import os, signal, sys, time
kept, tables = [], []
def load(): kept.append(bytearray(1 << 20))
def remember(): tables.append(bytearray(200000))
stop = sys.argv[1]
for i in range(30):
    load(); remember()
print("ready", flush=True)
while not os.path.exists(stop):
    load(); remember(); time.sleep(0.02)
    if len(kept) > 200:
        del kept[:]
os.kill(os.getpid(), signal.SIGKILL)
"""


class Terminal:
    """A program in a terminal of that size, and what is on the screen."""

    def __init__(self, argv, rows, columns, **environment):
        self.screen = pyte.Screen(columns, rows)
        self.stream = pyte.ByteStream(self.screen)
        self.written = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.execve(argv[0], [str(word) for word in argv], {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8",
                                                                 **environment})
            finally:  # else a second pytest would go on from here
                os._exit(127)
        self.resize(rows, columns)

    def resize(self, rows, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.resize(rows, columns)

    def read(self, seconds):
        """What comes within that time; False: it has ended."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self.fd], [], [], left)[0]:
                return True
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return False
            if not data:
                return False
            self.written += data
            self.stream.feed(data)
        return True

    @property
    def text(self):
        return "\n".join(line.rstrip() for line in self.screen.display)

    def wait_for(self, *wanted, seconds=harness.TIMEOUT):
        end = time.monotonic() + seconds
        while not all(word in self.text for word in wanted):
            assert time.monotonic() < end, self.text
            if not self.read(0.1):
                break
        assert all(word in self.text for word in wanted), self.text

    def wait_for_more(self):
        """Until it has written something."""
        self.written = b""
        harness.wait_for(lambda: not self.read(0.05) or self.written)
        assert self.written

    def keys(self, text):
        os.write(self.fd, text.encode())

    def finish(self, seconds=harness.TIMEOUT):
        end = time.monotonic() + seconds
        while self.read(0.1):
            assert time.monotonic() < end, self.text
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)

    def is_given_back(self):
        """The other screen was left, and the cursor is shown again."""
        return self.written.rfind(b"\x1b[?1049l") > self.written.rfind(b"\x1b[?1049h") and \
            self.written.rfind(b"\x1b[?25h") > self.written.rfind(b"\x1b[?25l")


@pytest.fixture
def growing(tmp_path):
    """A program that grows until it is told to die: (its process, the file that ends it, its captures)."""
    program = tmp_path / "grows.py"
    program.write_text(GROWS)
    stop = tmp_path / "stop"
    process = subprocess.Popen([PYTHON, program, stop], env=shim_env(tmp_path / "out"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    yield process, stop, tmp_path / "out"
    stop.touch()
    process.kill()
    process.communicate()


@pytest.mark.parametrize("command", ["why", "leaks", "peak", "sites", "report", "tree"])
def test_a_process_that_runs_is_read_by_its_number(command, growing):
    process, _, _ = growing
    done = subprocess.run([KMEMSHIM, command, str(process.pid)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"(pid {process.pid})" in done.stdout or "grows.py:4 load" in done.stdout, done.stdout
    other = subprocess.run([KMEMSHIM, command, str(os.getpid())], capture_output=True, text=True, check=False)
    assert other.returncode == 2 and other.stderr.startswith(f"kmemshim: {command}: process {os.getpid()} is not recorded"), other.stderr


@pytest.mark.parametrize("name", ["new\nline", r"back\012slash", "both\n\n \\"])
def test_a_process_whose_captures_are_in_a_folder_with_a_strange_name(name, tmp_path):
    program = subprocess.Popen([PYTHON, "-c", "kept = [bytearray(1 << 20) for _ in range(9)]; print(flush=True); input()"],
                               env=shim_env(tmp_path / name / "out"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program.stdout.readline()
    done = [run([KMEMSHIM, *words.split(), str(program.pid)]) for words in ("top --once", "why")] + [run([KMEMSHIM, "mark", str(program.pid), "here"])]
    program.communicate(b"\n")
    assert [(one.returncode, one.stderr) for one in done[:2]] == [(0, "")] * 2
    assert done[2].returncode == 0, done[2].stderr


def test_a_class_is_the_same_as_in_the_report(tmp_path):
    program = tmp_path / "tiles.py"
    program.write_text("import os, signal\ntiles = []\nfor i in range(300):\n    tiles.append(bytearray(1 << 20))\nos.kill(os.getpid(), signal.SIGKILL)\n")
    run([PYTHON, program], shim_env(tmp_path / "out"))
    shown = {command: [line for line in subprocess.run([KMEMSHIM, *command.split(), tmp_path / "out"], capture_output=True, text=True, check=True)
                       .stdout.splitlines() if "tiles.py:4" in line] for command in ("top --once", "leaks")}
    assert "leak?" in shown["leaks"][0] and "(leak?)" in shown["top --once"][0], shown



@pytest.mark.parametrize("rows, columns", [(24, 80), (60, 200)])
def test_a_program_grows_and_dies(growing, rows, columns):
    process, stop, _ = growing
    terminal = Terminal([KMEMSHIM, "top", process.pid], rows, columns)
    terminal.wait_for("grows.py", "running", "grows.py:4 load", "grows.py:5 remember", "q quit")
    terminal.wait_for("rate/s", "allocates ")
    lines = terminal.text.split("\n")
    assert len(lines) == rows and max(map(len, lines)) <= columns
    assert "in use" in lines[1] and lines[2].startswith("live ") and "domain: host" in lines[3]
    first = [line for line in lines if "grows.py:4 load" in line][0]
    assert "MiB" in first and "+" in first
    stop.touch()
    assert terminal.finish() == 0
    assert terminal.is_given_back()
    assert f"ended: grows.py (pid {process.pid})" in terminal.text and "kmemshim report" in terminal.text


def snapshots_of_top(out):
    marks = harness.report("report", out)["processes"][0]["marks"]
    return [mark for mark in marks if mark["name"].startswith("top ") and mark["is_snapshot"]]


def test_keys(growing):
    process, _, _ = growing
    terminal = Terminal([KMEMSHIM, "top", process.pid], 40, 120)
    terminal.wait_for("grows.py:4 load")
    terminal.keys("d")
    terminal.wait_for("domain: heap")
    while (shown := re.search(r"domain: \S+", terminal.text)[0]) != "domain: host":  # one after the other, and again
        terminal.keys("d")
        harness.wait_for(lambda: not terminal.read(0.05) or not re.search(re.escape(shown) + r"\s", terminal.text))
    terminal.keys("n")
    terminal.wait_for("lines: Python")
    terminal.keys("n")
    terminal.wait_for("lines: native")
    terminal.keys("n")
    terminal.wait_for("lines: all")
    terminal.keys("o")
    terminal.wait_for("order: growth")
    terminal.keys("oo")
    terminal.wait_for("order: live", "grows.py:4 load")
    terminal.keys("\r")
    terminal.wait_for("Source: ", "> ", "def load(): kept.append(bytearray(1 << 20))", "Stack of its largest call site", "grows.py:4 load")
    terminal.keys("\x1b[B")
    terminal.keys("\x1b")
    terminal.wait_for("allocated at")
    terminal.keys("p")
    terminal.wait_for("process: all")
    terminal.keys("s")
    terminal.wait_for('snapshot "top ')
    # A program that a busy machine holds up for two seconds is said to make it when it allocates: then it does.
    if "it is made when the program allocates" in terminal.text:
        harness.wait_for(lambda: snapshots_of_top(growing[2]))
    else:
        assert "kmemshim report --at" in terminal.text
    terminal.keys("q")
    assert terminal.finish() == 0 and terminal.is_given_back()
    assert snapshots_of_top(growing[2])
    assert b"reading ..." in terminal.written  # a key acts at once


@pytest.mark.parametrize("how", ["\x03", signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_it_ends_clean(growing, how):
    process, _, _ = growing
    terminal = Terminal([KMEMSHIM, "top", process.pid], 24, 80)
    terminal.wait_for("grows.py:4 load")
    if isinstance(how, str):
        terminal.keys(how)
    else:
        os.kill(terminal.pid, how)
    assert terminal.finish() == 0 and terminal.is_given_back()
    assert process.poll() is None


def test_it_ends_when_its_terminal_goes_and_no_signal_says_so(growing):
    """A terminal that is not the controlling one: nothing is left that waits for keys without pause."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([KMEMSHIM, "top", growing[2]], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                          env={"PATH": os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8"}) as top:
        os.close(theirs)
        assert os.read(ours, 4096)
        os.close(ours)
        try:
            top.wait(harness.TIMEOUT)
        finally:
            top.kill()


def test_a_window_changes_its_size(growing):
    process, _, _ = growing
    terminal = Terminal([KMEMSHIM, "top", process.pid], 24, 80)
    terminal.wait_for("grows.py:4 load")
    for rows, columns in ((60, 200), (10, 20), (3, 20), (1, 1), (24, 80)):
        terminal.resize(rows, columns)
        terminal.wait_for_more()
        assert len(terminal.text.split("\n")) <= rows
    terminal.wait_for("grows.py:4 load", "q quit")
    terminal.keys("q")
    assert terminal.finish() == 0


def test_it_does_not_flicker(growing):
    """After the first screen, only what has changed is written: the screen is never cleared again."""
    process, _, _ = growing
    terminal = Terminal([KMEMSHIM, "top", process.pid], 24, 80)
    terminal.wait_for("grows.py:4 load", "rate/s")
    terminal.wait_for_more()
    terminal.read(3)
    assert b"\x1b[2J" not in terminal.written and b"\x1b[H\x1b[J" not in terminal.written
    assert len(terminal.written) < 6000, len(terminal.written)
    terminal.keys("q")
    assert terminal.finish() == 0


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "vt100"}, {"TERM": "vt220", "LANG": "C"}])
def test_a_terminal_without_colours(growing, environment):
    process, _, _ = growing
    terminal = Terminal([KMEMSHIM, "top", process.pid], 24, 80, **environment)
    terminal.wait_for("grows.py:4 load")
    terminal.keys("q")
    assert terminal.finish() == 0
    assert b"\x1b[31m" not in terminal.written and b"\x1b[36m" not in terminal.written and b"38;5" not in terminal.written


def test_an_unknown_terminal_is_one_line(growing):
    process, _, _ = growing
    terminal = Terminal([KMEMSHIM, "top", process.pid], 24, 80, TERM="no-such-kind")
    assert terminal.finish() == 2 and "TERM=no-such-kind" in terminal.text


def test_all_processes_of_a_folder(tmp_path):
    program = tmp_path / "job.py"
    program.write_text("import os, time\nkept = [bytearray(3000000)]\nfor n in range(3):\n    if os.fork() == 0:\n"
                       "        mine = [bytearray(2000000 * (n + 1))]; time.sleep(600); os._exit(0)\nprint('ready', flush=True)\ntime.sleep(600)\n")
    process = subprocess.Popen([PYTHON, program], env=shim_env(tmp_path / "out"), stdout=subprocess.PIPE, start_new_session=True)
    try:
        process.stdout.readline()
        harness.wait_for(lambda: len(list((tmp_path / "out").glob("*.kmem"))) == 4)
        (tmp_path / "out/notes.txt").write_text("not a capture")
        (tmp_path / "out/empty.kmem").write_bytes(b"")
        (tmp_path / "out/other.kmem").write_bytes(b"\x7fELF" * 1000)
        terminal = Terminal([KMEMSHIM, "top", tmp_path / "out"], 24, 100)
        terminal.wait_for("4 processes of job.py", "job.py:5 ", "process: all", "2 places could not be read")
        terminal.keys("p")
        terminal.wait_for(f"process: job.py {process.pid}", "job.py:2 ")
        terminal.keys("p")
        terminal.wait_for("job.py:5 ")
        terminal.keys("q")
        assert terminal.finish() == 0
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


EVIL = "a\x1b[2Jb\x1b]0;title\x07c‮d​e日本֍" + "n" * 150 + ".py"


def test_names_steer_no_terminal(tmp_path):
    program = tmp_path / EVIL
    program.write_text("kept = [bytearray(1000000) for i in range(5)]\n" + "exec(compile('def f" + "x" * 5000 +
                       "(): return [bytearray(2000000)]\\nlong = f" + "x" * 5000 + "()', 'y' * 10000, 'exec'))\n")
    record([PYTHON, program], tmp_path / "out")
    done = run([KMEMSHIM, "top", "--once", tmp_path / "out"])
    assert done.returncode == 0 and done.stderr == ""
    assert "\x1b" not in done.stdout and "\x07" not in done.stdout and "\u202e" not in done.stdout and "\u200b" not in done.stdout
    assert max(map(len, done.stdout.split("\n"))) <= 80 and "MiB" in done.stdout
    terminal = Terminal([KMEMSHIM, "top", tmp_path / "out"], 24, 80)
    terminal.wait_for("q quit", "MiB")
    assert b"\x1b]0;" not in terminal.written and "\u202e".encode() not in terminal.written
    terminal.keys("\r")
    terminal.wait_for("Stack of its largest")
    terminal.keys("q")
    assert terminal.finish() == 0


def test_once_is_text(growing):
    _, _, out = growing
    done = run([KMEMSHIM, "top", "--once", out])
    assert done.returncode == 0 and done.stderr == "" and "\x1b" not in done.stdout
    lines = done.stdout.split("\n")
    assert lines[0].startswith("kmemshim top  grows.py (pid ") and "running" in lines[0]
    assert any("grows.py:4 load" in line for line in lines) and len(lines) <= 25
    one = run([KMEMSHIM, "top", "--once", "--domain", "heap", out])
    assert "domain: heap" in one.stdout


def test_a_session_that_runs_comes_before_a_newer_one_that_has_ended(growing, tmp_path):
    process, _, out = growing
    record(["/bin/true"], out)
    done = run([KMEMSHIM, "top", "--once", out])
    assert f"grows.py (pid {process.pid})" in done.stdout and "running" in done.stdout, done.stdout
    process.kill()
    process.wait()
    assert "true (pid " in run([KMEMSHIM, "top", "--once", out]).stdout


def test_a_run_that_begins_in_the_folder_is_shown_where_the_other_has_ended(growing, tmp_path):
    process, stop, out = growing
    later = tmp_path / "later.py"
    later.write_text("kept = [bytearray(1 << 20) for _ in range(9)]\nprint(flush=True)\ninput()\n")

    def begin():
        program = subprocess.Popen([PYTHON, later], env=shim_env(out), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        program.stdout.readline()
        return program
    terminal = Terminal([KMEMSHIM, "top", out], 24, 80)
    terminal.wait_for("grows.py:4 load")
    other = begin()
    terminal.wait_for("another run has begun in this folder", "grows.py:4 load")
    terminal.keys("o")
    terminal.wait_for("order: growth", "q quit")
    harness.wait_for(lambda: not terminal.read(0.05) or "another run" not in terminal.text)  # it is said once
    terminal.wait_for_more()
    assert "another run" not in terminal.text
    other.communicate(b"\n")
    stop.touch()
    assert terminal.finish() == 0 and f"ended: grows.py (pid {process.pid})" in terminal.text

    terminal = Terminal([KMEMSHIM, "top", out], 24, 80)
    terminal.wait_for("later.py", "ended")
    other = begin()
    terminal.wait_for(f"later.py (pid {other.pid})  running", "later.py:1 <listcomp>")
    other.communicate(b"\n")
    assert terminal.finish() == 0 and f"ended: later.py (pid {other.pid})" in terminal.text


@pytest.mark.parametrize("command", ["top", "holders", "lost", "mark"])
def test_the_number_of_the_launcher(command, tmp_path):
    """Its child is the program."""
    program = tmp_path / "waits.py"
    program.write_text("import os\nkept = [bytearray(1 << 20) for _ in range(9)]\nprint(os.getpid(), flush=True)\ninput()\n")
    launcher = subprocess.Popen([KMEMSHIM, "run", "--quiet", "-o", tmp_path / "out", "--", PYTHON, program], env=harness.plain_env(),
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    pid = int(launcher.stdout.readline())
    words = [KMEMSHIM, command, launcher.pid, *(["a"] if command == "mark" else [])]
    done = run(words)
    launcher.communicate("\n")
    assert done.returncode == 2
    assert done.stderr == f"kmemshim: {command}: process {launcher.pid} is not recorded, its child {pid} is: give that number\n"


def test_growth_since_a_minute_ago_is_known_at_the_first_look(growing):
    """From the timeline of the capture: the program is younger, so it is all that it holds."""
    _, _, out = growing
    done = run([KMEMSHIM, "top", "--once", out])
    load = next(line for line in done.stdout.split("\n") if "grows.py:4 load" in line)
    words = load.split()
    assert words[4].startswith("+") and words[5] == "MiB", load


def test_what_is_in_memory_is_of_the_moment_of_what_is_live(tmp_path):
    """The interpreter's shutdown frees all: live bytes are those of its begin, and what is in memory is, too."""
    (tmp_path / "ends.py").write_text("kept = [bytearray(b'x') * 100000 for _ in range(600)]\n")
    record([PYTHON, tmp_path / "ends.py"], tmp_path / "out")
    sums = run([KMEMSHIM, "top", "--once", tmp_path / "out"]).stdout.split("\n")[2]
    live, in_memory = (float(re.search(f"{name} ([\\d.]+) MiB", sums)[1]) for name in ("live", "in memory"))
    assert 57 < live < in_memory, sums


def test_what_is_in_memory_is_of_now_where_the_program_stands_still(tmp_path):
    """It took 60 MiB at once, and allocates no more: its own last look was before that."""
    (tmp_path / "waits.py").write_text("kept = [bytearray(b'x') * 100_000 for _ in range(600)]\nprint(flush=True)\ninput()\n")
    program = subprocess.Popen([PYTHON, tmp_path / "waits.py"], env=shim_env(tmp_path / "out"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    program.stdout.readline()
    sums = run([KMEMSHIM, "top", "--once", tmp_path / "out"]).stdout.split("\n")[2]
    in_memory = float(re.search(r"in memory ([\d.]+) MiB  ", sums + "  ")[1])
    resident = int((pathlib.Path("/proc") / str(program.pid) / "statm").read_text().split()[1]) * resource.getpagesize() / (1 << 20)
    program.communicate(b"\n")
    assert in_memory == pytest.approx(resident, rel=0.02) and in_memory > 60 and "ago" not in sums, sums


def test_a_program_that_holds_nothing(tmp_path):
    record(["/bin/true"], tmp_path / "out")
    done = run([KMEMSHIM, "top", "--once", tmp_path / "out"])
    assert done.returncode == 0 and "nothing is held here" in done.stdout and "ended: exit status 0" in done.stdout


@pytest.mark.parametrize("arguments, status, says", [
    (["top"], 2, "kmemshim.out"), (["top", "/no/such/path"], 2, "/no/such/path"), (["top", "999999999"], 2, "is gone"),
    (["top", "--once", "/proc/self/exe"], 3, "not a kmemshim capture"), (["top", "1", "2"], 2, "top")])
def test_what_cannot_be_watched_is_one_line(arguments, status, says, tmp_path):
    done = run([KMEMSHIM, *arguments], cwd=tmp_path)
    assert done.returncode == status and says in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_what_is_no_terminal_is_told(growing):
    _, _, out = growing
    done = run([KMEMSHIM, "top", out])
    assert done.returncode == 2 and "--once" in done.stderr and done.stdout == ""
