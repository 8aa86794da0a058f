"""
Are the command lines of the pages those that there are, and do they print what the pages show?

A session is a block ```console: lines that begin with "$ " are run in a folder of their own, one page after the other; the rest is what
they print. Figures, sizes, bars, line breaks, what is told of slow runs alone, and the doubts "≈", "±" and "leak?" may differ; but what a line of code holds, the first size of its row, may
differ by a quarter or half a MiB alone. A line "..." stands for any lines. `cat FILE` of a file that is not there
makes it from the page, so a page holds all that its sessions need. `COMMAND &` goes on in the background: the process id that it
shows is replaced by the real one in the commands below it.

SESSIONS=write writes what the commands print into the pages, where no "..." stands.
"""
import os
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

import harness

ROOT = harness.ROOT
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "packaging/README.md", *sorted((ROOT / "docs").glob("*.md")),
         *sorted((ROOT / "examples").glob("*/README.md"))]
GPU_PAGE = ROOT / "docs/gpu.md"  # tests/cuda runs its session: it needs doubles
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HOME = "/home/you"  # what a page shows for the folder of its sessions


# --- sessions -------------------------------------------------------------------------------------

def steps(block):
    """[(command, what it shows)]"""
    parts = re.split(r"^\$ (.*(?:(?<=\\)\n.*)*)\n", block, flags=re.MULTILINE)
    assert parts[0] == "", f"before the first command: {parts[0]}"
    return list(zip(parts[1::2], parts[2::2]))


def pattern(shown):
    """What is shown, as a regular expression for what is printed; both without what may differ."""
    return r"\s*" + r"\s*.*\s*".join(re.escape(usual(part)) for part in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE)) + r"\s*"


def usual(text):
    text = re.sub(r"[█▏▎▍▌▋▊▉░≈]+", "", text)
    text = re.sub(r"(?<=leak)\?", "", text)
    text = re.sub(r"\d[\d.,]*", "#", text)
    text = re.sub(r"# [KMG]i?B\b|# B\b", "# B", text)
    text = re.sub(r", ±# B(?=\))", "", text)
    text = re.sub(r"# (ms|s|min|h)\b", "# s", text)
    text = re.sub(r", sampled # s before exit", " at exit", text)  # the last look, where a process that ends has to wait for a processor
    text = re.sub(r"\bsince (the start|second #) of the run", "since # of the run", text)
    text = re.sub(r"of (the|its) (\w+ ){,3}?(machine|container|limit)\b.{,30}?# B", "of the limit", text.replace("\n", " "))
    # of a run of half a minute and more
    return re.sub("; to finish this run first, give it more memory: it took # B more each minute|, # B an hour", "", " ".join(text.split()))


def sizes(text):
    """{line of code: the first size of its first row}"""
    found = {}
    for size, unit, place in re.findall(r"^ *≈?([\d.]+) ([KMG]i?B|B)\b.*?\b(\w+\.\w+:\d+) [\w<]", text, flags=re.MULTILINE):
        found.setdefault(place, float(size) * 1024 ** "BKMG".index(unit[0]))
    return found


def is_shown(shown, printed):
    """Is what is shown what is printed?"""
    holds = sizes(printed)
    return re.fullmatch(pattern(shown), usual(printed)) is not None and \
        all(abs(size - holds[place]) <= max(size / 4, 1 << 19) for place, size in sizes(shown).items() if place in holds)


class Session:
    def __init__(self, folder):
        self.folder, self.pids, self.started = folder, {}, []
        self.env = harness.plain_env(PATH=f"{harness.BUILD}:/usr/bin:/bin", PWD=folder, COLUMNS="100")
        for name in ("XDG_STATE_HOME", "PYTHONPATH", "VIRTUAL_ENV", "PYENV_VERSION"):
            self.env.pop(name, None)
        self.env["HOME"] = str(folder)

    def step(self, command, shown):
        """What it prints."""
        made = re.fullmatch(r"cat (\S+)", command)
        if made and not (self.folder / made[1]).exists():
            (self.folder / made[1]).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / made[1]).write_text(shown)
            return shown
        for page, real in self.pids.items():
            command = re.sub(rf"\b{page}\b", real, command)
        command = re.sub(r"^kmemshim (holders|lost) ", r"kmemshim \1 --stop 60s ", command)  # a machine that tests is busy
        if command.endswith(" &"):
            return self.background(command[:-2], shown)
        done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, timeout=200,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        printed = done.stdout.replace(str(self.folder), HOME)
        for page, real in self.pids.items():
            printed = re.sub(rf"\b{real}\b", page, printed)
        return printed

    def background(self, command, shown):
        program = subprocess.Popen(["bash", "-c", "exec " + command], cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
        self.started.append(program)
        printed = "".join(program.stdout.readline() for _ in shown.splitlines())
        self.pids.update(zip(re.findall(r"pid (\d+)", shown), re.findall(r"pid (\d+)", printed)))
        return printed

    def close(self):
        for program in self.started:
            if program.poll() is None:
                os.killpg(program.pid, signal.SIGKILL)
            program.communicate()


def sessions_of(page):
    return [block for kind, block in BLOCK.findall(page.read_text()) if kind == "console"]


def run_page(page, folder):
    """Compares each step of the page's sessions, or writes it."""
    session, text, different = Session(folder), page.read_text(), []
    try:
        for block in sessions_of(page):
            fresh = ""
            for command, shown in steps(block):
                printed = session.step(command, shown)
                if "ptrace: EPERM" in printed:
                    pytest.skip("ptrace is not allowed here")
                is_same = is_shown(shown, printed)
                if os.environ.get("SESSIONS") == "write" and not is_same and "\n...\n" not in "\n" + shown:
                    shown = printed if printed.endswith("\n") or not printed else printed + "\n"
                elif not is_same:
                    different.append(f"$ {command}\n--- the page\n{shown}--- printed\n{printed}")
                fresh += f"$ {command}\n{shown}"
            text = text.replace(block, fresh)
    finally:
        session.close()
    if os.environ.get("SESSIONS") == "write":
        page.write_text(text)
    assert not different, "\n".join(different)


@pytest.mark.parametrize("page", [page for page in PAGES if sessions_of(page) and page != GPU_PAGE], ids=lambda page: str(page.relative_to(ROOT)))
def test_a_session_prints_what_the_page_shows(page, tmp_path):
    run_page(page, tmp_path)


@pytest.mark.parametrize("shown, printed, is_same", [
    ("pid 12 held 3.4 MiB\n", "pid 4133 held\n512 KiB\n", True),
    ("one\n...\nlast\n", "one\ntwo\nthree\nlast\n", True),
    ("one\n...\nlast\n", "one\ntwo\n", False),
    ("a.py:3 load  leak\n", "a.py:3 load  steady\n", False),
    (" 57.2 MiB  3,000 blocks at a.py:7 f\n", "≈57.7 MiB  ≈12,400 blocks at a.py:7 f\n", True),
    ("240 MiB of it (99 %) was", "≈241 MiB of it (99 %, ±1.2 MiB) was", True),
    (" 57.2 MiB  3,000 blocks at a.py:7 f\n", " 80.1 MiB  3,000 blocks at a.py:7 f\n", False),
    (" 114 MiB  64 %  a.py:7 f  (leak?)\n...\n", " 85 MiB  64 %  a.py:7 f  (leak)\n 114 MiB  a.py:8 g\n", False),
    ("grows since the start of the run\n", "grows since second 0.1 of the run\n", True),
    ("One block of 2.0 MiB was kept in each of about 140 rounds.\n", "One block of 2.0 MiB was kept in each of about 14 rounds, 3.4 GiB an hour.\n", True),
    ("Next: free them\n", "Next: free them; to finish this run\n      first, give it more memory: it took 34 MiB more each minute\n", True),
    ("12 % of the machine's 23.5 GiB.\n", "3 % of the container's limit of 400 MiB.\n", True),
])
def test_what_may_differ(shown, printed, is_same):
    assert is_shown(shown, printed) == is_same


@pytest.fixture(scope="module")
def demos(tmp_path_factory):
    """What `make demo` prints, up to three times: on a busy machine the kernel may be faster than the look at who holds the memory."""
    def run():
        build = build_of_its_own(tmp_path_factory.mktemp("demo"))
        done = subprocess.run([ROOT / "tools/demo"], env=harness.plain_env(BUILD=build), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        if "no memory cgroup can be made here" in done.stdout:
            pytest.skip("no memory cgroup can be made here: the kernel cannot kill for its limit")
        return done.stdout

    made = [run()]

    def demo(number):
        while len(made) <= number:
            made.append(run())
        return made[number]
    return demo


def assert_one_is_shown(demos, part, page):
    shown = part((ROOT / page).read_text())
    assert any(part(demos(number)) == shown for number in range(3)), (shown, [part(demos(number)) for number in range(3)])


def test_the_verdict_of_the_readme_is_that_of_the_demo(demos):
    """Which smaller lines hold something depends on the moment of the kill."""
    assert_one_is_shown(demos, glance_of, "README.md")


def test_the_verdict_of_the_whole_report_is_that_of_the_demo(demos):
    """Without what the log of the kernel says, which not everybody may read."""
    assert_one_is_shown(demos, verdict_of, "docs/report.md")


def verdict_of(text):
    said = [re.search(pattern, text, re.DOTALL | re.MULTILINE)[0]
            for pattern in (r"At the end [^:]* live\..*?(?=^  [█▓▒])", r"At \S+ train\s+blocks.*?(?=^Held at the peak)")]
    verdict = usual(" ".join(said))
    return verdict.replace("# of # samples of them were held", "they were held")  # one may be what is made at the moment


def build_of_its_own(folder):
    for name in ("kmemshim", "libkmemshim.so"):
        (folder / name).symlink_to(harness.BUILD / name)
    return folder


def glance_of(text):
    lines = re.search(r"^--- kmemshim ---\n(.*?)^More: ", text, re.DOTALL | re.MULTILINE)[1]
    first, last = re.match(r"(.*?)(^Next.*?)^  [█▓▒]", lines, re.DOTALL | re.MULTILINE).groups()
    row = re.search(r"^Held at the end .*\n(.*)\n", lines, re.MULTILINE)[1]
    return [usual(part) for part in (first, row, last)]


# --- command lines --------------------------------------------------------------------------------

def command_lines(text):
    """The words behind `kmemshim`, of each command line in blocks and in `code`."""
    lines = [line for _, block in BLOCK.findall(text) for line in block.replace("\\\n", " ").splitlines()]
    lines += re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))
    for line in lines:
        for found in re.finditer(r"(?:^\$? *|[ /(;|]|\$\()kmemshim ([a-z]+\b(?![:=.]).*)", line):
            words = []
            try:
                for word in shlex.split(found[1], comments=True):
                    if word in ("|", ">", ">>", "&&", "&", ";", "||"):
                        break
                    words.append(word.rstrip(";)"))
            except ValueError:  # a quote that another language closes
                continue
            yield words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_command_lines_have_commands_and_options_that_there_are(page):
    """The command itself judges: what stands before --help is read first."""
    wrong = []
    lines = {tuple(words) for words in command_lines(page.read_text()) if not any("[" in word for word in words) and words[0].islower()}
    names = set(re.findall(r"^  (\w+) ", harness.kmemshim("--help").stdout, re.MULTILINE))
    for words in sorted(lines):
        if words[0] not in names:
            continue  # a sentence of a terminal: "kmemshim said"
        own = list(words[:words.index("--")] if "--" in words else words)
        if words[0] in ("run", "doctor") and "--" not in words:
            own = own[:1]
        done = harness.kmemshim(*own, "--help")
        if done.returncode != 0 or not done.stdout.startswith("usage: "):
            wrong.append(f"{' '.join(words)}: {done.stderr.strip()}")
    assert not wrong
