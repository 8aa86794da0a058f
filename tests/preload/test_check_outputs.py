"""What `check` writes for CI systems, read as they read it: by their schema or parser where one can be had, and by their documented rules."""
import html.parser
import json
import re
import shutil
import urllib.parse

import pytest

import harness

REGRESSION, USAGE, BROKEN_RUN = 1, 2, 4

# A name that each of the formats has to escape somewhere.
HOSTILE = "odd, %25:`a`|<b> \u00e9.c"


@pytest.fixture(scope="module")
def checked(programs, tmp_path_factory):
    """Runs of gate.c under a hostile name; returns a function that checks one of them in one format, and the folder."""
    folder = tmp_path_factory.mktemp("gate")
    source = folder / "src" / HOSTILE
    source.parent.mkdir()
    shutil.copy(harness.HERE / "gate.c", source)
    program = harness.compile_c(source, folder / "gate")
    for name, words in (("base", []), ("good", []), ("bad", ["leak", "peak"]), ("killed", ["kill"])):
        harness.run([harness.KMEMSHIM, "run", "-q", "-o", folder / name, "--", program, *words])
    assert harness.run([harness.KMEMSHIM, "baseline", "base", "-o", "base.json"], cwd=folder).returncode == 0

    def check(run, output, **environment):
        done = harness.run([harness.KMEMSHIM, "check", run, "--baseline", "base.json", "--format", output],
                           harness.plain_env(**environment), cwd=folder)
        assert done.returncode in (0, REGRESSION, BROKEN_RUN), done.stderr
        return done.stdout

    check.folder = folder
    return check


def line_of(text):
    lines = (harness.HERE / "gate.c").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def all_say_enough(messages):
    """The line, the numbers, the command."""
    for message in messages:
        assert re.search(r"\d+ bytes\), allocated at .*:\d+ take_(block|table)", message), message
        assert "repeat: kmemshim run -o again -- " in message and "; kmemshim check again --baseline base.json" in message


# --- GitHub -------------------------------------------------------------------------------------

def commands(text):
    """As GitHub's runner takes a workflow command: properties end at "::", and each knows some escapes."""
    found = []
    for line in text.splitlines():
        match = re.fullmatch(r"::(\w+)(?: (.*?))?::(.*)", line)
        assert match, line
        properties = dict(word.split("=", 1) for word in (match[2] or "").split(",") if word)
        found.append((match[1], {name: unescaped(value, {"%3A": ":", "%2C": ","}) for name, value in properties.items()}, unescaped(match[3], {})))
    return found


def unescaped(text, more):
    for escape, plain in {**more, "%0D": "\r", "%0A": "\n", "%25": "%"}.items():
        text = text.replace(escape, plain)
    return text


def test_github_annotates_the_lines_that_failed(checked):
    found = commands(checked("bad", "github"))
    errors = [(properties, message) for command, properties, message in found if command == "error"]

    assert [properties["title"] for properties, _ in errors] == ["kmemshim: leak", "kmemshim: live", "kmemshim: peak"]
    assert {properties["file"] for properties, _ in errors} == {f"src/{HOSTILE}"}
    assert [int(properties["line"]) for properties, _ in errors] == [line_of("return malloc(")] * 2 + [line_of("return calloc(")]
    all_say_enough(message for _, message in errors)


def test_github_has_nothing_to_annotate_where_all_is_well(checked):
    assert checked("good", "github") == ""
    (command, properties, message), = commands(checked("killed", "github"))
    assert command == "error" and "file" not in properties and "SIGKILL" in message


def test_the_summary_is_added_to_githubs_file(checked, tmp_path):
    file = tmp_path / "summary.md"
    file.write_text("# of another step\n")
    assert checked("bad", "github-summary", GITHUB_STEP_SUMMARY=file) == ""
    text = file.read_text()

    assert text == "# of another step\n" + checked("bad", "markdown")
    assert len(text.encode()) < 1 << 20


# --- Markdown -----------------------------------------------------------------------------------

class Tables(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.rows, self.tags, self.cell = [], [], None

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.cell = True

    def handle_endtag(self, tag):
        self.cell = self.cell and tag not in ("td", "th")

    def handle_data(self, data):
        if self.cell:
            self.rows[-1][-1] += data


def test_markdown_is_a_table_for_githubs_own_parser(checked, tmp_path):
    if shutil.which("cmark-gfm") is None:
        pytest.skip("needs cmark-gfm (make deps)")
    (tmp_path / "text.md").write_text(checked("bad", "markdown"))
    page = Tables()
    page.feed(harness.run(["cmark-gfm", "-e", "table", tmp_path / "text.md"]).stdout)

    assert page.rows[0] == ["", "rule", "of", "before", "now", "allowed", "line"]
    assert [row[:3] for row in page.rows[1:3]] == [["FAIL", rule, "heap"] for rule in ("leak", "peak")]
    assert {len(row) for row in page.rows} == {7}
    assert page.rows[1][-1].startswith(f"{HOSTILE}:{line_of('return malloc(')} take_block also live of heap: ")
    assert "b" not in page.tags and page.tags.count("pre") == 1  # nothing of the name became HTML; the command is a block


# --- GitLab -------------------------------------------------------------------------------------

def check_issues(issues):
    """What GitLab asks of an issue of its code quality report, by its documentation."""
    assert isinstance(issues, list)
    for issue in issues:
        assert set(issue) >= {"description", "check_name", "fingerprint", "severity", "location"}
        assert issue["severity"] in ("info", "minor", "major", "critical", "blocker")
        assert all(isinstance(issue[name], str) and issue[name] for name in ("description", "check_name", "fingerprint"))
        assert isinstance(issue["location"]["path"], str) and not issue["location"]["path"].startswith(("/", "./"))
        assert isinstance(issue["location"]["lines"]["begin"], int) and issue["location"]["lines"]["begin"] > 0
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)  # of equal ones GitLab shows the first
    return issues


def test_gitlab_has_an_issue_for_each_failure(checked):
    issues = check_issues(json.loads(checked("bad", "gitlab")))

    assert [issue["check_name"] for issue in issues] == ["kmemshim/leak", "kmemshim/live", "kmemshim/peak"]
    assert [issue["location"] for issue in issues] == [
        {"path": f"src/{HOSTILE}", "lines": {"begin": line_of(text)}} for text in ("return malloc(", "return malloc(", "return calloc(")]
    all_say_enough(issue["description"] for issue in issues)
    assert check_issues(json.loads(checked("good", "gitlab"))) == []
    assert check_issues(json.loads(checked("killed", "gitlab")))[0]["severity"] == "blocker"


# --- SARIF --------------------------------------------------------------------------------------

def test_sarif_has_what_code_scanning_needs(checked):
    for run, count in (("good", 0), ("bad", 3), ("killed", 1)):
        log = json.loads(checked(run, "sarif"))
        assert log["version"] == "2.1.0" and len(log["runs"]) == 1
        rules = [rule["id"] for rule in log["runs"][0]["tool"]["driver"]["rules"]]
        results = log["runs"][0]["results"]

        assert len(results) == count
        assert len({json.dumps(result["partialFingerprints"]) for result in results}) == count
        for result in results:
            assert rules[result["ruleIndex"]] == result["ruleId"] and result["level"] == "error" and result["message"]["text"]
            place = result["locations"][0]["physicalLocation"]
            assert place["region"]["startLine"] > 0
            assert re.fullmatch(r"[A-Za-z0-9/._~%-]+", place["artifactLocation"]["uri"])
        if run == "bad":
            all_say_enough(result["message"]["text"] for result in results)
            assert {urllib.parse.unquote(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]) for result in results} == {f"src/{HOSTILE}"}


VALIDATE = """
import sys
from pydantic_sarif.model import StaticAnalysisResultsFormatSarifVersion210JsonSchema as Log
from sarif.loader import load_sarif_file
for path in sys.argv[1:]:
    Log.model_validate_json(open(path).read())
    print(len(load_sarif_file(path).get_results()))
"""


@pytest.mark.framework
def test_sarif_by_its_schema_and_a_reader(checked, tmp_path):
    """Models that were generated from the schema, without members that are not in it, and a program that reads SARIF."""
    for run in ("good", "bad", "killed"):
        (tmp_path / f"{run}.sarif").write_text(checked(run, "sarif"))
    done = harness.ok(harness.run([harness.venv("ci"), "-c", VALIDATE, *(tmp_path / f"{run}.sarif" for run in ("good", "bad", "killed"))]))

    assert done.stdout.split() == ["0", "3", "1"]


# --- JUnit, and all together --------------------------------------------------------------------

def test_junit_by_a_library_that_reads_it(checked, tmp_path):
    junitparser = pytest.importorskip("junitparser", reason="needs python3-junitparser (make deps)")
    (tmp_path / "junit.xml").write_text(checked("bad", "junit"))
    suite = next(iter(junitparser.JUnitXml.fromfile(str(tmp_path / "junit.xml"))))
    failed = {case.name: case.result[0] for case in suite if case.result and isinstance(case.result[0], junitparser.Failure)}

    assert set(failed) == {"lines", "live heap", "peak heap"} and suite.failures == 3
    all_say_enough(result.text for result in failed.values())


def test_all_outputs_of_one_check_agree(checked):
    names = {"junit": "a.xml", "markdown": "a.md", "github": "a.txt", "gitlab": "a.json", "sarif": "a.sarif", "text": "a.log"}
    done = harness.run([harness.KMEMSHIM, "check", "bad", "--baseline", "base.json", "--format",
                        ",".join(f"{name}={file}" for name, file in names.items())], cwd=checked.folder)

    assert (done.returncode, done.stdout, done.stderr) == (REGRESSION, "", "")
    for name, file in names.items():
        assert (checked.folder / file).read_text() == checked("bad", name)


def test_the_command_repeats_it(checked):
    """As it stands in the output, in a shell, elsewhere."""
    text = checked("bad", "text")
    command = next(line for line in text.splitlines() if line.startswith("repeat: "))[len("repeat: "):]
    done = harness.run(["sh", "-c", command], harness.plain_env(PATH=f"{harness.BUILD}:/usr/bin:/bin"), cwd=checked.folder)

    assert done.returncode == REGRESSION, done.stderr
    failed = re.search(r"^FAIL +leak +heap .* take_block\n +also live of heap.*\nFAIL +peak +heap .* take_table$", done.stdout, re.M)
    assert failed and done.stdout.count("FAIL") == 2, done.stdout


@pytest.mark.parametrize("word", ["html", "sarif=", "=x", ""])
def test_a_format_that_is_none_is_refused(checked, word):
    done = harness.run([harness.KMEMSHIM, "check", "bad", "--baseline", "base.json", "--format", word], cwd=checked.folder)

    assert done.returncode == USAGE and done.stdout == ""
    assert done.stderr.startswith("kmemshim: check: --format") and done.stderr.count("\n") == 1
