"""
The wheel and the Debian packages on a machine that has nothing but python3 and pip: a Debian made by debootstrap, kept in build/fresh-debian.

Long: it is brought from Debian's archive once (make test-long; needs root).
"""
import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "preload"))
import harness  # noqa: E402

pytestmark = pytest.mark.long
DIST = harness.BUILD / "dist"
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

    def run(self, script, user="root"):
        home = "/root" if user == "root" else f"/home/{user}"
        inner = f"cd && {script}"
        words = ["env", "-i", f"HOME={home}", "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive",
                 "setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups", "sh", "-c", inner]
        mounts = "mount -t proc proc \"$0/proc\" && mkdir -p \"$0/dev/shm\" && mount -t tmpfs tmpfs \"$0/dev/shm\" && exec chroot \"$0\" \"$@\""
        return harness.run(["unshare", "--mount", "sh", "-c", mounts, self.root, *words], timeout=600)

    def leftovers(self):
        return self.run("find / -xdev -name '*kmemshim*' -not -path '/tmp/*'").stdout.split()


@pytest.fixture(scope="module")
def fresh():
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        pytest.skip("a fresh Debian needs root and debootstrap")
    root = harness.BUILD / "fresh-debian"
    if not (root / "complete").exists():
        shutil.rmtree(root, ignore_errors=True)
        with open("/etc/os-release") as file:
            suite = next(line.split("=")[1].strip() for line in file if line.startswith("VERSION_CODENAME="))
        done = harness.run(["debootstrap", "--variant=minbase", "--include=python3,python3-pip,python3-venv", suite, root], timeout=1200)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", root / "etc" / name)
        (root / "tmp" / "train.py").write_text(TRAIN)
        assert Fresh(root).run("useradd --create-home someone").returncode == 0
        (root / "complete").touch()
    for path in (root / "tmp").glob("*kmemshim*"):
        path.unlink()
    for path in DIST.iterdir():
        shutil.copy(path, root / "tmp")
    return Fresh(root)


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
    install, command, remove = WAYS[way]
    done = fresh.run("! command -v gcc >/dev/null && " + install.format(f"{command} run -o captures -- python3 /tmp/train.py"), user)
    check_verdict(done)
    done = fresh.run(f"{command} why captures", user)
    assert done.returncode == 0 and "train.py:4" in done.stdout, done.stderr
    done = fresh.run(f"{remove}; rm -r captures", user)
    assert done.returncode == 0 and fresh.leftovers() == [], done.stderr


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
