"""What do the rounds of a benchmark say? Medians, ratios to the plain run of the same round, and how far to trust them.

Used by bench.py, show.py and the gates (tests/gates). Takes and gives plain lists and dictionaries; reads nothing, runs nothing.

A sample is the dictionary of one run (runner.py). The figures that can be compared, each lower = better:

    cpu_ns, wall_ns   per unit of the steady phase (a pair, a training step, a start of /bin/true)
    total_cpu_s       user and system of the whole process tree, start-up and exit included
    rss_kib           highest resident size of the workload's process
    file_bytes        what the recorder wrote
"""
import math
import statistics

FIGURES = ("cpu_ns", "wall_ns", "total_cpu_s", "rss_kib", "file_bytes")


def median(values):
    return statistics.median(values)


def spread(values):
    """Width of the values: between the quartiles, or of all when there are fewer than 5 (quartiles of 3 say little)."""
    if len(values) < 2:
        return None
    if len(values) < 5:
        return max(values) - min(values)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return high - low


def of_rounds(samples, figure):
    """{round: value} of one variant's samples; runs that failed or lack the figure are left out."""
    return {sample["round"]: sample[figure] for sample in samples if sample.get(figure) is not None}


def ratios(samples, plain, figure):
    """Value / plain value of the same round, for each round that has both. Interleaving makes them comparable."""
    ours, theirs = of_rounds(samples, figure), of_rounds(plain, figure)
    return [ours[one] / theirs[one] for one in sorted(ours) if theirs.get(one)]


def added(samples, plain, figure):
    """Value - plain value of the same round."""
    ours, theirs = of_rounds(samples, figure), of_rounds(plain, figure)
    return [ours[one] - theirs[one] for one in sorted(ours) if one in theirs]


def scaling(fewer, more):
    """Throughput of the workload with more threads / with fewer, round by round: units a second of wall time."""
    return [1 / ratio for ratio in ratios(more, fewer, "wall_ns")]


def median_interval(values, sureness=0.95):
    """Between which of the values does the median lie, so surely? By the sign test: how the values are spread does not matter.

    All of the values when they are too few to be so sure.
    """
    ordered, count = sorted(values), len(values)
    outside, left_out = 0.0, 0
    while left_out < (count - 1) // 2:
        outside += 2 * math.comb(count, left_out) / 2 ** count
        if outside > 1 - sureness:
            break
        left_out += 1
    left_out = max(left_out, 1)
    return ordered[left_out - 1], ordered[count - left_out]
