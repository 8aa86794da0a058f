"""The manual page and what completes commands in shells: made from the tables of the help, and read by their own readers."""
import os
import re
import select
import shutil
import subprocess
import time

import pytest

import harness

pytestmark = pytest.mark.quick


def ask(*words, status=0):
    done = subprocess.run([harness.KMEMSHIM, *words], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


def needs(program):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


COMMANDS = re.findall(r"^  ([a-z]+) ", ask("--help").split("\n\n  kmemshim")[0], re.M)


def options_of(command):
    return re.findall(r"^  (?:-., |    )(--[a-z-]+)", ask(command, "--help"), re.M)


def test_the_page_has_each_command_and_option():
    needs("mandoc")
    page = subprocess.run(["mandoc", "-T", "utf8", "-W", "warning"], input=ask("manual"), capture_output=True, text=True)
    told = [line for line in page.stderr.splitlines() if "WARNING:" in line]
    assert len(told) == 1 and "missing date" in told[0], told  # two builds are the same bytes
    text = re.sub(".\b", "", page.stdout)  # bold is struck twice
    sections = re.split(r"^   kmemshim ", text, flags=re.M)[1:]
    assert [section.split()[0] for section in sections] == COMMANDS
    for command, section in zip(COMMANDS, sections):
        for option in options_of(command):
            assert option == "--help" or option in section, (command, option)
    assert "./kmemshim.out" in text


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """shell -> the file that it reads"""
    folder = tmp_path_factory.mktemp("completion")

    def write(shell):
        needs(shell)
        (folder / f"_{shell}").write_text(ask("completion", shell))
        subprocess.run([shell, "-n", folder / f"_{shell}"], check=True)
        return folder / f"_{shell}"
    return write


BASH = """
source %s
COMP_WORDS=(%s)
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_kmemshim
printf '%%s\\n' "${COMPREPLY[@]}"
"""


def bash(script, line, cwd=None):
    words = " ".join("''" if word == "" else word for word in line.split(" "))
    done = subprocess.run(["bash", "-c", BASH % (script("bash"), words)], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return done.stdout.split()


def fish(script, line, cwd=None):
    done = subprocess.run(["fish", "-c", f"source {script('fish')}; complete -C '{line}'"], capture_output=True, text=True, cwd=cwd)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [row.split("\t")[0] for row in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", [bash, fish])
def test_a_shell_completes(shell, script, tmp_path):
    (tmp_path / "here.kmem").touch()
    assert shell(script, "kmemshim rep") == ["report"]
    assert set(COMMANDS) <= set(shell(script, "kmemshim "))
    for command in COMMANDS:
        found = shell(script, f"kmemshim {command} --")
        assert set(found) == set(options_of(command)), command
    assert set(shell(script, "kmemshim run --color ")) == {"auto", "always", "never"}
    assert shell(script, "kmemshim report he", tmp_path) == ["here.kmem"]
    assert shell(script, "kmemshim report --sysroot he", tmp_path) == ["here.kmem"]
    assert set(shell(script, "kmemshim doctor mkfif")) == {"mkfifo"}


@pytest.mark.parametrize("shell", [bash, fish])
@pytest.mark.parametrize("command", ["schema", "jupyter", "completion"])
def test_a_word_of_few_is_completed_and_taken(command, shell, script):
    """The same that the command names, when it is given another one."""
    told = ask(command, "no-such", status=2).split(": there ")[1]
    assert set(shell(script, f"kmemshim {command} ")) == set(re.findall(r"[a-z]+", told)) - {"are", "is", "and"}, told


@pytest.fixture(scope="module")
def capture(tmp_path_factory):
    folder = tmp_path_factory.mktemp("capture")
    ask("run", "--quiet", "-o", folder, "--", "true")
    return folder


@pytest.mark.parametrize("shell", [bash, fish])
@pytest.mark.parametrize("command, option", [
    *((command, "--by") for command in COMMANDS if "--by" in options_of(command)), ("export", "--format"), ("check", "--format"),
    ("export", "--value"), ("tree", "--value"), ("run", "--guard-action")])
def test_values_of_an_option_are_completed_and_taken(command, option, shell, script, capture):
    """The same that the command names, when it is given another one."""
    words = shell(script, f"kmemshim {command} {option} ")
    rest = {"diff": [capture, capture], "run": ["true"], "check": ["--baseline", "b", capture]}.get(command, [capture])
    more = ["--format", "folded"] if command == "export" and option != "--format" else []
    done = subprocess.run([harness.KMEMSHIM, command, *more, option, "no-such", *rest], capture_output=True, text=True)
    assert done.returncode == 2 and option in done.stderr, done.stderr
    assert len(words) > 1 and set(words) <= set(re.findall(r"[a-z][a-z-]*:?", done.stderr)), (words, done.stderr)


def test_the_page_has_each_exit_status():
    header = (harness.ROOT / "analyzer" / "base" / "fail.h").read_text()
    numbers = set(re.findall(r"EXIT_\w+ = (\d+),", header))
    page = ask("manual").split(".SH EXIT STATUS")[1].split(".SH")[0]
    assert numbers <= set(re.findall(r"\b(\d+):", page)) and "77" in numbers


def read_until(terminal, text, seconds=harness.TIMEOUT):
    seen, end = b"", time.monotonic() + seconds
    while text.encode() not in seen and time.monotonic() < end:
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 65536)
    assert text.encode() in seen, seen.decode(errors="replace")


def test_zsh_completes(script):
    """In a terminal, as a person does."""
    terminal, inner = os.openpty()
    begin = f"bindkey -e; autoload -Uz compinit; compinit -u -D; source {script('zsh')}; PS1='REA''DY '\n"
    with subprocess.Popen(["zsh", "-f", "-i"], stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
                          env={**os.environ, "TERM": "dumb"}) as shell:
        os.write(terminal, begin.encode())
        for begun, whole in (("kmemshim rep\t", "report"), ("kmemshim run --sys\t", "--system-allocators")):
            read_until(terminal, "READY ")  # the prompt: what is typed before is not completed
            os.write(terminal, begun.encode())
            read_until(terminal, whole)
            os.write(terminal, b"\x15\n")  # the line is dropped
        os.write(terminal, b"exit\n")
        os.close(inner)
        shell.wait(60)
    os.close(terminal)


def test_another_shell_is_one_line():
    assert ask("completion", "tcsh", status=2) == "kmemshim: completion: tcsh: there are bash, zsh and fish\n"
    assert ask("completion", status=2).count("\n") == 1
