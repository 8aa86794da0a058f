#!/usr/bin/env python3
"""What does recording cost, ours and the others', on the same machine in the same minutes?

    make bench                                    everything that is installed
    tests/bench/bench.py --quick                  smaller counts, 2 rounds: is the machinery sound?
    tests/bench/bench.py --workloads pairs,torch-mlp --variants none,kmemshim,heaptrack --rounds 7 --json new.json
    tests/bench/bench.py --lib old=/path/libkmemshim.so --lib cut=build/libkmemshim.so,KMEMSHIM_NATIVE=all ...
    tests/bench/bench.py --install                first install the recorders (apt, pip) and environments that are missing
    tests/bench/bench.py --list                   workloads and variants, and why one cannot run here
    make bench-ab BASE=REV                        against a commit that is built beside, in turns (tests/gates)

How it measures. One round runs every variant of a workload once, each round beginning with another one, so that what
else the machine does falls on all of them. A ratio is variant / plain run *of the same round*; the table shows medians
over rounds. The steady phase is timed by the workload's own process after a warm-up (`CPU`, `wall`): start-up, import and
exit are only in `whole CPU`, which is user and system time of the process tree. `added CPU` is by malloc/free pair where
the pairs of a unit are known (counted once under floor-shadow, outside the rounds), else by unit. `RSS` is the peak of
the workload's process; `file` what the recorder left behind. `instructions` is by pair (small-*: by 1,000
objects) under callgrind: the slope between two counts, start-up excluded, one run each. Peers are measured in their cheapest exact form: heaptrack is its preload
with a raw file, without the interpreter process.

Settings from outside: KMEMSHIM_LIB is the library under test (default BUILD_DIR/libkmemshim.so), BENCH_VENVS the folder
of venv-torch, venv-keras, venv-jax, venv-pandas (default BUILD_DIR; tools/venv makes them), BUILD_DIR the build folder
(default build). A workload whose environment is missing is skipped, and so is a variant that is not installed; both say why.
Exit status: 0 measured, 1 a run failed, 2 nothing to measure or a wrong option.
"""
import argparse
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import runner
import show
import variants
import workloads

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("BUILD_DIR", ROOT / "build")).resolve()
BENCH = BUILD / "bench"
FORMAT = 1


def parse_arguments(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="", help="names or beginnings, comma between; -NAME leaves one out")
    parser.add_argument("--variants", default="", help="the same; without it all that is installed")
    parser.add_argument("--rounds", type=int, help="default 5, with --quick 2")
    parser.add_argument("--quick", action="store_true", help="fewer units, 2 rounds")
    parser.add_argument("--json", type=Path, help="write every sample there (default BUILD_DIR/bench/last.json)")
    parser.add_argument("--lib", action="append", default=[], metavar="NAME=LIBRARY[,SETTING=VALUE...]",
                        help="another build or setting of the shim as a variant of its own; always measured")
    parser.add_argument("--cpus", help="run the workloads on these CPUs only, e.g. 0 or 0,1")
    parser.add_argument("--no-instructions", action="store_true", help="leave callgrind out")
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one run (default 600)")
    parser.add_argument("--install", action="store_true", help="install the other recorders and environments first")
    parser.add_argument("--list", action="store_true", help="print workloads and variants and stop")
    options = parser.parse_args(words)
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.cpus = {int(cpu) for cpu in options.cpus.split(",")} if options.cpus else None
    return options


def interpreter(kind):
    """Path of the Python that has what this kind of workload needs, and a reason when there is none."""
    if kind == "system":
        python = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable
        return python, ""
    python = Path(os.environ.get("BENCH_VENVS", BUILD)) / f"venv-{kind}" / "bin" / "python"
    return str(python), "" if python.exists() else f"{python} is missing: tools/venv {kind} makes it"


def missing(workload, built):
    """Why this workload cannot run here; empty when it can."""
    if not workload.python:
        program = workload.words[0]
        return "" if program in built else f"{program} is not built: {runner.BUILT[program][0]} is missing"
    python, reason = interpreter(workload.python)
    wanted = "import numpy" if workload.name == "numpy" else ""
    if not reason and subprocess.run([python, "-c", wanted], capture_output=True).returncode != 0:
        reason = f"{python} has no numpy: apt-get install python3-numpy"
    return reason


def cannot(variant, workload):
    """Why this variant cannot measure this workload, besides not being installed."""
    if not variant.python_only:
        return ""
    if not workload.python:
        return "records Python programs only"
    if not variant.is_memray:
        return ""
    folder = variants.memray_folder(BENCH, interpreter(workload.python)[0])
    return "" if (folder / "memray").is_dir() else f"no {folder}: --install"


def absent_recorders(workload, wanted):
    """{why: names} of those that are not installed beside the interpreter of this workload."""
    found = {}
    for variant in wanted:
        if variant.is_memray and workload.python and not variant.needs:
            found.setdefault(cannot(variant, workload), []).append(variant.name)
    found.pop("", None)
    return found


def command(workload, variant, built, units):
    """argv and environment of one run."""
    words = [str(word).replace("{units}", str(units)) for word in workload.words]
    if words[0] == "spawns":  # what it starts is recorded, not itself; under the shim as children of a recorded program
        child = dict(variant.environment)
        if "KMEMSHIM_OUT" in child:
            child["KMEMSHIM_SESSION"] = "bench.1"
        return [built["spawns"], *words[1:], *(f"{name}={value}" for name, value in child.items())], {}
    if not workload.python:
        return [built[words[0]], *words[1:]], variant.environment
    python = interpreter(workload.python)[0]
    extra = dict(variant.environment)
    if variant.is_memray:
        extra["PYTHONPATH"] = variants.memray_folder(BENCH, python)
    return [python, *variant.prefix, runner.PROGRAMS / words[0], *words[1:]], extra


def count_pairs(workload, chosen, built, options, scratch):
    """Allocations by unit, from one run under the floor that counts; None when they cannot be counted."""
    if workload.unit == "pair":
        return 1
    counting = [variant for variant in chosen if variant.name == "floor-shadow" and not variant.needs]
    if not counting or "floor-shadow.so" not in built or workload.words[0] == "spawns":
        return None
    argv, extra = command(workload, counting[0], built, workload.count(is_quick=options.quick))
    sample = runner.run_once(argv, {**extra, "BENCH_COUNT": "1"}, scratch, options.cpus, options.timeout)
    return sample.get("pairs_per_unit")


def measure_instructions(workload, usable, built, options, scratch, problems):
    found = {}
    for variant in usable:
        def argv_for(count, variant=variant):
            return command(workload, variant, built, count)[0]

        if not variant.in_callgrind or variant.prefix:  # a prefix are words between interpreter and script
            continue
        value, error = runner.instructions(argv_for, variant.environment, scratch, workload.callgrind, options.timeout)
        if error:
            problems.append(f"{workload.name}, {variant.name}: {error}")
        else:
            found[variant.name] = value / (workload.threads * workload.warm_up)
    return found


def progress(text):
    if sys.stderr.isatty():
        print(f"\r{text:60}\r", end="", file=sys.stderr, flush=True)


def measure(workload, usable, every, built, options, scratch, problems):
    """All rounds of one workload."""
    result = {"about": workload.about, "unit": workload.unit, "threads": workload.threads,
              "pairs_per_unit": count_pairs(workload, every, built, options, scratch),
              "samples": {variant.name: [] for variant in usable}}
    for number in range(options.rounds):
        shift = number % len(usable)
        for variant in usable[shift:] + usable[:shift]:
            slow = 1 if workload.python or workload.unit == "start" else variant.slow
            argv, extra = command(workload, variant, built, workload.count(slow, options.quick))
            sample = runner.run_once(argv, extra, scratch, options.cpus, options.timeout)
            if "error" in sample:
                problems.append(f"{workload.name}, {variant.name}, round {number}: {sample['error']}")
            elif slow > 1:  # another number of units: only what is by unit can be compared
                sample["total_cpu_s"] = sample["file_bytes"] = None
            result["samples"][variant.name].append({"round": number, **sample})
            progress(f"{workload.name} {number + 1}/{options.rounds} {variant.name}")
    progress("")
    if workload.callgrind and not options.no_instructions and shutil.which("valgrind"):
        result["instructions"] = measure_instructions(workload, usable, built, options, scratch, problems)
    return result


def machine():
    model = ""
    try:
        model = next(line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                     if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return {"cpus": os.cpu_count(), "model": model, "kernel": platform.release(), "libc": " ".join(platform.libc_ver())}


def choose(options):
    """(programs, workloads, variants) of this run; says what it leaves out."""
    shim = Path(os.environ.get("KMEMSHIM_LIB", BUILD / "libkmemshim.so")).resolve()
    built = runner.build(BENCH)
    every = variants.all_variants(shim, built)
    chosen = workloads.select(workloads.WORKLOADS, options.workloads, "workload")
    wanted = workloads.select(every, options.variants, "variant")
    wanted += [variants.kmemshim_from_text(text) for text in options.lib]
    return built, chosen, wanted, every


def install(chosen):
    kinds = sorted({workload.python for workload in chosen if workload.python})
    for kind in kinds:
        if kind != "system" and interpreter(kind)[1]:
            subprocess.run([ROOT / "tools" / "venv", kind], check=True, env={**os.environ, "BUILD": str(BUILD)})
    variants.install(BENCH, [interpreter(kind)[0] for kind in kinds])


def print_list(built, chosen, wanted):
    for workload in chosen:
        reason = missing(workload, built)
        print(f"{workload.name:20} {workload.about}{f'  [skipped: {reason}]' if reason else ''}")
    print()
    for variant in wanted:
        print(f"{variant.name:20} {variant.about}{f'  [skipped: {variant.needs}]' if variant.needs else ''}")


def main(words):
    options = parse_arguments(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends the program that is measured, too
    try:
        built, chosen, wanted, every = choose(options)
        if options.install:
            install(chosen)
            built, chosen, wanted, every = choose(options)
    except (ValueError, subprocess.CalledProcessError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 2
    if options.list:
        print_list(built, chosen, wanted)
        return 0
    for variant in wanted:
        if variant.needs:
            print(f"skipped: {variant.name}: {variant.needs}")
    document = {"format": FORMAT, "machine": machine(), "rounds": options.rounds, "quick": options.quick,
                "variants": {variant.name: variant.about for variant in wanted if not variant.needs}, "workloads": {}}
    target = options.json or BENCH / "last.json"
    scratch, problems, told = BENCH / f"scratch-{os.getpid()}", [], set()
    try:
        for workload in chosen:
            reason = missing(workload, built)
            usable = [variant for variant in wanted if not variant.needs and not cannot(variant, workload)]
            for why, names in absent_recorders(workload, [] if reason else wanted).items():
                if why not in told:
                    print(f"skipped: {', '.join(names)}: {why}")
                told.add(why)
            if reason or not usable:
                print(f"skipped: {workload.name}: {reason or 'no variant'}")
                continue
            document["workloads"][workload.name] = measure(workload, usable, every, built, options, scratch, problems)
            print("\n" + show.workload(workload.name, document["workloads"][workload.name]), flush=True)
            target.write_text(json.dumps(document, indent=1) + "\n")
    except KeyboardInterrupt:
        problems.append("interrupted: what was done is in the file")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if document["workloads"]:
        print(f"\n{show.derived(document)}\nsamples: {target}")
    for problem in problems:
        print(f"bench: {problem}", file=sys.stderr)
    return 1 if problems else 0 if document["workloads"] else 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
