"""An installed tool finds its shim, and uninstall leaves nothing behind."""
import os
import re
import shutil

import harness


def make(*words):
    done = harness.ok(harness.run([shutil.which("make"), "-C", harness.ROOT, f"BUILD={harness.BUILD}", *words]))
    return done


def test_install_run_uninstall(programs, out, tmp_path):
    place = [f"DESTDIR={tmp_path}/root", "PREFIX=/opt/kmemshim"]
    make("install", *place)
    installed = tmp_path / "root" / "opt" / "kmemshim"
    assert (installed / "share" / "kmemshim" / "python" / "kmemshim" / "__init__.py").is_file()
    done = harness.ok(harness.run([installed / "bin" / "kmemshim", "run", "-o", out, "--", programs("leak_in_a_loop.c")]))

    assert "leak_in_a_loop.c:18" in done.stderr
    assert (installed / "share" / "pkgconfig" / "kmemshim.pc").is_file() and (installed / "share" / "cmake" / "kmemshim").is_dir()
    make("uninstall", *place)
    assert [path for path in (tmp_path / "root").rglob("*") if path.is_file()] == []


def test_command_and_notebook_extension_have_one_version():
    found = {re.search(pattern, (harness.ROOT / file).read_text(), re.M)[1] for file, pattern in (
        ("include/version.h", r'KMEMSHIM_VERSION_TEXT "(.+)"'), ("python/pyproject.toml", r'^version = "(.+)"'),
        ("python/kmemshim/__init__.py", r'^__version__ = "(.+)"'), ("packaging/debian/changelog", r"^kmemshim \((.+)\)"))}
    assert len(found) == 1, found


def test_of_two_installations_the_one_that_was_called_records(programs, out, tmp_path):
    other = tmp_path / "other" / "libkmemshim.so"
    other.parent.mkdir()
    shutil.copy(harness.SHIM, other)
    argv = [harness.KMEMSHIM, "run", "--quiet", "-o", out, "--", programs("leak_in_a_loop.c")]
    done = harness.ok(harness.run(argv, harness.plain_env(LD_PRELOAD=f"libm.so.6 {other}"), cwd=tmp_path))
    assert done.stderr == (f"kmemshim: LD_PRELOAD names the library of another installation, {other}: left out, "
                           f"{os.path.realpath(harness.SHIM)} records\n")
    assert len(list(out.glob("*.kmem"))) == 1
    show = [harness.KMEMSHIM, "run", "--quiet", "-o", out, "--", "sh", "-c", "echo $LD_PRELOAD"]
    done = harness.run(show, harness.plain_env(LD_PRELOAD=f"libm.so.6:{harness.SHIM}:libdl.so.2"), cwd=tmp_path)
    assert done.stdout == f"{os.path.realpath(harness.SHIM)}:libm.so.6:libdl.so.2\n" and done.stderr == ""
