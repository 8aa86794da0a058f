"""kmemshim jupyter: kernels that are recorded are found, written, listed and removed."""
import json
import os
import shutil

import pytest

import harness

SPEC = {"argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "Python 3 (ipykernel)",
        "language": "python", "metadata": {"debugger": True}, "interrupt_mode": "signal", "env": {"A": "1"}}


class Place:
    """A home without anything of Jupyter's, and an environment beside it."""

    def __init__(self, folder):
        self.folder = folder
        self.home = folder / "home"
        self.venv = folder / "venv"
        (self.venv / "bin").mkdir(parents=True)
        self.home.mkdir()
        for name in ("python", "python3"):
            (self.venv / "bin" / name).symlink_to("/usr/bin/python3")
        self.kernels = self.home / ".local" / "share" / "jupyter" / "kernels"
        self.env = harness.plain_env(HOME=self.home, PATH="/usr/bin:/bin")
        for name in ("VIRTUAL_ENV", "PYENV_VERSION", "CONDA_PREFIX", "JUPYTER_PATH", "JUPYTER_DATA_DIR", "XDG_DATA_HOME", "JUPYTER_PREFER_ENV_PATH"):
            self.env.pop(name, None)

    def add(self, kernels=None, name="python3", spec=SPEC):
        folder = (kernels or self.venv / "share" / "jupyter" / "kernels") / name
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_text(spec if isinstance(spec, str) else json.dumps(spec))
        return folder

    def activate(self):
        self.env["VIRTUAL_ENV"] = str(self.venv)

    def __call__(self, *words):
        return harness.run([harness.KMEMSHIM, "jupyter", *words], self.env)

    def written(self, name="python3-kmemshim", kernels=None):
        return json.loads(((kernels or self.kernels) / name / "kernel.json").read_text())


@pytest.fixture
def jupyter(tmp_path):
    place = Place(tmp_path)
    place.activate()
    return place


def wrapped(spec):
    """The kernel's own command."""
    return spec["argv"][spec["argv"].index("--") + 1:]


def refused(done, *words):
    assert done.returncode == 2 and done.stdout == "" and len(done.stderr.splitlines()) == 1, done
    for word in words:
        assert word in done.stderr


def test_a_kernel_is_wrapped(jupyter):
    folder = jupyter.add()
    (folder / "logo-64x64.png").write_bytes(b"\x89PNG")
    done = jupyter("install")
    assert done.returncode == 0 and "Python 3 (kmemshim)" in done.stdout and done.stderr == ""
    spec = jupyter.written()
    command = os.path.realpath(harness.KMEMSHIM)
    assert spec["argv"][:2] == ["/bin/sh", "-c"] and spec["argv"][3] == command
    assert spec.pop("argv")[4:] == ["run", "--kernel", "--guard", "92%", "--guard-action", "interrupt", "--",
                                    str(jupyter.venv / "bin" / "python"), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    assert spec.pop("display_name") == "Python 3 (kmemshim)"
    metadata = spec.pop("metadata")
    assert metadata.pop("kmemshim")["wraps"] == "python3" and metadata == {"debugger": True}
    assert spec == {name: SPEC[name] for name in ("language", "interrupt_mode", "env")}
    assert (jupyter.kernels / "python3-kmemshim" / "logo-64x64.png").read_bytes() == b"\x89PNG"


def test_a_kernel_without_a_file_is_ipykernel(jupyter):
    """Debian's, and what pip leaves when its data files are not where Jupyter looks."""
    refused(jupyter("install", "--wrap", "no-such"), "no-such", "no such kernel")
    (jupyter.venv / "lib" / "python3.11" / "site-packages" / "ipykernel").mkdir(parents=True)
    (jupyter.venv / "lib" / "python3.11" / "site-packages" / "ipykernel" / "__init__.py").touch()
    assert jupyter("install").returncode == 0
    assert wrapped(jupyter.written())[:2] == [str(jupyter.venv / "bin" / "python3"), "-m"]


@pytest.mark.parametrize("options, words", [
    (["--no-guard"], ["--"]),
    (["--guard", "12G", "--guard-action", "note"], ["--guard", "12G", "--guard-action", "note", "--"]),
    (["--keep", "3"], ["--keep", "3", "--guard", "92%", "--guard-action", "interrupt", "--"]),
])
def test_options_of_the_launcher(jupyter, options, words):
    jupyter.add()
    assert jupyter("install", *options).returncode == 0
    assert jupyter.written()["argv"][6:6 + len(words)] == words


@pytest.mark.parametrize("loss", ["gone", "not executable", "does not run"])
def test_a_kernel_starts_when_kmemshim_is_gone(jupyter, loss):
    command = jupyter.folder / "here" / "kmemshim"
    command.parent.mkdir()
    for file in (harness.KMEMSHIM, harness.SHIM):
        shutil.copy(file, command.parent)
    jupyter.add(spec={**SPEC, "argv": ["/bin/sh", "-c", 'echo "$PPID $*"; exit 7', "x", "two words", "--", "{connection_file}", ""]})
    assert harness.run([command, "jupyter", "install"], jupyter.env).returncode == 0
    if loss == "gone":
        command.unlink()
    elif loss == "not executable":
        command.chmod(0o644)
    else:
        command.write_bytes(b"#!/no/such/loader\n")
    done = harness.run([word.replace("{connection_file}", "c.json") for word in jupyter.written()["argv"]], jupyter.env)
    assert done.returncode == 7
    assert done.stdout == f"{os.getpid()} two words -- c.json \n"  # it is the server's child, as without us
    assert done.stderr.splitlines() == [f"kmemshim: {command}: is gone or does not run: the kernel is not recorded "
                                        "(jupyter kernelspec remove python3-kmemshim removes it)"]


def test_where_it_is_installed(jupyter):
    jupyter.add()
    assert jupyter("install", "--sys-prefix", "--name", "a").returncode == 0
    assert jupyter.written("a", jupyter.venv / "share" / "jupyter" / "kernels")
    assert jupyter("install", "--prefix", jupyter.folder / "p", "--name", "b").returncode == 0
    assert jupyter.written("b", jupyter.folder / "p" / "share" / "jupyter" / "kernels")
    jupyter.env["XDG_DATA_HOME"] = str(jupyter.folder / "data")
    assert jupyter("install", "--user", "--name", "c").returncode == 0
    assert jupyter.written("c", jupyter.folder / "data" / "jupyter" / "kernels")
    refused(jupyter("install", "--user", "--sys-prefix"), "give one of")


def test_jupyters_order(jupyter):
    """JUPYTER_PATH, the environment that is active, the user's folder."""
    def title(text):
        return {**SPEC, "display_name": text}
    jupyter.add(spec=title("environment"))
    jupyter.add(jupyter.kernels, spec=title("user"))
    assert "environment (kmemshim)" in jupyter("install", "--name", "x").stdout
    jupyter.env["JUPYTER_PREFER_ENV_PATH"] = "0"
    assert "user (kmemshim)" in jupyter("install", "--name", "x").stdout
    jupyter.add(jupyter.folder / "mine" / "kernels", spec=title("asked"))
    jupyter.env["JUPYTER_PATH"] = str(jupyter.folder / "mine")
    assert "asked (kmemshim)" in jupyter("install", "--name", "x").stdout


def test_the_environment_behind_a_shim_of_pyenv(jupyter):
    """pyenv's python3 is a script that looks for the version: ~/.pyenv/shims has no kernels."""
    del jupyter.env["VIRTUAL_ENV"]
    shims, version = jupyter.home / ".pyenv" / "shims", jupyter.home / ".pyenv" / "versions" / "3.11.7"
    jupyter.venv.rename(version.parent.mkdir(parents=True) or version)
    (version / "pyvenv.cfg").write_text("home = /usr/bin\n")
    jupyter.add(version / "share" / "jupyter" / "kernels")
    shims.mkdir()
    (shims / "python3").write_text(f'#!/bin/sh\nexec {version}/bin/python3 "$@"\n')
    (shims / "python3").chmod(0o755)
    jupyter.env["PATH"] = f"{shims}:/usr/bin:/bin"
    done = jupyter("install")
    assert done.returncode == 0, done.stderr
    assert wrapped(jupyter.written())[0] == str(version / "bin" / "python")


def test_a_jupyter_outside_of_an_environment_is_of_none(jupyter):
    """That of ~/.pyenv/shims leads to ~/.pyenv, which has no kernels."""
    jupyter.add(jupyter.folder / "share" / "jupyter" / "kernels", name="lost")
    (jupyter.folder / "shims").mkdir()
    (jupyter.folder / "shims" / "jupyter").symlink_to("/bin/true")
    del jupyter.env["VIRTUAL_ENV"]
    jupyter.env["PATH"] = f"{jupyter.folder}/shims:/usr/bin:/bin"
    assert "lost" not in jupyter("list").stdout
    refused(jupyter("install", "--wrap", "lost"), "no such kernel")


@pytest.mark.parametrize("word", ["x\0y", "\ud800"])
def test_a_word_that_no_program_can_be_given(jupyter, word):
    jupyter.add(name="bad", spec={"argv": [word], "display_name": "Bad"})
    jupyter.add()
    refused(jupyter("install", "--wrap", "bad"), '"argv" has a text')
    assert jupyter("install").returncode == 0


def test_what_is_no_utf8_is_refused(jupyter):
    jupyter.add()
    refused(jupyter("install", "--prefix", os.fsdecode(b"/tmp/\xe9")), "not UTF-8")
    jupyter.env["JUPYTER_DATA_DIR"] = os.fsdecode(os.fsencode(jupyter.folder) + b"/\xe9")
    refused(jupyter("install"), "not UTF-8")


def test_without_an_input(jupyter):
    jupyter.add()
    done = harness.run(["sh", "-c", '"$@" <&-', "sh", harness.KMEMSHIM, "jupyter", "install"], jupyter.env)
    assert done.returncode == 0, done


@pytest.mark.parametrize("python, word", [(None, "No such file"), ("#!/bin/sh\necho 3.9 is not installed\nexit 127\n", "3.9 is not installed")])
def test_without_python(jupyter, python, word):
    jupyter.add()
    jupyter.env["PATH"] = str(jupyter.folder)
    if python:
        (jupyter.folder / "python3").write_text(python)
        (jupyter.folder / "python3").chmod(0o755)
    refused(jupyter("install"), "python3 in PATH", word)


def test_modules_of_the_folder_are_not_run(jupyter):
    jupyter.add()
    for name in ("json", "glob"):
        (jupyter.home / f"{name}.py").write_text("open('was_run', 'w')")
    assert harness.run([harness.KMEMSHIM, "jupyter", "install"], {**jupyter.env, "PYTHONPATH": str(jupyter.home)}, cwd=jupyter.home).returncode == 0
    assert not (jupyter.home / "was_run").exists()


def test_names_are_the_same_in_capitals(jupyter):
    """For Jupyter MyEnv and myenv are one kernel; ipykernel install --name MyEnv writes myenv."""
    jupyter.add(name="myenv")
    jupyter.add(name="Other")
    assert jupyter("install", "--wrap", "MyEnv").returncode == 0
    assert jupyter.written("myenv-kmemshim")["metadata"]["kmemshim"]["wraps"] == "myenv"
    assert jupyter("install", "--wrap", "other", "--name", "Mine").returncode == 0
    assert jupyter.written("mine")["metadata"]["kmemshim"]["wraps"] == "Other"
    assert jupyter("uninstall", "--name", "MINE").returncode == 0


def test_list_and_uninstall(jupyter):
    assert "No kernel that Jupyter finds is recorded" in jupyter("list").stdout
    refused(jupyter("uninstall"), "no such kernel")
    jupyter.add()
    jupyter("install")
    jupyter("install", "--name", "other")
    lines = jupyter("list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["other", "python3-kmemshim"]
    titles = {json.loads((jupyter.kernels / name / "kernel.json").read_text())["display_name"] for name in ("other", "python3-kmemshim")}
    assert titles == {"Python 3 (kmemshim)", "Python 3 (kmemshim, other)"}
    assert jupyter("install", "--name", "other").returncode == 0  # over its own: under the same name
    assert json.loads((jupyter.kernels / "other" / "kernel.json").read_text())["display_name"] == "Python 3 (kmemshim, other)"
    refused(jupyter("uninstall"), "--name")
    refused(jupyter("uninstall", "--name", "python3"), "no such kernel")  # it is not ours
    assert "Removed" in jupyter("uninstall", "--name", "other").stdout
    assert jupyter("uninstall").returncode == 0
    assert not list(jupyter.kernels.iterdir())
    jupyter("install")
    jupyter("install", "--name", "other")
    refused(jupyter("uninstall", "--all", "--name", "other"), "--all")
    assert jupyter("uninstall", "--all").stdout.count("Removed") == 2
    assert not list(jupyter.kernels.iterdir())
    refused(jupyter("uninstall", "--all"), "no such kernel")


def test_a_kernel_of_somebody_else_is_kept(jupyter):
    jupyter.add()
    jupyter.add(jupyter.kernels, "python3-kmemshim", {**SPEC, "display_name": "mine"})
    refused(jupyter("install"), "did not write")
    assert jupyter.written()["display_name"] == "mine"
    assert jupyter("install", "--force").returncode == 0
    assert jupyter.written()["display_name"] == "Python 3 (kmemshim)"
    assert jupyter("install").returncode == 0  # over its own


def test_a_kernel_that_is_not_python(jupyter):
    jupyter.add(name="ir", spec={"argv": ["R", "--slave", "-e", "IRkernel::main()", "--args", "{connection_file}"],
                                 "display_name": "R", "language": "R"})
    done = jupyter("install", "--wrap", "ir")
    assert done.returncode == 0 and "not an IPython kernel" in done.stdout
    assert wrapped(jupyter.written("ir-kmemshim"))[:2] == ["R", "--slave"]


@pytest.mark.parametrize("spec, word", [("{", "is not JSON"), ("{}", "argv"), ('{"argv": 3}', "argv"), ('{"argv": ["a", 3]}', "argv"),
                                        ("[]", "argv"), ('{"argv": []}', "argv"), ("", "is not JSON")])
def test_a_kernel_json_that_is_none(jupyter, spec, word):
    folder = jupyter.add(spec=spec)
    refused(jupyter("install"), str(folder / "kernel.json"), word)
    assert not jupyter.kernels.exists()


def test_what_is_recorded_already(jupyter):
    jupyter.add()
    jupyter("install")
    refused(jupyter("install", "--wrap", "python3-kmemshim"), "wrap python3")


def test_a_folder_that_cannot_be_written(jupyter):
    jupyter.add()
    (jupyter.folder / "file").touch()
    refused(jupyter("install", "--prefix", jupyter.folder / "file"), str(jupyter.folder / "file"))
    refused(jupyter("install", "--prefix", "relative"), "absolute")


def test_a_prefix_that_is_read_only(jupyter):
    """A file system that is: root may write into any folder."""
    jupyter.add()
    prefix = jupyter.folder / "prefix"
    prefix.mkdir()
    mounted = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o ro tmpfs "$0" && exec "$@"', prefix]
    if harness.run([*mounted, "true"]).returncode != 0:
        pytest.skip("no file system can be mounted here")
    refused(harness.run([*mounted, harness.KMEMSHIM, "jupyter", "install", "--prefix", prefix], jupyter.env),
            str(prefix), "Read-only file system")


@pytest.mark.parametrize("words, word", [(["nothing"], "install, list, and uninstall"), (["list", "--force"], "only --name"),
                                         (["install", "--name", "a b"], "letters"), (["install", "--guard", "12"], "share"),
                                         (["install", "--no-guard", "--guard", "50%"], "--no-guard"), ([], "argument")])
def test_wrong_options(jupyter, words, word):
    jupyter.add()
    refused(jupyter(*words), word)
