#!/usr/bin/env python3
"""Did recording get dearer? Compares two files of bench.py and fails when a ratio got worse by more than the noise.

    make bench-check BASE=old.json NEW=new.json
    tests/bench/bench_check.py [--variants kmemshim,...] [--workloads ...] [--all] old.json new.json

Compared are ratios to the plain run of the same round, so the machine may have been slower the second time; other
hardware is another matter. A figure is worse when its median rose by more than the spread of both files' rounds
together, and by more than the least share in LEAST (figures.is_worse). The variants are kmemshim and those given by
--lib; peers that got slower are no regression of ours. Instructions and file bytes are compared as they are.

Exit status: 0 none is worse, 1 at least one is, 2 nothing could be compared or a file is not one of bench.py.
"""
import argparse
import json
import sys

import figures

# What is allowed in any case, as a share, and for figures compared as they are also an amount that means nothing.
LEAST = {"cpu_ns": 0.01, "wall_ns": 0.03, "total_cpu_s": 0.02, "rss_kib": 0.03}
LEAST_PLAIN = {"file_bytes": (0.05, 64 << 10), "instructions": (0.01, 2)}
PEERS = ("none", "floor-", "heaptrack", "tcmalloc", "gperftools", "jemalloc", "memray")
TITLES = {"cpu_ns": "CPU", "wall_ns": "wall", "total_cpu_s": "whole CPU", "rss_kib": "RSS", "file_bytes": "file",
          "instructions": "instructions"}


class Unusable(Exception):
    """The files cannot be compared; the text says why."""


def load(path):
    try:
        with open(path) as file:
            document = json.load(file)
    except (OSError, ValueError) as error:
        raise Unusable(f"{path}: {error}") from error
    if not isinstance(document, dict) or document.get("format") != 1 or "workloads" not in document:
        raise Unusable(f"{path}: not a result of bench.py (format 1)")
    return document


def recorded_values(result, variant, figure):
    """The values of one figure of one variant in one workload: ratios, or plain numbers for those of LEAST_PLAIN."""
    samples = result["samples"].get(variant, [])
    if figure == "instructions":
        counts = result.get("instructions", {})
        if variant not in counts or "none" not in counts:
            return []
        return [counts[variant] - counts["none"]]
    if figure in LEAST_PLAIN:
        return list(figures.of_rounds(samples, figure).values())
    return figures.ratios(samples, result["samples"].get("none", []), figure)


def compare(base, new, figure):
    """One figure: (is worse, change as a share, allowed share)."""
    if figure in LEAST_PLAIN:
        share, amount = LEAST_PLAIN[figure]
        middle = max(abs(figures.median(base)), 1e-9)
        return figures.is_worse(base, new, max(share, amount / middle)) if figures.median(base) > 0 else (
            figures.median(new) > amount, 0.0, 0.0)
    return figures.is_worse(base, new, LEAST[figure])


def matches(name, words):
    return not words or any(name == word or name.startswith(word) for word in words)


def rows(base, new, options):
    """Every comparison that both files allow, with what main() prints of it."""
    for workload, result in new["workloads"].items():
        before = base["workloads"].get(workload)
        if before is None or not matches(workload, options.workloads):
            continue
        for variant in result["samples"]:
            is_ours = options.all or not any(variant.startswith(peer) for peer in PEERS)
            is_wanted = matches(variant, options.variants) if options.variants else is_ours
            if variant not in before["samples"] or not is_wanted:
                continue
            for figure in TITLES:
                ours, theirs = recorded_values(result, variant, figure), recorded_values(before, variant, figure)
                if ours and theirs:
                    worse, change, allowed = compare(theirs, ours, figure)
                    yield (workload, variant, figure, worse, figures.median(theirs), figures.median(ours), change,
                           allowed, min(len(ours), len(theirs)))


def failed_runs(base, new):
    """What the base measured and the new file could not: a run that crashes is worse than any ratio."""
    def has_failed(document, workload, variant):
        samples = document["workloads"].get(workload, {}).get("samples", {}).get(variant, [])
        return any("error" in sample for sample in samples)

    for workload, result in new["workloads"].items():
        for variant in result["samples"]:
            if has_failed(new, workload, variant) and not has_failed(base, workload, variant):
                yield workload, variant


def parse_arguments(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base")
    parser.add_argument("new")
    parser.add_argument("--variants", default="", help="beginnings of names, comma between")
    parser.add_argument("--workloads", default="", help="the same")
    parser.add_argument("--all", action="store_true", help="peers and floors too")
    options = parser.parse_args(words)
    options.variants = [word for word in options.variants.split(",") if word]
    options.workloads = [word for word in options.workloads.split(",") if word]
    return options


def main(words):
    options = parse_arguments(words)
    try:
        base, new = load(options.base), load(options.new)
        found = list(rows(base, new, options))
        if not found:
            raise Unusable("the two files share no workload and variant to compare")
    except Unusable as error:
        print(f"bench-check: {error}", file=sys.stderr)
        return 2
    worse = 0
    for workload, variant, figure, is_worse, before, now, change, allowed, rounds in found:
        if is_worse:
            worse += 1
            few = f", {rounds} round(s): a weak judgement" if rounds < 3 and figure != "instructions" else ""
            print(f"worse: {workload}, {variant}, {TITLES[figure]}: {before:.4g} -> {now:.4g}, "
                  f"{change:+.1%} where {allowed:.1%} is noise{few}")
    for workload, variant in failed_runs(base, new):
        worse += 1
        print(f"worse: {workload}, {variant}: a run failed that did not in {options.base}")
    print(f"bench-check: {len(found)} figures compared, {worse} worse")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
