"""The table of a result: what bench.py prints, from the same dictionary that goes to the JSON file.

Used by bench.py. Ratios are medians over rounds of variant / plain of the same round; "±" is half their spread.
"""
import figures
import workloads

HEADINGS = ("variant", "CPU", "±", "added CPU", "wall", "whole CPU", "added MiB", "RSS", "file", "instructions")
WIDTHS = (18, 7, 6, 14, 7, 10, 10, 6, 11, 13)


def times(value):
    return "-" if value is None else f"{value:.3g}x" if value >= 9.995 else f"{value:.3f}x"


def duration(ns):
    if ns is None:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= (1 if unit == "s" else 2) * size:
            return f"{ns / size:.2f} {unit}"
    return f"{ns:.0f} ns"


def size(count):
    if count is None:
        return "-"
    for unit, one in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= one:
            return f"{count / one:.1f} {unit}"
    return f"{count:.0f} B"


def middle(values):
    return figures.median(values) if values else None


def added_cell(result, samples, plain):
    """Per pair where the pairs of a unit are known, else per unit. Times for the step are in the JSON."""
    value = middle(figures.added(samples, plain, "cpu_ns"))
    pairs = result.get("pairs_per_unit")
    if value is None:
        return "-"
    return f"{value / pairs:.1f} ns" if pairs and pairs >= 0.5 else duration(value)


def cells(result, name):
    samples, plain = result["samples"][name], result["samples"].get("none", [])
    cpu = figures.ratios(samples, plain, "cpu_ns")
    wide = figures.spread(cpu) if cpu else None
    more = middle(figures.added(samples, plain, "rss_kib"))
    count = result.get("instructions", {}).get(name)
    alone = result.get("instructions", {}).get("none")
    return (name, times(middle(cpu)), "-" if wide is None else f"{wide / 2:.3f}", added_cell(result, samples, plain),
            times(middle(figures.ratios(samples, plain, "wall_ns"))),
            times(middle(figures.ratios(samples, plain, "total_cpu_s"))),
            "-" if more is None else f"{more / 1024:.1f}", times(middle(figures.ratios(samples, plain, "rss_kib")))[:5],
            size(middle(list(figures.of_rounds(samples, "file_bytes").values()))),
            "-" if count is None else f"{count:.0f}" if name == "none" or alone is None else f"{count - alone:+.0f}")


def row(words):
    return "  " + words[0].ljust(WIDTHS[0]) + "".join(word.rjust(width) for word, width in zip(words[1:], WIDTHS[1:]))


def head(name, result):
    plain = result["samples"].get("none", [])
    threads = result["threads"]
    text = f"{name}: {result['about']}; {threads} thread{'s' if threads > 1 else ''}"
    cost = middle(list(figures.of_rounds(plain, "cpu_ns").values()))
    resident = middle(list(figures.of_rounds(plain, "rss_kib").values()))
    if cost is not None:
        text += f"; alone {duration(cost)} CPU per {result['unit']}, {resident / 1024:.0f} MiB resident"
    pairs = result.get("pairs_per_unit")
    if pairs and result["unit"] != "pair":
        text += f"; {pairs:,.0f} allocations per {result['unit']}"
    return text


def workload(name, result):
    lines = [head(name, result), row(HEADINGS)]
    lines += [row(cells(result, variant)) for variant in result["samples"] if result["samples"][variant]]
    return "\n".join(lines)


def derived(document):
    """Scaling with threads, and what an event costs in one row by what it costs in another."""
    rows, lines = document["workloads"], []
    for kind, which, title in ((workloads.SCALING, "wall_ns", "throughput, second row by the first"),
                               (workloads.CPU_PER_EVENT, "cpu_ns", "added CPU a pair, second row by the first")):
        for first, second in kind:
            if first not in rows or second not in rows:
                continue
            words = []
            for variant in rows[first]["samples"]:
                one, two = rows[first]["samples"][variant], rows[second]["samples"].get(variant, [])
                if which == "wall_ns":
                    value = middle(figures.scaling(one, two))
                else:
                    less = middle(figures.added(one, rows[first]["samples"].get("none", []), which))
                    more = middle(figures.added(two, rows[second]["samples"].get("none", []), which))
                    # Under 5 ns both are noise, and so is what one is by the other.
                    value = more / less if None not in (less, more) and min(less, more) > 5 else None
                if value is not None:
                    words.append(f"{variant} {value:.2f}")
            lines.append(f"{first} -> {second}, {title}: {', '.join(words)}")
    return "\n".join(lines)
