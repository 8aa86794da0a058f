"""
The wheel and the Debian packages on a machine that has nothing but python3 and pip: a Debian made by debootstrap, kept in build/fresh-debian.
An older one, whose loader has no _dl_find_object(), is in build/older-debian.

Long: it is brought from Debian's archive once (make test-long; needs root).
"""
import os
import re
import shutil
import signal
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "preload"))
import harness  # noqa: E402

pytestmark = pytest.mark.long
DIST = harness.BUILD / "dist"
OLDER = "bullseye"  # glibc 2.31
TRAIN = """import os, signal
kept = []
for epoch in range(60):
    kept.append(bytearray(1 << 20))
os.kill(os.getpid(), signal.SIGKILL)
"""


class Fresh:
    """A Debian in a folder. Each run has mounts of its own, which go with it."""

    def __init__(self, root):
        self.root = root

    def run(self, script, user="root", seconds=600):
        home = "/root" if user == "root" else f"/home/{user}"
        inner = f"cd && {script}"
        words = ["env", "-i", f"HOME={home}", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
                 "setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "sh", "-c", inner]
        mounts = "mount -t proc proc \"$0/proc\" && mkdir -p \"$0/dev/shm\" && mount -t tmpfs tmpfs \"$0/dev/shm\" && exec chroot \"$0\" \"$@\""
        return harness.run(["unshare", "--mount", "sh", "-c", mounts, self.root, *words], timeout=seconds)

    def leftovers(self):
        return self.run("find / -xdev -name '*kmemshim*' -not -path '/tmp/*'").stdout.split()


def made(name, suite):
    """A Debian of this suite, with what was made here in its /tmp. None: the archive does not have it."""
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        pytest.skip("a fresh Debian needs root and debootstrap")
    root = harness.BUILD / name
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        done = harness.run(["debootstrap", "--variant=minbase", "--include=python3,python3-pip,python3-venv", suite, root], timeout=1200)
        if done.returncode != 0 and "Failed getting release file" in done.stdout + done.stderr:
            return None
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
        for file in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{file}", root / "etc" / file)
        (root / "tmp" / "train.py").write_text(TRAIN)
        assert Fresh(root).run("useradd --create-home someone").returncode == 0
        (root / "complete").touch()
    for path in (root / "tmp").glob("*kmemshim*"):
        path.unlink()
    for path in DIST.iterdir():
        shutil.copy(path, root / "tmp")
    return Fresh(root)


def suite_here():
    with open("/etc/os-release") as file:
        return next(line.split("=")[1].strip() for line in file if line.startswith("VERSION_CODENAME="))


@pytest.fixture(scope="module")
def fresh():
    return made("fresh-debian", suite_here())


@pytest.fixture(scope="module")
def older():
    found = made("older-debian", OLDER)
    if found is None:
        pytest.skip(f"{OLDER} is no longer in Debian's archive")
    return found


def check_verdict(done):
    assert done.returncode == 128 + signal.SIGKILL, done.stdout + done.stderr
    assert "train.py:4" in done.stderr and "SIGKILL" in done.stderr, done.stderr


WAYS = {
    "venv": ("python3 -m venv v && v/bin/pip install -q --no-index /tmp/kmemshim-*.whl && {}", "v/bin/kmemshim", "v/bin/pip uninstall -q -y kmemshim; rm -r v"),
    "user": ("python3 -m pip install -q --no-index --user --break-system-packages /tmp/kmemshim-*.whl && {}", "python3 -m kmemshim",
             "python3 -m pip uninstall -q -y --break-system-packages kmemshim"),
    "system": ("python3 -m pip install -q --no-index --break-system-packages --root-user-action=ignore /tmp/kmemshim-*.whl && {}", "kmemshim",
               "python3 -m pip uninstall -q -y --break-system-packages --root-user-action=ignore kmemshim"),
}


@pytest.mark.parametrize("way, user", [("venv", "root"), ("venv", "someone"), ("user", "someone"), ("system", "root")])
def test_the_wheel(fresh, way, user):
    """Installed, recorded, killed, and the verdict read: in less than a minute, without a compiler."""
    install, command, remove = WAYS[way]
    done = fresh.run("! command -v gcc >/dev/null && " + install.format(f"{command} run -o captures -- python3 /tmp/train.py"), user, seconds=60)
    check_verdict(done)
    is_told = f"The script kmemshim is installed in '/home/{user}/.local/bin' which is not on PATH" in done.stderr
    assert is_told == (way == "user"), done.stderr
    done = fresh.run(f"{command} doctor --json -o d", user)
    assert done.returncode == 0 and ("python3 -m kmemshim" in done.stdout) == (way != "system"), done.stdout + done.stderr
    done = fresh.run(f"{command} why captures", user)
    assert done.returncode == 0 and "train.py:4" in done.stdout, done.stderr
    done = fresh.run(f"{remove}; rm -r captures", user)
    assert done.returncode == 0 and fresh.leftovers() == [], done.stderr


@pytest.mark.parametrize("user", ["root", "someone"])
def test_an_older_glibc(older, user):
    """Also frames of libraries that are loaded later are known there."""
    done = older.run("python3 -m venv v && v/bin/pip install -q --no-index /tmp/kmemshim-*.whl && v/bin/kmemshim run -o captures -- python3 /tmp/train.py",
                     user, seconds=60)
    check_verdict(done)
    program = "import sqlite3; kept = sqlite3.connect(':memory:'); kept.execute('create table t as select zeroblob(9000000)')"
    done = older.run(f'v/bin/kmemshim run -q -o native -- python3 -c "{program}" && v/bin/kmemshim peak --native native', user)
    assert re.search(r"\n +sqlite3_step \(libsqlite3\.so\.0\)\n +_sqlite3\.cpython.*\n.*\n +<string>:1 <module>\n", done.stdout), done.stdout + done.stderr
    done = older.run("v/bin/kmemshim doctor -o d -- python3; rm -r v captures native", user)
    assert "problem" not in done.stdout, done.stdout + done.stderr


@pytest.fixture(scope="module")
def other_machine():
    """A folder with Debian's Python for aarch64, which qemu runs. Not installed, only unpacked."""
    if not shutil.which("qemu-aarch64") or os.geteuid() != 0 or not shutil.which("debootstrap"):
        pytest.skip("a Python of another machine needs qemu-aarch64, root and debootstrap")
    root = harness.BUILD / "aarch64-debian"
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        done = harness.run(["debootstrap", "--arch=arm64", "--foreign", "--variant=minbase", "--include=python3", suite_here(), root], timeout=1200)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
        for package in root.glob("var/cache/apt/archives/*.deb"):
            assert harness.run(["dpkg-deb", "--extract", package, root]).returncode == 0
        (root / "complete").touch()
    return root


def test_another_machine(other_machine, tmp_path):
    """The installed folder, copied to an aarch64: one line."""
    wheel, = DIST.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(tmp_path)
    python = os.path.realpath(other_machine / "usr" / "bin" / "python3")
    done = harness.run(["qemu-aarch64", "-L", other_machine, python, "-m", "kmemshim", "report"], harness.plain_env(PYTHONPATH=tmp_path))
    assert done.returncode == 2 and done.stdout == ""
    assert re.fullmatch(r"kmemshim: this installation is for x86_64 with glibc 2\.\d+ or newer, and this Python runs on aarch64 with "
                        r"glibc 2\.\d+: build kmemshim here from source\n", done.stderr), done.stderr


def test_the_debian_packages(fresh):
    done = fresh.run("apt-get update -q && apt-get install -q -y --no-install-recommends /tmp/kmemshim_*.deb /tmp/kmemshim-dev_*.deb /tmp/python3-kmemshim_*.deb")
    assert done.returncode == 0, done.stdout + done.stderr
    done = fresh.run("kmemshim run -o captures -- python3 /tmp/train.py", "someone")
    check_verdict(done)
    done = fresh.run("kmemshim why captures && python3 -m kmemshim --version && python3 -c 'import kmemshim; print(kmemshim.__file__)'; rm -r captures", "someone")
    assert done.returncode == 0 and done.stdout.endswith("/usr/lib/python3/dist-packages/kmemshim/__init__.py\n"), done.stdout + done.stderr
    done = fresh.run("dpkg --verify kmemshim kmemshim-dev python3-kmemshim && dpkg --purge kmemshim kmemshim-dev python3-kmemshim")
    assert done.returncode == 0 and "warning" not in done.stdout + done.stderr, done.stdout + done.stderr
    assert fresh.leftovers() == []
