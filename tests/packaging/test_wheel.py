"""
The wheel that `make wheel` made: installed into a fresh environment, used as its owner would, and removed again.

make test-packaging makes the wheel before.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "preload"))
import harness  # noqa: E402

DIST = harness.BUILD / "dist"
PYTHON = "/usr/bin/python3"
OF_DEBIAN = "/usr/lib/python3/dist-packages"  # pytest is there
KEEP = "import sys\nkept = [bytearray(1 << 20) for _ in range(50)]\nprint(sys.executable)\n"


def the_wheel():
    wheels = list(DIST.glob("kmemshim-*.whl"))
    assert len(wheels) == 1, f"{wheels}: make wheel"
    return wheels[0]


class Place:
    """A fresh virtual environment, active."""

    def __init__(self, folder):
        self.folder = folder
        harness.ok(harness.run([PYTHON, "-m", "venv", folder]))
        self.command = folder / "bin" / "kmemshim"
        self.python = folder / "bin" / "python"

    def environment(self, **more):
        return harness.plain_env(PATH=f"{self.folder / 'bin'}:{os.environ['PATH']}", **more)

    def run(self, *words, environment=None, **more):
        return harness.run(words, environment or self.environment(), **more)

    def pip(self, *words):
        return self.run(self.python, "-m", "pip", "--disable-pip-version-check", *words)

    def files(self):
        return {path.relative_to(self.folder) for path in self.folder.rglob("*") if "pip" not in path.parts}

    def package(self):
        return Path(self.run(self.python, "-c", "import kmemshim; print(kmemshim.__path__[0])").stdout.strip())


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("wheel") / "venv")
    done = place.pip("install", "--no-index", the_wheel())
    assert done.returncode == 0, done.stdout + done.stderr
    return place


@pytest.fixture
def moved(place, tmp_path):
    """The installed package, copied without pip: what becomes of it is this test's own."""
    shutil.copytree(place.package(), tmp_path / "moved" / "kmemshim")
    return tmp_path / "moved"


def started(moved, *words, **more):
    return harness.run([PYTHON, "-m", "kmemshim", *words], harness.plain_env(PYTHONPATH=moved, PATH="/nowhere", **more))


# --- what is in it ------------------------------------------------------------------------------

def programs_in(wheel, folder):
    with zipfile.ZipFile(wheel) as file:
        return [Path(file.extract(name, folder)) for name in file.namelist() if re.search(r"native/(bin|lib)/", name)]


def test_its_programs_ask_for_glibc_alone_and_no_newer_than_the_tag(tmp_path):
    wheel = the_wheel()
    tag = tuple(map(int, re.search(r"-py3-none-manylinux_(\d+)_(\d+)_x86_64\.whl$", wheel.name).groups()))
    programs = programs_in(wheel, tmp_path)
    assert sorted(str(path.relative_to(tmp_path / "kmemshim/native")) for path in programs) == [
        "bin/kmemshim", "lib/libkmemshim.so", "lib/older-glibc/libkmemshim.so"]
    newest = set()
    for path in programs:
        text = harness.run(["objdump", "-p", "-T", path]).stdout
        assert set(re.findall(r"NEEDED +(\S+)", text)) <= {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}
        assert not re.search(r"RPATH|RUNPATH", text)
        if path.parent.name != "lib":  # the library that is not taken where glibc is older
            newest.update(tuple(map(int, version)) for version in re.findall(r"\(?GLIBC_(\d+)\.(\d+)[.\d]*\)? +\w", text))
    assert max(newest) == tag and tag <= (2, 28)


def test_what_it_brings_along_for_an_older_glibc_is_its_own(tmp_path):
    """Not exported: the loader would give it to libc's functions, and those that ask libc for the real one would ask themselves."""
    for path in programs_in(the_wheel(), tmp_path):
        names = {line.split()[-1] for line in harness.run(["nm", "--dynamic", "--defined-only", path]).stdout.splitlines()}
        assert not names & {"log", "hypot", "stat", "lstat", "fstat", "strerrorname_np", "sigabbrev_np"}, path


def test_two_wheels_have_the_same_bytes():
    """Each from its own link of the command; neither the clock nor the rights of new files are in it."""
    wheel = the_wheel()
    before = wheel.read_bytes()
    (harness.BUILD / "wheel" / "kmemshim").unlink()
    harness.ok(harness.run(["make", "-C", harness.ROOT, f"BUILD={harness.BUILD}", "wheel"],
                           harness.plain_env(TZ="Asia/Tokyo"), umask=0o027))
    assert wheel.read_bytes() == before


def test_the_licence_of_each_library_in_it_is_there():
    with zipfile.ZipFile(the_wheel()) as file:
        names = [name for name in file.namelist() if "LICENSE" in name]
        text = "".join(file.read(name).decode() for name in names)
    for library in ("libdw-dev", "libelf-dev", "libiberty-dev", "libjansson-dev", "libyaml-dev", "libprotobuf-c-dev", "zlib1g-dev",
                    "libncurses-dev", "liblzma-dev", "libbz2-dev", "libjs-d3", "uthash-dev"):
        assert re.search(rf"^  {library} \S+, of the source \S+ \S+$", text, re.M), library
    linked = set(re.findall(r"lib(\w[\w+-]*)\.a", (harness.BUILD / "wheel" / "kmemshim.inputs").read_text()))
    assert linked - {"gcc", "gcc_eh", "c_nonshared"} == {"dw", "elf", "iberty", "jansson", "yaml", "protobuf-c", "z", "ncursesw", "tinfo",
                                                       "lzma", "bz2"}, "another library is linked: name its package above"
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in text and "Apache License" in text


# --- installed ----------------------------------------------------------------------------------

def test_record_and_report(place, tmp_path):
    (tmp_path / "train.py").write_text(KEEP)
    done = place.run("kmemshim", "run", "--", "python", "train.py", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == f"{place.python}\n", done.stderr
    assert "train.py:2" in done.stderr
    done = place.run("python", "-m", "kmemshim", "report", cwd=tmp_path)
    assert done.returncode == 0 and "train.py:2" in done.stdout, done.stderr


def test_the_library_for_an_older_glibc(place, tmp_path):
    """Here too it records; test_fresh_debian.py has a glibc that needs it."""
    (tmp_path / "train.py").write_text(KEEP)
    environment = place.environment(LD_PRELOAD=place.package() / "native/lib/older-glibc/libkmemshim.so", KMEMSHIM_OUT=tmp_path / "out")
    harness.silent(place.run("python", "train.py", environment=environment, cwd=tmp_path))
    done = place.run("kmemshim", "peak", tmp_path / "out")
    assert "train.py:2" in done.stdout, done.stderr


def test_what_holds_a_block_of_a_running_program(place, tmp_path):
    """It draws blocks, by logarithms."""
    (tmp_path / "hold.py").write_text(KEEP.replace("print(sys.executable)", "print('ready', flush=True)\nimport time\ntime.sleep(600)"))
    argv = [place.command, "run", "--quiet", "--", place.python, "hold.py"]
    with subprocess.Popen(argv, env=place.environment(), cwd=tmp_path, stdout=subprocess.PIPE) as command:
        try:
            assert command.stdout.readline() == b"ready\n"
            capture, = (tmp_path / "kmemshim.out").glob("*.kmem")
            done = place.run("kmemshim", "holders", "--stop", "60s", capture.name.split(".")[-3])
        finally:
            command.send_signal(signal.SIGTERM)
    if "ptrace: EPERM" in done.stderr:
        pytest.skip("ptrace is not allowed here")
    assert done.returncode == 0 and re.search(r"hold\.py:2.*\n(.*\n)*.*\bkept\b", done.stdout), done.stdout + done.stderr


def test_a_killed_program_is_explained(place, tmp_path):
    (tmp_path / "train.py").write_text(KEEP + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    done = place.run("kmemshim", "run", "--", "python", "train.py", cwd=tmp_path)
    assert done.returncode == 128 + signal.SIGKILL and "SIGKILL" in done.stderr and "train.py:2" in done.stderr


@pytest.mark.parametrize("words, status", [(["run", "--quiet", "--", "sh", "-c", "exit 7"], 7), (["nonsense"], 2), (["--version"], 0)])
@pytest.mark.parametrize("start", [["kmemshim"], ["python", "-m", "kmemshim"]], ids=["script", "module"])
def test_exit_status(place, tmp_path, start, words, status):
    done = place.run(*start, *words, cwd=tmp_path)
    assert done.returncode == status
    assert done.stderr == harness.run([place.package() / "native" / "bin" / "kmemshim", *words], cwd=tmp_path).stderr


def test_it_is_as_if_the_shell_had_started_the_command(place, tmp_path):
    """Python ignores signals, and sets a variable where the locale is C: nothing of that reaches the program."""
    look = ["run", "--quiet", "--", "sh", "-c", "grep -E '^Sig(Ign|Blk|Cgt)' /proc/self/status; env | sort; ls /proc/self/fd; echo \"$@\"", "sh",
            "two words", ""]
    environment = {name: value for name, value in place.environment(LC_ALL="").items() if name not in ("LC_ALL", "LC_CTYPE", "LANG")}
    found = [re.sub(r"(KMEMSHIM_SESSION|KMEMSHIM_LOOKER|KMEMSHIM_MEMORY|_)=.*", "", harness.run([start, *look], environment, cwd=tmp_path).stdout)
             for start in (place.command, place.package() / "native" / "bin" / "kmemshim")]
    assert found[0] == found[1] and "two words" in found[0] and "LC_CTYPE" not in found[0]


@pytest.mark.parametrize("start", [["kmemshim"], ["python", "-m", "kmemshim"]], ids=["script", "module"])
def test_where_everything_is_recorded_the_command_is_not(place, tmp_path, start):
    """LD_PRELOAD is exported in this shell. The newest session stays the program's."""
    everything = place.environment(LD_PRELOAD=place.package() / "native" / "lib" / "libkmemshim.so")
    assert place.run("python", "-c", KEEP, environment=everything, cwd=tmp_path).returncode == 0
    captures = list((tmp_path / "kmemshim.out").iterdir())
    assert len(captures) == 1
    for _ in range(2):
        done = place.run(*start, "report", environment=everything, cwd=tmp_path)
        assert done.returncode == 0 and "<string>:2" in done.stdout and done.stderr == ""
    assert list((tmp_path / "kmemshim.out").iterdir()) == captures


def test_a_signal_reaches_the_command(place, tmp_path):
    """The script has become the command: the same process, which passes the signal on."""
    argv = [place.command, "run", "--quiet", "--", "sh", "-c", "echo ready; exec sleep 60"]
    with subprocess.Popen(argv, env=place.environment(), cwd=tmp_path, stdout=subprocess.PIPE) as command:
        assert command.stdout.readline() == b"ready\n"
        assert Path(f"/proc/{command.pid}/exe").resolve() == place.package() / "native" / "bin" / "kmemshim"
        command.send_signal(signal.SIGTERM)
        assert command.wait(harness.TIMEOUT) == 128 + signal.SIGTERM


def test_pytest_finds_the_plugin(place, tmp_path):
    (tmp_path / "test_it.py").write_text("def test_it():\n    block = bytearray(30 << 20)\n    assert len(block)\n")
    done = place.run("python", "-m", "pytest", "--kmemshim", "-q", cwd=tmp_path, environment=place.environment(PYTHONPATH=OF_DEBIAN))
    assert done.returncode == 0 and re.search(r"30\.0 MiB +0 B +test_it\.py::test_it", done.stdout), done.stdout + done.stderr


def test_what_a_program_imports(place):
    done = place.run("python", "-c", "import kmemshim; kmemshim.step(); kmemshim.mark('a'); print(kmemshim.__version__, kmemshim.load_ipython_extension)\n"
                     "from kmemshim import cells, death, growth, guard, kept, lines, panel, recording\n"
                     "print(recording.command())")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1] == str(place.package() / "native" / "bin" / "kmemshim")


def test_a_folder_of_scripts_that_is_not_in_path(place, tmp_path):
    """python -m kmemshim works; its doctor says what to write, and that is true. What pip says: test_fresh_debian.py"""
    prefix = tmp_path / "prefix"
    words = [place.python, "-m", "pip", "--disable-pip-version-check", "install", "--no-index", "--ignore-installed", "--prefix", prefix, the_wheel()]
    assert place.run(*words).returncode == 0
    elsewhere = harness.plain_env(PATH="/usr/bin:/bin", PYTHONPATH=next(prefix.glob("lib*/python3*/site-packages")))
    doctor = [PYTHON, "-m", "kmemshim", "doctor", "-o", tmp_path / "out", "--json"]
    done = harness.run(doctor, elsewhere)
    rows = [row for row in json.loads(done.stdout)["findings"] if row["where"] == "PATH"]
    assert done.returncode == 0 and len(rows) == 1 and rows[0]["level"] == "note", done.stdout
    module, export = re.fullmatch("write `(.+)`, or `(.+)`", rows[0]["next"]).groups()
    assert module == "python3 -m kmemshim"
    done = harness.run(["sh", "-c", f"{export}; cd / && kmemshim --version"], elsewhere)
    assert done.returncode == 0 and done.stdout.startswith("kmemshim "), done.stderr
    elsewhere["PATH"] = f"{prefix}/bin:/usr/bin:/bin"
    assert '"where": "PATH"' not in harness.run(doctor, elsewhere).stdout


def test_a_kernel_of_another_environment_has_the_extension(place, tmp_path):
    """And of this environment's packages nothing else: they may be of another Python."""
    done = place.run("kmemshim", "run", "--kernel", "-o", tmp_path, "--", PYTHON, "-c", "import kmemshim; print(kmemshim.__file__)", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(place.package() / "native" / "share" / "kmemshim" / "python" / "kmemshim" / "__init__.py")


def test_uninstall_leaves_nothing(tmp_path):
    place = Place(tmp_path / "venv")
    before = place.files()
    assert place.pip("install", "--no-index", the_wheel()).returncode == 0
    (tmp_path / "train.py").write_text(KEEP)
    assert place.run("kmemshim", "run", "--", "python", "train.py", cwd=tmp_path).returncode == 0
    assert place.files() != before
    assert place.pip("uninstall", "--yes", "kmemshim").returncode == 0
    assert place.files() == before


# --- where it cannot run ------------------------------------------------------------------------

def test_pip_refuses_it_where_glibc_is_too_old(place, tmp_path):
    wheel = tmp_path / re.sub(r"manylinux_\d+_\d+", "manylinux_2_999", the_wheel().name)
    shutil.copy(the_wheel(), wheel)
    done = place.pip("install", "--no-index", "--force-reinstall", wheel)
    assert done.returncode != 0 and "is not a supported wheel on this platform" in done.stderr


@pytest.mark.parametrize("platform", ["musllinux_1_2_x86_64", "manylinux_2_26_x86_64", "manylinux_2_39_aarch64", None])
def test_pip_refuses_it_on_other_machines(place, platform, tmp_path):
    """On musl, on an older glibc, on another architecture: pip is told that it is there. None: where it fits."""
    words = ["--platform", platform or re.search(r"(manylinux_\w+)\.whl", the_wheel().name)[1]]
    done = place.pip("install", "--no-index", "--only-binary=:all:", *words, "--target", tmp_path / "target", the_wheel())
    assert (done.returncode == 0) == (platform is None), done.stderr
    assert platform is None or done.stderr.splitlines()[0] == f"ERROR: {the_wheel().name} is not a supported wheel on this platform."


@pytest.mark.parametrize("change, words", [
    ("GLIBC = (2, 999)", r"this installation is for x86_64 with glibc 2\.999 or newer, and this Python runs on x86_64 with glibc 2\.\d+: build"),
    ("MACHINE = 'aarch64'", r"this installation is for aarch64 with glibc 2\.\d+ or newer, and this Python runs on x86_64 with glibc 2\.\d+: build")])
def test_on_another_machine_one_line_says_so(moved, change, words):
    with open(moved / "kmemshim" / "_wheel.py", "a") as file:
        file.write(change + "\n")
    done = started(moved, "report")
    assert done.returncode == 2 and re.fullmatch(f"kmemshim: {words} kmemshim here from source\n", done.stderr), done.stderr


def test_on_another_c_library_one_line_says_so(moved):
    (moved / "sitecustomize.py").write_text("import os\n\ndef confstr(name):\n    raise ValueError(name)\n\nos.confstr = confstr\n")  # as on musl
    done = started(moved, "report")
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "runs on x86_64 with another C library: build" in done.stderr


@pytest.mark.parametrize("damage, words", [
    (lambda path: path.unlink(), "cannot be run: install kmemshim again"), (lambda path: path.chmod(0o644), "cannot be run: install kmemshim again"),
    (lambda path: path.write_bytes(b"\0" * 100), "cannot be run: Exec format error")], ids=["missing", "rights", "bytes"])
def test_a_damaged_installation_is_told_in_one_line(moved, damage, words):
    path = moved / "kmemshim" / "native" / "bin" / "kmemshim"
    damage(path)
    done = started(moved, "report")
    assert done.returncode == 2 and done.stderr == f"kmemshim: {path} {words}\n", done.stderr


def test_the_python_package_alone_takes_the_command_in_path(tmp_path):
    """pip install ./python, and `make install` for the rest."""
    words = [PYTHON, "-m", "kmemshim", "--version"]
    source = harness.ROOT / "python"
    done = harness.run(words, harness.plain_env(PYTHONPATH=source, PATH=harness.BUILD))
    assert done.returncode == 0 and done.stdout.startswith("kmemshim "), done.stderr
    done = harness.run(words, harness.plain_env(PYTHONPATH=source, PATH="/nowhere"))
    assert done.returncode == 2 and done.stderr == "kmemshim: the command kmemshim is not in PATH\n"
