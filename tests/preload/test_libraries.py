"""
Libraries that bring an allocator of their own: polars and duckdb (jemalloc inside), pyarrow and pandas' strings (mimalloc).
LIBRARY_KILLS= of the environment says how often each is killed in each way.
"""
import os
import signal
import subprocess
from pathlib import Path

import pytest

import harness

pytestmark = [pytest.mark.framework, pytest.mark.usefixtures("as_users_run_it")]
MIB = 1 << 20
KILLS = int(os.environ.get("LIBRARY_KILLS") or 1)
LIMITS_MIB = range(600, 901)
PROGRAMS = Path(__file__).resolve().parent / "libraries"
CASES = [  # program, environment, the library's name in its path
    ("polars_join_kept.py", "polars", "polars"),
    ("duckdb_tables_kept.py", "duckdb", "duckdb"),
    ("pyarrow_columns_kept.py", "pyarrow", "libarrow"),
    ("pandas_strings_kept.py", "pandas", "libarrow"),
]


def culprit(program):
    lines = (PROGRAMS / program).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if "# culprit" in line)


def largest(document, rows):
    return sorted(document[rows], key=lambda row: -row["live_bytes"])


def kill_at(limit_bytes, argv, out):
    """SIGKILL once so much is in memory. Returns how much was."""
    process = subprocess.Popen(argv, env=harness.shim_env(out), stdout=subprocess.PIPE, text=True)
    resident_bytes = 0
    for _ in process.stdout:
        resident_bytes = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * 4096
        if resident_bytes >= limit_bytes:
            break
    process.kill()
    process.communicate(timeout=harness.TIMEOUT)
    assert resident_bytes >= limit_bytes
    return resident_bytes


def fill_container(limit_bytes, argv, out):
    with harness.memory_group(limit_bytes) as group:
        done = harness.run(["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', group, *argv], harness.shim_env(out))
    assert done.returncode == -signal.SIGKILL, done.stderr
    return limit_bytes


@pytest.mark.parametrize("kill", range(KILLS))
@pytest.mark.parametrize("die", [kill_at, fill_container])
@pytest.mark.parametrize("program, library, path", CASES)
def test_a_kill_names_the_line_that_keeps_what_the_library_holds(program, library, path, die, kill, out):
    """It comes first among the lines, and rows with a name explain three quarters of what was in memory at the last heartbeat: 100 MiB may be newer."""
    limit_mib = harness.seeded_random().choice(LIMITS_MIB) if KILLS > 1 else LIMITS_MIB[0]
    resident_bytes = die(limit_mib * MIB, [harness.venv(library), PROGRAMS / program], out)

    document = harness.report("sites", out, "--top", "40")
    assert document["processes"][0]["resident_bytes"] > resident_bytes // 2
    resident_bytes = min(resident_bytes, document["processes"][0]["resident_bytes"])
    lines = [line for line in largest(document, "lines") if line["domain"] != "reserved"]
    assert harness.place(lines[0]) == f"{program}:{culprit(program)}", harness.summary(lines)
    assert lines[0]["domain"] == "library"
    named = sum(line["live_bytes"] for line in lines if (line.get("where") or {}).get("file"))
    print(f"{program} {die.__name__} {limit_mib} MiB: first {lines[0]['live_bytes'] / MIB:.0f}, named {named / MIB:.0f}, "
          f"in memory {resident_bytes / MIB:.0f} MiB: {named / resident_bytes:.0%}")
    assert named >= resident_bytes * 3 // 4, f"{named / MIB:.0f} of {resident_bytes / MIB:.0f} MiB\n{harness.summary(lines)}"
    first = next(site for site in largest(document, "sites") if harness.place(site) == harness.place(lines[0]) and site["domain"] == "library")
    assert path in os.path.basename(first["frames"][0]["module"]), first["frames"][:2]  # who reserved it


def test_with_system_allocators_polars_gives_back_what_it_frees(out, tmp_path):
    """Else the line that keeps takes the pages that another has freed, and growth is seen at that one."""
    program = tmp_path / "frames.py"
    program.write_text("""import os, polars as pl
rows = 2_000_000
def load(step):
    return pl.DataFrame([pl.int_range(rows, eager=True).alias("key"), pl.repeat(step, rows, eager=True).alias("value")])
def enrich(left, right):
    return left.join(right, on="key")
kept = []
base = load(0)
for step in range(12):
    fresh = load(step)
    kept.append(enrich(base, fresh))
os.kill(os.getpid(), 9)
""")
    done = harness.run([harness.KMEMSHIM, "run", "--system-allocators", "-o", out, "--", harness.venv("polars"), program])
    assert done.returncode == 128 + signal.SIGKILL and "--system-allocators" not in done.stderr, done.stderr  # it is used
    first, second = [line for line in largest(harness.report("sites", out, "--top", "20"), "lines") if line["domain"] == "library"][:2]
    assert harness.place(first) == "frames.py:6", harness.summary([first, second])  # without the switch it is the second


def test_with_system_allocators_arrow_takes_its_memory_from_malloc(out, tmp_path):
    program = tmp_path / "columns.py"
    program.write_text("import os, pyarrow as pa\nkept = [pa.array(range(100_000)) for _ in range(20)]\n"
                       "print(os.environ['ARROW_DEFAULT_MEMORY_POOL'], pa.default_memory_pool().backend_name, flush=True)\nos._exit(0)\n")
    command = [harness.KMEMSHIM, "run", "--system-allocators", "-o", out, "--", harness.venv("pyarrow"), program]
    done = harness.run(command)
    assert done.stdout.split() == ["system", "system"], done.stderr
    heap = largest(harness.report("sites", out, "--domain", "heap", "--top", "9"), "lines")
    assert harness.place(heap[0]) == "columns.py:2" and heap[0]["live_bytes"] >= 20 * 800_000, harness.summary(heap)

    done = harness.run(command, harness.plain_env(ARROW_DEFAULT_MEMORY_POOL="mimalloc"))  # what the user has set stays
    assert done.stdout.split() == ["mimalloc", "mimalloc"], done.stderr
