"""What every whole-program test needs: record a program, read its report, compare with what was expected."""
import contextlib
import ctypes
import fcntl
import functools
import json
import os
import pty
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

import fastjsonschema
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD_DIR", ROOT / "build")).absolute()  # tests run elsewhere
SHIM = BUILD / "libkmemshim.so"
KMEMSHIM = BUILD / "kmemshim"
EXAMPLES = ROOT / "examples"
HERE = Path(__file__).resolve().parent
TIMEOUT = 300


# --- running ------------------------------------------------------------------------------------

def plain_env(**more):
    """The environment without anything of ours; hashes fixed so that two runs can be compared. SAMPLE= of the suite is KMEMSHIM_SAMPLE."""
    env = {name: value for name, value in os.environ.items()
           if not name.startswith(("KMEMSHIM_", "LD_PRELOAD", "PYTEST_", "MAKE", "MFLAGS"))}
    env.update(PYTHONHASHSEED="0", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", LC_ALL="C.UTF-8")
    env.update({"KMEMSHIM_SAMPLE": os.environ["SAMPLE"]} if "SAMPLE" in os.environ else {})
    env.update({name: str(value) for name, value in more.items()})
    return env


def shim_env(out, **more):
    """
    What is remembered of stacks is held against walked ones all along, and every 64th against libunwind's; report() looks at the
    outcome. VERIFY= in the environment of the suite says otherwise: 0 is what users run.
    """
    return plain_env(**{"LD_PRELOAD": SHIM, "KMEMSHIM_OUT": out, "KMEMSHIM_VERIFY": os.environ.get("VERIFY", "64"), **more})


@pytest.fixture
def as_users_run_it(monkeypatch):
    """Without verifying."""
    monkeypatch.setenv("VERIFY", "0")


def run(argv, env=None, timeout=TIMEOUT, **more):
    return subprocess.run([str(word) for word in argv], env=env or plain_env(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, errors="replace", timeout=timeout, **more)


def ok(done):
    """The same, where it ended with status 0."""
    assert done.returncode == 0, f"{done.args}: {done.returncode}: {done.stdout}{done.stderr}"
    return done


def silent(done):
    """The same, where it also wrote nothing to stderr."""
    assert ok(done).stderr == "", f"{done.args}: {done.stderr}"
    return done


def record(argv, out, **more):
    """Runs a program under the shim; the capture is the folder `out`."""
    return run(argv, shim_env(out), **more)


def tries():
    """next(tries) in a loop that ends by chance: on a busy machine that takes long; what never comes is a failure."""
    end = time.monotonic() + TIMEOUT
    while time.monotonic() < end:
        yield
    raise AssertionError("it does not happen")


def wait_for(what):
    """Waits until what() is true."""
    waiting = tries()
    while not what():
        next(waiting)
        time.sleep(.005)


def killed_when(is_there, argv, env):
    """Starts a program that goes on for ever. Kills it when it has printed a line and is_there(); returns the line."""
    with subprocess.Popen([str(word) for word in argv], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            wait_for(lambda: is_there() or process.poll() is not None)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    return line


def kmemshim(*words, **more):
    return run([KMEMSHIM, *words], **more)


@functools.cache
def schema(kind):
    """Of the JSON of commands: report, diff, doctor, holders or lost."""
    return json.loads(kmemshim("schema", kind).stdout)


@functools.cache
def validator(kind):
    return fastjsonschema.compile(schema(kind))  # jsonschema takes eight times as long: longer than the programs


def with_each_frame_once(document):
    """The same, where a site has those of its frames alone that no site before it has: each stands in hundreds of stacks."""
    seen = set()

    def is_new(frame):
        text = repr(frame)
        return text not in seen and not seen.add(text)

    sites = document.get("sites", [])
    return document if not sites else {**document, "sites": [
        {**site, "frames": [frame for frame in site["frames"] if is_new(frame)]} if isinstance(site.get("frames"), list) else site for site in sites]}


def validate(document, kind="report"):
    validator(kind)(with_each_frame_once(document))


def on_a_terminal(columns, argv, stdout=subprocess.DEVNULL, **settings):
    """Runs a command whose stderr is a terminal, and its stdout too where that is None; what it wrote there, as text."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=theirs if stdout is None else stdout, stderr=theirs,
                               env=plain_env(**{"TERM": "xterm", **settings}))
    ended = threading.Thread(target=lambda: (process.wait(TIMEOUT), os.write(theirs, b"\0")))  # behind all that it wrote
    ended.start()
    seen = b""
    while not seen.endswith(b"\0"):
        seen += os.read(ours, 65536)
    ended.join()
    os.close(ours)
    os.close(theirs)
    assert process.returncode == 0, seen
    return seen[:-1].decode().replace("\r\n", "\n")


# A Python program that keeps a block from each of so many lines that a small disk has no room for their names.
MANY_LINES = """
kept = []
for i in range(1500):
    space = {}
    exec(compile(f"def f{i}():\\n    return bytearray(20000)\\n", f"made_{i}.py", "exec"), space)
    kept.append(space[f"f{i}"]())
"""


def unwrapped(page):
    """A page on one line. Where its paragraphs break depends on figures and process ids: words are looked for in this."""
    return " ".join(page.split())


def read_report(command, capture, *options):
    """The JSON report of a command. Of thousands of rows the schema takes longer than the program, and other tests check it."""
    done = kmemshim(command, capture, "--json", *options)
    assert done.returncode == 0, f"{done.args}: {done.returncode}: {done.stderr}"
    document = json.loads(done.stdout)
    assert document["verify"]["mismatched"] == 0
    return document


def report(command, capture, *options):
    """The JSON report of a command, checked against the published schema."""
    document = read_report(command, capture, *options)
    validate(document)
    return document


def compile_c(source, program, *flags, compiler="gcc"):
    ok(run([compiler, "-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", "-Wall", "-pthread", *flags, source, "-o", program]))
    return program


def compile_cc(folder, name, *flags):
    """NAME.cc of this folder as a program NAME_cc."""
    program = folder / f"{name}_cc"
    ok(run(["g++", "-std=gnu++17", "-g", "-O1", *flags, HERE / f"{name}.cc", "-o", program]))
    return program


@functools.lru_cache
def venv(name):
    """The Python of a virtual environment of tools/venv, made if it is not there."""
    return ok(run([ROOT / "tools" / "venv", name], plain_env(BUILD=BUILD), timeout=1500)).stdout.strip()


def find_python(*modules):
    """An interpreter that has these modules, Debian's first; None when there is none."""
    for python in ["/usr/bin/python3", sys.executable, shutil.which("python3")]:
        if python and os.path.exists(python):
            if run([python, "-c", "".join(f"import {name};" for name in modules)]).returncode == 0:
                return python
    return None


# --- expectations -------------------------------------------------------------------------------

def expectations(source):
    """The `expect:` lines of an example: command, domain, and what the sites must say, in their order."""
    found = []
    for line in Path(source).read_text().splitlines():
        match = re.match(r"(?://|#) expect: (\w+) (\S+) (.*)", line)
        if not match:
            break
        wanted = dict(word.split("=", 1) for word in match[3].split())
        found.append((match[1], match[2], wanted))
    assert found, f"{source}: the first line does not say what to expect"
    return found


def place(site):
    """file:line of a site, the file without its folder."""
    where = site.get("where") or {}
    return f"{os.path.basename(where.get('file') or '?')}:{where.get('line')}"


def summary(sites, top=5):
    return "\n".join(f"  {place(site)} {site['domain']} live {site['live_bytes']} ({site['live_count']}) "
                     f"peak {site['peak_bytes']} {site['leak']['class']}" for site in sites[:top])


def check_expectations(source, capture):
    """Each expectation is the next row of its command's ranking."""
    taken = {}
    for command, domain, wanted in expectations(source):
        document = report(command, capture, "--domain", domain, "--top", "20")
        rank = taken.get((command, domain), 0)
        taken[command, domain] = rank + 1
        sites = document["sites"]
        assert len(sites) > rank, f"{command} --domain {domain}: no row {rank + 1}"
        site = sites[rank]
        seen = {name: str(site.get(name)) for name in wanted}
        if "where" in wanted:
            seen["where"] = place(site)
        if "class" in wanted:
            seen["class"] = site["leak"]["class"]
        if "processes" in wanted:
            seen["processes"] = str(len(document["processes"]))
        assert seen == wanted, f"{command} --domain {domain}, row {rank + 1}:\n{summary(sites)}"


# --- limits -------------------------------------------------------------------------------------

@contextlib.contextmanager
def memory_group(limit_bytes):
    """A memory cgroup without swap, version 2 or 1, below ours or at the top; skips where none can be made. Yields its folder."""
    own = {line.split(":")[1]: line.strip().split(":", 2)[2] for line in open("/proc/self/cgroup")}
    own_v1 = next((path for names, path in own.items() if "memory" in names.split(",")), "")
    places = [(f"/sys/fs/cgroup{own.get('', '')}", "memory.max", "memory.swap.max", 0), ("/sys/fs/cgroup", "memory.max", "memory.swap.max", 0)]
    places += [(f"/sys/fs/cgroup/memory{path}", "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", limit_bytes) for path in (own_v1, "")]
    for parent, limit_file, swap_file, swap_bytes in places:
        try:
            if not (Path(parent) / "cgroup.procs").exists():
                continue
            group = Path(tempfile.mkdtemp(prefix="kmemshim-test-", dir=parent))  # process ids are others' elsewhere
        except OSError:
            continue
        try:
            (group / limit_file).write_text(str(limit_bytes))
            with contextlib.suppress(OSError):  # absent where swap is not accounted
                (group / swap_file).write_text(str(swap_bytes))
        except OSError:
            group.rmdir()
            continue
        try:
            yield group
        finally:
            group.rmdir()
        return
    pytest.skip("no memory cgroup can be made here")


@contextlib.contextmanager
def adopting():
    """Orphans become our children: elsewhere somebody may reap them late, or never."""
    PR_SET_CHILD_SUBREAPER = 36
    prctl = ctypes.CDLL(None).prctl
    assert prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


# --- killing ------------------------------------------------------------------------------------

def seeded_random():
    """SEED= repeats a run; the seed is printed, so that a failure can be repeated."""
    seed = int(os.environ.get("SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"SEED={seed}")
    return random.Random(seed)


def kill_in_second_half(argv, out, epochs, rng, **more):
    """
    Runs a training script under the shim and kills it with SIGKILL: in a random epoch of its second half, at a
    random instant of that epoch, found by copying its output for a random while. Returns the epoch.

    Many more epochs are asked for: on a busy machine the script runs ahead of who reads its output, and after its last epoch
    it has given everything back.
    """
    asked = 20 * epochs
    moment = rng.randrange(epochs * 2 // 3, epochs)
    linger = rng.random()
    process = subprocess.Popen([str(word) for word in argv], env=shim_env(out, EPOCHS=asked, **more),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    last_epoch = None
    try:
        for line in process.stdout:
            match = re.match(r"epoch (\d+)/", line)
            if not match:
                continue
            now = os.times().elapsed
            epoch_seconds = now - last_epoch if last_epoch else 0
            last_epoch = now
            if int(match[1]) >= moment:
                try:
                    process.wait(timeout=linger * epoch_seconds)
                except subprocess.TimeoutExpired:
                    pass
                break
    finally:
        process.kill()
        errors = process.communicate(timeout=TIMEOUT)[1]
    assert process.returncode == -signal.SIGKILL, f"ended by itself with {process.returncode}: {errors}"
    assert "kmemshim" not in errors, errors
    return moment
