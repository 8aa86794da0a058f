"""CUDA that does not start: the verdict says it where the program failed, and nothing where CUDA works or was not asked."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "preload"))
import harness  # noqa: E402

LIBRARIES = harness.BUILD / "tests" / "cuda" / "lib"
PROGRAM = """
#include <stdlib.h>
#include <string.h>
int cudaGetDeviceCount(int *count);
int cudaMalloc(void **addr, size_t bytes);
int
main(int words, char **word)
{
	int count;
	void *addr;
	(void)word;
	memset(malloc(60 << 20), 1, 60 << 20);
	return (words > 1 ? cudaGetDeviceCount(&count) : cudaMalloc(&addr, 100)) != 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("start")
    (folder / "start.c").write_text(PROGRAM)
    harness.compile_c(folder / "start.c", folder / "start", "-O0", "-Wl,--no-as-needed", f"-L{LIBRARIES}", "-l:libcudart.so.13")
    return folder / "start"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def verdict(argv, out, **settings):
    done = harness.run([harness.KMEMSHIM, "run", "--", *argv], harness.plain_env(KMEMSHIM_OUT=out, LD_LIBRARY_PATH=LIBRARIES, **settings))
    return done, harness.report("report", out)["verdict"]


@pytest.mark.parametrize("words", [["count"], []])
@pytest.mark.parametrize("settings, says", [
    ({"KMEMDOUBLE_TOO_OLD": 1}, "answered error 35: there is no driver, or it is older than the CUDA runtime needs)"),
    ({"KMEMDOUBLE_INIT": 803}, "(cuInit answered error 803: the driver and its library are of different versions)"),
    ({"KMEMDOUBLE_INIT": 100}, "(cuInit answered error 100: there is no device that it may use)")])
def test_a_driver_that_does_not_fit_is_told(program, words, settings, says, out):
    done, told = verdict([program, *words], out, **settings)
    assert done.returncode == 1 and told["cause"] == "failed"
    assert "CUDA did not start (" in told["text"] and says in told["text"], told["text"]
    assert "cuda-not-started" in [finding["kind"] for finding in told["findings"]] and "nvidia-smi" in told["next"]
    assert "CUDA did not start" in harness.unwrapped(done.stderr)  # at a glance, too


def test_a_driver_that_was_looked_up_is_told(out):
    text = ("import ctypes, sys\nkept = [bytearray(1 << 20) for _ in range(60)]\n"
            "sys.exit(ctypes.CDLL('libcuda.so.1').cuInit(0) != 0)")
    done, told = verdict(["/usr/bin/python3", "-c", text], out, KMEMDOUBLE_INIT=803)
    assert done.returncode == 1 and "cuInit answered error 803" in told["text"]


@pytest.mark.parametrize("settings, status", [({}, 0), ({"KMEMDOUBLE_CAPACITY": 10}, 1), ({"KMEMDOUBLE_INIT": 999}, 1)])
def test_what_is_no_matter_of_the_driver_is_not(program, settings, status, out):
    done, told = verdict([program], out, **settings)
    assert done.returncode == status and "did not start" not in told["text"]
