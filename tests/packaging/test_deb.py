"""
The Debian packages that `make deb` made: unpacked together, used, and looked at by lintian. test_fresh_debian.py installs them.

make test-packaging makes them before.
"""
import hashlib
import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "preload"))
import harness  # noqa: E402

DIST = harness.BUILD / "dist"
NAMES = ["kmemshim", "kmemshim-dev", "python3-kmemshim"]


def packages():
    """Those that users install, in the order of NAMES."""
    found = [path for name in NAMES for path in DIST.glob(f"{name}_*.deb")]
    assert len(found) == len(NAMES), f"{found}: make deb"
    return found


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    for package in packages():
        harness.ok(harness.run(["dpkg-deb", "--extract", package, root]))
    return root


def test_each_file_is_in_one_package():
    listed = [line.split()[-1] for package in packages() for line in harness.run(["dpkg-deb", "--contents", package]).stdout.splitlines()]
    files = [path for path in listed if not path.endswith("/")]
    assert len(files) > 30 and len(files) == len(set(files))


def test_record_and_report(root, tmp_path):
    (tmp_path / "train.py").write_text("kept = [bytearray(1 << 20) for _ in range(50)]\n")
    command = root / "usr" / "bin" / "kmemshim"
    done = harness.run([command, "run", "-o", tmp_path / "out", "--", "/usr/bin/python3", tmp_path / "train.py"])
    assert done.returncode == 0 and "train.py:1" in done.stderr, done.stderr
    done = harness.run([command, "doctor", "--", "/usr/bin/python3"])
    assert f"{root}/usr/lib/x86_64-linux-gnu/kmemshim/libkmemshim.so" in done.stdout, done.stdout + done.stderr


def test_the_kernel_of_any_environment_has_the_extension(root, tmp_path):
    """It leads to the one copy in Python's folder; and programs that the notebook starts do not get it."""
    program = ("import os, sys, kmemshim\nprint(os.path.realpath(kmemshim.__file__), sys.path[1])\nkmemshim._forget_path()\n"
               "print(os.environ.get('PYTHONPATH'))\n")
    done = harness.run([root / "usr/bin/kmemshim", "run", "--kernel", "-o", tmp_path, "--", "/usr/bin/python3", "-c", program])
    share = root / "usr/share/kmemshim/python"
    assert done.stdout == f"{root}/usr/lib/python3/dist-packages/kmemshim/__init__.py {share}\nNone\n", done.stderr


def test_pytest_finds_the_plugin(root, tmp_path):
    (tmp_path / "test_it.py").write_text("def test_it():\n    assert len(bytearray(30 << 20))\n")
    paths = f"{root}/usr/lib/python3/dist-packages:/usr/lib/python3/dist-packages"
    done = harness.run(["/usr/bin/python3", "-m", "pytest", "--kmemshim", "-q"],
                       harness.plain_env(PYTHONPATH=paths, PATH=f"{root}/usr/bin:/usr/bin:/bin"), cwd=tmp_path)
    assert done.returncode == 0 and re.search(r"30\.0 MiB .*test_it\.py::test_it", done.stdout), done.stdout + done.stderr


STEPS = """
#include <kmemshim.h>
#include <stdlib.h>
int main(void)
{
	for (int i = 0; i < 10; i++) {
		kmemshim_step();
		free(malloc(1 << 20));
	}
	return 0;
}
"""


def test_pkg_config_knows_the_header(root, tmp_path):
    environment = harness.plain_env(PKG_CONFIG_PATH=root / "usr/share/pkgconfig")
    flags = harness.run(["pkg-config", "--define-prefix", "--cflags", "--libs", "kmemshim"], environment).stdout.split()
    (tmp_path / "steps.c").write_text(STEPS)
    assert flags == [f"-I{root}/usr/include"]
    harness.compile_c(tmp_path / "steps.c", tmp_path / "steps", *flags)
    version = harness.run(["pkg-config", "--modversion", "kmemshim"], environment).stdout.strip()
    assert harness.run([root / "usr/bin/kmemshim", "--version"]).stdout == f"kmemshim {version}\n"


def test_cmake_finds_it(root, tmp_path):
    (tmp_path / "steps.c").write_text(STEPS)
    (tmp_path / "CMakeLists.txt").write_text("""
cmake_minimum_required(VERSION 3.16)
project(steps C)
enable_testing()
find_package(kmemshim 0.9 REQUIRED)
add_executable(steps steps.c)
target_link_libraries(steps kmemshim::kmemshim)
kmemshim_add_test(NAME steps COMMAND steps PEAK "8 MiB")
kmemshim_add_test(NAME tight COMMAND steps PEAK "64 KiB")
""")
    environment = harness.plain_env(CC="gcc")
    for words in (["cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={root}/usr"], ["cmake", "--build", tmp_path / "b"]):
        done = harness.ok(harness.run(words, environment))
    done = harness.run(["ctest", "--test-dir", tmp_path / "b"], environment)
    assert re.search(r"steps \.+ +Passed", done.stdout) and re.search(r"tight \.+\*\*\*Failed", done.stdout), done.stdout


def test_a_newer_version_than_there_is_is_not_found(root, tmp_path):
    (tmp_path / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.16)\nproject(none NONE)\nfind_package(kmemshim 99 REQUIRED)\n")
    done = harness.run(["cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={root}/usr"])
    assert done.returncode != 0 and "kmemshim-config.cmake, version: 0" in done.stderr, done.stderr


def test_lintian_finds_nothing():
    """But the address: the project has none; who publishes the packages gives his own (make deb MAINTAINER=)."""
    if not shutil.which("lintian"):
        pytest.skip("lintian is not installed")
    done = harness.run(["lintian", "--fail-on", "error,warning", "--suppress-tags", "bogus-mail-host,bogus-mail-host-in-debian-changelog",
                        *DIST.glob("*.deb")])
    assert done.returncode == 0 and done.stdout == "", done.stdout + done.stderr


def test_two_builds_have_the_same_bytes():
    def digests():
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in DIST.glob("*.deb")}
    before = digests()
    harness.ok(harness.run(["make", "-C", harness.ROOT, f"BUILD={harness.BUILD}", "deb"],
                           harness.plain_env(TZ="Asia/Tokyo", LC_ALL="C"), umask=0o027))
    assert digests() == before and len(before) >= len(NAMES)
