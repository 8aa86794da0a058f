"""
The set of leaks and controls (leaks.c, leaks.py): is each leak found, on the right line, how soon, and is no control called a leak?

make test-leaks runs all of it, prints the table and fails when a leak is missed or a control is called one. --write makes RESULTS.md of it,
with what others say of the same runs: memray's list of what was not freed at exit, a Mann-Kendall test on the resident set of each step,
and tracemalloc's diff. test_leaks.py has a few of them for the usual suite.

    leakset.py [--write] [--unseen] [--memray PYTHON] [NAME...]      NAMEs are beginnings, as c/leak_tiny or py/control
"""
import argparse
import collections
import datetime
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "preload"))
import harness  # noqa: E402

HERE = Path(__file__).resolve().parent
PYTHON = "/usr/bin/python3"
STEPS = (10, 20, 40)  # a leak is to be found in the last of these
CONTROL_STEPS = (100, 200)  # a cache that has not slowed down yet cannot be told from a leak
# What was held over time is looked at for a 256th of the time: of 40 steps that take 2 ms in all there are two looks. So what is not found is
# tried with steps that take as long as real ones, and controls are, too.
SLOW_MS = 10
TIMEOUT = 120
LEAK_CLASSES = ("leak", "swept")  # at the end; until the peak
MOST_CERTAIN = 2.326  # one in a hundred, of a normal distribution
# Written before the rules for leaks that begin late and for those that the program's end sweeps away: counted apart, as the rest was there
# when thresholds were chosen.
UNSEEN = re.compile(r"(leak_late_|leak_swept_(of_sessions|array|by_thread|dict|buffer)|control_late_|control_stages_then_end|control_loaded_then_swept"
                    r"|control_array_up_and_down|control_read_then_process|control_buffer_that_is_cleared)")

"""
wanted  the lines that leak: file:line, or None and the line of a cell
"""
Program = collections.namedtuple("Program", "name source scene is_leak wanted is_unseen")
Outcome = collections.namedtuple("Outcome", "leak is_maybe place lines")


def programs():
    found = {}
    for name, pattern in (("leaks.c", r"^((?:leak|control)_\w+)\(unsigned"), ("leaks.py", r"^def ((?:leak|control)_\w+)\(steps")):
        source = HERE / name
        text = source.read_text()
        for scene in re.findall(pattern, text, re.MULTILINE):
            program = Program(f"{source.suffix[1:]}/{scene}", source, scene, scene.startswith("leak"), wanted_lines(source, scene),
                              UNSEEN.match(scene) is not None)
            found[program.name] = program
    return found


def wanted_lines(own, scene):
    """Of an extension either the line in C, or the one in Python that calls it."""
    wanted = set()
    for source in {own, HERE / "leaks.c"} if "extension" in scene else {own}:
        for number, line in enumerate(source.read_text().splitlines(), 1):
            marker = re.search(r"(?://|  #) (line (\d+) of a cell: )?(leak_[\w ]+)$", line)
            if marker and scene in marker[3].split():
                wanted.add(f"cell:{marker[2]}" if marker[2] else f"{source.name}:{number}")
    return wanted


class Tools:
    """What is compiled for a run of the set."""

    def __init__(self, folder):
        self.program = harness.compile_c(HERE / "leaks.c", folder / "leaks")
        self.library = harness.compile_c(HERE / "leaks.c", folder / "libleaks.so", "-shared", "-fPIC")

    def words(self, program, steps, python=PYTHON):
        first = [self.program] if program.source.suffix == ".c" else [python, program.source]
        return [str(word) for word in (*first, program.scene, steps)]


def place_of(line):
    where = line.get("where") or {}
    file = os.path.basename(where.get("file") or "?")
    return f"{'cell' if file.startswith('cell ') else file}:{where.get('line')}"


def record(tools, program, steps, folder, step_ms=0):
    """What is said of the program: of its first line, and of all that are called a leak."""
    pace = {"STEP_MS": str(step_ms)} if step_ms else {}
    environment = harness.plain_env(LD_PRELOAD=harness.SHIM, KMEMSHIM_OUT=folder, LEAKS_LIBRARY=tools.library, **pace)
    done = subprocess.run(tools.words(program, steps), env=environment, capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{program.name}: {done.stderr}"
    document = harness.report("leaks", folder, "--top", "50")
    lines = [(place_of(line), line["leak"]["class"], line["may_be_one_time_load"]) for line in document["lines"]
             if line["live_bytes"] or line["leak"]["class"] == "swept"]
    return lines, document


def leaks_among(lines):
    return [(place, leak, is_maybe) for place, leak, is_maybe in lines if leak in LEAK_CLASSES]


def found_after(tools, program, folder):
    """(steps, class, first line) of the shortest run in which the right line is first and called a leak; steps None: in none."""
    last = None
    for step_ms, steps in ((step_ms, steps) for step_ms in (0, SLOW_MS) for steps in STEPS):
        lines, document = record(tools, program, steps, folder / f"{program.scene}.{steps}.{step_ms}", step_ms)
        first = lines[0] if lines else ("nothing", "none", False)
        last = (None, class_text(first), first[0])
        if first[0] in program.wanted and first[1] in LEAK_CLASSES:
            return f"{steps}, slow" if step_ms else str(steps), class_text(first), first[0]
    return last


def class_text(line):
    return line[1] + ("?" if line[2] else "")


def called(tools, program, folder):
    """Of a control: the lines that are called a leak, and how."""
    worst = []
    for steps, step_ms in (*((steps, 0) for steps in CONTROL_STEPS), (CONTROL_STEPS[0], SLOW_MS)):
        lines, document = record(tools, program, steps, folder / f"{program.scene}.{steps}.{step_ms}", step_ms)
        worst += [(place, class_text(("", leak, is_maybe))) for place, leak, is_maybe in leaks_among(lines)]
    return worst


# --- what others say -----------------------------------------------------------------------------

def mann_kendall(values):
    """z of a trend upwards, with the correction for ties."""
    count = len(values)
    score = sum((later > earlier) - (later < earlier) for i, earlier in enumerate(values) for later in values[i + 1:])
    ties = sum(n * (n - 1) * (2 * n + 5) for n in collections.Counter(values).values())
    variance = (count * (count - 1) * (2 * count + 5) - ties) / 18
    return 0 if variance <= 0 or score == 0 else (score - math.copysign(1, score)) / math.sqrt(variance)


def says_mann_kendall(tools, program, steps, folder):
    figures = folder / "rss"
    figures.unlink(missing_ok=True)
    subprocess.run(tools.words(program, steps), env=harness.plain_env(RSS_OF_STEPS=figures, LEAKS_LIBRARY=tools.library), check=True,
                   capture_output=True, timeout=TIMEOUT)
    values = [int(line) for line in figures.read_text().split()] if figures.exists() else []
    values = values[len(values) // 4:]  # a quarter to warm up
    return "—" if len(values) < 8 else "grows" if mann_kendall(values) > MOST_CERTAIN else "quiet"


def says_tracemalloc(tools, program, steps, folder):
    figures = folder / "tracemalloc"
    figures.unlink(missing_ok=True)
    if program.source.suffix == ".c":
        return "—"
    subprocess.run(tools.words(program, steps), env=harness.plain_env(TRACEMALLOC=figures, LEAKS_LIBRARY=tools.library), check=True,
                   capture_output=True, timeout=TIMEOUT)
    words = figures.read_text().split() if figures.exists() else None
    if words is None:
        return "—"
    return "quiet" if not words or int(words[0]) < 64 << 10 else verdict_on(program, os.path.basename(words[1]))


MEMRAY = """
import collections, memray, os, sys
sums = collections.Counter()
with memray.FileReader(sys.argv[1]) as reader:
    for record in reader.get_leaked_allocation_records(merge_threads=True):
        stack = record.stack_trace()
        place = "?" if not stack else "%s:%d" % (os.path.basename(stack[0][1]), stack[0][2])
        if stack and "ipykernel_" in stack[0][1]:
            place = "cell:%d" % stack[0][2]
        sums[place] += record.size
for place, size in sums.most_common(1):
    print(size, place)
"""


def says_memray(tools, program, steps, folder, memray):
    """The first line of its list of what was not freed when the tracking ended."""
    if program.source.suffix == ".c" or memray is None:
        return "—"
    capture = folder / "memray.bin"
    capture.unlink(missing_ok=True)
    environment = harness.plain_env(LEAKS_LIBRARY=tools.library)
    subprocess.run([memray, "-m", "memray", "run", "-q", "-f", "-o", str(capture), *tools.words(program, steps)[1:]], env=environment,
                   check=True, capture_output=True, timeout=TIMEOUT)
    done = subprocess.run([memray, "-c", MEMRAY, str(capture)], capture_output=True, text=True, timeout=TIMEOUT)
    words = done.stdout.split()
    return "quiet" if not words or int(words[0]) < 64 << 10 else verdict_on(program, words[1])


def verdict_on(program, place):
    return "right" if place in program.wanted else "blames another" if program.is_leak else "blames a line"


# --- the table -----------------------------------------------------------------------------------

def judge(tools, program, folder, memray, is_whole):
    """(row of the table, None or what is wrong)."""
    if program.is_leak:
        steps, leak, place = found_after(tools, program, folder)
        wrong = None if steps is not None else f"{program.name}: {leak} at {place}, wanted leak at {' or '.join(sorted(program.wanted))}"
        row = [f"`{program.name}`", "yes" if place in program.wanted else f"**{place}**", leak if steps else f"**{leak}**",
               steps or "**not found**"]
    else:
        lines = called(tools, program, folder)
        bad = [f"{place} {leak}" for place, leak in lines if leak in LEAK_CLASSES]
        wrong = f"{program.name}: called a leak: {' '.join(bad)}" if bad else None
        row = [f"`{program.name}`", "**leak**" if bad else "asks: leak?" if lines else "quiet"]
    if is_whole:
        steps = STEPS[-1] if program.is_leak else CONTROL_STEPS[-1]
        row += [says_memray(tools, program, steps, folder, memray), says_tracemalloc(tools, program, steps, folder),
                says_mann_kendall(tools, program, steps, folder)]
    return row, wrong


def table(head, rows):
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)])


def unseen_text(leaks, controls):
    """Of those that were written before the rules for their kinds."""
    names = {f"`{program.name}`" for program in programs().values() if program.is_unseen}
    leaks, controls = ([row for row in rows if row[0] in names] for rows in (leaks, controls))
    kinds = ((kind, [row for row in leaks if f"leak_{kind}_" in row[0]]) for kind in ("late", "swept"))
    texts = [f"{sum('**' not in row[3] for row in rows)} of {len(rows)} that {'begin late' if kind == 'late' else 'are swept away at the end'}"
             for kind, rows in kinds]
    called = sum(row[1] != "quiet" for row in controls)
    return f"found {' and '.join(texts)}; {called} of {len(controls)} controls called"


def is_found(row):
    return "**" not in row[3]


def is_found_at_full_speed(row):
    return is_found(row) and "slow" not in row[3]


def page(leaks, controls):
    others = ["memray, unfreed at exit", "tracemalloc, diff", "Mann-Kendall, resident set"]
    found = [row for row in leaks if is_found(row)]
    at_once = sum(row[2] in LEAK_CLASSES for row in found)
    quiet = sum(row[1] == "quiet" for row in controls)

    def count(rows, column, word, ours):
        """Of the programs that this tool could be asked about, and how many of the same were ours."""
        judged = [row for row in rows if row[column] != "—"]
        return f"{sum(row[column] == word for row in judged)} of {len(judged)}; kmemshim {sum(map(ours, judged))}"

    fast = sum(map(is_found_at_full_speed, leaks))
    summary = [["leaks found at full speed, right line first", f"{fast} of {len(leaks)}",
                *(count(leaks, column, "right", is_found_at_full_speed) for column in (4, 5)), "names no line"],
               ["leaks told at full speed, without the line", f"{fast} of {len(leaks)}",
                *["—"] * 2, count(leaks, 6, "grows", is_found_at_full_speed)],
               [f"leaks found at full speed, or else with {SLOW_MS} ms more for each step", f"{len(found)} of {len(leaks)}", *["not asked"] * 3],
               ["controls with nothing said", f"{quiet} of {len(controls)}",
                *(count(controls, column, "quiet", lambda row: row[1] == "quiet") for column in (2, 3, 4))]]
    return f"""# Leaks and controls

Made by `make test-leaks WRITE=1` (`leakset.py`) on {datetime.date.today()}, {platform.machine()}, Python {platform.python_version()}.

{table(["", "kmemshim", *others], summary)}

- **kmemshim**: the first row of `kmemshim leaks` is the line that leaks, and its class is `leak` (or `swept`: it accumulated until the
  peak, then was released as the program ended); {at_once} of the {len(found)} without the question mark of `leak?`. Each leak ran for {", ".join(map(str, STEPS))} steps from its start; the table has the first run in which it was found.
  Those that were not found ran again with a pause of {SLOW_MS} ms after each step, as steps of real programs take: "slow" in the table, {sum("slow" in row[3] for row in found)} of the {len(found)}. The other
  tools were asked at full speed only. Behind "; kmemshim" stands how many of the same programs kmemshim got right.
  Controls ran for {" and ".join(map(str, CONTROL_STEPS))} steps, and for {CONTROL_STEPS[0]} slow ones; **leak** would be a false alarm.
- Why slow ones: what each line held over time is looked at for a 256th of the time that passes, and 40 steps that take 2 ms in all are over
  before the next look. A leak that began late has too few generations; then this alone tells.
- Of the programs that were written before the rules for their kinds (`--unseen`): {unseen_text(leaks, controls)}.
- **memray**: the line that holds most of what was not freed when the program ended ({STEPS[-1]} steps; controls {CONTROL_STEPS[-1]}). It blames a line of a control when that has
  64 KiB or more. The interpreter's and the libraries' lines count as lines.
- **tracemalloc**: the line that grew most between a quarter of the steps and the last one.
- **Mann-Kendall**: a trend of the resident set after each step, without the first quarter (p < 0.01). It names no line.
- A cache that is not full yet and has not slowed down is not in the set: nothing that looks from outside tells it from a leak.
- "—": it cannot be asked (native programs; no steps in this process).

## Leaks

{table(["program", "right line first", "class", "within steps", *others], leaks)}

## Controls

{table(["program", "kmemshim", *others], controls)}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--unseen", action="store_true", help="only those that were written before the rules for their kinds")
    parser.add_argument("--memray", help="an interpreter that has memray")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    leaks, controls, faults = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        tools = Tools(Path(folder))
        for name, program in programs().items():
            if options.names and not any(name.startswith(start) for start in options.names):
                continue
            if options.unseen and not program.is_unseen:
                continue
            own = Path(folder) / name.replace("/", ".")
            own.mkdir()
            row, wrong = judge(tools, program, own, options.memray, options.write)
            (leaks if program.is_leak else controls).append(row)
            faults += [wrong] if wrong else []
            print(" | ".join(row), flush=True)
    if options.write and not options.names:
        (HERE / "RESULTS.md").write_text(page(leaks, controls))
    for fault in faults:
        print(fault)
    print(f"{len(leaks)} leaks, {len(controls)} controls, {len(faults)} wrong")
    return 1 if faults or not leaks + controls else 0


if __name__ == "__main__":
    sys.exit(main())
