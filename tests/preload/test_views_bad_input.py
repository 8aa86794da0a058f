"""Views and exports of captures that nobody wishes for: hostile names, none at all, foreign files, a capture that grows while it is read."""
import gzip
import json
import shutil
import signal
import subprocess
import unicodedata

import pytest

import harness

PYTHON = harness.find_python()
LONG = "f" + "x" * 9_999
HOSTILE = ["\x1b[31mred", "a\nb", "a\rb", "right \u202e left", "zero\u200bwidth", "\x9b2J", "tab\there", "semi;colon", "quote\"back\\slash", "<b>&amp;", "été", "日本"]
PROGRAM = f"""
kept = []
names = {[*HOSTILE, LONG]!r}
for name in names:
    space = dict(kept=kept)
    code = compile("def made():\\n    kept.append(bytearray(200000))\\n", name + ".py", "exec")
    code = code.replace(co_consts=tuple(const.replace(co_name=name) if hasattr(const, "co_name") else const for const in code.co_consts))
    exec(code, space)
    space["made"]()
"""
TEXTS = [["peak", "--by", "function"], ["peak", "--by", "file"], ["leaks", "--by", "module"], ["sites", "--by", "package"], ["peak", "--by", "thread"], ["tree", "--by", "function"],
         ["tree", "--by", "module"], ["tree", "--by", "thread"], ["waste"], ["export", "--format", "folded"], ["export", "--format", "massif"]]
DATA = [["export", "--format", "ndjson"], ["export", "--format", "speedscope"], ["export", "--format", "dhat"]]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "program.py").write_text(PROGRAM)
    harness.record([PYTHON, folder / "program.py"], folder / "out")
    return folder / "out"


def run(*words):
    done = subprocess.run([str(word) for word in (harness.KMEMSHIM, *words)], capture_output=True, env=harness.plain_env(COLUMNS="20"))
    assert (done.returncode, done.stderr) == (0, b""), done.stderr
    return done.stdout


def ids(words):
    return " ".join(words)


@pytest.mark.parametrize("words", TEXTS, ids=ids)
def test_texts_have_no_character_that_steers(words, hostile):
    text = run(*words, hostile).decode()  # valid UTF-8
    steering = [char for char in text if unicodedata.category(char) in ("Cc", "Cf") and char not in "\n\u200b"]  # one that is not seen steers nothing
    assert not steering
    assert max(len(line) for line in text.splitlines()) < (400 if words[0] != "export" else 20_000)


@pytest.mark.parametrize("words", DATA, ids=ids)
def test_data_is_valid(words, hostile):
    text = run(*words, hostile).decode()
    for document in text.splitlines() if words[-1] == "ndjson" else [text]:
        json.loads(document)


def test_pprof_has_no_text_that_is_no_text(hostile):
    packed = gzip.decompress(run("export", "--format", "pprof", hostile))
    assert b"\x1b[31m" not in packed and LONG[:90].encode() in packed


def test_annotate_of_each_name(hostile):
    files = {frame["file"] for site in harness.report("peak", hostile)["sites"] for frame in site["frames"] if "made" not in (frame.get("function") or "")}
    shown = 0
    for file in sorted(file for file in files if file and not file.startswith("/")):
        done = harness.kmemshim("annotate", file, hostile)
        assert done.returncode in (0, 2) and "\x1b" not in done.stdout + done.stderr and done.stderr.count("\n") <= 1
        shown += done.returncode == 0
    assert shown >= 5
    done = harness.kmemshim("annotate", LONG + "?" * 100_000, hostile)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1) and len(done.stderr) < 2000


@pytest.mark.parametrize("words", TEXTS + DATA + [["export", "--format", "openmetrics"]], ids=ids)
def test_of_a_program_that_allocated_nothing(words, tmp_path):
    (tmp_path / "p.c").write_text("int main(void) { return 0; }\n")
    harness.record([harness.compile_c(tmp_path / "p.c", tmp_path / "p")], tmp_path / "out")
    text = run(*words, tmp_path / "out").decode()
    assert "nan" not in text.lower() and "inf %" not in text
    done = harness.kmemshim("annotate", "p.c", tmp_path / "out")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize("words", [TEXTS[0], TEXTS[5], ["waste"], DATA[0], DATA[2]], ids=ids)
def test_foreign_files_in_the_folder_are_left_alone(words, hostile, tmp_path):
    shutil.copytree(hostile, tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    (tmp_path / "out" / "sub").mkdir()
    assert run(*words, tmp_path / "out") == run(*words, tmp_path / "out") != b""
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("words", [["report", "--html", "{page}"], ["top", "--once"], ["tree"], ["waste"], ["export", "--format", "ndjson"]], ids=ids)
def test_thousands_of_empty_captures(words, hostile, tmp_path):
    """Alone they are one line; beside a good one they are counted, and it is read."""
    words = [word.format(page=tmp_path / "page.html") for word in words]
    (tmp_path / "out").mkdir()
    for number in range(2000):
        (tmp_path / "out" / f"python.{number}.1.kmem").touch()
    done = harness.kmemshim(*words, tmp_path / "out")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (3, "", 1) and "any of its 2000 captures" in done.stderr, done.stderr
    assert not (tmp_path / "page.html").exists()
    shutil.copy(next(hostile.glob("*.kmem")), tmp_path / "out")
    done = harness.kmemshim(*words, tmp_path / "out")
    assert done.returncode == 0 and done.stderr.count("\n") <= 2, done.stderr
    assert words[0] == "top" or "2000 damaged places in total" in done.stderr, done.stderr


def test_of_a_program_that_goes_on(tmp_path):
    """Every view of a capture that grows while it is read."""
    program = tmp_path / "program.py"
    program.write_text("print('begun', flush=True)\nkept = []\nwhile True:\n    kept.append(bytearray(3000))\n    if len(kept) > 3000: kept.clear()\n")
    process = subprocess.Popen([PYTHON, program], env=harness.shim_env(tmp_path / "out"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "begun\n"
        for words in TEXTS + DATA + [["annotate", "program.py"], ["export", "--format", "openmetrics"]]:
            done = harness.ok(harness.kmemshim(*words, tmp_path / "out"))
            for document in done.stdout.splitlines() if words[-1] == "ndjson" else [done.stdout] if words in DATA else []:
                json.loads(document)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
