"""What the kernel's log and the journal say of a death, without a launcher: the real kernel's log, and a journal of our own."""
import ctypes
import json
import os
import signal
import time

import pytest

import harness

GROW = "kept = []\nwhile True:\n    kept.append(bytearray(1 << 20))\n"
HOLD = "kept = [bytearray(1 << 20) for i in range(40)]\n"


def needs_the_kernels_log():
    if ctypes.CDLL(None).klogctl(10, None, 0) <= 0 or ctypes.CDLL(None).klogctl(3, ctypes.create_string_buffer(100), 100) < 0:
        pytest.skip("this user may not read the kernel's log (kernel.dmesg_restrict)")
    if os.readlink("/proc/self/ns/pid") != "pid:[4026531836]":
        pytest.skip("in a container the kernel's log has other numbers")


def without_launcher(tmp_path, text, out, group=None):
    script = tmp_path / "program.py"
    script.write_text(text)
    argv = ["/usr/bin/python3", script]
    if group is not None:
        argv = ["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', group, *argv]
    return harness.record(argv, out)


def why(out, **env):
    done = harness.ok(harness.kmemshim("why", out, env=harness.plain_env(**env)))
    document = json.loads(harness.kmemshim("why", "--json", out, env=harness.plain_env(**env)).stdout)
    return harness.unwrapped(done.stdout), document["verdict"]


def test_the_kernels_log_names_who_was_killed(tmp_path, out):
    needs_the_kernels_log()
    with harness.memory_group(150 << 20) as group:
        assert without_launcher(tmp_path, GROW, out, group).returncode == -signal.SIGKILL
    # The group is gone, and its counters with it: only the log can tell.
    text, verdict = why(out)
    assert (verdict["cause"], verdict["confidence"]) == ("container-limit", "likely")
    assert "The log of the kernel says: \"Memory cgroup out of memory: Killed process" in text
    assert "system-log" in [finding["kind"] for finding in verdict["findings"]]


def test_the_kernels_log_names_a_crash(tmp_path, out):
    needs_the_kernels_log()
    if open("/proc/sys/debug/exception-trace").read().strip() == "0":
        pytest.skip("the kernel writes no line about crashes (debug.exception-trace)")
    assert without_launcher(tmp_path, HOLD + "import ctypes; ctypes.string_at(0)", out).returncode == -signal.SIGSEGV
    text, verdict = why(out)
    assert verdict["cause"] == "crashed" and "segfault at 0" in text


@pytest.fixture
def journal(tmp_path):
    """journal(script) is a journalctl that runs this; returns PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def make(text):
        (folder / "journalctl").write_text("#!/bin/sh\n" + text)
        (folder / "journalctl").chmod(0o755)
        return f"{folder}:{os.environ['PATH']}"
    return make


def line(message, writer, **fields):
    """As journald writes it: fields with an underscore are its own, the others are what the writer said of itself."""
    trusted = {"_TRANSPORT": "kernel"} if writer == "kernel" else {"_TRANSPORT": "journal", "_UID": "0"}
    return json.dumps({"MESSAGE": message, "SYSLOG_IDENTIFIER": writer, "__MONOTONIC_TIMESTAMP": str(time.monotonic_ns() // 1000),
                       **trusted, **fields})


def killed(tmp_path, out):
    """A program that somebody ended with SIGKILL. Its pid."""
    done = without_launcher(tmp_path, HOLD + "import os; print(os.getpid(), flush=True); os.kill(os.getpid(), 9)", out)
    assert done.returncode == -signal.SIGKILL
    return int(done.stdout)


def test_earlyoom_is_told_from_its_line(tmp_path, out, journal):
    pid = killed(tmp_path, out)
    message = f'sending SIGKILL to process {pid} uid 0 "python3": badness 853, VmRSS 40 MiB'
    (tmp_path / "lines").write_text(line("low memory!", "earlyoom") + "\nno json\n{\n" + line(message, "earlyoom") + "\n")
    path = journal(f'echo "$@" >{tmp_path}/asked; cat {tmp_path}/lines\n')
    text, verdict = why(out, PATH=path)
    if os.readlink("/proc/self/ns/pid") == "pid:[4026531836]":
        assert (verdict["cause"], verdict["confidence"]) == ("low-memory-daemon", "likely")
        assert f'The log of earlyoom says: "sending SIGKILL to process {pid} uid 0 "python3": badness 853, VmRSS 40 MiB"' in text
    asked = (tmp_path / "asked").read_text().split()
    boot = open("/proc/sys/kernel/random/boot_id").read().strip().replace("-", "")
    assert asked[-1] == "_BOOT_ID=" + boot and "json" in asked


@pytest.mark.parametrize("writer, fields", [
    ("earlyoom", {"_UID": "1000"}), ("earlyoom", {"_UID": "1000", "_COMM": "earlyoom"}), ("earlyoom", {"_UID": None}),
    ("earlyoom", {"_UID": "65534", "_TRANSPORT": "syslog"}), ("kernel", {"_TRANSPORT": "syslog", "_UID": "1000"}),
    ("kernel", {"_TRANSPORT": "journal", "_UID": "0"}), ("kernel", {"_TRANSPORT": None}), ("systemd", {"_UID": "1000"})])
def test_a_line_that_anybody_could_write_is_not_believed(writer, fields, tmp_path, out, journal):
    pid = killed(tmp_path, out)
    message = f"Out of memory: Killed process {pid} (python3) total-vm:9kB" if writer == "kernel" else \
        f'sending SIGKILL to process {pid} uid 0 "python3": badness 853, VmRSS 40 MiB'
    (tmp_path / "lines").write_text(line(message, writer, **fields) + "\n")
    text, verdict = why(out, PATH=journal(f"cat {tmp_path}/lines\n"))
    assert verdict["cause"] == "gone" and "The log of" not in text


@pytest.mark.parametrize("user", ["0", "105", "61500"])
def test_a_daemon_of_the_system_is_believed_whatever_its_user(user, tmp_path, out, journal):
    needs_the_kernels_log()
    pid = killed(tmp_path, out)
    message = f'sending SIGKILL to process {pid} uid 0 "python3": badness 853, VmRSS 40 MiB'
    (tmp_path / "lines").write_text(line(message, "earlyoom", _UID=user, _TRANSPORT="stdout") + "\n")
    assert why(out, PATH=journal(f"cat {tmp_path}/lines\n"))[1]["cause"] == "low-memory-daemon"


def test_a_program_that_renamed_itself_keeps_its_line(tmp_path, out):
    needs_the_kernels_log()
    rename = "import ctypes; ctypes.CDLL(None).prctl(15, b'worker 3')\n"
    with harness.memory_group(150 << 20) as group:
        assert without_launcher(tmp_path, rename + GROW, out, group).returncode == -signal.SIGKILL
    text, verdict = why(out)
    assert verdict["cause"] == "container-limit" and "(worker 3)" in text


def test_systemd_oomd_is_told_from_its_line(tmp_path, out, journal):
    killed(tmp_path, out)
    capture = next(out.glob("*.kmem")).read_bytes()
    start = capture.find(b"/sys/fs/cgroup")
    if start < 0:
        pytest.skip("there are no cgroups here")
    cgroup = capture[start + len("/sys/fs/cgroup"):capture.index(b"\0", start)].decode()
    if cgroup in ("", "/"):
        pytest.skip("a program of the first cgroup is nobody's of systemd-oomd")
    message = f"Killed {cgroup} due to memory pressure for / being 60.22% > 50.00% for > 20s with reclaim activity"
    (tmp_path / "lines").write_text(line(message, "systemd-oomd") + "\n")
    text, verdict = why(out, PATH=journal(f"cat {tmp_path}/lines\n"))
    assert verdict["cause"] == "low-memory-daemon" and "was killed by systemd-oomd" in text


@pytest.mark.parametrize("script", ["exec sleep 1000", "exit 1", "kill -9 $$", "head -c 20000000 /dev/zero", "echo '{\"MESSAGE\": [1,2]}'"])
def test_a_journal_that_does_not_work(tmp_path, out, journal, script):
    killed(tmp_path, out)
    path = journal(script + "\n")  # who sleeps would take longer than any test may
    done = harness.kmemshim("why", out, env=harness.plain_env(PATH=path))
    assert done.returncode == 0 and "ended without a clean exit" in harness.unwrapped(done.stdout)
