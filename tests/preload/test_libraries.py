"""Libraries that bring an allocator of their own: polars and duckdb (jemalloc inside), pyarrow and pandas' strings (mimalloc)."""
import functools
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

import harness

pytestmark = pytest.mark.framework
MIB = 1 << 20
PROGRAMS = Path(__file__).resolve().parent / "libraries"
CASES = [  # program, environment, the library's name in its path, steps until it is killed by a signal
    ("polars_join_kept.py", "polars", "polars", 45),
    ("duckdb_tables_kept.py", "duckdb", "duckdb", 50),
    ("pyarrow_columns_kept.py", "pyarrow", "libarrow", 120),
    ("pandas_strings_kept.py", "pandas", "libarrow", 110),
]


@functools.lru_cache
def interpreter(library):
    done = harness.run([harness.ROOT / "tools" / "venv", library], harness.plain_env(BUILD=harness.BUILD), timeout=1500)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def culprit(program):
    lines = (PROGRAMS / program).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if "# culprit" in line)


def lines_by_bytes(out):
    """Rows of lines, first what holds most."""
    lines = harness.report("sites", out)["lines"]
    return sorted(lines, key=lambda line: -line["live_bytes"])


def check(out, program, resident_bytes):
    """The culprit comes first among the lines, and rows with a name explain three quarters of what was in memory."""
    lines = [line for line in lines_by_bytes(out) if line["domain"] != "reserved"]
    assert harness.place(lines[0]) == f"{program}:{culprit(program)}", harness.summary(lines)
    assert lines[0]["domain"] == "library"
    named = sum(line["live_bytes"] for line in lines if (line.get("where") or {}).get("file"))
    assert named >= resident_bytes * 3 // 4, f"{named / MIB:.0f} of {resident_bytes / MIB:.0f} MiB\n{harness.summary(lines)}"
    return lines


@pytest.mark.parametrize("kill", range(2))
@pytest.mark.parametrize("program, library, path, steps", CASES)
def test_a_kill_names_the_line_that_keeps_what_the_library_holds(program, library, path, steps, kill, out):
    process = subprocess.Popen([interpreter(library), PROGRAMS / program], env=harness.shim_env(out, KMEMSHIM_VERIFY="0"),
                               stdout=subprocess.PIPE, text=True)
    for line in process.stdout:
        if int(line) >= steps - 5 * kill:
            break
    resident = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096
    os.kill(process.pid, signal.SIGKILL)
    process.wait()

    lines = check(out, program, resident)
    sites = harness.report("sites", out)["sites"]
    first = next(site for site in sites if harness.place(site) == harness.place(lines[0]) and site["domain"] == "library")
    assert path in os.path.basename(first["frames"][0]["module"]), first["frames"][:2]  # who reserved it


@pytest.mark.parametrize("program, library, path, steps", CASES)
def test_a_container_that_is_full_is_the_line_that_keeps_what_the_library_holds(program, library, path, steps, out):
    limit = 700 * MIB
    with harness.memory_group(limit) as group:
        done = harness.run(["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', group, interpreter(library), PROGRAMS / program],
                           harness.shim_env(out, KMEMSHIM_VERIFY="0"))
    assert done.returncode == -signal.SIGKILL, done.stderr

    check(out, program, limit - 64 * MIB)  # pages of files are charged, too


def test_with_system_allocators_arrow_takes_its_memory_from_malloc(out, tmp_path):
    program = tmp_path / "columns.py"
    program.write_text("import os, pyarrow as pa\nkept = [pa.array(range(100_000)) for _ in range(20)]\n"
                       "print(os.environ['ARROW_DEFAULT_MEMORY_POOL'], pa.default_memory_pool().backend_name, flush=True)\nos._exit(0)\n")
    command = [harness.KMEMSHIM, "run", "--system-allocators", "-o", out, "--", interpreter("pyarrow"), program]
    done = harness.run(command)
    assert done.stdout.split() == ["system", "system"], done.stderr
    heap = [line for line in lines_by_bytes(out) if line["domain"] == "heap"]
    assert harness.place(heap[0]) == "columns.py:2" and heap[0]["live_bytes"] >= 20 * 800_000, harness.summary(heap)

    done = harness.run(command, harness.plain_env(ARROW_DEFAULT_MEMORY_POOL="mimalloc"))  # what the user has set stays
    assert done.stdout.split() == ["mimalloc", "mimalloc"], done.stderr
