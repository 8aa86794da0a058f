"""
Disks, limits and rights that are against us: each takes detail from the record, says so once, and takes nothing from the program.
"""
import errno
import os
import resource
import stat
import subprocess
from pathlib import Path

import pytest

import harness
from test_faults import NAMED, Plan, Scene, run_with

STEPS = 3000
HERE = Path(__file__).resolve().parent
UNPRIVILEGED = 65534


@pytest.fixture(scope="session")
def scene(programs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("scene")
    return Scene([programs("ledger.c", "-fno-optimize-sibling-calls"), folder / "ledger", 7, 1, STEPS], folder)


def run_under(scene, out, before=None, **more):
    """The program with and without us in the same surroundings. Returns what we said."""
    plain = subprocess.run([str(word) for word in scene.argv], env=harness.plain_env(), stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, preexec_fn=before, timeout=harness.TIMEOUT)
    done = subprocess.run([str(word) for word in scene.argv], env=harness.shim_env(out, **more), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, preexec_fn=before, timeout=harness.TIMEOUT)
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.stderr
    assert plain.stderr == ""
    told = done.stderr.splitlines()
    assert len(told) <= 1 and all(line.startswith("kmemshim: ") for line in told), done.stderr
    return "".join(told)


def limit(kind, number):
    return lambda: resource.setrlimit(kind, (number, number))


def figures_of(scene, out):
    document = harness.report("sites", out, "--top", "1000000")
    losses = document["losses"]
    return sum(row["allocated_bytes"] for row in document["totals"].values()), losses


# --- limits -------------------------------------------------------------------------------------

@pytest.mark.parametrize("kib", [0, 4, 132, 133, 164, 196, 228, 260, 292, 340, 4096])
def test_a_file_size_limit_sends_no_signal(kib, scene, out):
    """Of every size around the steps of growth. SIGXFSZ would kill; the ledger's own file is there already."""
    told = run_under(scene, out, limit(resource.RLIMIT_FSIZE, max(kib << 10, 16384)))

    assert not told or "EFBIG" in told, told
    if kib >= 132:  # the head fits
        recorded, losses = figures_of(scene, out)
        assert recorded + losses["lost_event_bytes"] == scene.clean["allocated_bytes"]
        assert kib < 260 or losses["lost_events"] == 0  # a chunk of sites and one of stacks: what is new is booked at its callers


FULL = {  # what is full: lines of the program, settings, what is said of it
    "file": (1500, {}, "EFBIG"),
    "KMEMSHIM_SITES_MAX": (1500, {"KMEMSHIM_SITES_MAX": 700}, ""),
    "KMEMSHIM_CAPTURE_MAX": (4000, {"KMEMSHIM_CAPTURE_MAX": "1M"}, ""),
}


@pytest.mark.parametrize("what", FULL)
def test_beyond_a_limit_every_event_is_booked_at_a_caller(what, out):
    """More lines than there is room for."""
    lines, settings, said = FULL[what]
    script = ("def leaf(n): return bytearray(n)\n"
              f"exec('\\n'.join('def way%d(): return [leaf(%d)]' % (i, 3000 + i) for i in range({lines})))\n"
              f"kept = [globals()['way%d' % i]() for i in range({lines})]\nprint(sum(len(each[0]) for each in kept))\n")
    done = harness.run(["/usr/bin/python3", "-c", script], harness.shim_env(out, **settings),
                       preexec_fn=limit(resource.RLIMIT_FSIZE, 300 << 10) if what == "file" else None)
    kept_bytes = sum(range(3000, 3000 + lines))

    assert (done.returncode, done.stdout) == (0, f"{kept_bytes}\n") and said in done.stderr and done.stderr.count("\n") == bool(said), done.stderr
    document = harness.report("sites", out, "--top", "1" if lines > 2000 else "1000000")
    assert document["losses"]["lost_events"] == 0 < document["losses"]["lost_sites"]
    assert kept_bytes <= document["totals"]["heap"]["live_bytes"] < kept_bytes * 1.5
    if lines <= 2000:
        heap = [site["live_bytes"] for site in document["sites"] if site["domain"] == "heap"]
        assert len(heap) < lines and sum(heap) == document["totals"]["heap"]["live_bytes"]
    # Its head, what was allowed, and two eighths more for records of callers: how much of that is used depends on what comes when.
    assert next(out.glob("*.kmem")).stat().st_size <= 135168 + (1 << 20) // 8 * 10


def test_our_message_into_a_file_at_its_limit_sends_no_signal(scene, tmp_path):
    """stderr is such a file."""
    log = tmp_path / "log"
    log.write_bytes(bytes(20000))
    with open(log, "ab") as errors:
        done = subprocess.run([str(word) for word in scene.argv], env=harness.shim_env("/dev/null/folder"), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=errors, preexec_fn=limit(resource.RLIMIT_FSIZE, 20000))
    assert done.returncode == scene.plain.returncode
    assert log.stat().st_size == 20000


@pytest.mark.parametrize("mib", [24, 40, 64, 100, 200, 1000, 20000])
def test_an_address_space_limit_leaves_the_program_its_room(mib, scene, out):
    """The ledger counts refused requests and goes on: what it does depends on the limit. So only that it lives."""
    done = harness.run(scene.argv, harness.shim_env(out), preexec_fn=limit(resource.RLIMIT_AS, mib << 20))
    plain = harness.run(scene.argv, preexec_fn=limit(resource.RLIMIT_AS, mib << 20))

    assert done.returncode == plain.returncode, done.stderr
    assert done.stderr.count("\n") <= 1


@pytest.mark.parametrize("kind,number", [(resource.RLIMIT_MEMLOCK, 0), (resource.RLIMIT_MEMLOCK, 65536), (resource.RLIMIT_DATA, 256 << 20),
                                         (resource.RLIMIT_STACK, 256 << 10), (resource.RLIMIT_NPROC, 1), (resource.RLIMIT_CORE, 0)])
def test_other_limits_cost_nothing(kind, number, scene, out):
    assert not run_under(scene, out, limit(kind, number))
    if kind != resource.RLIMIT_DATA:  # refuses requests of the program's own
        assert figures_of(scene, out)[0] == scene.clean["allocated_bytes"]


def test_a_limit_of_private_memory_leaves_most_of_it_to_the_program(tmp_path, out):
    """RLIMIT_DATA counts what we reserve as if it were used: a table takes a quarter of the heap, the others next to nothing."""
    program = harness.compile_c(HERE / "fill.c", tmp_path / "fill")
    plain, done = (harness.run([program], environment, preexec_fn=limit(resource.RLIMIT_DATA, 300 << 20))
                   for environment in (None, harness.shim_env(out)))

    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 0.7 * int(plain.stdout), (done.stdout, plain.stdout)


@pytest.mark.parametrize("number", [4, 5, 6, 8])
def test_few_descriptors(number, scene, out):
    told = run_under(scene, out, limit(resource.RLIMIT_NOFILE, number))

    assert "EMFILE" in told if number == 4 else not told  # the ledger's own file is the fourth
    recorded, losses = figures_of(scene, out)
    assert recorded + losses["lost_event_bytes"] == scene.clean["allocated_bytes"]


def test_a_thread_of_another_constructor_opens_files_while_we_start(out):
    """With one descriptor for it and one for us."""
    out.mkdir()
    library = harness.compile_c(HERE / "open_early.c", out / "libopenearly.so", "-DLIBRARY", "-shared", "-fPIC")
    program = harness.compile_c(HERE / "open_early.c", out / "open_early", "-Wl,--no-as-needed", library)
    for _ in range(40):
        harness.silent(harness.run([program], harness.shim_env(out / "captures"), preexec_fn=limit(resource.RLIMIT_NOFILE, 5)))


def test_no_descriptor_left_after_the_start(tmp_path, out):
    """What was open at the start is the record; growth is tried again when there are descriptors again."""
    script = ("import resource, os\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\nheld = []\n"
              "try:\n while True: held.append(os.dup(1))\nexcept OSError: pass\n"
              "kept = [eval('lambda: bytearray(%d)' % (2000 + i)) for i in range(300)]\ndata = [f() for f in kept]\n"
              "for fd in held: os.close(fd)\n"
              "more = [eval('lambda: bytearray(%d)' % (4000 + i))() for i in range(300)]\nprint(len(data) + len(more))\n")
    done = harness.record(["/usr/bin/python3", "-c", script], out)

    assert (done.returncode, done.stdout) == (0, "600\n")
    assert done.stderr.count("\n") <= 1
    assert figures_of(None, out)[0] > 300 * 4000


# --- files and folders --------------------------------------------------------------------------

def drop_privileges(umask=0o022):
    def drop():
        os.umask(umask)
        if os.geteuid() == 0:
            os.setgid(UNPRIVILEGED)
            os.setuid(UNPRIVILEGED)
    return drop


PROGRAM = "import sys; data = [bytearray(5000 + i) for i in range(1000)]; print(len(data)); sys.exit(4)"


def run_unprivileged(folder, umask=0o022):
    done = subprocess.run(["/usr/bin/python3", "-c", PROGRAM], env=harness.shim_env(folder), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, preexec_fn=drop_privileges(umask), cwd="/", timeout=harness.TIMEOUT)
    assert (done.returncode, done.stdout) == (4, "1000\n"), done.stderr
    return done.stderr


@pytest.fixture
def folder(tmp_path):
    """A folder that an unprivileged program reaches; the test says who owns it and what is in it."""
    if os.geteuid() == 0 and not os.access(harness.SHIM, os.R_OK):
        pytest.skip("the build cannot be read by others")
    place = harness.run(["mktemp", "-d", "/tmp/kmemshim-fault-XXXXXX"]).stdout.strip()
    os.chmod(place, 0o777)
    if harness.run(["/usr/bin/python3", "-c", f"open({str(harness.SHIM)!r})"], preexec_fn=drop_privileges()).returncode != 0:
        pytest.skip("the build cannot be read by others")
    yield place
    harness.run(["rm", "-rf", place])


def the_capture(folder):
    files = [name for name in os.listdir(folder) if name.endswith(".kmem")]
    assert len(files) == 1, files
    return os.path.join(folder, files[0])


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o277, 0o777])
def test_the_mode_is_0600_whatever_the_umask(umask, folder):
    assert run_unprivileged(folder, umask) == ""
    status = os.stat(the_capture(folder))

    assert stat.S_IMODE(status.st_mode) == 0o600
    assert harness.report("report", the_capture(folder))["losses"]["lost_growth"] == 0  # it could be opened again


def test_a_read_only_folder_is_one_message(folder):
    os.chmod(folder, 0o555)
    told = run_unprivileged(folder)

    assert told.count("\n") == 1 and ("EACCES" in told or "EROFS" in told), told
    assert not os.listdir(folder)


def test_a_folder_made_by_somebody_else_gets_a_file_that_is_ours_alone(folder):
    """As in /tmp: root made it, everybody may write."""
    assert run_unprivileged(folder) == ""
    status = os.stat(the_capture(folder))

    assert status.st_uid == (UNPRIVILEGED if os.geteuid() == 0 else os.geteuid())
    assert stat.S_IMODE(status.st_mode) == 0o600 and status.st_nlink == 1


@pytest.mark.parametrize("what", ["link", "dangling link", "hard link", "file", "folder", "pipe"])
def test_what_stands_at_the_captures_name_stays_as_it_is(what, tmp_path, out):
    """Somebody guessed the name. The program keeps its pid and its start over exec: so the test can."""
    target = tmp_path / "target"
    if what != "dangling link":
        target.write_text("foreign")
    plant = {"link": "ln -s {0} {1}", "dangling link": "ln -s {0} {1}", "hard link": "ln {0} {1}", "file": "cp {0} {1}",
             "folder": "mkdir {1}", "pipe": "mkfifo {1}"}[what].format(target, '"$name"')
    out.mkdir()
    script = (f'stat=$(cat /proc/$$/stat); set -- ${{stat##*) }}; name="{out}/sleep.$$.${{20}}.kmem"; {plant}; '
              f'LD_PRELOAD={harness.SHIM} KMEMSHIM_OUT={out} exec sleep 0')
    done = harness.run(["sh", "-c", script])
    planted = [path for path in out.iterdir() if not path.name.endswith("-2.kmem")]
    made = [path for path in out.iterdir() if path.name.endswith("-2.kmem")]

    assert done.returncode == 0 and done.stderr == ""
    assert len(planted) == 1 and len(made) == 1, list(out.iterdir())
    assert harness.kmemshim("report", made[0]).returncode == 0
    if what == "dangling link":
        assert not target.exists()
    else:
        assert target.read_text() == "foreign"
    if what == "file":
        assert planted[0].read_text() == "foreign"


# --- what the system does not have --------------------------------------------------------------

@pytest.mark.parametrize("name,error,has_capture", [
    ("fallocate", "EOPNOTSUPP", True),   # old NFS, FUSE: room is made by writing
    ("mmap shared", "ENODEV", False),    # 9p and FUSE without a cache
    ("process_vm_readv", "EPERM", True),  # a container's filter
    ("process_vm_readv", "ENOSYS", True),
    ("mlock", "EPERM", True),
    ("madvise", "EINVAL", True),
    ("mincore", "ENOSYS", True),
    ("renameat2", "EINVAL", True),
    ("prlimit64", "EPERM", True),
    ("read", "EACCES", True),
    ("readlinkat", "ENOENT", True),
    ("fchmod", "EPERM", True),
])
def test_a_system_that_lacks_a_call(name, error, has_capture, scene, tmp_path):
    plan = Plan(tmp_path / "plan", mode=NAMED, error=getattr(errno, error), name=name)
    done = run_with(scene.argv, tmp_path / "out", plan)
    told = done.stderr.splitlines()

    assert (done.returncode, done.stdout) == (scene.plain.returncode, scene.plain.stdout), done.stderr
    assert len(told) == (0 if has_capture else 1), told
    if has_capture:
        assert figures_of(scene, tmp_path / "out")[0] == scene.clean["allocated_bytes"]
    else:
        assert error in told[0] and not list((tmp_path / "out").glob("*.kmem"))


@pytest.mark.parametrize("where", ["/proc", "/sys", "/dev"])
def test_a_root_without(where, scene, out):
    script = f"mount -t tmpfs -o size=1m none {where} && exec \"$@\""
    wrap = ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh"]
    if harness.run([*wrap, "true"]).returncode != 0:
        pytest.skip("needs the right to mount")
    done = harness.run([*wrap, "env", f"LD_PRELOAD={harness.SHIM}", f"KMEMSHIM_OUT={out}", *scene.argv])

    assert (done.returncode, done.stdout, done.stderr) == (scene.plain.returncode, scene.plain.stdout, "")
    assert figures_of(scene, out)[0] == scene.clean["allocated_bytes"]
