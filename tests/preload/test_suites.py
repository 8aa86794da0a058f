"""Other people's test-suites have the same outcomes under the shim: CPython's own, and NumPy's core."""
import json

import pytest

import harness


def suite_outcomes(python, modules, env, folder):
    folder.mkdir(exist_ok=True)
    done = harness.run([python, harness.HERE / "cpython_outcomes.py", *modules], env, timeout=600, cwd=folder)
    assert done.stdout.strip(), f"{done.returncode}: {done.stderr[-2000:]}"
    return json.loads(done.stdout.splitlines()[-1])


def differences(plain, watched):
    """Tests whose success differs; the texts of failures may hold addresses."""
    return {test: (plain.get(test), watched.get(test)) for test in plain.keys() | watched.keys()
            if (plain.get(test, "absent").split()[0]) != (watched.get(test, "absent").split()[0])}


@pytest.mark.parametrize("module", ["test_gc", "test_threading", "test_subprocess", "test_mmap"])
def test_cpython_suite_has_the_same_outcomes(module, out, tmp_path):
    python = harness.find_python(f"test.{module}")
    if python is None:
        pytest.skip("no interpreter with its own tests: apt-get install libpython3.11-testsuite")
    plain = suite_outcomes(python, [f"test.{module}"], harness.plain_env(), tmp_path / "plain")
    watched = suite_outcomes(python, [f"test.{module}"], harness.shim_env(out), tmp_path / "watched")

    assert sum(outcome == "ok" for outcome in plain.values()) > 10
    different = differences(plain, watched)
    if different:  # some of these tests race: what differs must differ twice
        again = suite_outcomes(python, [f"test.{module}"], harness.shim_env(out), tmp_path / "again")
        different = {test: each for test, each in different.items() if test in differences(plain, again)}
    assert not different


# The parts that are about memory here, all of it with the frameworks.
NUMPY_SUITES = ["test_multiarray.py", "test_mem_overlap.py", "test_mem_policy.py", "test_umath.py"]


@pytest.mark.parametrize("part", NUMPY_SUITES + [pytest.param("", marks=pytest.mark.framework, id="all")])
def test_numpy_core_suite_has_the_same_outcomes(part, out, tmp_path):
    python = harness.find_python("numpy", "pytest", "hypothesis")
    if python is None:
        pytest.skip("no interpreter with numpy, pytest and hypothesis")
    core = harness.run([python, "-c", "import numpy.core.tests; print(list(numpy.core.tests.__path__)[0])"]).stdout.strip()

    def outcomes(env):
        done = harness.run([python, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-W", "ignore", "--tb=no",
                            "-m", "not slow", "-o", "addopts=", f"{core}/{part}"], env, timeout=600, cwd=tmp_path)
        lines = [line.split(" - ")[0] for line in done.stdout.splitlines()
                 if line.startswith(("PASSED", "FAILED", "ERROR", "XFAIL", "XPASS"))]
        return done.returncode, sorted(lines)

    plain = outcomes(harness.plain_env())
    watched = outcomes(harness.shim_env(out))
    assert len(plain[1]) >= 9, plain
    assert watched == plain
