"""
The run of pytest --kmemshim: measures the body of each test, judges its limits, and lists the tests that held most.

The figures of a test come from the recorder itself (program.Meter). Only where a limit may be passed is the kmemshim command asked for lines
and stacks.

When failing  a limit that cannot be judged fails its test, and says why: a test that was not judged did not pass.
"""
import functools
import inspect
import os
import re

import pytest

from . import program, recording
from .lines import source, where
from .panel import size

ROWS = 5      # stacks in the text of a failure
FRAMES = 12   # of each
STACKS_MAX = 1000  # are asked for, the largest: what a large answer frees stays in arenas, where the next test would hold its objects for nothing
WARMUPS = "warmups"
ASKING_BYTES = 256 << 10  # what it takes to ask the command: after it the peak of the test may be another one
OF_HOST = program.HOST + ("python/object",)
HELD_WORTH_BYTES = 64 << 10
_SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50}


def bytes_of(text):
    """"24 MB", "1.5 gib", "100B": powers of 1024, in any case."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGTP]?)(?:I?B)\s*", str(text).upper())
    if found is None:
        raise ValueError("kmemshim: %r is no size: wanted a number and B, KB, MB, GB, TB or PB, such as \"24 MB\"" % (text,))
    return int(float(found.group(1)) * (1 << _SHIFTS[found.group(2)]))


class Limit:
    """A marker: its size, as it was written, and what else it says."""

    def __init__(self, marker, name):
        known = {name, "filter_fn", "current_thread_only", WARMUPS} if name == "location_limit" else {name, "current_thread_only"}
        words = dict(marker.kwargs)
        if marker.args:
            words[name] = marker.args[0]
        if len(marker.args) > 1 or name not in words or set(words) - known:
            raise ValueError("kmemshim: %s takes one size, and of other words %s" % (marker.name, ", ".join(sorted(known - {name}))))
        self.text = words[name]
        self.bytes = bytes_of(self.text)
        self.filter = words.get("filter_fn")
        self.warmups = int(words.get(WARMUPS, 0))
        self.is_of_thread = bool(words.get("current_thread_only"))


class Frame:
    """As filters know it: where a stack is."""

    def __init__(self, frame):
        self.function = frame["function"] or "?"
        self.filename = frame["file"] or frame["module"]
        self.lineno = frame["line"]

    def __repr__(self):
        return "%s:%s:%d" % (self.function, self.filename, self.lineno)


class Stack:
    def __init__(self, frames):
        self.frames = tuple(Frame(frame) for frame in frames)  # innermost first


class Held:
    """A call stack, and what it held more than before."""

    def __init__(self, site, more):
        self.site = site
        self.bytes = more


class Body:
    """One run of a test's body."""

    numbers = 0

    def __init__(self, item):
        memory, leaks = item.get_closest_marker("limit_memory"), item.get_closest_marker("limit_leaks")
        self.item = item
        self.memory = Limit(memory, "memory_limit") if memory else None
        self.leaks = Limit(leaks, "location_limit") if leaks else None
        self.meter = program.Meter()
        self.is_over = False
        self.text = None
        Body.numbers += 1
        self.name = "kmemshim pytest %d " % Body.numbers

    def begin(self):
        self.is_over = False
        if self.memory or self.leaks:
            program.snapshot(self.name + "begin")
        self.meter.begin()

    def end(self):
        self.meter.end()
        if self.leaks:
            program.snapshot(self.name + "end")
        self.is_over = True

    def call(self, function, *args, **words):
        """The body itself, and nothing of pytest's."""
        __tracebackhide__ = True
        for _ in range(self.leaks.warmups if self.leaks else 0):
            function(*args, **words)
        self.begin()
        try:
            return function(*args, **words)
        finally:
            self.end()

    # --- limits ---

    def judge(self):
        """Sets `text` where a limit is passed."""
        try:
            if not self.meter.is_known() and (self.memory or self.leaks):
                raise recording.Unavailable("this process is not recorded")
            texts = [text for text in (self._judge_memory(), self._judge_leaks()) if text]
        except recording.Unavailable as error:
            texts = ["kmemshim: a limit was not judged: %s" % error]
        self.text = "\n\n".join(texts) or None

    def _grown(self, now, figure, least):
        """Call stacks that hold more than when the body began, but those of these questions themselves. Native frames make no other stack."""
        stacks = {}
        for site in recording.ask(*now, "--since", self.name + "begin", "--top", str(STACKS_MAX), recording.own_capture())["sites"]:
            frames = [(frame["file"] or frame["module"], frame["line"], frame["function"]) for frame in site["frames"]]
            if site["domain"] in OF_HOST and not any(file == recording.__file__ for file, _, _ in frames):
                stacks.setdefault((site["domain"], *frames), Held(site, 0)).bytes += site[figure]
        return sorted((held for held in stacks.values() if held.bytes >= least), key=lambda held: -held.bytes)

    def _judge_memory(self):
        if self.memory is None or self.meter.peak_bytes() < self.memory.bytes:
            return None
        text = "limit_memory(%r): the test held %s at its peak; less than %s is allowed." % (
            self.memory.text, size(self.meter.peak_bytes()), size(self.memory.bytes))
        if self.meter.peak_bytes() < ASKING_BYTES:
            text += "\nIts lines are not known: to ask for them takes more than this."
        else:
            rows = self._grown(["peak", "--phase"], "peak_bytes", self.memory.bytes // 100)
            rows = [held for held in rows if self._is_worth(held) and held.bytes >= rows[0].bytes // 100]
            text += self._table("Held at the peak:", rows[:ROWS])
        return text + self._of_threads(self.memory)

    @staticmethod
    def _is_worth(held):
        return held.bytes > ((held.site["peak_error_bytes"] or 0) if held.site["is_estimated"] else 0)

    def _judge_leaks(self):
        if self.leaks is None:
            return None
        rows = []
        for held in self._grown(["sites", "--at", self.name + "end"], "live_bytes", self.leaks.bytes):
            if held.site["domain"] == "python/arena":
                continue
            sure = held.bytes - ((held.site["error_bytes"] or 0) if held.site["is_estimated"] else 0)
            if sure >= self.leaks.bytes and (self.leaks.filter is None or self.leaks.filter(Stack(held.site["frames"]))):
                rows.append(held)
        if not rows:
            return None
        text = "limit_leaks(%r): %d call stack%s kept %s or more; less is allowed." % (
            self.leaks.text, len(rows), "" if len(rows) == 1 else "s", size(self.leaks.bytes))
        return text + self._table("Kept:", rows[:ROWS]) + self._of_threads(self.leaks)

    @staticmethod
    def _of_threads(limit):
        return "\n(current_thread_only is not known here: all threads count.)" if limit.is_of_thread else ""

    def _table(self, title, rows):
        out = ["", title]
        for held in rows:
            mark = "\u2248" if held.site["is_estimated"] else ""
            out.append("  %10s  %s  %s" % (mark + size(held.bytes), where(held.site), source(held.site)))
            out.extend("                at " + line for line in self._stack(held.site["frames"]))
        return "\n".join(line.rstrip() for line in out)

    def _stack(self, frames):
        """Innermost first, down to the test itself."""
        name = getattr(self.item, "originalname", None) or self.item.name
        path = str(getattr(self.item, "fspath", ""))
        root = str(self.item.config.rootdir) + os.sep
        lines = []
        for frame in frames:
            place = frame["file"] or frame["module"]
            place = place[len(root):] if place.startswith(root) else place
            lines.append("%s%s %s" % (place, ":%d" % frame["line"] if frame["line"] else "", frame["function"] or "?"))
            if frame["kind"] == "python" and frame["file"] == path and frame["function"].split(".")[-1] == name:
                break
        return lines if len(lines) <= FRAMES else lines[:FRAMES - 1] + ["... and %d more" % (len(lines) - FRAMES + 1)]


class Recorder:
    def __init__(self, config):
        self.config = config
        self.bodies = {}   # of tests that run now, by node id
        self.results = {}  # node id: peak, kept

    def pytest_report_header(self):
        if not program.is_recorded():
            return "kmemshim: this process is not recorded"
        try:
            return "kmemshim: recorded in %s" % recording.own_capture()
        except recording.Unavailable as error:
            return "kmemshim: %s" % error

    # --- one test ---

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item):
        self.bodies[item.nodeid] = Body(item)

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_runtest_call(self, item):
        """For tests that are no plain functions: what pytest does around the body is in it."""
        body = self.bodies[item.nodeid]
        body.begin()
        outcome = yield
        if not body.is_over:
            body.end()
        if outcome.excinfo is None:
            body.judge()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        body = self.bodies.get(pyfuncitem.nodeid)
        function = pyfuncitem.obj
        if body is None or inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            yield
            return
        pyfuncitem.obj = functools.wraps(function)(functools.partial(body.call, function))
        try:
            yield
        finally:
            pyfuncitem.obj = function

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item, call):
        outcome = yield
        report = outcome.get_result()
        body = self.bodies.get(item.nodeid)
        if call.when == "teardown":
            self.bodies.pop(item.nodeid, None)
        if call.when != "call" or body is None or not body.meter.is_known():
            return
        report.kmemshim = [body.meter.peak_bytes(), body.meter.kept_bytes()]
        if report.passed and not hasattr(report, "wasxfail") and body.text:
            report.outcome = "failed"
            report.longrepr = body.text

    # --- all of them ---

    def pytest_runtest_logreport(self, report):
        """Those of the workers of xdist come here as well."""
        figures = getattr(report, "kmemshim", None)
        if figures is not None:
            self.results[report.nodeid] = figures

    def pytest_terminal_summary(self, terminalreporter):
        top = self.config.option.kmemshim_top
        rows = sorted(((peak, kept, name) for name, (peak, kept) in self.results.items()), key=lambda row: (-row[0], row[2]))
        count = len(rows)
        rows = [row for row in rows if row[0] >= HELD_WORTH_BYTES or top == 0]
        if not rows:
            return
        terminalreporter.section("tests that held most memory")
        terminalreporter.write_line("%12s %12s  test" % ("at its peak", "kept after"))
        for peak, kept, name in rows[:top or None]:
            terminalreporter.write_line("%12s %12s  %s" % (size(peak), size(kept), name))
        if top and len(rows) > top:
            terminalreporter.write_line("%d more tests: --kmemshim-top 0" % (len(rows) - top))
        if count > len(rows):
            terminalreporter.write_line("%d other test%s held less than %s" %
                                        (count - len(rows), "" if count - len(rows) == 1 else "s", size(HELD_WORTH_BYTES)))
