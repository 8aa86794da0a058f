"""`check` and `baseline` of a program that they run themselves: retries, noise from the runs, platforms, a branch's baseline, bisection."""
import json
import re
import shutil

import pytest

import harness

OK, REGRESSION, USAGE, UNUSABLE, BROKEN_RUN = 0, 1, 2, 3, 4

# Leaks in its first runs alone: as many as its first argument says. What it needs for a while differs from run to run.
FLAKY = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int runs(const char *path) {
	FILE *file = fopen(path, "a+");
	fputc('x', file);
	fseek(file, 0, SEEK_END);
	int count = (int)ftell(file);
	fclose(file);
	return count;
}
static __attribute__((noinline)) void *keep(void) { return malloc(1000); }
static __attribute__((noinline)) void *cache(int n) { return memset(malloc((size_t)n), 1, (size_t)n); }
int main(int argc, char **argv) {
	int run = runs(argv[3]);
	puts("the program's own output");
	for (int i = 0; i < 300; i++) {
		void *block = keep();
		if (run > atoi(argv[1])) free(block);
	}
	void *volatile kept = cache(argc > 2 ? run % atoi(argv[2]) * 100000 : 1);
	return kept == NULL;
}
"""


@pytest.fixture(scope="module")
def flaky(tmp_path_factory):
    folder = tmp_path_factory.mktemp("flaky")
    (folder / "flaky.c").write_text(FLAKY)
    return harness.compile_c(folder / "flaky.c", folder / "flaky")


@pytest.fixture(scope="module")
def good(flaky, tmp_path_factory):
    """A baseline of five runs that leak nothing."""
    path = tmp_path_factory.mktemp("good") / "base.json"
    assert harness.run([harness.KMEMSHIM, "baseline", "-o", path, "--", flaky, "0", "1", "good"], cwd=path.parent).returncode == OK
    return path


@pytest.fixture
def kmemshim(tmp_path):
    def run(*words):
        return harness.run([harness.KMEMSHIM, *words], cwd=tmp_path)

    return run


def sessions(folder):
    return {re.search(r"\.(\d+\.\d+)\.kmem$", path.name)[1] for path in folder.glob("*.kmem")}


def test_a_program_is_run_and_its_output_is_apart(kmemshim, flaky, tmp_path):
    made = kmemshim("baseline", "-o", "base.json", "--", flaky, "0", "1", "count")
    done = kmemshim("check", "--baseline", "base.json", "--format", "gitlab", "-o", "captures", "--", flaky, "0", "1", "count")

    assert (made.returncode, made.stdout) == (OK, "") and made.stderr.count("the program's own output\n") == 5
    assert json.loads((tmp_path / "base.json").read_text())["runs"] == 5
    assert done.returncode == OK and json.loads(done.stdout) == [] and done.stderr == "the program's own output\n"
    assert len(list((tmp_path / "captures").glob("*.kmem"))) == 1
    assert (tmp_path / "count").read_text() == "x" * 6


@pytest.mark.parametrize("leaking, words, status, runs", [
    (1, (), OK, 2), (3, (), OK, 8), (99, (), REGRESSION, 8), (99, ("--retries", "0"), REGRESSION, 1), (3, ("--retries", "1"), REGRESSION, 2),
    (2, ("--runs", "3"), OK, 6), (99, ("--retries", "2", "--runs", "2"), REGRESSION, 8),
])
def test_a_leak_fails_only_when_more_runs_have_it(kmemshim, flaky, good, tmp_path, leaking, words, status, runs):
    """Of one run in two that leaks, the other tells; what all runs leak is a leak."""
    shutil.copy(good, tmp_path / "base.json")
    done = kmemshim("check", "--baseline", "base.json", *words, "--", flaky, str(leaking), "1", "count")

    assert done.returncode == status, done.stdout + done.stderr
    assert (tmp_path / "count").read_text() == "x" * runs
    if status == REGRESSION:
        assert "flaky.c:13 keep" in done.stdout and "repeat: kmemshim check --baseline base.json" in done.stdout


ROUNDS = """
#include <stdlib.h>
#include <string.h>
static __attribute__((noinline)) void *cached(void) { return malloc(1000); }
static __attribute__((noinline)) void *forgotten(void) { return malloc(1000); }
static __attribute__((noinline)) void *big(void) { return calloc(1, 32 << 20); }
int main(int argc, char **argv) {
	static void *cache[100];
	int rounds = atoi(argv[1] + strlen("--rounds="));
	char *table = big();
	for (int i = 0; i < rounds; i++) {
		if (strcmp(argv[2], "cache") == 0 && cache[i % 100] == NULL) cache[i % 100] = cached();
		if (strcmp(argv[2], "leak") == 0) table[i] = *(char *)memset(forgotten(), 0, 1);
		for (int k = 0; k < 1000; k++) free(memset(malloc(2000 + k % 7), 0, 1));
	}
	return table == NULL;
}
"""


def test_a_line_that_does_not_grow_with_the_rounds_is_no_leak(kmemshim, tmp_path):
    """A cache of 100 rows that is new holds as much after four times the rounds. Of the totals it is 1 % and no more."""
    (tmp_path / "rounds.c").write_text(ROUNDS)
    harness.compile_c(tmp_path / "rounds.c", tmp_path / "rounds")
    program = ("--", "./rounds", "--rounds={n}")
    assert kmemshim("baseline", "-o", "base.json", *program, "no").returncode == OK
    cache = kmemshim("check", "--baseline", "base.json", "--retries", "0", *program, "cache")
    leak = kmemshim("check", "--baseline", "base.json", "--retries", "0", *program, "leak")
    unasked = kmemshim("check", "--baseline", "base.json", "--retries", "0", "--", "./rounds", "--rounds=100", "cache")

    assert cache.returncode == OK, cache.stdout + cache.stderr
    assert "note: rounds.c:4 cached is not a leak: it held 97.7 KiB after 100 rounds, and 97.7 KiB after 400" in cache.stdout
    assert leak.returncode == REGRESSION and "rounds.c:5 forgotten" in leak.stdout
    assert "repeat: kmemshim check --baseline base.json --retries 0 -- ./rounds '--rounds={n}' leak" in leak.stdout
    assert unasked.returncode == REGRESSION and "once more" not in unasked.stderr


def test_the_configuration_says_how_often_it_is_tried(kmemshim, flaky, tmp_path):
    assert kmemshim("baseline", "-o", "base.json", "--", flaky, "0", "1", "good").returncode == OK
    (tmp_path / ".kmemshim.yml").write_text("run: {retries: 0}")
    assert kmemshim("check", "--baseline", "base.json", "--", flaky, "9", "1", "count").returncode == REGRESSION
    assert (tmp_path / "count").read_text() == "x"


def limit_of(done, rule):
    row = next(line for line in done.stdout.splitlines() if line.split()[1:3] == rule.split())
    return re.split(r" {2,}", row)[-1].split()[:2]


def test_noise_is_taken_from_the_runs(kmemshim, flaky):
    """Runs that hold 0, 100, 200, 300 and 400 kB differ by 400 kB: 800 kB more than the most is allowed. Equal ones allow 64 KiB, or 1 %; standard output has a buffer of 4 KiB."""
    for name, spread in (("equal", "1"), ("noisy", "5")):
        assert kmemshim("baseline", "-o", f"{name}.json", "--", flaky, "0", spread, name).returncode == OK
    equal, noisy = (kmemshim("check", "--baseline", f"{name}.json", "--", flaky, "0", "1", name) for name in ("equal", "noisy"))
    given = kmemshim("check", "--baseline", "noisy.json", "--abs", "10KiB", "--", flaky, "0", "1", "given")
    few = kmemshim("baseline", "--runs", "2", "-o", "few.json", "--", flaky, "0", "1", "few")

    assert few.returncode == OK
    assert limit_of(equal, "live heap") == ["68.0", "KiB"] and limit_of(noisy, "live heap") == ["1.1", "MiB"]
    assert limit_of(given, "live heap") == ["414", "KiB"]
    told = kmemshim("check", "--baseline", "few.json", "--abs", "10KiB", "--retries", "0", "--", flaky, "9", "1", "told")
    assert "note: the baseline has 2 runs: with 3 or more it knows how much the figures vary" in told.stdout
    assert limit_of(kmemshim("check", "--baseline", "few.json", "--", flaky, "0", "1", "few"), "live heap") == ["1.0", "MiB"]


def test_a_folder_has_a_baseline_for_each_platform(kmemshim, flaky, tmp_path):
    assert kmemshim("baseline", "-o", "base/", "--", flaky, "0", "1", "count").returncode == OK
    file = tmp_path / "base" / "x86_64.json"
    passed = kmemshim("check", "--baseline", "base", "--", flaky, "0", "1", "count")
    file.rename(tmp_path / "base" / "x86_64-python3.9.json")
    missing = kmemshim("check", "--baseline", "base", "--", flaky, "0", "1", "count")

    assert passed.returncode == OK, passed.stderr
    assert missing.returncode == USAGE
    assert missing.stderr.splitlines()[1:] == [
        "kmemshim: base/x86_64.json: No such file or directory: make a baseline with kmemshim baseline RUN... -o base/x86_64.json"]


def test_a_baseline_of_another_platform_is_refused(kmemshim, flaky, tmp_path):
    assert kmemshim("baseline", "-o", "base.json", "--", flaky, "0", "1", "count").returncode == OK
    text = (tmp_path / "base.json").read_text()
    (tmp_path / "base.json").write_text(text.replace('"x86_64"', '"x86_64-python3.9"'))
    words = ("--baseline", "base.json", "kmemshim.out")
    done, allowed = kmemshim("check", *words), kmemshim("check", "--any-platform", *words)
    (tmp_path / "base.json").write_text(text.replace('  "platform": "x86_64",\n', ""))
    old = kmemshim("check", *words)

    assert done.returncode == USAGE and done.stdout == ""
    assert "base.json: is of x86_64-python3.9, these runs are of x86_64: " in done.stderr.splitlines()[-1]
    assert (allowed.returncode, old.returncode) == (OK, OK)


def test_what_a_killed_run_was_is_not_asked(kmemshim, programs, tmp_path):
    """It may have died before its interpreter began, and so be of another platform."""
    assert kmemshim("baseline", "-o", "base.json", "--", programs("gate.c")).returncode == OK
    (tmp_path / "base.json").write_text((tmp_path / "base.json").read_text().replace('"x86_64"', '"x86_64-python3.9"'))
    done = kmemshim("check", "--baseline", "base.json", "--", programs("gate.c"), "kill")

    assert done.returncode == BROKEN_RUN and "SIGKILL" in done.stdout, done.stderr


@pytest.fixture
def repository(tmp_path):
    if shutil.which("git") is None:
        pytest.skip("needs git (make deps)")

    def git(*words):
        done = harness.ok(harness.run(["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main",
                                       "-c", "advice.detachedHead=false", *words], cwd=tmp_path))
        return done.stdout

    git("init", "-q", ".")
    return git


def test_the_baseline_of_a_branch_is_taken(kmemshim, repository, flaky, tmp_path):
    for place in ("base.json", "base/"):
        assert kmemshim("baseline", "-o", place, "--", flaky, "0", "1", "count").returncode == OK
    repository("add", "base.json", "base")
    repository("commit", "-qm", "baseline")
    repository("checkout", "-qb", "change")
    repository("rm", "-qr", "base.json", "base")
    repository("commit", "-qm", "change")
    for name in ("main:base.json", "main:base/"):
        assert kmemshim("check", "--baseline", name, "--", flaky, "0", "1", "count").returncode == OK
        assert kmemshim("check", "--baseline", name, "--retries", "0", "--", flaky, "99", "1", "count").returncode == REGRESSION
    for name, says in (("main:other.json", "path 'other.json' does not exist in 'main'"), ("nowhere:base.json", "invalid object name 'nowhere'")):
        done = kmemshim("check", "--baseline", name, "kmemshim.out")
        assert done.returncode == USAGE and done.stderr.count("\n") == 1
        assert done.stderr.startswith(f"kmemshim: {name}: there is no such file, and git show says: ") and says in done.stderr


APP = """
#include <stdlib.h>
#include <string.h>
%(functions)s
static __attribute__((noinline)) char *line(int i) {
	char *text = malloc(1200);
	memset(text, i, 1200);
	return text;
}
static __attribute__((noinline)) int request(int i) {
	char *text = line(i), *copy = strdup("a request");
	int sum = text[i %% 1200];
	free(copy);
	%(release)s
	return sum;
}
int main(void) {
	int sum = 0;
	for (int i = 0; i < 400; i++)
		sum += request(i);
	%(end)s
	return sum == 12345678;
}
"""
COMMITS, LEAKS, MIDDLE = 30, 17, 14  # git looks at the middle first


def write_commit(folder, number, fault):
    """Each commit adds a function above, so that all lines move; one plants the leak, one cannot be judged."""
    (folder / "app.c").write_text(APP % {
        "functions": "".join(f"int unused_{i}(void) {{ return {i}; }}\n" for i in range(number)),
        "release": "free(text);" if number < LEAKS else "if (i == 0) free(text);",
        "end": fault if number == MIDDLE else "",
    })


@pytest.mark.parametrize("fault", ["abort();", "syntax error"])
def test_git_bisect_finds_the_commit_that_leaks(kmemshim, repository, tmp_path, fault):
    commits = []
    for number in range(COMMITS):
        write_commit(tmp_path, number, fault)
        repository("add", "app.c")
        repository("commit", "-qm", f"change {number}")
        commits.append(repository("rev-parse", "HEAD").strip())
    build = "gcc -g -O1 app.c -o app"
    repository("checkout", "-q", commits[0])
    assert harness.run(["sh", "-c", build], cwd=tmp_path).returncode == 0
    assert kmemshim("baseline", "-o", "base.json", "--", "./app").returncode == OK
    repository("bisect", "start", commits[-1], commits[0])
    script = f"{build} 2>/dev/null || exit 125; exec {harness.KMEMSHIM} check --baseline base.json --status-for git-bisect --retries 1 -- ./app"
    done = harness.run(["git", "bisect", "run", "sh", "-c", script], cwd=tmp_path)
    skipped = [line for line in repository("bisect", "log").splitlines() if line.startswith("# skip:")]

    assert f"{commits[LEAKS]} is the first bad commit" in done.stdout, done.stdout + done.stderr
    assert {line.split()[2].strip("[]") for line in skipped} == {commits[MIDDLE]}, repository("bisect", "log")


@pytest.mark.parametrize("who, killed, wrong", [("git-bisect", 125, 128), ("automake", 77, 99), (None, BROKEN_RUN, USAGE)])
def test_statuses_are_those_of_who_asks(kmemshim, programs, tmp_path, who, killed, wrong):
    gate = programs("gate.c")
    words = ("--status-for", who) if who else ()
    assert kmemshim("baseline", "-o", "base.json", "--", gate).returncode == OK

    def status(*more):
        return kmemshim("check", "--retries", "0", *words, *more).returncode

    assert status("--baseline", "base.json", "--", gate) == OK
    assert status("--baseline", "base.json", "--", gate, "leak") == REGRESSION
    assert status("--baseline", "base.json", "--", gate, "kill") == killed
    assert status("--baseline", "missing.json", "--", gate) == wrong
    assert status("--baseline", "base.json", "--", tmp_path / "missing") == (killed if who else UNUSABLE)


@pytest.mark.parametrize("words, says", [
    (["check", "--baseline", "b", "--status-for", "make", "a"], 'check: --status-for "make": expected git-bisect or automake'),
    (["check", "--baseline", "b", "--"], "check: there is no program behind --"),
    (["check", "--baseline", "b", "a", "--", "c"], 'check: "a": give captures, or a program behind --, not both'),
    (["check", "--baseline", "b", "--runs", "all", "--", "c"], "check: --runs all: of a program that is run, give a number"),
    (["check", "--baseline", "missing.json", "--", "/nonexistent/program"], "missing.json: No such file or directory"),
    (["baseline", "-o", "b", "--", "/nonexistent/program"], "/nonexistent/program: cannot be run: No such file or directory"),
])
def test_what_is_not_understood_is_one_line(kmemshim, words, says):
    done = kmemshim(*words)

    assert done.returncode in (USAGE, UNUSABLE) and done.stdout == ""
    assert done.stderr.startswith(f"kmemshim: {says}") and done.stderr.count("\n") == 1, done.stderr
