"""How many instructions does one more of something take with recording? Under callgrind, in a dozen loops.

A slope between two counts of the loop: start and end do not count. The programs have one order of events (loops.c, pairs.c with one
thread), run on one processor at fixed addresses, and get the same hashes. Their clock stands still (still_clock.c), and what the
library does when so many ticks of the processor have passed does not count (BY_TICKS). So two runs differ by less than a hundredth.
"""
import concurrent.futures
import dataclasses
import os
import subprocess

import bench
import runner
import variants
from workloads import Workload, pairs

LEAST = 0.02
BY_TICKS = "has_grown*"  # shim/record/beat_due.c: the processor's ticks cannot be kept from it


def loop(name, counts, *more):
    return Workload(f"{name}", "", ["loops", *(more[:1] or [name]), "{units}", *more[1:]], 0, callgrind=counts)


def script(kind, counts):
    return Workload(f"python-{kind}", "", ["loops.py", kind, "{units}"], 0, python="system", callgrind=counts)


LOOPS = [
    *(pairs(f"pairs-d{depth}", "own", 1, depth, 0, "") for depth in (3, 20, 60)),
    dataclasses.replace(pairs("pairs-dense", "own", 1, 3, 0, ""), heap="dense-heap.so"),
    loop("realloc", (10_000, 40_000)),
    loop("new-near", (20_000, 60_000), "new", "{built}/pages-near.so"),
    loop("new-far", (20_000, 60_000), "new", "{built}/pages-far.so"),
    loop("others", (20_480, 61_440)),
    script("small", (20_000, 80_000)),
    script("large", (20_000, 100_000)),
    script("eval", (1_000, 5_000)),
    loop("threads", (50, 150)),
    loop("forks", (4, 12)),
    loop("execs", (4, 12)),
]


def fixed_addresses():
    words = ["setarch", "-R"]
    return words if subprocess.run([*words, "true"], capture_output=True).returncode == 0 else []


def measure_loop(one, library, built, folder, scratch, cpu):
    variant = variants.kmemshim("", library)
    heap = [built[one.heap]] if one.heap else []
    variant.environment["LD_PRELOAD"] = ":".join(map(str, [built["still-clock.so"], library, *heap]))
    fixed = fixed_addresses()

    def argv_for(count):
        return [str(word).replace("{built}", str(folder)) for word in [*fixed, *bench.command(one, variant, built, count)[0]]]

    value, error = runner.instructions(argv_for, variant.environment, scratch, one.callgrind, cpus={cpu},
                                       of_processes=sum if one.name == "execs" else max, without=BY_TICKS)
    if error:
        raise RuntimeError(f"{one.name}: {error}")
    return value / one.warm_up


def measure(library, built, folder, scratch, loops=LOOPS):
    """{name: instructions}; on each processor one at a time."""
    cpus = sorted(os.sched_getaffinity(0))
    with concurrent.futures.ThreadPoolExecutor(len(cpus)) as pool:
        free = list(cpus)

        def work(one):
            cpu = free.pop()
            here = scratch / f"cpu{cpu}"
            here.mkdir(parents=True, exist_ok=True)
            try:
                return measure_loop(one, library, built, folder, here, cpu)
            finally:
                free.append(cpu)

        return dict(zip((one.name for one in loops), pool.map(work, loops)))


def judge(measured, wanted, is_exact):
    """Rows (name, wanted, measured, change, complaint). is_exact: the table is of this machine, so that fewer are a complaint too."""
    for name, value in measured.items():
        if name not in wanted:
            yield name, None, value, None, "has no row in the table"
            continue
        change = value / wanted[name] - 1
        worse = "dearer" if change > LEAST else ""
        yield name, wanted[name], value, change, worse or ("cheaper: the table is to be written" if is_exact and change < -LEAST else "")
