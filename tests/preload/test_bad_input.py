"""Bad input is one line on stderr that begins "kmemshim:", with the exit code of its kind, and never a crash."""
import os
import random
import re
import shutil
import subprocess

import pytest

import harness

USAGE, UNUSABLE = 2, 3
READERS = ["report", "why", "peak", "leaks", "sites"]


@pytest.fixture
def capture(programs, out):
    """One good capture file of a program that ended."""
    harness.record([programs("leak_in_a_loop.c")], out)
    return next(out.glob("*.kmem"))


def assert_refused(done, code):
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert done.stderr.startswith("kmemshim:"), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert not done.stdout


# --- what the analyzer is given -----------------------------------------------------------------

@pytest.mark.parametrize("command", READERS)
@pytest.mark.parametrize("content", [b"", b"k", b"kmemshim", b"words\n" * 20000, bytes(200000)],
                         ids=["empty", "one byte", "magic alone", "text", "zeros"])
def test_a_file_that_is_not_a_capture(command, content, tmp_path):
    file = tmp_path / "x.kmem"
    file.write_bytes(content)

    assert_refused(harness.kmemshim(command, file), UNUSABLE)
    assert_refused(harness.kmemshim(command, file, "--json"), UNUSABLE)


@pytest.mark.parametrize("command", READERS)
def test_a_foreign_file(command):
    assert_refused(harness.kmemshim(command, "/bin/ls"), UNUSABLE)


@pytest.mark.parametrize("command", READERS)
def test_a_missing_path(command, tmp_path):
    assert_refused(harness.kmemshim(command, tmp_path / "nothing"), USAGE)


def test_no_argument_and_no_folder(tmp_path):
    assert_refused(harness.kmemshim("report", cwd=tmp_path), USAGE)


def test_a_folder_without_captures(tmp_path):
    assert harness.kmemshim("report", tmp_path).returncode in (USAGE, UNUSABLE)
    assert harness.kmemshim("report", tmp_path).stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["frobnicate"], ["report", "--frobnicate"], ["peak", "--top", "many"], ["peak", "--top"],
                                   ["peak", "--domain"], ["run"], ["run", "--"], ["baseline"], ["check"], []])
def test_wrong_words(words, tmp_path):
    done = harness.kmemshim(*words, cwd=tmp_path)

    assert done.returncode == USAGE
    assert done.stderr.startswith("kmemshim:") or not words


def test_a_command_that_is_not_there(tmp_path):
    done = harness.kmemshim("run", "-o", tmp_path / "out", "--", "/nonexistent/program")

    assert done.returncode == 127
    assert done.stderr.startswith("kmemshim:") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 5, 6, 7, 8, 14, 999])
def test_an_older_or_newer_capture(version, capture):
    content = bytearray(capture.read_bytes())
    assert content[:8] == b"kmemshim" and int.from_bytes(content[8:12], "little") == 13
    content[8:12] = version.to_bytes(4, "little")
    capture.write_bytes(content)
    done = harness.kmemshim("report", capture)

    assert_refused(done, UNUSABLE)
    assert str(version) in done.stderr


def test_a_truncated_capture(capture):
    content = capture.read_bytes()
    for keep in [16, 4096, len(content) // 3, len(content) // 2, len(content) - 65536]:
        capture.write_bytes(content[:keep])
        assert_refused(harness.kmemshim("report", capture), UNUSABLE)


def test_a_damaged_capture_never_crashes_the_reader(capture):
    """Random bytes overwritten: a report or a refusal, nothing else."""
    rng = harness.seeded_random()
    content = capture.read_bytes()
    for attempt in range(60):
        damaged = bytearray(content)
        for _ in range(rng.choice([1, 4, 64])):
            damaged[rng.randrange(len(damaged) if attempt % 2 else 16384)] = rng.randrange(256)
        capture.write_bytes(damaged)
        for options in ([], ["--salvage"]):
            done = harness.kmemshim("leaks", capture, "--json", *options)
            assert done.returncode in (0, UNUSABLE), (done.returncode, done.stderr)


# --- where the shim must write ------------------------------------------------------------------

def assert_program_undisturbed(programs, env, lines):
    program = programs("leak_in_a_loop.c")
    plain = harness.run([program])
    done = harness.run([program], env)

    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
    assert done.stderr.count("\n") == lines, done.stderr
    assert all(line.startswith("kmemshim:") for line in done.stderr.splitlines())


def test_a_folder_that_cannot_be_made(programs):
    assert_program_undisturbed(programs, harness.shim_env("/dev/null/folder"), lines=1)


def test_a_folder_that_cannot_be_written(programs):
    assert_program_undisturbed(programs, harness.shim_env("/proc/1"), lines=1)


@pytest.mark.parametrize("command, lines", [
    (["sh", "-c", "setpriv --reuid 65534 --clear-groups sh -c 'ls / | cat >/dev/null; ls / >/dev/null'; exit 3"], 1),
    (["sh", "-c", "setpriv --reuid 65534 --clear-groups /usr/bin/python3 -c 'import os; [os.fork(), os.fork(), bytearray(2 << 20)]'; exit 3"], 1),
    (["sh", "-c", "exit 3"], 0),
], ids=["exec", "fork", "none"])
def test_a_child_that_gave_up_its_rights_says_that_it_is_not_recorded(command, lines, tmp_path):
    """The folder is root's; the first process had nothing to say."""
    if os.geteuid() != 0:
        pytest.skip("needs root's rights to give them up")
    if harness.run(["setpriv", "--reuid", "65534", "--clear-groups", "test", "-r", harness.SHIM]).returncode != 0:
        pytest.skip("the build cannot be read by others")
    tmp_path.chmod(0o755)
    done = harness.record(command, tmp_path / "out")

    assert done.returncode == 3, done.stderr
    assert done.stderr.count("cannot write a capture") == done.stderr.count("\n") == lines, done.stderr


def test_a_folder_that_nobody_can_write_is_said_once(tmp_path):
    done = harness.record(["sh", "-c", "ls / >/dev/null; (ls / | cat >/dev/null); exit 3"], "/proc/1")

    assert done.returncode == 3
    assert done.stderr.count("\n") == 1, done.stderr


def test_refused_captures_change_no_setting_of_the_programs(tmp_path):
    """The first process has said it; children know that from the session's name."""
    done = harness.record(["sh", "-c", "env; exec env"], "/proc/1")
    names = {line.split("=")[0] for line in done.stdout.splitlines() if line.startswith("KMEMSHIM_")}

    assert names == {"KMEMSHIM_OUT", "KMEMSHIM_VERIFY", "KMEMSHIM_SESSION"}
    assert done.stderr.count("\n") == 1, done.stderr


LIMITED = """import resource
used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (%d << 20), -1))
"""


def test_a_limit_that_the_program_set_itself_is_named(tmp_path, out):
    program = tmp_path / "program.py"
    program.write_text(LIMITED % 256 + "kept = []\nwhile True: kept.append(bytearray(10 << 20))\n")
    for command in ([program], ["-c", f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '{program}']))"]):
        done = harness.record([harness.find_python("resource"), *command], out / str(len(command)))
        verdict = harness.report("why", out / str(len(command)))["verdict"]

        assert done.returncode == 1 and "MemoryError" in done.stderr
        assert verdict["cause"] == "request-refused", verdict
        assert "The limit was its address space: the program had set it to " in verdict["text"] and "program.py:5 <module>" in verdict["text"]
        assert re.search(r"of which the recorder takes [0-9.]+ MiB\.", verdict["text"]), verdict["text"]
        assert "RLIMIT_AS" in verdict["next"]


def test_what_began_it_is_named_not_what_told_of_it(tmp_path, out):
    """Memory is used up in small pieces: standard I/O is refused its buffer for the traceback, too."""
    program = tmp_path / "program.py"
    program.write_text(LIMITED % 32 + "kept = [None] * 10 ** 6\ndef fill():\n"  # a list that grows would be refused more now and then
                       "    for i in range(10 ** 6): kept[i] = bytes(600)\nfill()\n")
    done = harness.record([harness.find_python("resource"), program], out)
    verdict = harness.report("why", out)["verdict"]

    assert done.returncode == 1
    assert verdict["cause"] == "request-refused", verdict
    assert "after a request for 633 B in heap at program.py:6 fill was refused" in verdict["text"], verdict


def test_what_was_caught_and_met_with_less_did_not_end_it(tmp_path, out):
    program = tmp_path / "program.py"
    program.write_text(LIMITED % 512 + "try: kept = bytearray(8 << 30)\nexcept MemoryError: kept = bytearray(80 << 20)\n"
                       "{}['oops']\n")
    done = harness.record([harness.find_python("resource"), program], out)
    document = harness.report("report", out)

    assert done.returncode == 1 and "KeyError" in done.stderr
    assert [request["state"] for request in document["refused_requests"]] == ["recovered"]
    assert document["verdict"]["cause"] == "failed", document["verdict"]


def test_what_the_teardown_cannot_keep_is_no_loss_of_a_program_that_ends(out):
    """No room for the list of what Python releases at its end: nobody will book it."""
    script = ("import resource\n"
              "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
              "resource.setrlimit(resource.RLIMIT_AS, (used + (48 << 20), -1))\n"
              "kept = []\n"
              "def fill():\n"
              "    while True: kept.append(bytes(600))\n"
              "fill()\n")
    done = harness.record([harness.find_python("resource"), "-c", script], out)
    losses = harness.report("report", out)["losses"]

    assert done.returncode == 1 and "MemoryError" in done.stderr
    assert losses["lost_teardown_events"] > 20000
    assert losses["lost_missed_frees"] == losses["lost_events"] == 0


def test_a_salvaged_capture_is_not_fine(capture):
    content = capture.read_bytes()
    capture.write_bytes(content[:len(content) - 65536])
    verdict = harness.report("why", capture, "--salvage")["verdict"]

    assert "The capture is damaged" in verdict["text"]
    assert "no action is needed" not in verdict["next"]
    named = re.search("`kmemshim (report .*?)`", verdict["next"]).group(1)
    assert harness.kmemshim(*named.split()).returncode == 0, named


@pytest.mark.parametrize("arguments", [["-o", "--"], ["-o", "--", "--"], ["-o", "--domain", "--"]])
def test_an_option_is_no_folder(arguments, tmp_path):
    """The folder's name was forgotten: what comes next would be taken for it."""
    done = harness.kmemshim("run", *arguments, "true", cwd=tmp_path)

    assert done.returncode == 2
    assert done.stderr == f'kmemshim: run: --output "{arguments[1]}": expected a path (write ./-NAME if it begins with -)\n'
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_made(programs, tmp_path):
    assert_program_undisturbed(programs, harness.shim_env(tmp_path / "a" / "b" / "c"), lines=0)
    assert len(list((tmp_path / "a" / "b" / "c").glob("*.kmem"))) == 1


def test_where_no_folder_can_be_made_nobody_is_sent_to_a_larger_disk(programs, tmp_path):
    (tmp_path / "file").write_text("")
    done = harness.run([programs("leak_in_a_loop.c")], harness.shim_env(tmp_path / "file" / "out"))

    assert done.returncode == 0 and "(ENOTDIR)" in done.stderr, done.stderr
    assert "to a folder that this user can write to" in done.stderr and "disk" not in done.stderr


def test_a_bad_setting_is_named_once(programs, out):
    assert_program_undisturbed(programs, harness.shim_env(out, KMEMSHIM_LOG="loud"), lines=1)


@pytest.mark.parametrize("size", ["16k", "128k", "256k", "1m"])
def test_a_full_disk(size, programs, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    if harness.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk]).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        program = programs("ledger.c", "-fno-optimize-sibling-calls")
        done = harness.ok(harness.record([program, tmp_path / "ledger", 1, 4, 10000], disk))
        assert done.stderr.count("\n") <= 1, done.stderr
        for file in disk.glob("*.kmem"):
            assert harness.kmemshim("report", file).returncode in (0, UNUSABLE)
    finally:
        harness.run(["umount", disk])


MANY_FUNCTIONS = harness.MANY_LINES + """\
def the_leak():
    for i in range(2000):
        kept.append(bytearray(50000))
the_leak()
"""


@pytest.mark.parametrize("size", ["300k", "600k"])
def test_on_a_full_disk_what_comes_later_has_its_callers_and_the_report_says_why(size, tmp_path):
    """A line table and a name of its own for each function: what is left goes to the lines that lead to them."""
    disk, script = tmp_path / "disk", tmp_path / "many_functions.py"
    disk.mkdir()
    script.write_text(MANY_FUNCTIONS)
    if harness.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", disk]).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        done = harness.record([harness.find_python(), script], disk)
        assert (done.returncode, done.stderr.count("cannot grow (ENOSPC)")) == (0, 1), done.stderr
        document = harness.report("peak", disk, "--domain", "heap")
        text = harness.kmemshim("report", disk).stdout
    finally:
        harness.run(["umount", disk])
    where = document["sites"][0]["where"]

    assert document["sites"][0]["peak_bytes"] >= 1900 * 50000, harness.summary(document["sites"])
    assert where["file"] == str(script) and (where["line"], where["function"]) in [(10, "<module>"), (9, "the_leak"), (0, "<module>")]
    assert "could not grow (ENOSPC, its disk was full)" in re.sub(r"\s+", " ", text)
    assert document["losses"]["lost_growth"] > 0


def test_children_that_a_disk_has_no_room_for_are_told(programs, tmp_path):
    """It had room for their parent."""
    program, disk = programs("fork_children.c", "-fno-optimize-sibling-calls"), tmp_path / "disk"
    disk.mkdir()
    plain = harness.record([program], tmp_path / "plain")
    room = max(file.stat().st_size for file in (tmp_path / "plain").iterdir()) + (48 << 10)
    if harness.run(["mount", "-t", "tmpfs", "-o", f"size={room}", "none", disk]).returncode != 0:
        pytest.skip("needs the right to mount")
    try:
        done = harness.record([program], disk)
        told = [line for line in done.stderr.splitlines() if "(ENOSPC); it and its children are not recorded" in line]

        assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout)
        assert len(list(disk.glob("*.kmem"))) == 1 and len(told) == 3, done.stderr
    finally:
        harness.run(["umount", disk])


# --- programs that the shim cannot enter --------------------------------------------------------

def test_a_static_program_says_why_nothing_was_recorded(programs, out):
    program = programs("leak_in_a_loop.c", "-static")
    plain = harness.run([program])
    done = harness.kmemshim("run", "-o", out, "--", program)

    assert done.returncode == plain.returncode
    assert done.stdout == plain.stdout
    assert "static" in done.stderr and done.stderr.startswith("kmemshim:") and done.stderr.count("\n") == 1


def test_a_setuid_program_says_why_nothing_was_recorded(programs, out, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to make a program setuid")
    tmp_path.chmod(0o755)
    program = tmp_path / "setuid"
    shutil.copy(programs("leak_in_a_loop.c"), program)
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    done = harness.ok(harness.kmemshim("run", "-o", out, "--", program))

    assert "setuid" in done.stderr and done.stderr.startswith("kmemshim:") and done.stderr.count("\n") == 1


def test_a_capture_that_disappears_while_it_is_written(programs, out, tmp_path):
    """Someone cleans up the folder of a running program: it goes on."""
    program, file = programs("ledger.c", "-fno-optimize-sibling-calls"), tmp_path / "ledger"
    process = subprocess.Popen([program, file, str(random.randrange(1 << 30)), "2", "200000"], env=harness.shim_env(out),
                               stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while not list(out.glob("*.kmem")) and process.poll() is None:
        pass
    shutil.rmtree(out)
    errors = process.communicate(timeout=harness.TIMEOUT)[1]

    assert process.returncode == 0
    assert errors.count("\n") <= 1
