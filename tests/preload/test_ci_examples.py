"""The workflows of examples/ci: valid by the schemas of GitHub and GitLab, and their commands do what they say, as far as no server is needed."""
import json
import re
import xml.etree.ElementTree

import pytest

import harness

yaml = pytest.importorskip("yaml", reason="needs python3-yaml (make deps)")
CI = harness.EXAMPLES / "ci"

BENCH = """
kept = []
def request(number):
    row = bytearray(2000 + number % 7)
    LEAK
    return len(row)
for number in range(1000):
    request(number)
"""


@pytest.fixture
def project(tmp_path):
    """A program, before and after a change that leaks, and a way to run a command of a workflow."""
    (tmp_path / "bench.py").write_text(BENCH.replace("LEAK", "pass"))

    def run(command, **environment):
        path = f"{harness.BUILD}:/usr/bin:/bin"
        return harness.run(["bash", "-e", "-c", command], harness.plain_env(PATH=path, **environment), cwd=tmp_path)

    run.folder = tmp_path
    run.leak = lambda: (tmp_path / "bench.py").write_text(BENCH.replace("LEAK", "kept.append(row)"))
    return run


def test_every_workflow_is_in_the_list():
    listed = set(re.findall(r"\]\(([\w.]+)\)", (CI / "README.md").read_text()))
    assert {path.name for path in CI.iterdir() if path.name != "README.md"} <= listed


@pytest.mark.framework
@pytest.mark.parametrize("name, schema", [("github.yml", "vendor.github-workflows"), ("gitlab.yml", "vendor.gitlab-ci")])
def test_a_workflow_fits_its_schema(name, schema):
    harness.ok(harness.run([harness.venv("ci"), "-m", "check_jsonschema", "--builtin-schema", schema, CI / name]))


def test_the_commands_of_github(project):
    job = yaml.safe_load((CI / "github.yml").read_text())["jobs"]["memory"]
    steps = {step.get("name"): step for step in job["steps"]}
    summary = project.folder / "summary.md"
    environment = {**job["env"], "GITHUB_STEP_SUMMARY": summary}
    assert project(steps["make a baseline"]["run"], **environment).returncode == 0
    assert [path.name for path in (project.folder / "ci/memory").iterdir()] != []
    good = project(steps["check"]["run"], **environment)
    project.leak()
    bad = project(steps["check"]["run"], **environment)

    assert good.returncode == 0 and "::error" not in good.stdout, good.stdout + good.stderr
    assert bad.returncode == 1 and "::error file=bench.py,line=4,title=kmemshim%3A leak::" in bad.stdout, bad.stdout + bad.stderr
    assert "### Memory: ok" in summary.read_text() and "`bench.py:4 request`" in summary.read_text()
    assert steps["tell code scanning"]["with"]["sarif_file"] == "memory.sarif"
    results = json.loads((project.folder / "memory.sarif").read_text())["runs"][0]["results"]
    assert "bench.py" in {result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for result in results}
    kept = steps["keep the captures and the baseline"]["with"]["path"].split()
    assert all((project.folder / name).exists() for name in kept)


def test_the_commands_of_gitlab(project):
    jobs = yaml.safe_load((CI / "gitlab.yml").read_text())
    variables = jobs[".memory"]["variables"]
    assert project("\n".join(jobs["memory-baseline"]["script"]), **variables).returncode == 0
    good = project("\n".join(jobs["memory"]["script"]), **variables)
    project.leak()
    bad = project("\n".join(jobs["memory"]["script"]), **variables)

    assert (good.returncode, bad.returncode) == (0, 1), good.stdout + bad.stdout + bad.stderr
    artifacts = jobs["memory"]["artifacts"]
    assert all((project.folder / name).exists() for name in artifacts["paths"] + jobs["memory-baseline"]["artifacts"]["paths"])
    issues = json.loads((project.folder / artifacts["reports"]["codequality"]).read_text())
    assert {"path": "bench.py", "lines": {"begin": 4}} in [issue["location"] for issue in issues]
    assert list(xml.etree.ElementTree.parse(project.folder / artifacts["reports"]["junit"]).getroot().iter("failure"))
