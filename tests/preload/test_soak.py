"""
Does it stay as it was after a while? Threads, blocks of every kind, processes, libraries and exec'ed functions come and go, and at the
end the ledger is right, nothing was lost and our own memory stands still. SECONDS= of the environment runs the same for longer.
"""
import json
import os
import signal
import subprocess
import time

import pytest

import harness
from test_conservation import FIGURES, check_ledger_site_by_site, ledger_program, read_ledger, report_of
from test_plugins import plugin

pytestmark = pytest.mark.usefixtures("as_users_run_it")

SECONDS = float(os.environ.get("SECONDS") or 4)
SAMPLES = 120
LONG = 300  # seconds after which a program of large blocks has been everywhere in its address space


def resident(pid):
    """(ours, the program's) bytes of the resident set: ours are the library, the capture and what no program asks for: no reserve."""
    ours = others = 0
    is_ours = follows_library = False
    with open(f"/proc/{pid}/smaps") as smaps:
        for line in smaps:
            word, *rest = line.split()
            if not word.endswith(":"):
                name = rest[4] if len(rest) > 4 else ""
                follows_library = "libkmemshim" in name or (follows_library and name == "")
                is_ours = follows_library or name.endswith(".kmem")
            elif word == "Rss:":
                bytes_here = int(rest[0]) << 10
            elif word == "VmFlags:":
                follows_library &= "nr" not in rest
                if is_ours or "nr" in rest:
                    ours += bytes_here
                else:
                    others += bytes_here
    return ours, others


def soak(argv, out, is_started, **env):
    """Lets the program run for SECONDS, looking at its memory; ends it in order. Returns its output and the looks."""
    process = subprocess.Popen([str(word) for word in argv], env=harness.shim_env(out, MALLOC_ARENA_MAX="1", **env),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    looks = []
    try:
        while not is_started():
            assert process.poll() is None, process.communicate()
        for _ in range(SAMPLES):
            time.sleep(SECONDS / SAMPLES)
            assert process.poll() is None, process.communicate()
            looks.append(resident(process.pid))
        process.terminate()
        output, errors = process.communicate(timeout=harness.TIMEOUT)
    finally:
        process.kill()
        process.wait(timeout=harness.TIMEOUT)
    assert (process.returncode, errors) == (0, "")
    return output, looks


def check_flat(looks):
    """In the second half: the last quarter, at its mean, is as the one before."""
    ours = [mine for mine, _ in looks]
    quarter = len(ours) // 4
    before, last = (sum(part) / quarter for part in (ours[-2 * quarter:-quarter], ours[-quarter:]))
    print("ours, KiB:", " ".join(str(each >> 10) for each in ours[::6]), f"third quarter {before / 1024:.0f}, last {last / 1024:.0f},",
          "the program's:", " ".join(str(each >> 10) for _, each in looks[::6]))
    if int(open("/proc/sys/vm/overcommit_memory").read()) == 2:
        pytest.skip("without overcommitting, memory of ours cannot be told from the program's")
    assert last - before <= before / 16 + (1 << 20)


def check_nothing_lost(document):
    costs = ("lost_fallback_unwinds", "lost_teardown_events", "lost_native_paths")
    assert {name: lost for name, lost in document["losses"].items() if lost != 0 and name not in costs} == {}


def test_blocks_threads_libraries_and_children_come_and_go(programs, tmp_path, out):
    seed = harness.seeded_random().randrange(1 << 31)
    program, file = ledger_program(programs), tmp_path / "ledger"
    libraries = [plugin(tmp_path, name) for name in ("anna", "bert")]
    _, looks = soak([program, file, seed, 8, 0, *libraries], out, lambda: file.exists() and read_ledger(program, file)["visits"] > 2)
    wanted, document = read_ledger(program, file), report_of(out)

    print(f"{SECONDS:g} s: {sum(each['allocated_count'] for each in wanted['sites'].values())} allocations, {wanted['visits']} visits, "
          f"capture {sum(path.stat().st_size for path in out.rglob('*.kmem')) >> 10} KiB")
    assert wanted["is_done"]
    # A child that copied much of its parent keeps its capture; the ledger is the parent's alone.
    check_ledger_site_by_site(wanted, report_of(document["processes"][0]["path"]), FIGURES)
    check_nothing_lost(document)
    if SECONDS >= LONG:
        check_flat(looks)


def test_functions_that_are_compiled_and_called_once(tmp_path, out):
    output, looks = soak([harness.find_python("ctypes"), harness.HERE / "soak.py", plugin(tmp_path, "anna")], out, out.exists)
    wanted, document = json.loads(output), report_of(out)
    seen = {name: 0 for name in wanted["calls"]}
    kept = 0

    for site in document["sites"]:
        for frame in site["frames"]:
            if frame["function"] in seen and "relation" not in frame:  # a thread that begins has no line of its own yet
                seen[frame["function"]] += site["allocated_count"]
                kept += site["live_count"]
                break
    print(f"{SECONDS:g} s: {sum(seen.values())} functions, "
          f"capture {sum(path.stat().st_size for path in out.rglob('*.kmem')) >> 10} KiB")
    assert seen == wanted["calls"]
    assert kept == wanted["kept"]
    check_nothing_lost(document)
    check_flat(looks)
