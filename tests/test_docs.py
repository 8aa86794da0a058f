"""Do the texts for readers say what is there? Links lead to files and headings, and every setting, option and command is described."""
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = Path(os.environ.get("BUILD_DIR", ROOT / "build"))
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGES.md", ROOT / "packaging/README.md", *sorted((ROOT / "docs").glob("*.md")),
         *sorted((ROOT / "examples").glob("*/README.md"))]


def without_code(text):
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def anchors(text):
    """The anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", without_code(text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text())):
        path, _, anchor = link.partition("#")
        if "://" in path:
            continue
        target = page.parent / path if path else page
        if not target.exists() or anchor and anchor not in anchors(target.read_text()):
            broken.append(link)
    assert not broken


def test_every_setting_is_described():
    table = (ROOT / "shim/base/settings.c").read_text()
    names = re.findall(r'^\t\{ (?:\.name = )?"([A-Z_]+)"', table, flags=re.MULTILINE)
    page = (ROOT / "docs/settings.md").read_text()
    assert len(names) > 10
    assert [name for name in names if f"`KMEMSHIM_{name}" not in page] == []


def test_no_text_names_a_setting_that_is_none():
    names = set(re.findall(r'^\t\{ (?:\.name = )?"([A-Z_]+)"', (ROOT / "shim/base/settings.c").read_text(), flags=re.MULTILINE))
    for page in TEXTS:
        assert set(re.findall(r"KMEMSHIM_([A-Z_]+[A-Z])", page.read_text())) <= names | {"NAME"}, page


def test_every_option_and_command_is_described():
    cli = ROOT / "analyzer/cli"
    options = re.findall(r'^\t(?:FLAG|WITH)\(\w+, "([a-z-]+)"', (cli / "option_rows.h").read_text(), flags=re.MULTILINE)
    commands = re.findall(r'^\t\t\.name = "(\w+)"', (cli / "commands.c").read_text(), flags=re.MULTILINE)
    pages = (ROOT / "docs/use.md").read_text() + (ROOT / "docs/ci.md").read_text()
    assert len(options) > 10 and len(commands) > 5
    assert [name for name in options if f"--{name}" not in pages] == []
    assert [name for name in commands if f"`kmemshim {name}" not in pages] == []


OF_OTHERS = {"--cuda-memory-usage": "nsys", "--gpu-memory-utilization": "vLLM", "--fail-on-increase": "pytest-memray", "--platform": "pip", "--mem": "sbatch"}


def test_no_text_names_an_option_that_is_none():
    """`--option`, alone or with its value; whole command lines are tried by tests/preload/test_doc_sessions.py."""
    options = re.findall(r'^\t(?:FLAG|WITH)\(\w+, "([a-z-]+)"', (ROOT / "analyzer/cli/option_rows.h").read_text(), flags=re.MULTILINE)
    of_pytest = re.findall(r'"(--[a-z-]+)"', (ROOT / "python/kmemshim/pytest_plugin.py").read_text())
    known = {f"--{name}" for name in options} | set(of_pytest) | set(OF_OTHERS)
    assert len(options) > 10 and len(of_pytest) > 2
    for page in TEXTS:
        assert set(re.findall(r"`(--[a-z-]+)", without_code(page.read_text()))) <= known, page


def test_every_folder_is_on_the_map():
    """Those of the repository, of both sides, and of the tests; and the map names none that is not there."""
    page = (ROOT / "docs/source.md").read_text()
    rows = re.findall(r"^( *)([\w.-]+)/ ", page, flags=re.MULTILINE)
    top = [name for indent, name in rows if not indent]
    inner = {name for indent, name in rows if len(indent) == 2}
    kept = subprocess.run(["git", "-C", ROOT, "ls-files", "*/*"], capture_output=True, text=True).stdout.splitlines()
    if not kept:
        pytest.skip("no git repository: which folders belong to it is not known")
    folders = {tuple(path.split("/")[:-1]) for path in kept}

    assert set(top) == {path[0] for path in folders}
    assert inner == {path[1] for path in folders if path[0] in ("shim", "analyzer") and len(path) > 1}
    tests = re.search(r"^tests/ +(.*\n(?: {8,}.*\n)*)", page, flags=re.MULTILINE)[1]
    assert {path[1] for path in folders if path[0] == "tests" and len(path) > 1} <= set(re.findall(r"\w+", tests))


def test_every_page_is_on_the_index():
    index = (ROOT / "docs/README.md").read_text()
    assert [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md" and f"]({page.name}" not in index] == []


def test_every_exit_status_is_described():
    numbers = re.findall(r"\bEXIT_\w+ = (\d+)", (ROOT / "analyzer/base/fail.h").read_text())
    table = (ROOT / "docs/use.md").read_text().partition("## Exit statuses")[2]
    assert len(set(numbers)) > 5
    assert set(numbers) <= set(re.findall(r"\d+", " ".join(row.split("|")[1] for row in table.splitlines() if row.startswith("|"))))


def test_every_schema_is_described_with_its_number():
    page = (ROOT / "docs/json.md").read_text()
    numbers = re.findall(r" \| `kmemshim schema ?(\w*)` \| (\d+) \|", page)
    assert [kind for kind, _ in numbers] == ["", "diff", "doctor", "holders", "lost"]
    for kind, number in numbers:
        done = subprocess.run([BUILD / "kmemshim", "schema", *kind.split()], capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["properties"]["schema"]["const"] == int(number), kind


def test_the_pages_name_files_that_are_there():
    missing = []
    for page in TEXTS:
        for name in re.findall(r"`((?:shim|analyzer|include|packaging|tests|tools|examples)/[\w./-]+)`", page.read_text()):
            if "NAME" not in name and not name.startswith("build/") and not (ROOT / name).exists():
                missing.append(f"{page.name}: {name}")
    assert not missing


def test_the_path_of_a_malloc_goes_through_functions_that_are_there():
    rows = re.findall(r"^\| `([\w/.]+)` \| `(\w+)\(\)` \|", (ROOT / "docs/malloc.md").read_text(), flags=re.MULTILINE)
    assert len(rows) > 25
    gone = []
    for path, function in rows:
        text = (ROOT / path).read_text() if (ROOT / path).exists() else ""
        if not re.search(rf"^(?:static .*|EXPORT .*)?\b{function}\(", text, flags=re.MULTILINE):
            gone.append(f"{path}: {function}()")
    assert not gone


def test_every_make_target_is_there():
    rules = (path.read_text() for path in (ROOT / "Makefile", *ROOT.glob("*/*.mk")))
    targets = {name for text in rules for name in re.findall(r"^([a-z0-9-]+):", text, flags=re.MULTILINE)}
    for page in TEXTS:
        named = set(re.findall(r"(?:^|`|&& )make ([a-z][a-z0-9-]*)", page.read_text(), flags=re.MULTILINE))
        assert named <= targets, page


@pytest.mark.parametrize("name", ["cost.md", "limits.md"])  # compare.md leads to cost.md
def test_what_recording_costs_was_measured_with_this_capture_format(name):
    version = re.search(r"#define KMEM_VERSION (\d+)u", (ROOT / "include/kmem_format.h").read_text())[1]
    told = re.findall(r"capture\s+format\s+(\d+)", (ROOT / "docs" / name).read_text())
    assert told and set(told) == {version}, "measure the page's figures again"


def test_every_version_of_the_capture_file_is_in_the_changes():
    header = (ROOT / "include/kmem_format.h").read_text()
    newest, oldest = (int(re.search(rf"#define {name} (\d+)u", header)[1]) for name in ("KMEM_VERSION", "KMEM_VERSION_OLDEST"))
    rows = re.findall(r"^\| (\d+) \| .* \| (yes|no) \|$", (ROOT / "CHANGES.md").read_text(), flags=re.MULTILINE)
    assert rows == [(str(version), "yes" if version >= oldest else "no") for version in range(newest, 0, -1)]


def test_the_comparison_has_the_figures_of_the_results():
    """So that a new run of the leaks is not forgotten there."""
    page, results = (ROOT / "docs/compare.md").read_text(), (ROOT / "tests/leaks/RESULTS.md").read_text()
    table = re.search(r"^\|  \| kmemshim .*?(?=\n\n)", results, re.DOTALL | re.MULTILINE)[0]
    assert table.count("\n") == 5 and table in page


def test_the_comparison_has_the_tools_that_are_tried():
    page, script = (ROOT / "docs/compare.md").read_text(), (ROOT / "tests/bench/compare.py").read_text()
    tools = re.findall(r'^        "([\w -]+)": \(\[', script, re.MULTILINE)
    assert len(tools) > 6 and re.findall(r"^\| ([\w -]+) \| (?:yes|no) \| (?:yes|no) \|", page, re.MULTILINE) == tools
