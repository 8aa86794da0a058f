"""Steps, marks and snapshots of whole programs: are they seen, kept and told?"""
import ast
import json
import os
import re
import signal
import subprocess
import sys
import time

import pytest

from harness import BUILD, KMEMSHIM, ROOT, ok, record, report, run, shim_env, silent, unwrapped

PACKAGE = ROOT / "python"

AFTER_A_LARGE_IMPORT = """
keep = []
objects = [(i, str(i)) for i in range(300000)]
def step():
    buffers = [bytearray(200000) for _ in range(5)]
    keep.append(bytearray(1 << 20))
for n in range(100):
    step()
    other = bytearray(3000000)
"""

SAYS = """
import sys
sys.path.insert(0, %r)
import kmemshim
kept = []
kmemshim.snapshot("start")
for n in range(50):
    kmemshim.step()
    if n %% 10 == 0:
        kmemshim.mark("epoch %%d" %% (n // 10))
    kept.append(bytearray(100000))
    passed = bytearray(300000)
kmemshim.snapshot("end")
""" % str(PACKAGE)


def capture_of(out):
    capture, = out.glob("*.kmem")
    return capture


def marks(document):
    return [mark for mark in document["processes"][0]["marks"] if mark["kind"] != "high-water"]


def python(text, tmp_path, **settings):
    program = tmp_path / "train.py"
    program.write_text(text)
    ok(run(["/usr/bin/python3", program], shim_env(tmp_path / "out", **settings)))
    return report("report", tmp_path / "out")


def test_a_leak_in_short_steps_after_a_large_import_is_a_leak(tmp_path):
    document = python(AFTER_A_LARGE_IMPORT, tmp_path)
    steps = document["processes"][0]["steps"]
    assert steps["source"] == "loop" and steps["is_estimated"]
    assert steps["file"].endswith("train.py") and steps["line"] in (8, 9), steps
    assert 60 <= steps["count"] <= 140, steps
    leak = next(site for site in document["sites"] if site["where"] and site["where"]["line"] == 6
                and site["domain"] == "heap")
    assert leak["leak"]["class"] == "leak", leak
    assert leak["leak"]["generations_total"] >= 12 and leak["leak"]["steps"] >= 60
    line = next(line for line in document["lines"] if line["where"] and line["where"]["line"] == 6 and line["domain"] == "heap")
    kept = line["kept_in_steps"]
    assert 90 <= kept["count"] <= 110 and kept["is_one_block"] and kept["bytes_per_hour"] is None, kept
    text = run([KMEMSHIM, "leaks", capture_of(tmp_path / "out")]).stdout
    assert re.search(r"keeps one block of [\d.]+ [KM]iB in each of about \d+ rounds \(seen at train\.py:[89]\)", text), text


ROUNDS_THAT_ARE_MISSED = """
keep = []
for n in range(100000):
    keep.append(bytearray(700))
    more = bytearray(900)
"""


@pytest.mark.usefixtures("as_users_run_it")  # verified, each event takes long, and all rounds are seen
def test_what_a_round_kept_is_not_told_where_most_rounds_were_missed(tmp_path):
    document = python(ROUNDS_THAT_ARE_MISSED, tmp_path)
    assert document["processes"][0]["steps"]["count"] < 50000, "all are seen now: this needs another program"
    why = unwrapped(run([KMEMSHIM, "why", capture_of(tmp_path / "out")]).stdout)
    assert "It looks like a leak" in why and "kept in each of" not in why, why
    text = run([KMEMSHIM, "report", capture_of(tmp_path / "out")]).stdout
    steps, = [line for line in text.splitlines() if line.startswith("Steps: ")]
    assert "about" not in steps and "each" not in steps and steps.endswith("; there may be more: most rounds of a quick loop are not seen"), steps


# Another process asks 100 times.
ASKED = r"""
import os, subprocess, sys
CLIENT = r'''
import socket, sys, time
for n in range(100):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
        connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
        while connection.recv(65536):
            pass
    time.sleep(0.005)
'''
def ask(port):
    return subprocess.Popen(["/usr/bin/python3", "-c", CLIENT, str(port)], env={"PATH": os.environ["PATH"]})
kept = []
"""

SERVES = ASKED + """
import http.server, threading
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kept.append(bytearray(200000))  # kept
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x" * 100000)
    def log_message(self, *what):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
client = ask(server.server_port)
threading.Thread(target=lambda: (client.wait(), server.shutdown())).start()
server.serve_forever(0.05)
"""

AWAITS = ASKED + """
import asyncio
async def handle(reader, writer):
    await reader.read(100)
    kept.append(bytearray(200000))  # kept
    writer.write(b"x" * 100000)
    await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    client = ask(server.sockets[0].getsockname()[1])
    while client.poll() is None:
        await asyncio.sleep(0.05)
asyncio.run(main())
"""


THREADS = SERVES.replace("http.server.HTTPServer(", "http.server.ThreadingHTTPServer(")  # one for each request


@pytest.mark.parametrize("text, function", [(SERVES, "Handler.do_GET"), (AWAITS, "handle"), (THREADS, "Handler.do_GET")],
                         ids=["http", "asyncio", "threads"])
def test_requests_of_a_server_are_rounds(tmp_path, text, function):
    document = python(text, tmp_path)
    process = next(process for process in document["processes"] if process["name"] == "train.py")
    assert process["steps"]["source"] == "loop" and process["steps"]["function"].endswith(function), process["steps"]
    assert 75 <= process["steps"]["count"] <= 125, process["steps"]
    line = next(line for line in document["lines"] if line["where"] and line["where"]["source"] and "# kept" in line["where"]["source"])
    assert line["kept_in_steps"]["is_one_block"] and 90 <= line["kept_in_steps"]["count"] <= 110, line


def test_a_python_program_says_where_it_is(tmp_path):
    document = python(SAYS, tmp_path)
    steps = document["processes"][0]["steps"]
    assert (steps["count"], steps["source"], steps["is_estimated"]) == (50, "program", False)
    told = marks(document)
    assert [mark["name"] for mark in told] == ["start", "epoch 0", "epoch 1", "epoch 2", "epoch 3", "epoch 4", "end"]
    assert [mark["step"] for mark in told] == [0, 1, 11, 21, 31, 41, 50]
    assert [mark["is_snapshot"] for mark in told] == [True] + 5 * [False] + [True]
    text = run([KMEMSHIM, "report", capture_of(tmp_path / "out")]).stdout
    assert "Steps: 50 steps of the program" in text and "epoch 3" in text
    why = unwrapped(run([KMEMSHIM, "why", capture_of(tmp_path / "out")]).stdout)
    assert re.search("One block of 97.7 KiB was kept in each of (49|50) steps", why), why


def test_a_snapshot_is_shown_as_it_was(tmp_path):
    python(SAYS, tmp_path)
    capture = capture_of(tmp_path / "out")

    def held(*options):
        document = report("sites", capture, *options)
        return sum(site["live_bytes"] for site in document["sites"]
                   if site["where"] and site["where"]["file"].endswith("train.py") and site["where"]["line"] == 11
                   and site["domain"] == "heap")
    assert held("--at", "start") == 0
    assert held("--at", "end") in range(50 * 100000, 50 * 100000 + 20000)
    number = next(mark["sequence"] for mark in marks(report("report", capture)) if mark["name"] == "end")
    assert held("--at", f"#{number}") == held("--at", "end")
    done = run([KMEMSHIM, "sites", capture, "--at", "nothing"])
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and 'no snapshot "nothing"' in done.stderr


BETWEEN = """
import kmemshim
first = [bytearray(3000000)]
kmemshim.snapshot("begin")
second = [bytearray(5000000)]
first.clear()
more = [bytearray(100000) for i in range(40)]
del more[10:]
kmemshim.snapshot("end")
more.clear()
"""


def test_what_came_between_two_snapshots(tmp_path):
    python(BETWEEN, tmp_path, PYTHONPATH=str(PACKAGE))
    capture = capture_of(tmp_path / "out")

    def held(command, figure, *options):
        document = report(command, capture, "--since", "begin", *options)
        own = [site for site in document["sites"] if site["domain"] == "heap" and site["where"] and site["where"]["file"].endswith("train.py")]
        return {line: [round(sum(site[key] for site in own if site["where"]["line"] == line), -5) for key in figure] for line in (3, 5, 7)}
    assert held("sites", ("live_bytes", "live_count"), "--at", "end") == {3: [0, 0], 5: [5000000, 0], 7: [1000000, 0]}
    assert held("sites", ("live_bytes",)) == {3: [0], 5: [5000000], 7: [0]}
    assert held("peak", ("peak_bytes",)) == {3: [0], 5: [5000000], 7: [4000000]}
    done = run([KMEMSHIM, "sites", capture, "--at", "end", "--since", "nothing"])
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and 'no snapshot "nothing"' in done.stderr


def test_growth_until_a_snapshot_is_a_part_of_what_was_live_then(tmp_path):
    python(SAYS.replace("range(50)", "range(400)").replace("    passed", "    if n == 100: kmemshim.snapshot('early')\n    passed"), tmp_path)
    whole = run([KMEMSHIM, "report", capture_of(tmp_path / "out"), "--at", "early"]).stdout
    assert "At the end" not in whole.partition("Next:")[0], whole
    done = run([KMEMSHIM, "leaks", capture_of(tmp_path / "out"), "--at", "early"])
    share = re.search(r"grows .* of the run: (\d+) % of the process's growth since then", unwrapped(done.stdout))
    assert share and int(share[1]) >= 90, done.stdout


def test_without_the_recorder_nothing_happens(tmp_path):
    program = tmp_path / "says.py"
    program.write_text(SAYS)
    done = subprocess.run(["/usr/bin/python3", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={name: value for name, value in os.environ.items() if name != "LD_PRELOAD"})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


ASKS = """
import sys
sys.path.insert(0, %r)
import kmemshim
class Cache: pages = {}
def fill():
    for number in range(100):
        Cache.pages[number] = bytearray(100000)
fill()
print(kmemshim.holders(top=1, stop="60s"))
""" % str(PACKAGE)


def test_a_program_asks_what_holds_its_memory(tmp_path):
    program = tmp_path / "asks.py"
    program.write_text(ASKS)
    environment = shim_env(tmp_path / "out", PATH=f"{BUILD}:{os.environ['PATH']}")
    done = ok(run(["/usr/bin/python3", program], environment))
    line, = ast.literal_eval(done.stdout)
    assert line["place"] == "asks.py:8 fill"
    assert line["ways"][0]["text"].startswith("attribute `pages` of class Cache -> dict of 100"), line["ways"]
    plain = {name: value for name, value in environment.items() if name != "LD_PRELOAD"}
    assert run(["/usr/bin/python3", program], plain).stdout == "None\n"
    program.write_text(ASKS.replace('stop="60s"', 'stop="never"'))
    refused = run(["/usr/bin/python3", program], environment)
    assert refused.returncode == 1 and "Unavailable: kmemshim: holders: " in refused.stderr


# From then on the kernel ends a program that names who may trace it (PR_SET_PTRACER). By libc's own prctl(): the recorder does not see it.
NAMES_NOBODY = """
import ctypes, struct
libc = ctypes.CDLL("libc.so.6")
rows = [(0x20, 0, 0, 0), (0x15, 0, 3, 157), (0x20, 0, 0, 16), (0x15, 0, 1, 0x59616D61), (0x06, 0, 0, 0x80000000), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(rows), ctypes.addressof(code))), 0, 0) == 0
"""


@pytest.mark.parametrize("has_tracer", [True, False])
def test_a_tracer_that_the_program_named_stays_when_it_asks(has_tracer, tmp_path):
    names = "import ctypes\nctypes.CDLL(None).prctl(0x59616D61, ctypes.c_ulong(1), 0, 0, 0)\n" if has_tracer else ""
    program = tmp_path / "asks.py"
    program.write_text(ASKS.replace("fill()\nprint", "fill()\n" + names + NAMES_NOBODY + "print"))
    done = run(["/usr/bin/python3", program], shim_env(tmp_path / "out", PATH=f"{BUILD}:{os.environ['PATH']}"))
    assert done.returncode == (0 if has_tracer else -signal.SIGSYS), done.stderr
    assert not has_tracer or "attribute `pages` of class Cache" in done.stdout


@pytest.mark.parametrize("compiler", [["gcc"], ["gcc", "-no-pie", "-fno-pie"], ["g++", "-x", "c++"],
                                      ["g++", "-x", "c++", "-no-pie", "-fno-pie"]])
def test_a_program_in_c_says_where_it_is(compiler, tmp_path):
    source = tmp_path / "says.c"
    source.write_text('#include "kmemshim.h"\nint main(void) { kmemshim_step(); kmemshim_mark("a"); '
                      'kmemshim_snapshot("b"); return 0; }\n')
    program = tmp_path / "says"
    ok(run([*compiler, "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", source, "-o", program]))
    assert run([program]).returncode == 0
    record([program], tmp_path / "out")
    document = report("report", tmp_path / "out")
    assert [mark["name"] for mark in marks(document)] == ["a", "b"]
    assert document["processes"][0]["steps"]["count"] == 1


HOSTILE = [("x" * 10000, "x" * 55, True), ("\u00e4" * 100, "\u00e4" * 27, True), ("two\nlines\x1b[31m", "two?lines?[31m", False),
           ('"quotes" and \\', '"quotes" and \\', False), ("", "", False)]


def test_hostile_names_are_one_line_each(tmp_path):
    text = f"import sys\nsys.path.insert(0, {str(PACKAGE)!r})\nimport kmemshim\n"
    text += "".join(f"kmemshim.mark({name!r})\n" for name, _, _ in HOSTILE) + "kmemshim.mark('\\ud800 \\0 x')\n"
    document = python(text, tmp_path)
    told = [(mark["name"], mark["is_cut"]) for mark in marks(document)]
    assert told == [(name, is_cut) for _, name, is_cut in HOSTILE] + [("? ? x", False)]
    shown = run([KMEMSHIM, "report", capture_of(tmp_path / "out")]).stdout
    assert "\x1b" not in shown and shown.count("#") >= len(told)


LIVES = """
import sys, time
print("up", flush=True)
while sys.stdin.readline():
    kept = [bytearray(100000) for i in range(50)]
    print("on", flush=True)
"""


@pytest.fixture
def living(tmp_path):
    program = tmp_path / "lives.py"
    program.write_text(LIVES)
    process = subprocess.Popen([KMEMSHIM, "run", "--quiet", "-o", tmp_path / "out", "--", "/usr/bin/python3", program],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "up\n"
    process.stdin.write("go\n")
    process.stdin.flush()
    assert process.stdout.readline() == "on\n"
    pid = int(capture_of(tmp_path / "out").name.split(".")[-3])
    yield process, pid
    process.stdin.close()
    process.wait(20)


def served(process, *words):
    """Runs the command while the program allocates."""
    command = subprocess.Popen([KMEMSHIM, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while command.poll() is None:
        process.stdin.write("go\n")
        process.stdin.flush()
        process.stdout.readline()
    out, errors = command.communicate()
    return command.returncode, out, errors


def test_a_running_program_is_marked_from_outside(living, tmp_path):
    process, pid = living
    assert served(process, "mark", str(pid), "epoch 3") == (0, "", "")
    assert served(process, "snapshot", str(pid), "now") == (0, "", "")
    assert served(process, "snapshot", str(pid)) == (0, "", "")
    assert served(process, "mark", str(pid), "y" * 10000) == (0, "", "")
    told = marks(report("report", tmp_path / "out"))
    assert [(mark["name"], mark["kind"], mark["is_snapshot"]) for mark in told] == [
        ("epoch 3", "outside", False), ("now", "outside", True), ("", "outside", True), ("y" * 55, "outside", False)]


def test_a_program_that_does_not_allocate_is_marked_when_it_does(living, tmp_path):
    process, pid = living
    done = run([KMEMSHIM, "mark", str(pid), "later"])
    assert done.returncode == 0 and "has not allocated since" in done.stderr and done.stderr.count("\n") == 1
    assert marks(report("report", tmp_path / "out")) == []
    for _ in range(3):
        process.stdin.write("go\n")
        process.stdin.flush()
        process.stdout.readline()
    assert [mark["name"] for mark in marks(report("report", tmp_path / "out"))] == ["later"]


def gone():
    process = subprocess.Popen(["true"])
    process.wait()
    return str(process.pid)


@pytest.mark.parametrize("words, says", [
    (["mark", "abc", "x"], '"abc" is not a process'),
    (["mark", "0", "x"], '"0" is not a process'),
    (["mark", "-5", "x"], "unknown option -5"),
    (["snapshot", "99999999999999999999"], "is not a process"),
    (["mark", gone, "x"], "is gone"),
    (["snapshot", gone], "is gone"),
    (["mark", lambda: str(os.getpid()), "x"], "is not recorded: start it with kmemshim run"),
    (["mark", "1234"], "an argument is missing"),
    (["mark", lambda: str(os.getpid()), ""], "the name is empty"),
    (["run", "--snapshots", "1", "--", "true"], 'expected a number from 2 to 32'),
    (["run", "--snapshots", "33", "--", "true"], 'expected a number from 2 to 32'),
])
def test_what_cannot_be_asked_is_one_line(words, says):
    done = run([KMEMSHIM, *[word() if callable(word) else word for word in words]])
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("kmemshim: ") and done.stderr.count("\n") == 1 and says in done.stderr, done.stderr


def test_states_at_even_distances_and_the_file_does_not_grow(tmp_path):
    (tmp_path / "train.py").write_text("""
import time
begin = last = time.monotonic()
longest = rounds = 0
while last < begin + 4 or rounds < 1200:  # a busy machine needs longer for as many
    kept = bytearray(1 << 20)
    rounds += 1
    time.sleep(0.002)
    now = time.monotonic()
    last, longest = now, max(longest, now - last)
print(longest)
""")
    done = ok(run(["/usr/bin/python3", tmp_path / "train.py"], shim_env(tmp_path / "out", KMEMSHIM_SNAPSHOTS="4")))
    told = marks(report("report", tmp_path / "out"))
    assert {mark["kind"] for mark in told} == {"even"} and all(mark["is_snapshot"] for mark in told)
    assert 2 <= len(told) <= 4
    times = [mark["age_ns"] / 1e9 for mark in told]
    distances = [later - earlier for earlier, later in zip(times, times[1:])]
    late = float(done.stdout) * min(distances) / 0.25  # as often as there was a state since then, a round may have been held up
    assert max(distances) < 1.5 * min(distances) + late, (times, late)


def test_a_snapshot_of_a_program_that_was_killed_is_compared(tmp_path):
    """Generations are those of the end where a snapshot has none: more blocks than were live then are no damage."""
    program = tmp_path / "train.py"
    program.write_text(f"import os, signal, sys\nsys.path.insert(0, {str(PACKAGE)!r})\nimport kmemshim\nkept = []\n"
                       "for i in range(600):\n    kept.append(bytearray(500000))\n    if i == 100: kmemshim.snapshot('early')\n"
                       "os.kill(os.getpid(), signal.SIGKILL)\n")
    out = tmp_path / "out"
    run(["/usr/bin/python3", program], shim_env(out))
    done = silent(run([KMEMSHIM, "diff", f"{out}@early", out, "--json"]))

    row = json.loads(done.stdout)["rows"][0]
    assert row["line"] == 6 and 499 * 500000 <= row["live_change_bytes"] < 500 * 500000, row


def test_a_child_has_marks_of_its_own(tmp_path):
    text = f"import os, sys\nsys.path.insert(0, {str(PACKAGE)!r})\nimport kmemshim\n" \
           "kept = bytearray(4 << 20)\nkmemshim.step(); kmemshim.snapshot('parent')\n" \
           "if os.fork() == 0:\n    more = bytearray(8 << 20)\n    kmemshim.step(); kmemshim.step(); kmemshim.snapshot('child')\n" \
           "    os._exit(0)\nos.wait()\n"
    document = python(text, tmp_path)
    told = {process["name"] + str(index): ([mark["name"] for mark in process["marks"] if mark["kind"] != "high-water"],
                                           process["steps"]["count"])
            for index, process in enumerate(document["processes"])}
    assert sorted(told.values()) == [(["child"], 2), (["parent"], 1)]


def test_steps_of_many_workers_are_one_paragraph(tmp_path):
    program = tmp_path / "workers.py"
    program.write_text("import os\ndef work():\n    kept = []\n    for i in range(4000):\n        kept.append(bytearray(2000))\n"
                       "for _ in range(6):\n    if os.fork() == 0:\n        work()\n        os._exit(0)\n    os.wait()\n")
    assert record([sys.executable, program], tmp_path / "out").returncode == 0
    document = report("report", tmp_path / "out")
    stepping = [process["pid"] for process in document["processes"] if process["steps"] is not None and process["steps"]["count"] > 0]
    shown = 1 + (document["processes"][0]["pid"] in stepping)  # the first process, and a worker
    assert len(stepping) > 3
    text = run([KMEMSHIM, "report", tmp_path / "out"]).stdout
    assert text.count("\nSteps of process ") == shown and f"\n  ... and of {len(stepping) - shown} more processes: --all shows them\n" in text
    assert run([KMEMSHIM, "report", "--all", tmp_path / "out"]).stdout.count("\nSteps of process ") == len(stepping)


def test_marks_of_many_threads_are_all_whole(tmp_path):
    text = f"import sys, threading\nsys.path.insert(0, {str(PACKAGE)!r})\nimport kmemshim\n" \
           "def work(n):\n    for i in range(2000):\n        kmemshim.step(); kmemshim.mark('t%d' % n)\n" \
           "        if i % 50 == 0: kmemshim.snapshot('s%d' % n); kept = bytearray(100000)\n" \
           "threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]\n" \
           "[t.start() for t in threads]; [t.join() for t in threads]\n"
    document = python(text, tmp_path)
    assert document["processes"][0]["steps"]["count"] == 16000
    assert document["damages"] == [] if "damages" in document else True
    assert len(marks(document)) >= 64
