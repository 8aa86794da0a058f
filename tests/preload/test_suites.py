"""Other people's test-suites have the same outcomes under the shim: CPython's own, and NumPy's core."""
import functools
import json
import tempfile

import pytest

import harness


def suite_outcomes(python, modules, folder, env):
    done = harness.run([python, harness.HERE / "cpython_outcomes.py", *modules], env, timeout=600,
                       cwd=tempfile.mkdtemp(dir=folder))
    assert done.stdout.strip(), f"{done.returncode}: {done.stderr[-2000:]}"
    return json.loads(done.stdout.splitlines()[-1])


def differences(plain, watched):
    """Tests whose success differs; the texts of failures may hold addresses."""
    pairs = {test: tuple(outcomes.get(test, "absent").split()[0] for outcomes in (plain, watched)) for test in plain.keys() | watched.keys()}
    return {test: pair for test, pair in pairs.items() if pair[0] != pair[1]}


def check_same(outcomes, plain_env, watched_env):
    """Some tests race, or look at how much memory is free: a difference is one that is there twice."""
    plain = outcomes(plain_env)
    different = differences(plain, outcomes(watched_env))
    if different:
        again = differences(outcomes(plain_env), outcomes(watched_env))
        different = {test: pair for test, pair in different.items() if again.get(test) == pair}
    assert not different
    return plain


@pytest.mark.parametrize("module", ["test_gc", "test_threading", pytest.param("test_subprocess", marks=pytest.mark.long), "test_mmap"])
def test_cpython_suite_has_the_same_outcomes(module, out, tmp_path):
    python = harness.find_python(f"test.{module}")
    if python is None:
        pytest.skip("no interpreter with its own tests: apt-get install libpython3.11-testsuite")
    plain = check_same(functools.partial(suite_outcomes, python, [f"test.{module}"], tmp_path), harness.plain_env(), harness.shim_env(out))

    assert sum(outcome == "ok" for outcome in plain.values()) > 10


# The parts that are about memory here; all of it takes long.
NUMPY_SUITES = ["test_mem_overlap.py", "test_mem_policy.py"] + [
    pytest.param(part, marks=pytest.mark.long) for part in ("test_multiarray.py", "test_umath.py")]


@pytest.mark.parametrize("part", NUMPY_SUITES + [pytest.param("", marks=pytest.mark.long, id="all")])
def test_numpy_core_suite_has_the_same_outcomes(part, out, tmp_path):
    python = harness.find_python("numpy", "pytest", "hypothesis")
    if python is None:
        pytest.skip("no interpreter with numpy, pytest and hypothesis")
    core = harness.run([python, "-c", "import numpy.core.tests; print(list(numpy.core.tests.__path__)[0])"]).stdout.strip()

    def outcomes(env):
        done = harness.run([python, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-W", "ignore", "--tb=no",
                            "-m", "not slow", "-o", "addopts=", f"{core}/{part}"], env, timeout=600, cwd=tmp_path)
        lines = [line.split(" - ")[0].split(" ", 1) for line in done.stdout.splitlines()
                 if line.startswith(("PASSED", "FAILED", "ERROR", "XFAIL", "XPASS"))]
        return {"exit status": str(done.returncode), **{test: outcome for outcome, test in lines}}

    assert len(check_same(outcomes, harness.plain_env(), harness.shim_env(out))) >= 10
