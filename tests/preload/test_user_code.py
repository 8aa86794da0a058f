"""Which line is the user's own, what an import leaves, and when the text of a line is shown."""
import os
import signal
import textwrap
import zipfile

import pytest

from harness import kmemshim, ok, report, run, shim_env
from test_cells import VERSIONS, interpreter_of

SIZE = 3000017
END = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"

FILES = {
    "app/__init__.py": "",
    "app/train.py": """
        import installed, editable
        keep = []
        def decorated(function):
            def wrapper(*arguments):
                return function(*arguments)  # wrapper
            return wrapper
        @decorated
        def callback(size):
            keep.append(bytearray(size))  # callback
        class Holder:
            pass
        def main(size):
            keep.append(installed.make(size))  # makes
            installed.call(callback, size)  # calls
            keep.append(editable.make(size))  # edits
        """,
    "run.py": "from app.train import main\nmain(%d)\n" % SIZE + END,
    "venv/lib/python3.9/site-packages/installed.py": """
        table = bytearray(500003)
        def make(size):
            return bytearray(size)
        def call(function, size):
            return function(size)
        """,
    "elsewhere/editable.py": """
        def make(size):
            return bytearray(size)  # editable
        """,
}


@pytest.fixture
def project(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip())
    return tmp_path / "project"


def record_project(python, project, out, *argv, **more):
    path = os.pathsep.join(str(project / name) for name in ("venv/lib/python3.9/site-packages", "elsewhere", "."))
    done = run([python, *argv], shim_env(out, PYTHONPATH=path), cwd=project, **more)
    assert done.returncode == -signal.SIGKILL, done.stderr


def big_lines(out, *options):
    """where of what holds SIZE: base name -> text of the line"""
    return [(os.path.basename(line["where"]["file"]), (line["where"]["source"] or "").split("#")[-1].strip(), line["live_bytes"] // SIZE)
            for line in report("peak", out, "--domain", "heap", *options)["lines"] if line["live_bytes"] >= SIZE]


@pytest.mark.parametrize("version", VERSIONS)
def test_where_is_the_innermost_frame_of_the_users(version, project, out):
    record_project(interpreter_of(version), project, out, "run.py")
    assert sorted(big_lines(out)) == [("editable.py", "editable", 1), ("train.py", "callback", 1), ("train.py", "makes", 1)]
    text = kmemshim("peak", out, "--domain", "heap").stdout
    assert "from train.py:5 decorated.<locals>.wrapper\n" in text or "from train.py:5 wrapper\n" in text, text
    assert "import installed\n" in kmemshim("peak", out, "--domain", "heap").stdout, text

    # The project alone: neither what is installed in an environment below it, nor what lies beside it.
    narrow = sorted(big_lines(out, "--project", str(project / "app")))
    assert narrow == [("train.py", "callback", 1), ("train.py", "edits", 1), ("train.py", "makes", 1)]
    assert sorted(big_lines(out, "--project", str(project))) == sorted(big_lines(out))
    link = project.parent / "link"
    link.symlink_to(project)
    assert sorted(big_lines(out, "--project", str(link))) == sorted(big_lines(out))


def test_a_project_that_nothing_is_in_is_refused(project, out):
    record_project("/usr/bin/python3", project, out, "run.py")
    for command in ("sites", "report"):
        done = {name: kmemshim(command, out, "--project", str(project / name)) for name in ("app", "venv", "ap", "../elsewhere")}
        assert {name: one.returncode for name, one in done.items()} == {"app": 0, "venv": 2, "ap": 2, "../elsewhere": 2}
        assert {name: one.stdout == "" for name, one in done.items()} == {"app": False, "venv": True, "ap": True, "../elsewhere": True}
        said = {name: one.stderr for name, one in done.items()}
        assert said["app"] == ""
        assert said["venv"] == f"kmemshim: --project {project}/venv: no code below it allocated anything: no line would be yours\n"
        assert said["ap"] == (f"kmemshim: --project {project}/ap: there is no such folder, and no code below it in the "
                              "capture: no line would be yours\n")


def test_an_import_is_a_row_of_its_module_and_never_a_culprit(project, out):
    record_project("/usr/bin/python3", project, out, "run.py")
    document = report("leaks", out, "--domain", "heap")
    rows = {line["import"]: line for line in document["lines"] if line["import"]}
    assert 500003 <= rows["installed"]["live_bytes"] < 600000
    assert rows["installed"]["leak"]["class"] == "import"
    ranks = [bool(line["import"]) for line in document["lines"] if line["live_bytes"]]
    assert ranks.index(True) >= 3


DEEP = """
import builtins
def inner(size):
    return bytearray(size)
def outer(size):
    return inner(size)
tables = [inner(400003), outer(500009)]
given = builtins.given(3000017)
"""
MINE = """
import builtins, os
def given(size):
    return bytearray(size)
builtins.given = given
import deep
os._exit(0)
"""


@pytest.mark.parametrize("settings, ways", [({}, [["<module>"]]),
                                            ({"KMEMSHIM_IMPORTS": "full"}, [["inner", "<module>"], ["inner", "outer", "<module>"]])], ids=["cut", "full"])
def test_what_happens_inside_an_import_is_cut_at_the_module(settings, ways, tmp_path, out):
    """But for code of the user's own that it calls."""
    folder = tmp_path / "lib" / "python3" / "site-packages"
    folder.mkdir(parents=True)
    (folder / "deep.py").write_text(DEEP)
    (tmp_path / "mine.py").write_text(MINE)
    ok(run(["/usr/bin/python3", tmp_path / "mine.py"], shim_env(out, PYTHONPATH=folder, **settings)))

    def inside(site):
        return [frame["function"] for frame in site["frames"] if frame["kind"] == "python" and os.path.basename(frame["file"]) != "mine.py"
                and "importlib" not in frame["file"]]
    sites = report("sites", out, "--top", "100000")["sites"]
    assert sorted(inside(site) for site in sites if site["domain"] == "heap" and 400003 <= site["live_bytes"] < 1000000) == ways
    own, = [site for site in sites if site["live_bytes"] >= 3000017]
    assert own["frames"][0]["function"] == "given" and own["where"]["line"] == 4 and inside(own) == ["<module>"]


def test_a_changed_file_is_said_and_not_shown(project, out):
    record_project("/usr/bin/python3", project, out, "run.py")
    assert "line keep.append(installed.make(size))  # makes\n" in kmemshim("peak", out).stdout
    path = project / "app" / "train.py"
    path.write_text(path.read_text().replace("installed", "other"))
    text = kmemshim("peak", out).stdout
    assert "(train.py was changed since the program started)\n" in text
    assert "other.make" not in text and "# makes" not in text and "# editable" in text
    places = [line["where"] for line in report("peak", out, "--domain", "heap")["lines"][:3]]
    assert sorted((os.path.basename(place["file"]), place["is_source_changed"], place["source"]) for place in places) == [
        ("editable.py", False, "return bytearray(size)  # editable"), ("train.py", True, None), ("train.py", True, None)]
    path.unlink()
    assert "changed since" not in kmemshim("peak", out).stdout


def test_a_script_that_the_parent_wrote_is_shown(tmp_path, out):
    """It is as old as the parent's run, and older than the process that runs it."""
    script = tmp_path / "made.py"
    (tmp_path / "make.py").write_text(f"import subprocess, sys\nopen({str(script)!r}, 'w').write('kept = bytearray(3000017)  # made\\n')\n"
                                      f"subprocess.run([sys.executable, {str(script)!r}], check=True)\n")
    ok(run(["/usr/bin/python3", tmp_path / "make.py"], shim_env(out)))
    text = kmemshim("peak", out).stdout
    assert "line kept = bytearray(3000017)  # made\n" in text and "changed since" not in text


WAYS = {
    "relative": ["run.py"],
    "module": ["-m", "tool"],
    "command": ["-c", "keep = [bytearray(%d)]\n%s" % (SIZE, END)],
    "stdin": ["-"],
    "zipapp": ["tool.pyz"],
    "doctest": ["-m", "doctest", "documented.py"],
    "exec": ["-c", "text = 'keep = [bytearray(%d)]'\nexec(compile(text, '<made up>', 'exec'))\n%s" % (SIZE, END)],
    "namespace": ["-c", "import outer.inner\n" + END],
}
PLACES = {"relative": "run.py:1", "module": "tool.py:1", "command": "<string>:1", "stdin": "<stdin>:1", "zipapp": "__main__.py:1",
          "doctest": "<doctest documented.f[0]>:1", "exec": "<made up>:1", "namespace": "inner.py:1"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", ["3.8", "3.13"])
def test_ways_to_start(version, way, tmp_path, out):
    line = "keep = [bytearray(%d)]\n" % SIZE
    (tmp_path / "run.py").write_text(line + END)
    (tmp_path / "tool.py").write_text(line + END)
    (tmp_path / "documented.py").write_text('def f():\n    """\n    >>> keep = [bytearray(%d)]\n    >>> %s    """\n' % (SIZE, END))
    (tmp_path / "outer").mkdir()
    (tmp_path / "outer" / "inner.py").write_text(line)
    with zipfile.ZipFile(tmp_path / "tool.pyz", "w") as archive:
        archive.writestr("__main__.py", line + END)
    argv = [interpreter_of(version), *WAYS[way]]
    if way == "stdin":
        argv = ["/bin/sh", "-c", f"exec {argv[0]} - < run.py"]
    done = run(argv, shim_env(out), cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL, done.stderr
    top = report("peak", out, "--domain", "heap")["lines"][0]
    assert top["live_bytes"] >= SIZE
    assert f"{os.path.basename(top['where']['file'])}:{top['where']['line']}" == PLACES[way]
    has_text = way in ("relative", "module", "namespace")
    assert top["where"]["source"] == (line.strip() if has_text else None)
