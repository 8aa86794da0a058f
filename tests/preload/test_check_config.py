"""Budgets and suppressions of `check`: .kmemshim.yml does what docs/ci.md says."""
import re
import shutil

import pytest

import harness

OK, REGRESSION, USAGE, UNUSABLE, SKIPPED = 0, 1, 2, 3, 77
STEPS = """
import sys
sys.path.insert(0, sys.argv[1])
import kmemshim
kept = []
for step in range(int(sys.argv[2])):
    kmemshim.step()
    kept.append(bytearray(20000))
    work = [bytearray(100000) for _ in range(30)]
"""


@pytest.fixture(scope="module")
def folder(programs, tmp_path_factory):
    """Runs of gate.c, and of a program that counts its steps and keeps 20 kB in each."""
    folder = tmp_path_factory.mktemp("config")
    (folder / "src").mkdir()
    (folder / "src" / "gate.c").write_text((harness.HERE / "gate.c").read_text())
    program = harness.compile_c(folder / "src" / "gate.c", folder / "gate")
    for name, words in (("base", []), ("good", []), ("leaky", ["leak"]), ("large", ["peak"])):
        harness.run([harness.KMEMSHIM, "run", "-q", "-o", folder / name, "--", program, *words])
    assert harness.run([harness.KMEMSHIM, "baseline", "base", "-o", "base.json"], cwd=folder).returncode == OK
    (folder / "steps.py").write_text(STEPS)
    for steps in ("3", "200"):
        harness.record([harness.find_python(), folder / "steps.py", harness.ROOT / "python", steps], folder / f"steps{steps}")
    (folder / "rounds.py").write_text("kept = []\nfor n in range(100000):\n    kept.append(bytearray(700))\n")
    harness.record([harness.find_python(), folder / "rounds.py"], folder / "rounds")
    (folder / "strings.py").write_text("kept = [str(n) * 2 for n in range(400000)]\n")
    harness.record([harness.find_python(), folder / "strings.py"], folder / "strings")
    return folder


@pytest.fixture
def check(folder):
    def run(name, config, *words):
        (folder / "a.yml").write_text(config)
        return harness.run([harness.KMEMSHIM, "check", name, "--config", "a.yml", *words], cwd=folder)

    return run


BASELINE = ("--baseline", "base.json")


def told(done, rule):
    return [line for line in done.stdout.splitlines() if line.startswith("FAIL") and line.split()[1:3] == rule.split()]


@pytest.mark.parametrize("name, budget, rule", [
    ("large", "total: {peak: 40 MiB}", "peak total"),
    ("large", "domains: {heap: {peak: +100 %}}", "peak heap"),
    ("large", "domains: {heap: {peak: +40 MiB}}", "peak heap"),
    ("leaky", "total: {live: 1 MiB}", "live total"),
    ("leaky", "lines: {'src/gate.c:': {live: +1 MiB}}", "live src/gate.c:"),
    ("leaky", "lines: {'take_block$': {live: 9 MiB}}", "live take_block$"),
    ("steps200", "total: {per_step: 10 KiB}", "step total"),
    ("steps200", "lines: {'^steps.py:': {per_step: 19 KiB}}", "step ^steps.py:"),
])
def test_a_budget_that_is_passed_fails(check, name, budget, rule):
    done = check(name, f"budgets: {{{budget}}}", *(BASELINE if "+" in budget else ()))

    assert done.returncode == REGRESSION, done.stdout + done.stderr
    assert told(done, rule), done.stdout
    assert any(word in told(done, rule)[0] for word in ("gate.c:", "steps.py:8"))


def test_what_is_allowed_on_top_of_a_budget_stands_beside_it(check, tmp_path):
    """A budget of 1 MiB that reads "10.8 MiB" is not the one that was written."""
    config = "budgets: {total: {live: 1 MiB}}\nsuppressions: [{leak: take_block, reason: known}]"
    done = check("leaky", config, *BASELINE, "--format", f"text,markdown={tmp_path / 'a.md'}")
    row, = [line for line in done.stdout.splitlines() if line.split()[1:3] == ["live", "total"]]
    assert re.search(r"  1\.0 MiB \+ 9\.8 MiB for suppressed lines$", row), done.stdout + done.stderr
    assert "| 1.0 MiB + 9.8 MiB for suppressed lines |" in (tmp_path / "a.md").read_text()
    few = check("strings", "budgets: {lines: {'^strings.py:': {live: 1 KiB}}}")
    limit = re.search(r"  1\.0 KiB \+ [\d.]+ [KM]iB for estimates  strings\.py:", few.stdout)
    assert few.returncode == REGRESSION and limit, few.stdout + few.stderr
    sentence = check("strings", "budgets: {lines: {'^strings.py:': {live: 1 KiB}}}", "--format", "github").stdout
    assert re.search(r"live bytes of \^strings.py: are [\d.]+ MiB, allowed 1\.0 KiB \+ [\d.]+ [KM]iB for estimates \(\d+, \d+ bytes; ", sentence), sentence


@pytest.mark.parametrize("name, budget", [
    ("large", "domains: {heap: {peak: +400 %}}"),
    ("large", "domains: {heap: {peak: +60 MiB}}"),
    ("leaky", "domains: {heap: {live: +20 MiB, peak: 40 MiB}}, lines: {take_block: {live: 20 MiB}}"),
    ("steps200", "total: {per_step: 24 KiB}"),
    ("rounds", "lines: {'^rounds.py:': {per_step: 2 KiB}}"),  # most of its rounds are missed
])
def test_a_budget_that_is_kept_passes_whatever_the_baseline_says(check, name, budget):
    done = check(name, f"budgets: {{{budget}}}", *(BASELINE if name in ("large", "leaky") else ()))

    assert done.returncode == OK, done.stdout + done.stderr


def test_a_run_too_short_for_its_budget_follows_the_policy(check, folder):
    for policy, status in (("fail", UNUSABLE), ("pass", OK), ("skip", SKIPPED)):
        done = check("steps3", f"budgets: {{total: {{per_step: 30 KiB}}}}\nrun: {{too_short: {policy}}}")
        assert done.returncode == status, done.stdout + done.stderr
        assert "too short to judge: 3 steps of at least 6" in done.stdout + done.stderr
        assert done.stderr.count("\n") == (policy == "fail")
    harness.run([harness.KMEMSHIM, "run", "-q", "-o", folder / "straight", "--", "/bin/true"])
    done = check("straight", "budgets: {total: {per_step: 30 KiB}}")
    assert done.returncode == UNUSABLE and "no steps were found" in done.stderr and done.stderr.count("\n") == 1


def test_a_run_without_generations_is_told(folder):
    """Of a program that allocates next to nothing no line can be judged."""
    harness.run([harness.KMEMSHIM, "run", "-q", "-o", folder / "small", "--", "/bin/true"])
    assert harness.run([harness.KMEMSHIM, "baseline", "small", "-o", "small.json"], cwd=folder).returncode == OK
    done = harness.run([harness.KMEMSHIM, "check", "small", "--baseline", "small.json"], cwd=folder)
    long = harness.run([harness.KMEMSHIM, "check", "good", *BASELINE], cwd=folder)

    assert done.returncode == OK and re.search(r"^note: this run is too short to tell leaks \([01] generations? of at least 6\)", done.stdout, re.M), done.stdout
    assert long.returncode == OK and "note:" not in long.stdout


def test_a_pattern_that_fits_nothing_is_told_and_follows_the_policy(check):
    for policy, status in (("pass", OK), ("fail", USAGE), ("skip", SKIPPED)):
        done = check("good", f"budgets:\n  lines:\n    nowhere.py: {{live: 1 MiB}}\nrun: {{unmatched: {policy}}}")
        assert done.returncode == status, done.stdout + done.stderr
        assert 'a.yml:3: pattern "nowhere.py" fits nothing in these runs' in done.stdout + done.stderr
    assert 'domain "gpu" fits nothing' in check("good", "budgets: {domains: {gpu: {live: 1 MiB}}}").stdout


@pytest.mark.parametrize("pattern", ["take_block", "src/gate.c$", "gate.c:16", "^main$"])
def test_a_suppressed_leak_fails_nothing_and_is_told(check, pattern):
    done = check("leaky", f"suppressions: [{{leak: '{pattern}', reason: known to us}}]", *BASELINE)

    assert done.returncode == OK, done.stdout
    note, = [line for line in done.stdout.splitlines() if line.startswith("note:")]
    assert note == f'note: a.yml:1: 9.8 MiB in 1 line is suppressed by "{pattern}": known to us'


def test_a_suppression_hides_nothing_else(check):
    """Neither another line, nor after its last day; one that fits nothing is told."""
    other = check("leaky", "suppressions:\n- {leak: take_table, reason: x}", *BASELINE)
    expired = check("leaky", "suppressions:\n- {leak: take_block, reason: x, expires: 2020-02-29}", *BASELINE)

    assert other.returncode == expired.returncode == REGRESSION
    assert 'note: a.yml:2: the suppression of "take_table" fits no leak of these runs: remove it' in other.stdout
    assert 'note: a.yml:2: the suppression of "take_block" expired on 2020-02-29 and is not in force' in expired.stdout


def test_suppressions_of_leak_sanitizer_are_taken(check, folder):
    (folder / "lsan.supp").write_text("# known\nleak:other\nleak:take_bl*ck\n")
    done = check("leaky", "suppression_files: [lsan.supp]", *BASELINE)

    assert done.returncode == OK, done.stdout
    assert "note: lsan.supp:3: 9.8 MiB in 1 line is suppressed" in done.stdout
    assert 'note: lsan.supp:2: the suppression of "other" fits no leak' in done.stdout


SECRET = "TOPSECRET"


@pytest.mark.parametrize("name", ["../secret", "link", "below/link", "absolute"])
def test_a_configuration_shows_no_file_outside_of_its_folder(check, folder, tmp_path, name):
    """It comes with a branch; the log of the job is read by who sent it."""
    secret = folder.parent / "secret"
    secret.write_text(f"[core]\n{SECRET}\n")
    (folder / "below").mkdir(exist_ok=True)
    for link in (folder / "link", folder / "below" / "link"):
        link.unlink(missing_ok=True)
        link.symlink_to(secret)
    done = check("leaky", f"suppression_files: [{secret if name == 'absolute' else name}]", *BASELINE)

    assert done.returncode == USAGE and "lies outside of the folder of this file" in done.stderr, done.stderr
    assert SECRET not in done.stdout + done.stderr and "[core]" not in done.stdout + done.stderr


def test_a_pattern_names_nobody_and_links_nowhere(check):
    """The comment of a job is written with its rights: @all tells everybody."""
    done = check("leaky", "budgets:\n  lines:\n    '@all https://e.example www.e.example':\n      live: 1 MiB", "--format", "markdown")

    assert "@<!-- -->all https:<!-- -->//e.example w<!-- -->ww.e.example" in done.stdout, done.stdout
    assert "@all" not in done.stdout and "//e.example" not in done.stdout.replace("<!-- -->//", "")


def test_what_is_no_suppression_is_not_shown(check, folder):
    (folder / "secret.supp").write_text(f"{SECRET}\n")
    done = check("leaky", "suppression_files: [secret.supp]", *BASELINE)

    assert done.returncode == USAGE and "secret.supp:1:1: expected leak:PATTERN" in done.stderr and SECRET not in done.stderr


def test_a_configuration_that_leads_out_of_its_folder_is_not_taken_by_itself(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "here")
    (tmp_path / "secret").write_text(f"{SECRET}: x\n")
    (tmp_path / "here" / ".kmemshim.yml").symlink_to("../secret")
    done = harness.run([harness.KMEMSHIM, "check", "leaky", *BASELINE], cwd=tmp_path / "here")

    assert done.returncode == USAGE and "leads out of this folder" in done.stderr and SECRET not in done.stderr, done.stderr


def test_a_baseline_that_is_none_is_not_shown_and_costs_little(folder, tmp_path):
    (tmp_path / "secret").write_text(SECRET)
    with open(tmp_path / "large", "w") as file:
        file.write("[" + "1," * (9 << 20) + "1]")
    shown = harness.run([harness.KMEMSHIM, "check", "leaky", "--baseline", tmp_path / "secret"], cwd=folder)
    large = harness.run([harness.KMEMSHIM, "check", "leaky", "--baseline", tmp_path / "large"], cwd=folder)

    assert shown.returncode == USAGE and "is not JSON" in shown.stderr and SECRET not in shown.stderr
    assert large.returncode == USAGE and "has more than 16 MiB" in large.stderr


def test_init_writes_a_file_that_is_found_and_changes_nothing(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "here")
    here = tmp_path / "here"
    before = harness.run([harness.KMEMSHIM, "check", "leaky", *BASELINE], cwd=here)
    first = harness.run([harness.KMEMSHIM, "check", "--init"], cwd=here)
    again = harness.run([harness.KMEMSHIM, "check", "--init"], cwd=here)
    after = harness.run([harness.KMEMSHIM, "check", "leaky", *BASELINE], cwd=here)

    assert first.returncode == OK and (first.stdout, first.stderr) == ("", "kmemshim: written: .kmemshim.yml\n")
    assert again.returncode == USAGE and "--force writes it anew" in again.stderr and again.stderr.count("\n") == 1
    assert (after.returncode, after.stdout) == (before.returncode, before.stdout)
    (here / ".kmemshim.yml").write_text("budgets: {domains: {heap: {live: 20 MiB}}, lines: {gate.c: {live: 20 MiB}}}")
    assert harness.run([harness.KMEMSHIM, "check", "leaky"], cwd=here).returncode == OK  # it is found


@pytest.mark.parametrize("config, says", [
    ("budgets: {total: {peak: 500}}", 'a.yml:1:25: "500" has no unit'),
    ("budgets:\n  total:\n    peak: +5 %\n", "a.yml:3: this budget is beyond the baseline: add --baseline"),
    ("run: {retries: 1}\nrun: {retries: 2}\n", 'a.yml:2:1: "run" is there twice'),
    ("budgets: {\n", "a.yml:2:1: is not YAML"),
])
def test_a_bad_configuration_is_one_line(check, config, says):
    done = check("good", config)

    assert done.returncode == USAGE and done.stdout == ""
    assert done.stderr.startswith(f"kmemshim: {says}") and done.stderr.count("\n") == 1, done.stderr
