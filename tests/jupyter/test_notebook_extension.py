"""%kmem in a recorded kernel and in one that is not; the verdict of the life before; what is written down, and what is not."""
import contextlib
import json
import re
import sys
import time

import pytest
from jupyter_client import KernelManager

import harness
from growing import GROWING
from notebooks import GROW, SECONDS, wait_for


class Kernel:
    """A kernel whose cells are run one by one. What they show is a list of (kind, text)."""

    def __init__(self, place, name="recorded"):
        self.place = place
        self.manager = KernelManager(kernel_name=name)
        self.manager.start_kernel()
        self.connect()

    def connect(self):
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=SECONDS)

    def run(self, text, **more):
        self.shown = []
        self.html = []
        self.client.execute_interactive(text, timeout=SECONDS, output_hook=self.take, **more)
        return "\n".join(text for _, text in self.shown)

    def take(self, message):
        content = message["content"]
        if message["msg_type"] in ("stream", "error"):
            self.shown.append((message["msg_type"], content.get("text") or "\n".join(content["traceback"])))
        elif message["msg_type"] in ("display_data", "execute_result"):
            self.shown.append((message["msg_type"], content["data"]["text/plain"]))
            self.html.append(content["data"].get("text/html", ""))

    def die(self, text):
        """As a server sees it: the kernel is gone, and is started again with the same connection file."""
        self.client.execute(text)
        wait_for(lambda: not self.manager.is_alive())
        self.client.stop_channels()
        self.manager.restart_kernel(now=True)
        self.connect()

    def end(self):
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def start(place):
    with contextlib.ExitStack() as stack:
        def start_(**more):
            kernel = Kernel(place, **more)
            stack.callback(kernel.end)
            return kernel
        yield start_


def test_kmem_shows_what_holds_and_what_has_grown(start):
    kernel = start()
    kernel.run(GROW)
    kernel.run("grow(50)")
    first = kernel.run("%kmem")
    assert "50.0 MiB  cell In[1] line 4 grow  " in first and "keep.append(bytearray(1 << 20))" in first, first
    assert "The next %kmem shows what has grown since this one." in first and "magics.py" not in first
    assert "<table" in kernel.html[0] and "cell In[1] line 4 grow" in kernel.html[0]
    kernel.run("grow(20)\nmore = bytearray(5 << 20)")
    second = kernel.run("%kmem")
    rows = {tuple(line.split()[:5]) for line in second.splitlines()}
    assert ("70.0", "MiB", "+20.0", "MiB", "cell") in rows and ("5.0", "MiB", "+5.0", "MiB", "cell") in rows, second
    kernel.run("del keep[:]")
    assert "Since the last %kmem: \u221270.0 MiB in all." in kernel.run("%kmem")


def test_small_lines_share_a_row_beside_large_ones(start):
    kernel = start()
    kernel.run("a = bytearray(300 << 10)\nb = bytearray(200 << 10)")
    alone = kernel.run("%kmem")
    assert "300 KiB  cell In[1] line 1" in alone and "200 KiB  cell In[1] line 2" in alone and "lines with less" not in alone, alone
    kernel.run("c = bytearray(20 << 20)\nd = bytearray(100 << 10)")
    beside = kernel.run("%kmem")
    assert re.search(r"20.0 MiB +\+20.0 MiB  cell In\[3\] line 1", beside), beside
    assert "cell In[1]" not in beside and re.search(r"≈?[\d.]+ [KM]iB +[+\u2212][\d.]+ [KM]?i?B  \d+ (of the )?lines with less than 1 MiB each\n", beside), beside
    assert beside.count("100 KiB") == 2, beside  # a small line that grew is told all the same


def test_what_was_never_touched_is_told_where_less_is_in_memory_than_live(start):
    """bytes(n) is all zeros, of which the kernel makes no pages; blocks of less than 1 MiB are not looked at one by one."""
    kernel = start()
    kernel.run("kept = [bytes(400_000) for _ in range(400)]")
    shown = kernel.run("%kmem")
    absent = re.search(r"Of what is live, (at least )?([\d.]+) MiB was requested and not used yet, or swapped out\.", shown)
    assert absent and 60 < float(absent[2]) < 160, shown


def test_what_imports_left_is_told_beside_hundreds_of_lines(start):
    """They come last, beyond the lines that are asked for."""
    kernel = start()
    kernel.run("kept = []\n" + "\n".join("kept.append(bytearray(20000))" for _ in range(300)) + "\n0;")
    assert "Left by imports, and not in this table: " in kernel.run("%kmem")


def test_a_cell_is_measured(start):
    kernel = start()
    kernel.run(GROW)
    shown = kernel.run("%%kmem\n\nbig = bytearray(60 << 20)\ndel big\ngrow(20)\nlen(keep)")
    assert kernel.shown[-1] == ("execute_result", "20")
    assert "this cell: 20." in shown and "Peak: at one moment 60." in shown, shown
    peak, kept = shown.split("Lines that hold more")
    assert "+20.0 MiB" in kept and "cell In[1] line 4 grow" in kept and "big" not in kept
    assert "+60.0 MiB" in peak and "cell In[2] line 3  big = bytearray(60 << 20)" in peak and "grow" not in peak, shown
    shown = kernel.run("%%kmem\nkept = bytearray(10 << 20)\nquiet = 1;")
    assert "+10.0 MiB  10.0 MiB  cell In[3] line 2  kept = bytearray(10 << 20)" in shown, shown
    assert "Peak: at one moment 10." in shown and "Lines at the peak" not in shown and len(kernel.shown) == 1, shown


def test_a_cell_has_a_peak_of_its_own(start):
    """Also where the kernel has held more before, and what it held then is gone."""
    kernel = start()
    kernel.run("def work(mib):\n    block = bytearray(mib << 20)\n    return len(block)")
    kernel.run("work(200)")
    shown = kernel.run("%%kmem\nwork(40)\nkept = bytearray(5 << 20)\nwork(30);")
    assert "this cell: 5." in shown and "Peak: at one moment 40." in shown, shown
    peak = shown.split("Lines at the peak of this cell")[1].split("Lines that hold more")[0]
    assert "+40.0 MiB" in peak and "cell In[1] line 2 work" in peak and "block = bytearray(mib << 20)" in peak, shown
    assert "kept" not in peak and "+5.0 MiB  5.0 MiB  cell In[3] line 3  kept" in shown, shown
    shown = kernel.run("%%kmem\nwork(20)")
    assert "Peak: at one moment 20." in shown, shown
    document = harness.report("peak", own_capture_of(kernel))
    heap = document["totals"]["heap"]["peak_bytes"]
    assert 200 << 20 < heap < 260 << 20  # the kernel's own is still told


def own_capture_of(kernel):
    return kernel.run("import os; print(os.environ['KMEMSHIM_KERNEL'])").strip()


def test_an_error_of_a_measured_cell_is_the_cells(start):
    kernel = start()
    shown = kernel.run("%%kmem\nbig = bytearray(10 << 20)\n1 / 0")
    assert "this cell: 10." in shown and "ZeroDivisionError" in shown and "magics.py" not in shown, shown
    assert kernel.run("len(big)") == str(10 << 20)


def test_out_names_what_ipython_keeps(start):
    kernel = start()
    kernel.run("import numpy\nnumpy.zeros(3 << 20)")
    kernel.run("kept = numpy.zeros(2 << 20); kept[:10]")
    kernel.run("def fail():\n    local = numpy.zeros(1 << 20)\n    1 / 0\nfail()")
    shown = kernel.run("%kmem out")
    for row in ("24.0 MiB  Out[1]", "16.0 MiB  Out[2]", "8.0 MiB  local in fail  ndarray 1048576"):
        assert row in shown, shown
    kernel.run("%reset -f out")
    kernel.run(next(line for line in " ".join(shown.split()).split("`") if line.startswith("import gc")))
    shown = kernel.run("%kmem out")
    assert "Nothing of 64.0 KiB or more." in shown, shown
    assert kernel.run("import gc\nprint(sum(o.nbytes for o in gc.get_objects() if isinstance(o, numpy.ndarray)))").strip() in ("0", "16777216")


def test_out_really_frees_what_it_says(start):
    kernel = start()
    kernel.run("import weakref\nclass Big:\n    def __sizeof__(self):\n        return 1 << 20\n"
               "def fail():\n    global ref\n    local = Big()\n    ref = weakref.ref(local)\n    1 / 0\nfail()")
    shown = kernel.run("%kmem out")
    assert "local in fail  Big" in shown, shown
    assert kernel.run("ref() is None") == "False"
    kernel.run(next(part for part in " ".join(shown.split()).split("`") if part.startswith("import gc")))
    assert kernel.run("ref() is None") == "True"


def test_limit_says_after_how_many_such_cells(start, place, small_group):
    place.add_kernel(small_group)
    kernel = start()
    kernel.run(GROW)
    kernel.run("grow(50)")
    time.sleep(1.5)  # a heartbeat: the recorder looks at the limit once a second
    kernel.run("grow(1)")
    shown = kernel.run("%kmem limit")
    assert " of 300 MiB used (" in shown and "At this rate the limit is reached after" in shown, shown


def test_what_a_magic_adds_itself_is_no_growth_of_a_cell(start, place, small_group):
    place.add_kernel(small_group)
    kernel = start()
    kernel.run(GROW)
    kernel.run("grow(50)")
    for magic in ("%kmem", "%kmem out", "%%kmem\n1 + 1", "%kmem"):
        kernel.run(magic)
    shown = kernel.run("%kmem limit")
    assert "In[2] added 5" in shown, shown


def test_at_the_guard_a_cell_stops_and_the_variables_survive(start, place, small_group):
    place.add_kernel(small_group, options=("--guard", "80%", "--guard-action", "interrupt"))
    kernel = start()
    kernel.run(GROW)
    shown = kernel.run("import time\nfor i in range(1000):\n    grow(1)\n    time.sleep(.002)")
    assert "KeyboardInterrupt" in shown, shown
    assert int(kernel.run("len(keep)")) > 100
    assert "cell In[1] line 4 grow" in kernel.run("%kmem")
    kernel.run("keep.clear()")
    shown = kernel.run("import ctypes, time\nctypes.CDLL(None).malloc(500 << 20)\ntime.sleep(1)")  # little is in use: it is the request that passes the guard
    found = re.search(r"the guard stopped this cell: (\d+) MiB of the limit of 300 MiB were in use or asked for", shown)
    assert found and int(found[1]) > 500, shown


def test_twenty_growing_cells_of_one_kernel_all_stop(start, place, large_group):
    """Each leaves a heap behind in which the next one has to find room; none is killed, and what was there before is there still."""
    place.add_kernel(large_group, options=("--guard", "92%", "--guard-action", "interrupt"))
    kernel = start()
    kernel.run("precious = 42\nkept = []\nclass Item:\n    def __init__(self): self.name, self.data = 'item', list(range(20))")
    for kind, cell in GROWING.items():
        shown = kernel.run(cell)
        assert "KeyboardInterrupt" in shown, (kind, shown)
        assert shown.count("kmemshim: the guard stopped this cell: ") == 1 and re.search(r"(\d+) MiB of the limit of 600 MiB were in use or asked for", shown), (kind, shown)
        assert kernel.run("held = len(kept); kept.clear(); (precious, held > 0)") == "(42, True)", kind


def test_what_is_asked_when_little_is_left_does_not_kill_the_kernel(start, place, small_group):
    """The command that reads the capture takes memory of the same container. So does a look at who holds it: when that has ended, more is left than is asked for."""
    place.add_kernel(small_group, options=("--guard", "92%", "--guard-action", "interrupt", "--no-holders"))
    kernel = start()
    shown = kernel.run("kept = []\nwhile True: kept.append(bytearray(b'x') * (1 << 20))")
    assert "kmemshim: the guard stopped this cell" in shown and "until then, too little memory is left to read the recording" in shown, shown
    for magic in ("%kmem", "%kmem limit"):
        shown = kernel.run(magic)
        assert "MiB are left below the limit" in shown and "kmemshim peak --kernel" in shown and shown.count("\n") <= 1, shown
    assert kernel.run("held = len(kept); kept.clear(); held > 100") == "True"
    assert "live now" in kernel.run("%kmem")


def test_the_guards_message_is_shown_again_to_who_came_later(start, place, small_group):
    """A page that is closed while the cell runs loses what it shows."""
    place.add_kernel(small_group, options=("--guard", "80%", "--guard-action", "interrupt"))
    kernel = start()
    kernel.run("kept = []")
    assert "the guard stopped this cell" in kernel.run("while True: kept.append(bytearray(b'x') * (1 << 20))")
    assert kernel.run("kept.clear()") == ""
    assert "the guard stopped this cell" in kernel.run("while True: kept.append(bytearray(b'x') * (1 << 20))")
    kernel.client.stop_channels()
    kernel.connect()
    kernel.client.session.session = "another-page"
    assert kernel.run("1", store_history=False) == "1"
    shown = kernel.run("kept.clear()")
    assert "kmemshim: the guard stopped the last cell: " in shown and "Variables are kept" in shown, shown
    assert kernel.run("2") == "2"


def test_a_large_recording_takes_more_to_read(monkeypatch, tmp_path):
    """That of TensorFlow in a notebook, 20 MiB, needs more than a guard at 92 % leaves of 1.2 GiB; a small one does not."""
    monkeypatch.syspath_prepend(harness.ROOT / "python")
    from kmemshim import recording
    monkeypatch.setattr(recording, "room_bytes", lambda: 96 << 20)
    monkeypatch.setattr(recording, "ROOM_SECONDS", 0)
    for mib, has_room in ((1, True), (20, False)):
        with open(tmp_path / "python3.1.kmem", "wb") as file:
            file.truncate(mib << 20)
        assert recording.has_room(str(tmp_path)) is has_room
    with pytest.raises(recording.Unavailable, match="only 96 MiB are left below the limit, and reading the capture may take 112"):
        recording.ask("sites", str(tmp_path))


def test_what_ran_after_the_guard_is_told(start, place, small_group):
    place.add_kernel(small_group, options=("--guard", "80%", "--guard-action", "interrupt"))
    kernel = start()
    kernel.run(GROW)
    assert "the guard stopped this cell" in kernel.run("import time\nwhile True:\n    grow(1)\n    time.sleep(.002)")
    kernel.run("1 + 1")
    kernel.die("more = bytearray(b'x') * (400 << 20)")
    shown = " ".join(kernel.run("'after'").split())
    assert "the cell got SIGINT and stopped, and others ran." in shown, shown
    assert "2 other cells began after that; the last one was In[4] (more = bytearray(b'x') * (400 << 20))" in shown, shown


def test_without_a_recording_one_line_says_how_to_get_one(start, place):
    spec = {"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "plain", "language": "python"}
    (place.kernels / "plain").mkdir()
    (place.kernels / "plain" / "kernel.json").write_text(json.dumps(spec))
    kernel = start(name="plain")
    kernel.run(f"import sys; sys.path.insert(0, {str(harness.ROOT / 'python')!r})\n%load_ext kmemshim")
    for magic in ("%kmem", "%kmem out", "%kmem limit", "%%kmem\nx = 5"):
        shown = kernel.run(magic)
        assert "this kernel is not recorded" in shown and "kmemshim jupyter install" in shown and shown.count("\n") == 1, shown
    assert kernel.run("x") == "5"
    assert "usage: %kmem [out|limit]" in kernel.run("%kmem nonsense")


def test_the_verdict_is_shown_once_and_not_to_a_program_that_only_looks(start, place):
    kernel = start()
    kernel.run(GROW + "\ngrow(30)\n'<b>'")
    kernel.die("import ctypes; ctypes.string_at(0)  # <i>")
    assert kernel.run("1", store_history=False) == "1"  # an editor's list of variables
    assert kernel.run("2", silent=True) == ""
    shown = kernel.run("'after'")
    assert "the kernel died: it crashed; memory is not the suspect" in shown and "30.0 MiB  cell In[1] line 4 grow" in shown, shown
    assert kernel.shown[-1][1] == "'after'"
    assert "1 &lt;&lt; 20" in kernel.html[0] and "1 << 20" not in kernel.html[0]
    folder, _ = place.life(0)
    assert f"report {folder}" in " ".join(shown.split()) and (folder / "told").exists()
    assert kernel.run("'later'") == "'later'"


def test_each_cause_has_a_title(monkeypatch):
    monkeypatch.syspath_prepend(harness.ROOT / "python")
    from kmemshim import death
    causes = set(harness.schema("report")["$defs"]["verdict"]["properties"]["cause"]["enum"])
    assert causes - {"not-closed", "running", "exec-replaced", "child-killed", "gone", "unknown"} == set(death.TITLES)


def test_a_verdict_that_the_command_cannot_give_is_the_launchers(start, place):
    kernel = start()
    kernel.run(GROW + "\ngrow(30)")
    kernel.client.execute("import os; os._exit(7)")
    wait_for(lambda: not kernel.manager.is_alive())
    folder, _ = place.life()
    for capture in folder.glob("*.kmem"):
        capture.write_bytes(b"x" * 100)
    kernel.client.stop_channels()
    kernel.manager.restart_kernel(now=True)
    kernel.connect()
    shown = " ".join(kernel.run("'after'").split())
    assert "the kernel died" in shown and "cell In[1] line 4 grow" in shown and "exited with status 7" in shown, shown


def test_nothing_of_ours_is_inherited_and_private_means_no_texts(start, place, monkeypatch):
    kernel = start()
    assert kernel.run("import os; 'kmemshim' in os.environ.get('PYTHONPATH', ''), 'KMEMSHIM_PREVIOUS' in os.environ") == "(False, False)"
    folder, _ = place.life()
    lines = [json.loads(line) for line in (folder / "cells.jsonl").read_text().splitlines()]
    assert [(line["execution_count"], line["text"][:9]) for line in lines] == [(1, "import os")]
    monkeypatch.setenv("KMEMSHIM_PRIVATE", "1")
    kernel = start()
    assert kernel.run("1 + 1") == "2"
    folder, _ = place.life()
    assert not (folder / "cells.jsonl").exists()


def test_texts_that_cannot_be_written_do_not_touch_the_cell(start, place):
    """One line, once."""
    kernel = start()
    (place.life()[0] / "cells.jsonl").mkdir()
    shown = kernel.run("print('works')")
    assert ("stream", "works\n") in kernel.shown and "texts of cells are not written down" in shown and len(kernel.shown) == 2, shown
    assert kernel.run("print('works')") == "works\n"


@pytest.mark.parametrize("findings, title", [(["ending", "far-from-limits"], "it was stopped from outside; memory is not the suspect"),
                                             (["ending", "usage"], "it was stopped from outside")])
def test_memory_is_no_suspect_only_where_the_limit_was_far(findings, title, monkeypatch):
    monkeypatch.syspath_prepend(harness.ROOT / "python")
    from kmemshim import death

    assert death.title_of({"cause": "signal", "findings": [{"kind": kind} for kind in findings]}) == title
