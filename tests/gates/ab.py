"""Is recording dearer than at the base commit? Both libraries in the same minutes, on one processor, in turns.

A round is a turn of the plain program, of the base and of the new library, and the next one goes the other way round; its ratio is
new / base. What lasts long in steady state is started once for each of the three and works a while in each turn (runner.Turns); the
others run as a whole. Counted is CPU time, user and system, with all children.

Worse is a program whose median ratio is above LIMIT, and whose interval, in which the median lies with 95 %, is above 1: by more than
the spread of the rounds. It is then started and measured again, and fails when it is worse there too.
"""
import contextlib
import shutil
from dataclasses import dataclass

import bench
import figures
import runner
import variants
from workloads import WORKLOADS

LIMIT = 1.03
CLEAR, CLEAR_ROUNDS = 1.5, 6  # so many rounds that are all as dear as this need no more


@dataclass
class Program:
    name: str          # of workloads.py
    units: int         # in a turn
    rounds: int
    in_turns: bool = False  # works when it is told to; else it runs as a whole
    figure: str = "cpu_ns"

    @property
    def workload(self):
        return next(one for one in WORKLOADS if one.name == self.name)


PROGRAMS = [
    Program("torch-mlp", 300, 20, in_turns=True),
    Program("keras-fit", 77, 20, in_turns=True),
    Program("pandas", 6, 20, in_turns=True),
    Program("import-torch", 1, 6, figure="total_cpu_s"),
    Program("torch-loader", 1, 12, in_turns=True),
    Program("true", 30, 14),
    Program("containers", 100, 14),
]


@dataclass
class Verdict:
    ratio: float  # median of new / base
    low: float
    high: float

    @property
    def is_worse(self):
        return self.ratio > LIMIT and self.low > 1


def judge(ratios):
    return Verdict(figures.median(ratios), *figures.median_interval(ratios))


def turns(program, libraries, built, scratch, cpu):
    """{name: a function that does one turn and gives its figure}; with that, what ends the programs."""
    found = {}
    with contextlib.ExitStack() as started:
        for name, library in libraries.items():
            variant = variants.kmemshim(name, library) if library else variants.Variant(name, "")
            argv, extra = bench.command(program.workload, variant, built, program.units)
            folder = scratch / f"{program.name}-{name}"
            if program.in_turns:
                found[name] = started.enter_context(runner.Turns(argv, extra, folder, {cpu})).turn
            else:
                folder.mkdir(parents=True, exist_ok=True)
                found[name] = lambda argv=argv, extra=extra, folder=folder: whole(program, argv, extra, folder, cpu)
        return found, started.pop_all()


def whole(program, argv, extra, folder, cpu):
    sample = runner.run_once(argv, extra, folder, {cpu})
    if "error" in sample:
        raise RuntimeError(f"{program.name}: {sample['error']}")
    return sample[program.figure] * (1e9 if program.figure == "total_cpu_s" else 1)


def measure(program, libraries, built, scratch, cpu, rounds):
    """{name: [figure of each round]}, in nanoseconds. libraries: {name: path, or None for the program alone}."""
    samples = {name: [] for name in libraries}
    turn_of, programs = turns(program, libraries, built, scratch, cpu)
    with programs:
        for turn in turn_of.values():
            turn()  # the first one of each is not like the others
        for number in range(rounds):
            for name in sorted(libraries) if number % 2 == 0 else sorted(libraries, reverse=True):
                samples[name].append(turn_of[name]())
            if number + 1 == CLEAR_ROUNDS and min(ratios(samples, "new", "base")) > CLEAR:
                break
    shutil.rmtree(scratch, ignore_errors=True)
    return samples


def ratios(samples, one, other):
    return [mine / theirs for mine, theirs in zip(samples[one], samples[other])]
