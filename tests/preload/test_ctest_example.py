"""examples/ci/ctest, as it stands: tests pass, a planted leak fails and is named, and without the command they are ordinary tests."""
import re
import shutil

import pytest

import harness

PROJECT = harness.EXAMPLES / "ci" / "ctest"

pytestmark = pytest.mark.skipif(not shutil.which("ctest"), reason="needs cmake (Debian: cmake)")


@pytest.fixture
def ctest(tmp_path):
    shutil.copytree(PROJECT, tmp_path / "project")

    def run(*definitions, kmemshim=harness.BUILD / "kmemshim"):
        build = tmp_path / "build"
        made = harness.run(["cmake", "-S", tmp_path / "project", "-B", build, f"-DKMEMSHIM={kmemshim}",
                            f"-DKMEMSHIM_INCLUDE={harness.ROOT / 'include'}", *definitions])
        if made.returncode != 0:
            return made
        harness.ok(harness.run(["cmake", "--build", build]))
        done = harness.run(["ctest", "--test-dir", build, "--output-on-failure"])
        done.configured = made.stdout
        return done
    return run


def test_the_tests_pass_and_with_a_leak_in_each_both_fail(ctest):
    done = ctest()
    assert done.returncode == 0 and "100% tests passed, 0 tests failed out of 2" in done.stdout, done.stdout
    done = ctest("-DFORGETS=ON")
    assert done.returncode == 8 and "0% tests passed, 2 tests failed out of 2" in done.stdout, done.stdout
    assert re.search(r"FAIL +live +total +736 KiB +64\.0 KiB +ring_test\.c:22 message", done.stdout), done.stdout
    kept = re.search(r"FAIL +step +total +(\d\.\d) KiB +1\.0 KiB +ring_test\.c:22 message", done.stdout)
    assert kept and 3.5 < float(kept[1]) < 4.5, done.stdout  # a message in each round
    assert re.search(r"FAIL +live +total +\S+ MiB +256 KiB +words_test\.cc:16 ", done.stdout), done.stdout


def test_a_test_that_fails_by_itself_fails(ctest, tmp_path):
    (tmp_path / "project" / "ring_test.c").write_text("int main(void) { return 3; }\n")
    done = ctest()
    assert done.returncode == 8 and "1 tests failed out of 2" in done.stdout, done.stdout


def test_without_the_command_they_are_ordinary_tests(ctest):
    done = ctest(kmemshim="KMEMSHIM-NOTFOUND")
    if "kmemshim: not found" not in done.configured:
        pytest.skip("kmemshim is installed here")
    assert done.returncode == 0 and "100% tests passed" in done.stdout


@pytest.mark.parametrize("call, words", [
    ("kmemshim_add_test(NAME x COMMAND ring_test)", "x has no limit"), ("kmemshim_add_test(COMMAND ring_test PEAK 1M)", "wanted NAME and COMMAND"),
    ("kmemshim_add_test(NAME x COMMAND ring_test PAEK 1M)", "x has no limit")])
def test_a_call_that_is_wrong_is_told(ctest, tmp_path, call, words):
    with open(tmp_path / "project" / "CMakeLists.txt", "a") as lists:
        lists.write(call + "\n")
    done = ctest()
    assert done.returncode == 1 and words in " ".join(done.stderr.split()), done.stderr


def test_a_limit_without_a_unit_is_told_by_its_test(ctest, tmp_path):
    lists = tmp_path / "project" / "CMakeLists.txt"
    lists.write_text(lists.read_text().replace('PEAK "4 MiB" LIVE "64 KiB" PER', 'PEAK "4" LIVE "64 KiB" PER'))
    done = ctest()
    assert done.returncode == 8 and "budgets.yml:3" in done.stdout, done.stdout
