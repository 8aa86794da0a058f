"""Processes: started, replaced and ended in every way, each has its own capture, and what is inherited is told apart."""
import collections
import os
import re
import shutil
import subprocess

import pytest

import harness

MIB = 1 << 20
SECONDS = 120
PARENT, CHILD = 4 * MIB, 2 * MIB


def record(programs, out, *words):
    """Runs a case without and with the shim; the same output. Returns the report and its processes, the parent first."""
    program = programs("processes.c")
    plain = harness.run([program, *words], timeout=SECONDS)
    watched = harness.record([program, *words], out, timeout=SECONDS)
    assert (watched.returncode, watched.stdout, watched.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert plain.returncode == 0
    document = harness.report("sites", out, "--domain", "heap")
    parent, *children = document["processes"]
    assert parent["live_bytes"] >= PARENT
    assert parent["inherited_bytes"] == 0
    return document, parent, children


def held_by(document):
    """Live bytes by function: what each line made, not what was inherited."""
    held = collections.Counter()
    for site in document["sites"]:
        held[(site["where"] or {}).get("function")] += site["live_bytes"]
    return held


def figures(process):
    """State and what it holds, rounded to MiB: a thread's own small blocks are no matter."""
    return process["state"], process["live_bytes"] // MIB, process["inherited_bytes"] // MIB


def test_children_are_told_however_they_end(programs, out):
    document, parent, children = record(programs, out, "ends")

    assert [figures(child) for child in children] == 4 * [("exited", 2, 4)] + 2 * [("gone", 2, 4)]
    assert [child["exit_status"] for child in children] == [3, 4, None, 7, None, None]  # quick_exit does not say
    assert held_by(document)["childs_block"] == 6 * CHILD
    assert held_by(document)["parents_block"] == PARENT
    assert document["totals"]["heap"]["concurrent_peak_bytes"] < document["totals"]["heap"]["peak_bytes"]


def test_what_a_child_builds_itself_is_no_copy(out):
    """Nor are the tables that recording 80,000 blocks takes."""
    program = """
import multiprocessing
def work(count):
    return len([bytes(1000) for _ in range(count)])
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(sum(pool.map(work, [40000, 80000])))
"""
    done = harness.record(["/usr/bin/python3", "-c", program], out)
    assert done.stdout == "120000\n", done.stderr
    document = harness.report("report", out)
    assert max(process["peak_bytes"] for process in document["processes"]) > 75 * MIB
    assert max(process["copied_bytes"] for process in document["processes"]) < 8 * MIB  # malloc's own words, too
    assert "copied-after-fork" not in [finding["kind"] for finding in document["verdict"]["findings"]]


def test_a_child_of_a_child_inherits_from_its_own_parent(programs, out):
    document, parent, children = record(programs, out, "nested")

    assert [child["parent_pid"] for child in children] == [parent["pid"]] + [child["pid"] for child in children[:-1]]
    assert [figures(child) for child in children] == [("exited", 2, 4), ("exited", 2, 2), ("exited", 2, 2)]
    shown = harness.kmemshim("report", out).stdout
    assert [len(line) - len(line.lstrip()) for line in shown.splitlines() if re.match(r" +processes\d* +\d+ ", line)] == [2, 4, 6, 8]


def test_forks_from_many_threads_at_once(programs, out):
    document, parent, children = record(programs, out, "threads")

    assert len(children) == 40
    assert {child["parent_pid"] for child in children} == {parent["pid"]}
    assert {figures(child) for child in children} == {("exited", 2, 4)}
    assert held_by(document)["childs_block"] == 40 * CHILD
    assert held_by(document)["fork_often"] == 0
    assert document["losses"]["lost_events"] == 0


def test_two_hundred_children_are_two_hundred_captures(programs, out):
    document, parent, children = record(programs, out, "many")

    assert len(list(out.glob("*.kmem"))) == 201
    assert "  ... 189 more, none larger\n" in harness.kmemshim("report", out).stdout
    assert {figures(child) for child in children} == {("exited", 2, 4)}
    assert held_by(document)["childs_block"] == 200 * CHILD
    assert held_by(document)["parents_block"] == PARENT


def test_a_child_of_a_raw_system_call_leaves_its_parents_capture_alone(programs, out):
    document, parent, children = record(programs, out, "raw")

    assert [figures(child) for child in children] == 2 * [("exited", 2, 4)]  # and one that never allocated
    assert {child["parent_pid"] for child in children} == {parent["pid"]}
    assert held_by(document)["childs_block"] == 2 * CHILD
    assert PARENT <= parent["live_bytes"] < PARENT + MIB


def test_a_child_may_free_what_it_inherited(programs, out):
    document, parent, children = record(programs, out, "frees")
    made = sum(1000 * i for i in range(2, 64))

    assert PARENT <= parent["live_bytes"] < PARENT + MIB
    assert parent["losses"]["lost_inherited_frees"] == document["losses"]["lost_unknown_frees"] == 0
    assert children[0]["losses"]["lost_inherited_frees"] == 63
    assert children[0]["live_bytes"] == CHILD + made
    assert children[0]["inherited_bytes"] >= PARENT + made
    assert held_by(document)["frees"] == made  # the child's; the parent's own are freed


def test_a_child_in_its_parents_memory_is_part_of_it(programs, out):
    document, parent, children = record(programs, out, "shared-memory")

    assert children == []
    assert parent["state"] == "exited"
    assert held_by(document)["childs_block"] == CHILD


def test_a_daemon_that_closed_everything_is_recorded(programs, out):
    document, parent, children = record(programs, out, "daemon")

    assert [figures(child) for child in children] == [("exited", 2, 20)]
    assert children[0]["copied_bytes"] == 0  # its parent is gone: the pages became its own without a copy


def test_a_process_that_daemon_ends_has_ended_well(programs, out):
    document, parent, children = record(programs, out, "becomes-daemon")

    assert figures(parent) == ("exited", 4, 0)
    assert [figures(child) for child in children] == [("exited", 2, 4)]


def test_the_same_pid_again_is_another_process(programs, out):
    if not os.access("/proc/sys/kernel/ns_last_pid", os.W_OK):
        pytest.skip("may not choose pids here")
    document, parent, children = record(programs, out, "same-pid")

    assert [figures(child) for child in children] == 2 * [("exited", 2, 4)]
    assert {child["parent_pid"] for child in children} == {parent["pid"]}


def test_spawned_programs_are_images_of_their_own(programs, out):
    document, parent, children = record(programs, out, "spawns")

    assert [figures(child) for child in children] == 4 * [("exited", 2, 0)]  # not the one without our environment
    assert held_by(document)["childs_block"] == 4 * CHILD


@pytest.mark.parametrize("how, states", [
    ("execv", ["exec-replaced", "exited"]),
    ("execveat", ["exec-replaced", "exited"]),
    ("raw", ["exec-replaced", "exited"]),
    ("bare", ["exec-replaced"]),
    ("execveat-bare", ["exec-replaced"]),
    ("fails", ["exited"]),
])
def test_an_image_that_is_replaced_is_not_gone(how, states, programs, out, tmp_path):
    document, parent, children = record(programs, out, "image", how)

    assert [child["state"] for child in children] == states
    assert {child["pid"] for child in children} == {children[0]["pid"]}
    assert figures(children[0])[1:] == (2, 4)
    assert [figures(child)[1:] for child in children[1:]] == [(2, 0)] * (len(states) - 1)
    made = harness.kmemshim("baseline", out, "-o", tmp_path / "base.json")
    assert (made.returncode, made.stderr) == (0, f"kmemshim: written: {tmp_path / 'base.json'}, from 1 run\n")  # nothing in it is damaged


def test_a_small_image_that_nobody_records_after_leaves_nothing(programs, tmp_path, out):
    program = tmp_path / "static"
    source = tmp_path / "static.c"
    source.write_text("int main(void) { return 0; }\n")
    if harness.run(["gcc", "-static", "-o", program, source]).returncode != 0:
        pytest.skip("no static C library")
    script = f"for i in 1 2 3; do ( x=$i$x; exec {program} ); done; sh -c 'exec {program}'; env -i {program}; :"
    harness.silent(harness.record(["sh", "-c", script], out))

    assert len(os.listdir(out)) == 1, os.listdir(out)  # the first shell's


def test_an_exec_that_fails_late_costs_nothing_of_the_capture(programs, out, tmp_path):
    script = tmp_path / "script"
    script.write_text("no interpreter\n")
    script.chmod(0o755)
    document, parent, children = record(programs, out, "fails-small", script)

    assert [figures(child) for child in children] == [("exited", 2, 4)]
    assert held_by(document)["fails_small"] == 5000


def test_a_child_on_a_small_stack_of_its_parents_may_exec(programs, out):
    document, parent, children = record(programs, out, "borrows")

    assert children == []


IN_A_CONTAINER = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]


def test_a_program_that_runs_in_a_container_is_not_called_dead(out):
    if harness.run([*IN_A_CONTAINER, "true"]).returncode != 0:
        pytest.skip("may not make a namespace of pids here")
    program = ["sh", "-c", "echo ready; read line"]
    preload = [f"{name}={value}" for name, value in (("LD_PRELOAD", harness.SHIM), ("KMEMSHIM_OUT", out))]
    with subprocess.Popen([*IN_A_CONTAINER, "env", *preload, *program], env=harness.plain_env(), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout.readline() == "ready\n"
        from_outside = harness.report("report", out)
        from_another = harness.run([*IN_A_CONTAINER, harness.KMEMSHIM, "why", out])
        running.communicate("\n")

    assert from_outside["verdict"]["cause"] == "running"
    assert "in another container" in harness.unwrapped(from_another.stdout)
    assert harness.report("report", out)["verdict"]["cause"] == "exited"


def test_a_setuid_program_runs_as_ever(programs, out, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root to make a program setuid")
    if os.statvfs(tmp_path).f_flag & os.ST_NOSUID:
        pytest.skip("the file system of temporary files knows no setuid")
    program = tmp_path / "setuid"
    shutil.copy(programs("processes.c"), program)
    os.chown(program, 65534, 65534)
    program.chmod(0o4755)
    script = f"{program} raw; echo $?"
    plain, watched = (harness.run(["sh", "-c", script], env) for env in (harness.plain_env(), harness.shim_env(out)))

    assert plain.stdout == "status 0\nstatus 0\nstatus 0\n0\n"
    assert (watched.returncode, watched.stdout, watched.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert [process["name"] for process in harness.report("sites", out)["processes"]] == [os.path.basename(os.path.realpath(shutil.which("sh")))]


@pytest.mark.parametrize("bytes_", [64, 1500])
def test_libraries_with_static_thread_storage_load_as_ever(bytes_, programs, tmp_path, out):
    source = tmp_path / "storage.c"
    source.write_text(f'__thread char storage[{bytes_}] __attribute__((tls_model("initial-exec")));\n'
                      'char *first(void) { return storage; }\n')
    library = tmp_path / "storage.so"
    assert harness.run(["gcc", "-shared", "-fPIC", "-o", library, source]).returncode == 0
    program = [harness.find_python("ctypes"), "-c", f"import ctypes; ctypes.CDLL('{library}').first(); print('loaded')"]
    plain, watched = harness.run(program), harness.record(program, out)

    assert (watched.returncode, watched.stdout, watched.stderr) == (plain.returncode, plain.stdout, plain.stderr)


def test_a_preload_beside_ours_stays_where_it_is(tmp_path, out):
    source = tmp_path / "neighbour.c"
    source.write_text('#include <unistd.h>\n__attribute__((constructor)) static void here(void) { if (write(1, "here\\n", 5)) return; }\n')
    library = tmp_path / "neighbour.so"
    assert harness.run(["gcc", "-shared", "-fPIC", "-o", library, source]).returncode == 0
    for order in ([library, harness.SHIM], [harness.SHIM, library]):
        preload = ":".join(str(path.resolve()) for path in order)
        done = harness.ok(harness.run(["sh", "-c", "sh -c 'echo $LD_PRELOAD'; exec env"], harness.plain_env(LD_PRELOAD=preload, KMEMSHIM_OUT=out)))

        assert done.stdout.count("here\n") == 3
        assert f"here\n{preload}\n" in done.stdout
        assert f"\nLD_PRELOAD={preload}\n" in done.stdout


# --- what children copy ---------------------------------------------------------------------------------------------

READERS = 60_000_000  # bytes that readers.py builds


@pytest.mark.parametrize("kind", ["objects", "array"])
def test_workers_that_only_read_python_objects_copy_them(kind, out):
    done = harness.record([harness.find_python("multiprocessing"), harness.HERE / "readers.py", kind], out)
    assert (done.returncode, done.stdout) == (0, "[0, 0]\n"), done.stderr
    document = harness.report("sites", out)
    copied = [process["copied_bytes"] for process in document["processes"] if process["copied_bytes"] > READERS / 10]  # less is the interpreter's own

    if kind == "array":
        assert copied == []
        assert "copied" not in document["verdict"]["text"]
        return
    assert len(copied) == 2
    assert all(READERS * 0.9 < bytes_ < READERS * 1.4 for bytes_ in copied), copied
    line = "readers.py:10 build"
    assert f"2 child processes copied " in document["verdict"]["text"]
    assert f"allocated at {line}" in document["verdict"]["text"]
    assert "NumPy array" in document["verdict"]["next"]
    built = [built["key"] for process in document["processes"] for built in process["inherited_sites"][:1]]
    assert {harness.place(site) for site in document["sites"] if site["key"] in built} == {"readers.py:10"}
    assert " copied at least " in harness.unwrapped(harness.kmemshim("report", out).stdout)


PARENT_IS_KILLED = """\
import os, signal
rows = [{"number": number} for number in range(400000)]
parent, up = os.getpid(), os.pipe()
for _ in range(2):
    if os.fork() == 0:
        total = 0
        for row in rows:
            total += row["number"]
        os.write(up[1], b".")
        while os.getppid() == parent:
            os.sched_yield()
        os._exit(1)
for _ in range(2):
    os.read(up[0], 1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_workers_copied_is_known_though_their_parent_was_killed(out, tmp_path):
    """The kernel kills the largest process, which is the parent. Who ends after it can no longer tell copies from what it alone has now."""
    program = tmp_path / "program.py"
    program.write_text(PARENT_IS_KILLED)
    harness.run([harness.find_python("signal"), program], harness.shim_env(out))
    document = harness.report("sites", out)
    copied = [process["copied_bytes"] for process in document["processes"]]

    assert len(copied) == 3
    assert sorted(copied)[0] == 0 and all(bytes_ > 24 * MIB for bytes_ in sorted(copied)[1:]), copied  # 38 MiB


WORKERS_OF_A_CGROUP = """\
import os, sys, time
rows = [{"number": number} for number in range(100000)] if sys.argv[1] == "objects" else bytearray(b"1") * (24 << 20)
parent, up = os.getpid(), os.pipe()
def private():
    with open("/proc/self/smaps_rollup") as figures:
        return sum(int(line.split()[1]) << 10 for line in figures if line.startswith("Private_Dirty"))
def work(file):
    last = 0
    for part in range(0, len(rows), len(rows) // 100):
        last += sum(row["number"] for row in rows[part:part + 1000]) if sys.argv[1] == "objects" else rows[part]
        while time.process_time() < part / len(rows) / 2:
            bytearray(600)
    looked_at = time.monotonic() + 2.5  # by then a heartbeat came after the last copy, and a look with it
    while time.monotonic() < looked_at:
        bytearray(600)
    with open(file, "w") as truth:
        truth.write(str(private()))
    os.write(up[1], b".")
    while os.getppid() == parent:
        os.sched_yield()
    os._exit(1)
for worker in range(4):
    if os.fork() == 0:
        work(f"{sys.argv[2]}/{worker}")
for worker in range(4):
    os.read(up[0], 1)
more = []
while True:
    more.append(bytearray(b"1") * (1 << 20))
"""


@pytest.mark.parametrize("kind", ["objects", "array"])
def test_what_workers_share_and_what_they_copied_is_told_apart(kind, out, tmp_path):
    """Pages of a parent that lives are no freed memory of its workers, and what each copied is known before the kernel kills one."""
    program = tmp_path / "program.py"
    program.write_text(WORKERS_OF_A_CGROUP)
    with harness.memory_group(240 << 20) as group:
        words = ["sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec env LD_PRELOAD="$SHIM" "$@"', group]
        env = harness.shim_env(out)
        env["SHIM"] = str(env.pop("LD_PRELOAD"))
        done = harness.run([*words, harness.find_python("signal"), program, kind, tmp_path], env)
        assert done.returncode == -9, done.stderr
        harness.wait_for(lambda: not (group / "cgroup.procs").read_text())
    document = harness.report("sites", out)
    parent, *workers = document["processes"]
    truths = sorted(int((tmp_path / str(worker)).read_text()) for worker in range(4))

    assert all(worker["is_copied_known"] for worker in workers)
    for worker, truth in zip(sorted(workers, key=lambda worker: worker["copied_bytes"]), truths):
        assert worker["copied_bytes"] < truth
        assert worker["copied_bytes"] > truth / 2 if kind == "objects" else worker["copied_bytes"] < 4 * MIB
    memory = document["verdict"]["memory"]
    assert memory["bytes"] < (240 << 20) + 16 * MIB
    assert all(part["bytes"] < 4 * MIB for part in memory["parts"] if part["name"] == "freed memory that malloc keeps")


WORKER_IS_KILLED = """\
import os, signal
def work():
    kept = bytearray(8 << 20)
    os.kill(os.getpid(), signal.SIGKILL)
child = os.fork()
if child == 0:
    work()
os.waitpid(child, 0)
"""


def test_check_tells_of_a_child_that_was_killed(out, tmp_path):
    """The kernel did not count it: a note. Counted for lack of memory, it is no good end: tests/unit/analyzer/model/test_family.c."""
    program = tmp_path / "program.py"
    program.write_text(WORKER_IS_KILLED)
    harness.ok(harness.kmemshim("run", "-o", out, "--", harness.find_python("signal"), program))
    base = tmp_path / "base.json"
    assert harness.kmemshim("baseline", out, "-o", base).returncode == 0
    check = harness.ok(harness.kmemshim("check", out, "--baseline", base, "--format", f"text,junit={tmp_path / 'junit.xml'}"))

    assert "note: " in check.stdout and "its child process program.py (pid" in check.stdout
    assert "its child process program.py" in (tmp_path / "junit.xml").read_text()
    assert "Its child process program.py (pid" in harness.unwrapped(harness.kmemshim("why", out).stdout)


WORKER_GROWS = """\
import os
child = os.fork()
if child == 0:
    kept = []
    while True:
        kept.append(b"x" * (1 << 20))
print(os.waitpid(child, 0)[1])
"""


def test_a_child_that_the_kernel_killed_for_memory_fails_the_check(out, tmp_path):
    """Though its parent did well."""
    program = tmp_path / "program.py"
    program.write_text(WORKER_GROWS)
    with harness.memory_group(150 * MIB) as group:
        command = [harness.KMEMSHIM.resolve(), "run", "-o", out, "--", harness.find_python("signal"), program]
        done = harness.run(["sh", "-c", 'echo $$ >"$0/cgroup.procs"; exec "$@"', group, *command])
    assert (done.returncode, done.stdout) == (0, "9\n"), done.stderr
    document = harness.report("sites", out)

    assert document["verdict"]["cause"] == "child-killed"
    assert "the kernel killed 1 process of its container" in document["verdict"]["text"]
    base = tmp_path / "base.json"
    harness.kmemshim("baseline", out, "-o", base)
    assert harness.kmemshim("check", out, "--baseline", base).returncode == 4


def test_each_figure_of_several_processes_says_whose_it_is(tmp_path):
    """No sentence mixes one process with a sum over all: its peak is that of the table, and a sum is named."""
    script = tmp_path / "workers.py"
    script.write_text("""\
import multiprocessing

def work(count):
    kept = [bytearray(100000) for _ in range(count)]
    return len(kept)

if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    workers = [multiprocessing.Process(target=work, args=(count,)) for count in (100, 200, 300)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
""")
    harness.silent(harness.record(["/usr/bin/python3", script], tmp_path / "out"))

    document = harness.report("peak", tmp_path / "out")
    page = harness.kmemshim("report", tmp_path / "out").stdout
    text, rest = document["verdict"]["text"], page[page.index("Memory "):]
    pid, peak = re.search(r"Of its processes, workers.py \(pid (\d+)\) had the highest peak: ([\d.]+ \w+)", text).groups()
    assert max(document["processes"], key=lambda process: process["peak_bytes"])["pid"] == int(pid)
    assert re.search(rf"workers\.py +{pid}  exited +{peak} ", rest)
    part, whole = re.search(r"Summed over all its processes, ([\d.]+ MiB) of the ([\d.]+ MiB) of heap that they held at their peaks was "
                            r"allocated at workers.py:4 ", text).groups()
    assert re.search(rf"  heap +{whole} ", rest) and "  sums over 4 processes" in rest
    assert f"{part:>9} " in page[page.index("Held at the peak, summed over 4 processes"):]
    assert re.search(r"Resident set of process \d+ alone", rest)


def test_shared_memory_may_be_what_several_processes_held_most_of(tmp_path):
    (tmp_path / "shared.py").write_text("""\
import mmap, os

shared = mmap.mmap(-1, 100 << 20)
for _ in range(100):
    shared.write(bytes(1 << 20))
child = os.fork()
if child == 0:
    kept = [bytearray(100000) for _ in range(300)]
else:
    os.waitpid(child, 0)
""")
    assert harness.record(["/usr/bin/python3", tmp_path / "shared.py"], tmp_path / "out").returncode == 0
    text = harness.report("peak", tmp_path / "out")["verdict"]["text"]
    assert "held at most 100 MiB in shared memory. At the peak 100 MiB (100 %) was allocated at shared.py:3 " in text


def test_the_one_worker_that_keeps_what_all_of_them_make_is_named(tmp_path):
    (tmp_path / "pool.py").write_text("""\
import multiprocessing, os, threading

def make():
    return bytearray(200000)

def work(is_keeper):
    kept = []
    for number in range(200):
        made = make()
        if is_keeper or number < 3:
            kept.append(made)
    threading.Thread(target=kept.copy).start() # for a capture of one that is small, too
    os._exit(0) # with what it holds

if __name__ == "__main__":
    multiprocessing.set_start_method("fork")
    workers = [multiprocessing.Process(target=work, args=(number == 1,)) for number in range(3)]
    for worker in workers:
        worker.start()
        worker.join()
""")
    harness.silent(harness.record(["/usr/bin/python3", tmp_path / "pool.py"], tmp_path / "out"))
    most = max(harness.report("report", tmp_path / "out")["processes"], key=lambda process: process["live_bytes"])
    text = harness.kmemshim("why", tmp_path / "out").stdout.replace("\n", " ")
    assert f"allocated at pool.py:4 make, nearly all of it in pool.py (pid {most['pid']})" in text, text
