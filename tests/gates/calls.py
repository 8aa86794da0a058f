"""How many calls to the system does recording add? Counted by strace, in plain and in recorded programs.

Two questions for each program: are there more than the table allows, and do twice as many events bring more? An event makes no call,
at no time of a process's life: neither while the interpreter ends nor in a child.
"""
import collections
import re
import shutil
from dataclasses import dataclass

import bench
import runner
import variants
from workloads import Workload, pairs

# Every few milliseconds recording looks at the resident size. How often that is, is up to the machine: these calls do not count.
BY_CLOCK = "/proc/self/statm"
LEAST, LEAST_SHARE = 32, 0.25  # above the table
GROWTH, GROWTH_SHARE = 100, 0.01  # by twice as many events, and by each of them


@dataclass
class Program:
    workload: Workload
    events: tuple  # so many, and twice as many; one number: it has no events to double


PROGRAMS = [
    Program(pairs("blocks", "window", 1, 3, 0, ""), (20_000, 40_000)),
    Program(Workload("python-end", "", ["loops.py", "kept", "{units}"], 0, python="system"), (60_000, 120_000)),
    Program(pairs("threads", "same", 4, 20, 0, ""), (5_000, 10_000)),
    Program(Workload("forks", "", ["loops", "forks", 10, "{units}"], 0), (5_000, 10_000)),
    Program(Workload("import-numpy", "", ["work_import.py", "numpy", "{units}"], 0, python="system"), (1,)),
    Program(Workload("true", "", ["/bin/true"], 0), (1,)),
]
EVENTS = {program.workload.name: program.events[0] for program in PROGRAMS}


def parse(lines):
    """{name: calls} of what strace -f writes: thread, call. Without those from opening BY_CLOCK to closing it."""
    counts = collections.Counter()
    looking = set()  # threads
    for line in lines:
        found = re.match(r"(\d+) +(\w+)\((.*)", line)  # else a call goes on, or it is a signal, or an end
        if not found:
            continue
        thread, name, words = found.groups()
        if f'"{BY_CLOCK}"' in words:
            looking.add(thread)
        if thread not in looking:
            counts[name] += 1
        elif name == "close":
            looking.remove(thread)
    return dict(counts)


def count(program, events, library, built, scratch):
    """{name: calls}; library None: the program alone."""
    variant = variants.kmemshim("", library) if library else variants.Variant("", "")
    argv, extra = bench.command(program.workload, variant, {**built, "/bin/true": "/bin/true"}, events)
    folder = scratch / f"{program.workload.name}-{events}"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "out").mkdir(parents=True)
    settings = [word for name, value in extra.items() for word in ("-E", f"{name}={str(value).replace('{out}', str(folder / 'out'))}")]
    error, _, _, _ = runner.execute(["strace", "-f", "-o", folder / "calls", *settings, *argv], {}, folder, None, 600)
    if error:
        raise RuntimeError(f"{program.workload.name}: {error}")
    with (folder / "calls").open(errors="replace") as lines:
        return parse(lines)


def most(more, fewer):
    """The calls that differ most, in words."""
    by = {name: more.get(name, 0) - fewer.get(name, 0) for name in {*more, *fewer}}
    return ", ".join(f"{by[name]:+} {name}" for name in sorted(by, key=by.get, reverse=True)[:3] if by[name] > 0)


def added(recorded, plain):
    return {name: recorded.get(name, 0) - plain.get(name, 0) for name in {*recorded, *plain}}


def measure(library, built, scratch, names=None):
    """{name: [calls added with so many events, with twice as many]}, each {call: how many}. A busy machine only adds to them."""
    programs = [program for program in PROGRAMS if names is None or program.workload.name in names]
    return {program.workload.name: [added(count(program, events, library, built, scratch), count(program, events, None, built, scratch))
                                    for events in program.events] for program in programs}


def bound(value):
    return value + max(LEAST, LEAST_SHARE * value)


def judge(measured, wanted):
    """Rows (name, wanted, added, added by twice the events or None, complaint)."""
    for name, counts in measured.items():
        sums = [sum(one.values()) for one in counts]
        growth = sums[1] - sums[0] if len(sums) > 1 else None
        complaint = ""
        if name not in wanted:
            complaint = "has no row in the table"
        elif sums[0] > bound(wanted[name]):
            complaint = f"adds more: {most(counts[0], {})}"
        if growth is not None and growth > max(GROWTH, GROWTH_SHARE * EVENTS[name]):
            complaint = f"grows with the events: {most(counts[1], counts[0])}"
        yield name, wanted.get(name), sums[0], growth, complaint
