#!/usr/bin/env python3
"""What does an event cost within a fixed size of shim/, and beyond it? The figures of CLIFFS.md, a line for each workload that it names.

    make bench-cliffs                         all: minutes
    make bench-cliffs CLIFFS="stacks blocks --rounds 3"

A round is a run of the plain program and of the recorded one at each size, on one processor. Printed are medians over the rounds of CPU
time an event, plain -> recorded, and of the ratio of the two in the same round.
"""
import argparse
import os
import shutil
import sys
from dataclasses import dataclass

import bench
import figures
import runner
import variants
from workloads import Workload

LIBRARIES = bench.BENCH / "libraries"


@dataclass
class Cliff:
    name: str     # in CLIFFS.md
    sizes: tuple  # within, and beyond
    events: int = 2_000_000
    words: tuple = ("beyond", "{name}", "{size}", "{units}")

    def workload(self, size):
        words = [word.replace("{name}", self.name).replace("{size}", str(size)) for word in self.words]
        return Workload(self.name, "", words, self.events, python="system" if words[0].endswith(".py") else "")


PYTHON = ("beyond.py", *Cliff.words[1:])
CLIFFS = [
    Cliff("stacks", (1_000, 10_000, 60_000, 400_000)),
    Cliff("sites", (4_000, 20_000)),
    Cliff("depth", (100, 1_000, 10_000), 100_000, ("pairs", "own", "1", "{size}", "{units}")),
    Cliff("blocks", (20_000, 200_000, 2_000_000)),
    Cliff("threads", (2_000, 10_000), 1_000),
    Cliff("libraries", (200, 2_000, 2_600), 200_000, (*Cliff.words, str(LIBRARIES))),
    Cliff("reservations", (100, 1_000, 10_000), 50_000),
    Cliff("functions", (2_000, 20_000, 200_000), 1_000_000, PYTHON),
    Cliff("innermost", (100, 300, 3_800), 1_000_000, PYTHON),
    Cliff("levels", (100, 300, 3_800, 20_000), 1_000_000, PYTHON),
    Cliff("cuda-sites", (200, 10_000), 200_000, ("beyond-cuda", "sites", "{size}", "{units}")),
]


def copy_library(library, count):
    """So many files in LIBRARIES: a copy is another library to the loader."""
    LIBRARIES.mkdir(exist_ok=True)
    for number in range(count):
        shutil.copyfile(library, LIBRARIES / f"{number}.so")


def measure(cliff, shim, built, rounds, scratch, cpu):
    """{size: ([plain], [recorded])}, nanoseconds an event."""
    if cliff.name == "libraries":
        copy_library(built["beyond-library.so"], max(cliff.sizes))
    found = {size: ([], []) for size in cliff.sizes}
    for number in range(rounds):
        for size in cliff.sizes:
            pair = list(zip((variants.Variant("none", ""), variants.kmemshim("kmemshim", shim)), found[size]))
            for variant, samples in pair if number % 2 == 0 else reversed(pair):
                argv, extra = bench.command(cliff.workload(size), variant, built, cliff.events)
                sample = runner.run_once(argv, extra, scratch, {cpu})
                if "error" in sample:
                    raise RuntimeError(f"{cliff.name} {size}: {sample['error']}")
                samples.append(sample["cpu_ns"])
    return found


def line(name, found):
    return f"{name}: " + ", ".join(
        f"{size:,} {figures.median(plain):,.0f} → {figures.median(recorded):,.0f} ns "
        f"({figures.median([one / other for one, other in zip(recorded, plain)]):.1f} times)" for size, (plain, recorded) in found.items())


def main(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[[], *(cliff.name for cliff in CLIFFS)], help="some workloads")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args(words)
    shim = os.environ.get("KMEMSHIM_LIB", bench.BUILD / "libkmemshim.so")
    built = runner.build(bench.BENCH)
    scratch = bench.BENCH / f"scratch-{os.getpid()}"
    cpu = max(os.sched_getaffinity(0))
    try:
        for cliff in CLIFFS:
            if not options.names or cliff.name in options.names:
                print(line(cliff.name, measure(cliff, shim, built, options.rounds, scratch, cpu)), flush=True)
    except RuntimeError as error:
        print(f"cliffs: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(LIBRARIES, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
