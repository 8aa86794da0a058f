"""%kmem and %%kmem: what holds the memory of this kernel now, what a cell added, what IPython keeps, and how far the limit is."""
import ast
import os

from IPython.core.magic import Magics, line_cell_magic, magics_class

from . import kept, program, recording
from .cells import after_empty_lines, number_of_cell
from .growth import resident_bytes
from .lines import REQUESTED, ROWS_MAX, Lines, held, is_worth, key, source, where
from .panel import Panel, size

LINES = 10
SMALL_BYTES = 1 << 20  # beside larger lines: no row of its own
GROWN_WORTH_BYTES = 64 << 10
KEPT_WORTH_BYTES = 64 << 10
CELL_WORTH_BYTES = 2 << 20  # arenas of small objects come and go
ABSENT_WORTH_BYTES = 16 << 20
IMPORTS_WORTH_BYTES = 1 << 20
PEAK_WORTH_BYTES = 4 << 20  # above what stays: less is no table of its own
PEAK_LINE_WORTH_BYTES = 1 << 20

USAGE = "usage: %kmem [out|limit], or %%kmem as the first line of a cell"


@magics_class
class KmemMagics(Magics):
    def __init__(self, shell, growth):
        super().__init__(shell)
        self.growth = growth
        self.raw_cell = ""  # the cell that runs, as it was typed
        self.last = None    # of the last %kmem

    def before_cell(self, shell, info):
        self.raw_cell = info.raw_cell
        return True

    def failed(self, error):
        return "%%%%kmem does not know its cell: %s" % error

    @line_cell_magic
    def kmem(self, line, cell=None):
        """
        %kmem          ten lines of code that hold most now, and what grew since the last %kmem
        %kmem out      what Out[], _ and the last traceback keep in memory
        %kmem limit    the memory limit, how much is used, and after how many cells like the last one it is full
        %%kmem         as the first line of a cell: what this cell added, its peak, its lines
        """
        __tracebackhide__ = True  # an error of the cell is shown as the cell's
        words = line.split()
        if cell is not None:
            if words:
                print("kmemshim: %%kmem takes no words: write the code below it")
                return None
            return self._cell(cell)
        action = {(): self._now, ("out",): self._out, ("limit",): self._limit}.get(tuple(words))
        if action is None:
            print("kmemshim: " + USAGE)
        else:
            self._show(action, "")
        return None

    def _show(self, make, failing):
        """Displays the panel that make() returns, or says in one line why there is none."""
        with self.growth.own():
            try:
                panel = make()
            except recording.Unavailable as error:
                print("kmemshim: %s%s" % (failing, error))
            except Exception as error:  # a mistake of ours does not become the cell's error
                print("kmemshim: %sthe report was not understood: %s: %s" % (failing, type(error).__name__, error))
            else:
                panel.display()

    def _lines(self, command="sites"):
        """As of now; peaks are those of the phase, which begins with a cell that is measured."""
        return Lines(recording.ask(command, "--phase", "--top", str(ROWS_MAX), recording.own_capture()))

    # --- now ---

    def _now(self):
        now, earlier = self._lines(), self.last
        occupied = resident_bytes()
        panel = Panel("%s live now; this process occupies %s" % (size(now.live_bytes), size(occupied)))
        beyond = now.live_bytes - occupied  # what no look has found, as of many small blocks of zeros
        if max(now.absent_bytes, beyond) >= ABSENT_WORTH_BYTES:
            panel.say("Of what is live, %s%s was requested and not used yet, or swapped out." % (
                "at least " if beyond > now.absent_bytes else "", size(max(now.absent_bytes, beyond))))
        lines = [line for line in now.lines if is_worth(line) and not line["import"]]
        rows, small = _large_and_small(lines)
        if now.import_bytes >= IMPORTS_WORTH_BYTES:
            panel.say("Left by imports, and not in this table: %s." % size(now.import_bytes))
        if earlier is None:
            panel.table(("held", "where", "line of code"),
                        [(held(line), where(line), source(line)) for line in rows] + [(_held(small), _of_small(small, now), "")] * bool(small))
            panel.say("The next %kmem shows what has grown since this one.")
        else:
            panel.table(("held", "since last", "where", "line of code"),
                        [(held(line), _signed(now.grown(line, earlier)), where(line), source(line)) for line in rows] +
                        [(_held(small), _signed(sum(now.grown(line, earlier) for line in small)), _of_small(small, now), "")] * bool(small))
            shown = {key(line) for line in rows}
            others = _grown(now, earlier, [line for line in lines if key(line) not in shown])[:5]
            panel.table(("grew", "held", "where", "line of code"),
                        [(_signed(more), held(line), where(line), source(line)) for more, line in others],
                        "Of the other lines, these grew most since the last %kmem")
            panel.say("Since the last %%kmem: %s in all." % _signed(now.added(earlier), "nothing"))
        self.last = now.forget_rows()
        return panel

    # --- one cell ---

    def _cell(self, cell):
        __tracebackhide__ = True
        try:
            with self.growth.own():
                before = self._lines().forget_rows()
        except recording.Unavailable as error:
            print("kmemshim: the cell runs without a report: %s" % error)
            return self._run(cell)
        begin = program.phase()
        try:
            return self._run(cell)
        finally:
            self._show(lambda: self._report_cell(before, begin, self._lines()), "no report of this cell: ")

    def _run(self, cell):
        """
        As %%time does. The code has the name of the whole cell, and lines are numbered as in the notebook, where this magic is the
        first: so the command knows which cell it is.
        """
        __tracebackhide__ = True
        shell = self.shell
        empty, lines = after_empty_lines(cell)
        code = "\n" * (1 + empty) + shell.transform_cell("\n".join(lines))
        name = shell.compile.cache("%%kmem\n" + cell, number_of_cell(shell), raw_code=self.raw_cell)
        module = shell.compile.ast_parse(code, name)
        module = shell.transform_ast(module)
        last = module.body.pop() if module.body and isinstance(module.body[-1], ast.Expr) else None
        exec(shell.compile(module, name, "exec"), shell.user_ns, shell.user_ns)
        if last is None:
            return None
        value = eval(shell.compile(ast.Expression(last.value), name, "eval"), shell.user_ns, shell.user_ns)
        return None if code.rstrip().endswith(";") else value

    def _report_cell(self, before, begin, after):
        added = after.added(before)
        panel = Panel("this cell: %s" % (
            "less than %s was added" % size(CELL_WORTH_BYTES) if abs(added) < CELL_WORTH_BYTES else
            "%s more is live than before" % size(added) if added > 0 else "%s less is live than before" % size(-added)))
        self._tell_peak(panel, before, begin, after)
        rows = _grown(after, before, after.lines)[:LINES]
        panel.table(("added", "held", "where", "line of code"),
                    [(_signed(more), held(line), where(line), source(line)) for more, line in rows], "Lines that hold more than before")
        return panel

    def _tell_peak(self, panel, before, begin, after):
        """The highest while the cell ran, and the lines that made it, where they are not those that hold something now."""
        if begin is None or not all(begin[name].is_begun for name in REQUESTED if name in begin):
            panel.say("not known: other threads allocated more and more as the cell began, or the recording is full.", "Peak")
            return
        above = {name: after.peak_by_domain[name] - (begin[name].live_bytes if name in begin else 0)
                 for name in REQUESTED if name in after.peak_by_domain}
        raised = [name for name in above if above[name] >= CELL_WORTH_BYTES]
        panel.say("at one moment %s%s more was live than before the cell." % (
            "up to " if len(raised) > 1 else "", size(sum(above[name] for name in raised) if raised else max(above.values(), default=0))), "Peak")
        if sum(above.values()) < after.added(before) + PEAK_WORTH_BYTES:
            return
        lines = [line for line in self._lines("peak").lines if line["domain"] in raised]
        rows = sorted(((line["peak_bytes"] - before.by_key.get(key(line), 0), line) for line in lines), key=lambda row: -row[0])
        panel.table(("added", "at the peak", "where", "line of code"),
                    [(_signed(more), size(line["peak_bytes"]), where(line), source(line)) for more, line in rows
                     if more >= PEAK_LINE_WORTH_BYTES][:LINES], "Lines at the peak of this cell")

    # --- what IPython keeps ---

    def _out(self):
        recording.own_capture()  # as the others: it says how to get one
        namespace = self.shell.user_ns
        results = kept.of_results(namespace)
        errors = kept.of_traceback(namespace)
        for found in (results, errors):
            kept.name_owners(found, namespace)
        panel = Panel("results that IPython keeps: %s; variables that the last traceback keeps: %s" %
                      tuple(size(sum(one.bytes for one in found.values())) for found in (results, errors)))
        for found, caption in ((results, "Results"), (errors, "Last traceback")):
            rows = sorted((one for one in found.values() if one.bytes >= KEPT_WORTH_BYTES), key=lambda one: -one.bytes)[:LINES]
            panel.table(("size", "kept by", "what"), [(size(one.bytes), _names(one.names), kept.kind_of(one.value)) for one in rows], caption)
        if any(one.bytes >= KEPT_WORTH_BYTES for one in results.values()):
            panel.say("`%reset -f out` lets go of the results; a `;` at the end of a cell keeps its result out of Out[].", "Next")
        if any(one.bytes >= KEPT_WORTH_BYTES for one in errors.values()):
            panel.say("`import gc, sys; sys.last_traceback = sys.last_value = sys.last_exc = get_ipython().InteractiveTB.tb = None; "
                      "gc.collect()` lets go of the traceback.", "Next")
        if len(panel.parts) == 0:
            panel.say("Nothing of %s or more." % size(KEPT_WORTH_BYTES))
        return panel

    # --- limit ---

    def _limit(self):
        document = recording.ask("why", recording.own_capture())
        verdict = document["verdict"]
        own = [process for process in document["processes"] if process["pid"] == os.getpid()]
        limit = own[0]["limit_bytes"] if own else None
        usage = [finding["bytes"] for finding in verdict["findings"] if finding["kind"] == "usage" and finding["bytes"]]
        if not limit:
            panel = Panel("no memory limit is known for this kernel")
            panel.say("The recorder has not sampled one yet.")
            return panel
        used = usage[0] if usage else own[0]["resident_bytes"]
        panel = Panel("%s of %s used (%d %%), %s left" % (size(used), size(limit), 100 * used // limit, size(max(limit - used, 0))))
        panel.say("The limit is the lowest that is in force: of the container, of the process (ulimit -v), or the memory of the machine. "
                  "What others use there counts as well.")
        forecast = document.get("forecast")
        if forecast:
            panel.say("It grows by %s a minute: at this rate the limit is reached in %d min." %
                      (size(forecast["bytes_per_minute"]), forecast["minutes"]))
        grown = self.growth.last()
        if grown is None:
            panel.say("None of the last cells added 1 MiB or more.")
        else:
            number, added = grown
            left = max(limit - used, 0) // added
            panel.say("In[%d] added %s to what is in memory. %s" % (number, size(added), "The next such cell does not fit." if left == 0 else
                                             "At this rate the limit is reached after %d such cell%s." % (left, "" if left == 1 else "s")))
        return panel


def _large_and_small(lines):
    """Lines with a row of their own, and those that share one: where some are large, the small ones tell nothing. What is free is no line."""
    large = [line for line in lines if line["live_bytes"] >= SMALL_BYTES]
    if all(line["domain"] == "python/arena" for line in large):
        return lines[:LINES], []
    return large[:LINES], [line for line in lines if line["live_bytes"] < SMALL_BYTES]


def _held(lines):
    """What several lines hold together."""
    return ("\u2248" if any(line["is_estimated"] for line in lines) else "") + size(sum(line["live_bytes"] for line in lines))


def _of_small(lines, now):
    count = "%d of the lines" % len(lines) if not now.is_whole else "1 line" if len(lines) == 1 else "%d lines" % len(lines)
    return "%s with less than %d MiB%s" % (count, SMALL_BYTES >> 20, "" if count == "1 line" else " each")


def _grown(now, earlier, lines):
    """What grew by so much that it is worth a row, the most first."""
    found = [(now.grown(line, earlier), line) for line in lines]
    return sorted((each for each in found if each[0] >= GROWN_WORTH_BYTES), key=lambda each: -each[0])


def _signed(count, nothing="\u00b7"):
    if count == 0:
        return nothing
    return "+" + size(count) if count > 0 else "\u2212" + size(-count)


def _names(names):
    return ", ".join(names[:4]) + (", \u2026" if len(names) > 4 else "")
