"""The programs that are measured.

Used by bench.py. A new workload is one entry in WORKLOADS. Threads: as many as `threads` says; every numeric library is
held to one (runner.ENVIRONMENT, and torch.set_num_threads in the scripts).
"""
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parent / "programs"


@dataclass
class Workload:
    """words: program or script, then its arguments; {units} becomes how many units to do."""
    name: str
    about: str
    words: list
    units: int
    unit: str = "pair"
    python: str = ""   # of which environment: system, torch, keras, jax, pandas; empty for a C program
    threads: int = 1
    quick: int = 10    # --quick does this many times fewer units
    callgrind: tuple = ()     # two counts of units between which instructions are counted; empty: not counted
    warm_up: float = 1.0      # the program does so many times what it is told
    heap: str = ""            # a built library with an allocator, preloaded behind the recorder (gates only)

    def count(self, slow=1, is_quick=False):
        least = 1 if self.python else 8
        return max(least, self.units // (self.quick if is_quick else 1) // (1 if self.python else slow))


def pairs(name, mode, threads, depth, units, about, *more):
    return Workload(name, about, ["pairs", mode, threads, depth, "{units}", *more], units, threads=threads,
                    callgrind=(32_768, 98_304), warm_up=1.25)  # whole windows of pairs.c


def small(kind, about):
    """steady.py warms up by a tenth, from 200 units on."""
    return Workload(f"small-{kind}", f"pure Python, nothing but small objects: {about}", ["work_small.py", kind, "{units}"], 2000,
                    "1,000 objects", "system", callgrind=(200, 400), warm_up=1.1)


def script(name, about, python, file, kind, units, unit, quick=10):
    return Workload(name, about, [file, *([kind] if kind else []), "{units}"], units, unit, python, quick=quick)


WORKLOADS = [
    pairs("pairs-d3", "own", 1, 3, 2_000_000, "malloc/free pairs, depth 3"),
    pairs("pairs-d20", "own", 1, 20, 2_000_000, "malloc/free pairs, depth 20"),
    pairs("pairs-d60", "own", 1, 60, 1_000_000, "malloc/free pairs, depth 60"),
    pairs("pairs-d120", "own", 1, 120, 1_000_000, "malloc/free pairs, depth 120"),
    pairs("pairs-d60-paths", "own", 1, 60, 1_000_000, "depth 60, each event by one of 64 ways", 64),
    pairs("pairs-window", "window", 1, 20, 1_000_000, "8,192 live blocks, mixed sizes, freed in random order, depth 20"),
    pairs("pairs-ring", "cross", 1, 20, 1_000_000, "one thread, blocks freed 1,024 later, depth 20"),
    pairs("pairs-2t-own", "own", 2, 20, 1_000_000, "2 threads, a call site each, depth 20"),
    pairs("pairs-2t-same", "same", 2, 20, 1_000_000, "2 threads, one call site, depth 20"),
    pairs("pairs-2t-cross", "cross", 2, 20, 500_000, "2 threads free each other's blocks, depth 20"),
    pairs("pairs-8t-own", "own", 8, 20, 250_000, "8 threads, a call site each, depth 20"),
    Workload("cuda-pairs", "cudaMalloc/cudaFree pairs over the double driver, a heap pair of its own in each",
             ["cuda_pairs", "{units}", 4096], 1_000_000),
    Workload("deep", "100,000 nested calls of one function, each allocates", ["recursion", "deep", "{units}"], 40, "descent"),
    Workload("trees", "a tree of 16,383 nodes, built and released by recursion", ["recursion", "trees", "{units}"], 200, "tree"),
    Workload("switch", "8 coroutines that allocate and hand on, 1,000 times each", ["recursion", "switch", "{units}"], 40, "round"),
    Workload("pages", "the same, on stacks of more than two pages", ["recursion", "pages", "{units}"], 40, "round"),
    Workload("handed", "the coroutines of switch, resumed by 4 threads in turn", ["recursion", "handed", "{units}"], 40, "round", threads=4),
    Workload("larson", "2 threads replace 1,000 blocks each at random, 10,000 times, and hand them on to new threads",
             ["allocators", "larson", "{units}"], 100, "round", threads=2),
    Workload("sh6", "one thread, batches of small blocks, released in another order", ["allocators", "sh6", "{units}"], 200, "round"),
    Workload("forks", "4 threads that fork 10 children each", ["allocators", "forks", "{units}"], 20, "round", threads=4),
    Workload("containers", "C++, many small containers", ["containers", "{units}"], 1500, "round"),
    Workload("true", "start and end of /bin/true", ["spawns", "{units}", "/bin/true"], 200, "start", quick=4),
    Workload("shell", "a shell that starts 20 small programs", ["spawns", "{units}", str(PROGRAMS / "shell.sh")], 20, "shell", quick=4),
    script("objects", "pure Python, objects made and dropped", "system", "work_objects.py", "", 1500, "round"),
    script("churn", "pure Python, a loop of small objects", "system", "work_churn.py", "", 400, "round"),
    small("kept", "instances, replaced after 20,000"),
    small("temporaries", "dropped at once"),
    small("containers", "a dictionary with a list, replaced after 20,000"),
    small("strings", "text, replaced after 20,000"),
    script("numpy", "NumPy churn", "system", "work_numpy.py", "", 200, "round"),
    script("pandas", "pandas: group, merge, text", "pandas", "work_pandas.py", "", 150, "round"),
    script("import-torch", "import torch, from start to exit", "torch", "work_import.py", "torch", 1, "import"),
    script("torch-mlp", "PyTorch, tiny MLP, batch 32, steady", "torch", "work_torch.py", "mlp", 5000, "step"),
    script("torch-cnn", "PyTorch, small CNN, 5 ms a step or more, steady", "torch", "work_torch.py", "cnn", 250, "step"),
    script("torch-transformer", "PyTorch, small transformer, 5 ms a step or more, steady", "torch", "work_torch.py",
           "transformer", 250, "step"),
    script("torch-loader", "PyTorch, a DataLoader with 4 workers, forked anew each epoch", "torch", "work_loader.py", "", 6, "epoch", 3),
    script("keras-fit", "Keras fit, 8-12-8-1, batch 10, steady", "keras", "work_keras.py", "", 1540, "batch", 4),
    script("jax-jit", "JAX, jitted training step, steady", "jax", "work_jax.py", "jit", 20000, "step"),
    script("jax-eager", "JAX, eager operations, steady", "jax", "work_jax.py", "eager", 6000, "step"),
]

# Pairs of rows from which a third figure follows: what the second costs by the first.
SCALING = [("pairs-d20", "pairs-2t-own"), ("pairs-d20", "pairs-2t-same"), ("pairs-ring", "pairs-2t-cross")]
CPU_PER_EVENT = [("pairs-d60", "pairs-d120"), ("pairs-2t-own", "pairs-8t-own")]


def select(items, text, what):
    """Those that a word names, or whose name begins with it: "pairs" is all pairs, "pairs-d3" one, "-x" all but x."""
    words = [word for word in text.split(",") if word]
    for word in words:
        if not any(item.name.startswith(word.removeprefix("-")) for item in items):
            raise ValueError(f"no {what} \"{word}\": have {' '.join(item.name for item in items)}")

    def is_in(item, word):
        exact = any(other.name == word for other in items)
        return item.name == word or (not exact and item.name.startswith(word))

    wanted = [word for word in words if not word.startswith("-")]
    without = [word[1:] for word in words if word.startswith("-")]
    return [item for item in items if (not wanted or any(is_in(item, word) for word in wanted))
            and not any(is_in(item, word) for word in without)]
