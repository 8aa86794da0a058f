"""What kmemshim doctor says of the machine: folder, file system, limits of shells and of containers."""
import contextlib
import os
import re
import tempfile
from pathlib import Path

import pytest

import harness
from test_doctor import OK, PROBLEM, compiled, findings


def one(found, where, level=None):
    """The one finding about `where`."""
    rows = [row for row in found if row["where"] == where and level in (None, row["level"])]
    assert len(rows) == 1, found
    return rows[0]


def mounted(script, *words):
    """kmemshim doctor WORDS after `script`, which makes mounts of its own."""
    if os.geteuid() != 0:
        pytest.skip("needs root to mount")
    inner = f"set -e\n{script}\nexec \"$@\""
    done = harness.run(["unshare", "-m", "--propagation", "private", "sh", "-c", inner, "sh", harness.KMEMSHIM, "doctor", "--json", *words])
    if "permission denied" in done.stderr.lower() or "not permitted" in done.stderr:
        pytest.skip(f"cannot be mounted here: {done.stderr.strip()}")
    assert done.returncode in (OK, PROBLEM), done.stderr
    return harness.json.loads(done.stdout)["findings"]


# --- the folder ---------------------------------------------------------------------------------

def test_a_folder_in_the_layer_of_a_container(tmp_path):
    for name in ("lower", "upper", "work", "all"):
        (tmp_path / name).mkdir()
    found = mounted(f"cd {tmp_path}; mount -t tmpfs none upper; mkdir upper/u upper/w; mount -t overlay none -o lowerdir=lower,upperdir=upper/u,workdir=upper/w all",
                    "-o", tmp_path / "all" / "captures", "/bin/ls")
    row = one(found, str(tmp_path / "all" / "captures"), "note")
    assert "go when the container is removed" in row["what"] and "-o" in row["next"]


def test_a_file_system_that_has_no_ordinary_files(tmp_path):
    (tmp_path / "m").mkdir()
    found = mounted(f"mount -t hugetlbfs none {tmp_path}/m", "-o", tmp_path / "m" / "captures", "/bin/ls")
    assert one(found, str(tmp_path / "m" / "captures"))["level"] == "problem"


REFUSES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
int fallocate(int file, int mode, off_t offset, off_t bytes)
{
	(void)file, (void)mode, (void)offset, (void)bytes;
	errno = atoi(getenv("FALLOCATE"));
	return errno == 0 ? 0 : -1;
}
void *mmap(void *at, size_t bytes, int access, int flags, int file, off_t offset)
{
	if ((flags & MAP_SHARED) != 0 && (access & PROT_WRITE) != 0 && file >= 0 && getenv("MMAP") != NULL) {
		errno = atoi(getenv("MMAP"));
		return MAP_FAILED;
	}
	return ((void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap"))(at, bytes, access, flags, file, offset);
}
"""


@pytest.mark.parametrize("setting, said", [
    ({"FALLOCATE": "122"}, "your quota there is used up"), ({"FALLOCATE": "28"}, "has no room for 64 MiB that you may use"),
    ({"FALLOCATE": "95"}, None), ({"FALLOCATE": "0", "MMAP": "19"}, "cannot be mapped for writing there (No such device)"),
], ids=["quota", "reserved", "unsupported", "no mapping"])
def test_a_file_that_gets_no_room_or_no_mapping(setting, said, tmp_path):
    """What a quota, and a file system of the network, answer: played by a library, since neither can be had here."""
    (tmp_path / "refuses.c").write_text(REFUSES)
    library = harness.compile_c(tmp_path / "refuses.c", tmp_path / "librefuses.so", "-shared", "-fPIC")
    (tmp_path / "captures").mkdir()
    env = harness.plain_env(LD_PRELOAD=library, **setting)
    found = findings("-o", tmp_path / "captures", "/bin/ls", status=PROBLEM if said else OK, env=env)
    row = one(found, str(tmp_path / "captures"), "problem" if said else "ok")
    assert said is None or said in row["what"] and "-o" in row["next"]
    assert not list((tmp_path / "captures").iterdir())


# --- ulimit -------------------------------------------------------------------------------------

@pytest.mark.parametrize("option, level, said", [
    ("-d 4000000", "note", "private memory is limited to 3.81 GiB"), ("-n 30", "note", "30 files may be open"),
    ("-l 64", "ok", "may lock 64.0 KiB"),
])
def test_limits_of_a_shell(option, level, said, tmp_path):
    words = ["bash", "-c", f"ulimit {option}; exec \"$@\"", "x", harness.KMEMSHIM, "doctor", "--json", "/bin/ls"]
    done = harness.run(words, cwd=tmp_path)
    assert done.returncode == OK, done.stdout + done.stderr
    row = one(harness.json.loads(done.stdout)["findings"], "ulimit " + option.split()[0])
    assert row["level"] == level and said in row["what"]


# --- the container ------------------------------------------------------------------------------

def inside(*groups):
    """What doctor finds in these cgroups."""
    script = "".join(f"echo 0 >{group}/cgroup.procs; " for group in groups)
    done = harness.run(["sh", "-c", script + 'exec "$@"', "sh", harness.KMEMSHIM, "doctor", "--json", "/bin/ls"])
    assert done.returncode == OK, done.stdout + done.stderr
    return harness.json.loads(done.stdout)["findings"]


def test_a_memory_limit_below_the_machines():
    with harness.memory_group(512 << 20) as group:
        row = one(inside(group), "memory limit")
    assert row["level"] == "note" and row["what"].startswith("512 MiB of the machine's ") and row["what"].endswith(f"set by the cgroup {group}")
    assert "--memory" in row["next"]


def test_a_limit_of_addresses_is_named_where_there_is_no_other():
    with harness.memory_group(1 << 40) as group:  # none: more than the machine has
        script = f'echo 0 >{group}/cgroup.procs; ulimit -v 4000000; exec "$@"'
        done = harness.run(["sh", "-c", script, "sh", harness.KMEMSHIM, "doctor", "--json", "/bin/ls"])
    assert done.returncode == OK, done.stdout + done.stderr
    row = one(harness.json.loads(done.stdout)["findings"], "memory limit")
    if row["level"] != "ok":
        pytest.skip("the tests themselves run in a limited cgroup: " + row["what"])
    assert row["what"].startswith("none but 3.81 GiB of addresses (ulimit -v) and the machine's ")


def test_a_memory_limit_of_a_cgroup_above():
    with harness.memory_group(512 << 20) as group:
        inner = group / "inner"
        inner.mkdir()
        try:
            row = one(inside(inner), "memory limit")
        finally:
            inner.rmdir()
    assert f"512 MiB" in row["what"] and f"cgroup {group}, above this process's own" in row["what"]


@contextlib.contextmanager
def process_group(limit):
    for parent in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
        try:
            group = Path(tempfile.mkdtemp(prefix="kmemshim-test-", dir=parent))
        except OSError:
            continue
        try:
            (group / "pids.max").write_text(str(limit))
        except OSError:
            group.rmdir()
            continue
        try:
            yield group
        finally:
            group.rmdir()
        return
    pytest.skip("no cgroup with a limit of processes can be made here")


@pytest.mark.parametrize("limit", [100, 4000])
def test_a_limit_of_processes(limit):
    with process_group(limit) as group:
        found = inside(group)
    rows = [row for row in found if row["where"] == "process limit"]
    assert len(rows) == (limit == 100), found
    assert limit == 4000 or rows[0]["what"].startswith("100 processes and threads") and f"cgroup {group}" in rows[0]["what"]


@pytest.mark.parametrize("size, is_told", [("64m", True), ("90%", False)])
def test_the_size_of_shared_memory(size, is_told, tmp_path):
    found = mounted(f"mount -t tmpfs -o size={size} none /dev/shm; cd {tmp_path}", "/bin/ls")
    rows = [row for row in found if row["where"] == "/dev/shm"]
    assert len(rows) == is_told, found
    assert not is_told or "has room for 64.0 MiB" in rows[0]["what"] and "--shm-size" in rows[0]["next"]


def test_the_page_shows_what_it_says(tmp_path):
    """The session of docs/limits.md: line for line, figures and folders aside."""
    program = compiled(tmp_path, "#include <stdlib.h>\nvolatile char large[400000] = { 1 };\nint main(void) { void *volatile p = malloc(10); free(p); return large[3]; }\n",
                       "-g0", "-Wl,-Bstatic", "-ljemalloc_pic", "-Wl,-Bdynamic", "-lm", "-lstdc++", "-pthread", name="server")
    shown = re.search(r"^\$ kmemshim doctor -o /dev/shm/out -- ./server --port 80\n(.*?)^```", (harness.ROOT / "docs" / "limits.md").read_text(), re.M | re.S)[1]
    if "tmpfs" not in harness.run(["stat", "-f", "-c", "%T", "/dev/shm"]).stdout:
        pytest.skip("/dev/shm is no tmpfs")
    folder = Path(tempfile.mkdtemp(prefix="kmemshim-test-", dir="/dev/shm"))
    with harness.memory_group(2 << 30) as group:
        script = f"echo 0 >{group}/cgroup.procs; ulimit -l 8192; exec \"$@\""
        done = harness.run(["bash", "-c", script, "sh", harness.KMEMSHIM, "doctor", "-o", folder, "--", f"./{program.name}", "--port", "80"], cwd=tmp_path)
    folder.rmdir()
    rows = [row.replace(str(folder), "/dev/shm/out").replace(str(group), "/sys/fs/cgroup/memory/web") for row in done.stdout.splitlines()]
    wanted = [re.sub(r"\d[\d.]*", r"[\\d.]+", re.escape(row).replace(r"\.\.\.", ".*").replace("/usr/local/lib", ".*")).replace("[\\d.]+\\ [GM]iB", r"[\d.]+ [KMG]iB")
              for row in shown.splitlines()]
    assert len(rows) == len(wanted), done.stdout
    for row, pattern in zip(rows, wanted):
        assert re.fullmatch(pattern, row), (row, pattern)
