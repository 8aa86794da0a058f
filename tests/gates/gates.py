#!/usr/bin/env python3
"""Has recording become dearer? Three gates, which count what no machine hides, and compare where only time tells.

    make gates                                the three gates, as CI runs them: under 5 minutes
    make gates GATES="--only calls,ab"        some of them: instructions, calls, ab
    make gates WRITE=1                        measures all three and writes base.txt: commit it with what moved it
    make bench-ab BASE=REV                    the third one alone, against any commit, with the plain program beside
    make bench-ab BASE=REV BENCH="--programs torch-mlp,pandas --times 5"     five times as many rounds

    instructions   of one more malloc and free, realloc, new, thread, fork ... under callgrind    instructions.py
    calls          to the system that recording adds, and that twice as many events add none       calls.py
    ab             CPU time of real programs, in turns with the base commit, built beside          ab.py

base.txt names the base commit and has its figures. A gate of instructions fails beyond 2 %, in both directions: a table that is not the
code's guards nothing. Where compiler, C library, Python, valgrind or processor are not those of the table, the base's library is
counted here instead. Against an equal library `ab` has nothing to compare.

When one fails: make the change cheaper; or, when what it brings is worth that, commit it, run `make gates WRITE=1`, and commit base.txt
with the reason. Exit status: 0 none is dearer, 1 one is, 2 it could not be measured.
"""
import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "bench")]

import ab  # noqa: E402
import bench  # noqa: E402
import calls  # noqa: E402
import figures  # noqa: E402
import instructions  # noqa: E402
import runner  # noqa: E402
import show  # noqa: E402
import table  # noqa: E402

GATES = ("instructions", "calls", "ab")
WHAT_TO_DO = "make it cheaper; or, if it is worth that: commit it, run `make gates WRITE=1`, commit tests/gates/base.txt with the reason"


def parse_arguments(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(GATES), help="gates, comma between")
    parser.add_argument("--write", action="store_true", help="measure, and write base.txt")
    parser.add_argument("--base", help="commit to compare with (default: that of base.txt)")
    parser.add_argument("--plain", action="store_true", help="ab: the program alone too; also when the libraries are equal")
    parser.add_argument("--programs", default="", help="ab: some, comma between")
    parser.add_argument("--times", type=int, default=1, help="ab: so many times as many rounds")
    options = parser.parse_args(words)
    options.only = options.only.split(",")
    options.programs = [name for name in options.programs.split(",") if name]
    if unknown := [name for name in options.only if name not in GATES]:
        parser.error(f"no gate \"{unknown[0]}\": have {' '.join(GATES)}")
    if unknown := [name for name in options.programs if name not in [program.name for program in ab.PROGRAMS]]:
        parser.error(f"no program \"{unknown[0]}\": have {' '.join(program.name for program in ab.PROGRAMS)}")
    return options


class Place:
    """What all gates need: the library, the programs, a folder for what they write."""

    def __init__(self):
        self.library = Path(os.environ.get("KMEMSHIM_LIB", table.BUILD / "libkmemshim.so")).resolve()
        self.folder = table.BUILD / "bench"
        self.built = runner.build(self.folder)
        self.scratch = table.BUILD / "gates" / f"scratch-{os.getpid()}"
        self.machine = table.machine(bench.interpreter("system")[0])

    def instructions(self, library):
        return instructions.measure(library, self.built, self.folder, self.scratch / "instructions")

    def calls(self, names=None):
        return calls.measure(self.library, self.built, self.scratch / "calls", names)


def gate_instructions(place, base, options):
    is_exact = base.machine == place.machine and options.base is None
    wanted = base.of("instructions")
    if not is_exact:
        print(f"  counted beside {base.commit[:12]}: this is {place.machine}; the table's is {base.machine}")
        wanted = place.instructions(table.library_of(base.commit))
    worse = []
    for name, before, now, change, complaint in instructions.judge(place.instructions(place.library), wanted, is_exact):
        print(f"  {name:14}{before or 0:12.1f}{now:12.1f}{'' if change is None else f'{change:+9.2%}'}  {complaint}")
        worse += [f"instructions of {name}: {complaint}"] if complaint else []
    return worse


def gate_calls(place, base, _):
    wanted = base.of("calls")
    rows = {row[0]: row for row in calls.judge(place.calls(), wanted)}
    again = [name for name, row in rows.items() if row[-1]]
    if again:  # a busy machine only adds to them: the fewest count
        rows.update((row[0], row) for row in calls.judge(place.calls(again), wanted) if row[2] <= rows[row[0]][2] or not row[-1])
    for name, before, now, growth, complaint in rows.values():
        print(f"  {name:14}{before or 0:8.0f}{now:8}{'' if growth is None else f'{growth:+8}'}  {complaint}")
    return [f"calls of {name}: {row[-1]}" for name, row in rows.items() if row[-1]]


def is_library_of(place, commit):
    return table.library_of(commit).read_bytes() == place.library.read_bytes()


def gate_ab(place, base, options):
    if not options.plain and is_library_of(place, base.commit):
        print(f"  the library is that of {base.commit[:12]}, byte by byte: nothing to compare")
        return []
    return [f"{name}: {verdict.ratio:.3f} times the CPU of {base.commit[:12]}"
            for name, verdict in compare(place, base, options) if verdict.is_worse]


def compare(place, base, options):
    """Each program's name and Verdict."""
    libraries = {"base": table.library_of(base.commit), "new": place.library, **({"plain": None} if options.plain else {})}
    cpu = max(os.sched_getaffinity(0))
    print(f"  {'program':14}{'alone':>10}{'base':>8}{'new':>8}{'new/base':>10}  interval")
    for program in ab.PROGRAMS:
        if options.programs and program.name not in options.programs:
            continue
        if reason := bench.missing(program.workload, place.built):
            raise table.Trouble(reason)
        for _ in ("first", "to be sure"):
            samples = ab.measure(program, libraries, place.built, place.scratch / "ab", cpu, program.rounds * options.times)
            verdict = ab.judge(ab.ratios(samples, "new", "base"))
            print(row_of(program, samples, verdict), flush=True)
            if not verdict.is_worse or verdict.low > ab.CLEAR:
                break
        yield program.name, verdict


def row_of(program, samples, verdict):
    plain = "plain" in samples
    times = [f"{figures.median(ab.ratios(samples, name, 'plain')):.3f}" if plain else "-" for name in ("base", "new")]
    alone = show.duration(figures.median(samples["plain"])) if plain else "-"
    return (f"  {program.name:14}{alone:>10}{times[0]:>8}{times[1]:>8}{verdict.ratio:10.3f}  {verdict.low:.3f} to {verdict.high:.3f}, "
            f"{len(samples['new'])} rounds{', worse' if verdict.is_worse else ''}")


def base_to_replace():
    """None: there is none that can be read and built, and that is what is to be mended."""
    try:
        base = table.read()
        table.library_of(base.commit)
        return base
    except (table.Trouble, OSError) as error:
        print(f"gates: no comparison with the table of before: {error}")
        return None


def write(place, base, options):
    fresh = table.Table(table.written_commit(), place.machine, base.before if base else "")
    for name, value in place.instructions(place.library).items():
        fresh.figures["instructions", name] = round(value, 1)
    for name, counts in place.calls().items():
        fresh.figures["calls", name] = sum(counts[0].values())
    if base and is_library_of(place, base.commit):
        fresh.figures |= {("ab", name): value for name, value in base.of("ab").items()}
    elif base:
        fresh.before = base.commit
        fresh.figures |= {("ab", name): round(verdict.ratio, 3) for name, verdict in compare(place, base, options)}
    table.FILE.write_text(table.render(fresh))
    print(f"written: {table.FILE}")


def main(words):
    options = parse_arguments(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the program that is measured, too
    place, worse = Place(), []
    try:
        if options.write:
            write(place, base_to_replace(), options)
            return 0
        base = table.read()
        if options.base:
            base.commit = table.commit_of(options.base)
        for name, gate in zip(GATES, (gate_instructions, gate_calls, gate_ab)):
            if name in options.only:
                start = time.monotonic()
                print(f"{name}:", flush=True)
                worse += gate(place, base, options)
                print(f"  {time.monotonic() - start:.0f} s", flush=True)
    except (table.Trouble, RuntimeError, subprocess.CalledProcessError, KeyboardInterrupt) as error:
        print(f"gates: {str(error) or 'interrupted'}", file=sys.stderr)
        return 2
    finally:
        shutil.rmtree(place.scratch, ignore_errors=True)
    for one in worse:
        print(f"error: gates: {one}", file=sys.stderr)
    if worse:
        print(f"gates: {WHAT_TO_DO}", file=sys.stderr)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
