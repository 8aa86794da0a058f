"""An installed tool finds its shim, and uninstall leaves nothing behind."""
import shutil

import harness


def make(*words):
    done = harness.run([shutil.which("make"), "-C", harness.ROOT, f"BUILD={harness.BUILD}", *words])
    assert done.returncode == 0, done.stderr
    return done


def test_install_run_uninstall(programs, out, tmp_path):
    place = [f"DESTDIR={tmp_path}/root", "PREFIX=/opt/kmemshim"]
    make("install", *place)
    installed = tmp_path / "root" / "opt" / "kmemshim"
    done = harness.run([installed / "bin" / "kmemshim", "run", "-o", out, "--", programs("leak_in_a_loop.c")])

    assert done.returncode == 0, done.stderr
    assert "leak_in_a_loop.c:18" in done.stderr
    make("uninstall", *place)
    assert [path for path in (tmp_path / "root").rglob("*") if path.is_file()] == []
