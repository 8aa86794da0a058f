"""gpu_check.py, over the doubles: it says ok where the sums are right, WRONG where they are not, and always comes to an end."""
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "preload"), str(HERE)]
import gpu_check  # noqa: E402
import harness  # noqa: E402

DOUBLES = harness.BUILD / "tests" / "cuda" / "lib"


def check(*words, build=harness.BUILD, libraries=DOUBLES, **more):
    """Its exit status; of each row the verdict and what is said; the last line."""
    done = harness.run([sys.executable, HERE / "gpu_check.py", "--build", build, *words], harness.plain_env(LD_LIBRARY_PATH=libraries, **more))
    assert done.stderr == ""
    head, *rows, last = done.stdout.splitlines()
    assert head.split() == "what verdict expected | recorded".split()
    found = [re.fullmatch(r"(.+?) +(ok|WRONG|skipped) +(.*)", row).groups() for row in rows]
    return done.returncode, {name: (verdict, text) for name, verdict, text in found}, last


def of_frameworks(name):
    return name.startswith(("torch", "JAX", "CuPy", "cost"))


def test_all_that_needs_no_device_is_ok():
    """Two blocks of each kind are alive, and three were allocated; the driver says so too where it can."""
    status, rows, last = check()

    assert (status, rows.keys() > gpu_check.KINDS.keys()) == (0, True), rows
    assert {verdict for name, (verdict, _) in rows.items() if not of_frameworks(name)} == {"ok"}, rows
    assert {verdict for name, (verdict, _) in rows.items() if of_frameworks(name)} == {"skipped"}, rows
    live = sum(gpu_check.KEPT)
    for kind, (domain, knows, _, _) in gpu_check.KINDS.items():
        recorded = f"{domain} live {live}; {domain} allocated {live + gpu_check.RELEASED}"
        assert rows[kind][1] == f"{recorded}{f'; driver {live}' if knows != gpu_check.nobody else ''} | {recorded}"
    skipped = sum(map(of_frameworks, rows))
    assert last == f"{len(rows) - skipped} ok, 0 WRONG, {skipped} skipped"


@pytest.mark.parametrize("kind", ["cudaMalloc", "cudaMallocFromPoolAsync", "cudaHostRegister", "cudaGraphAddMemAllocNode", "cuMemCreate"])
def test_a_sum_that_is_wrong_is_told(kind):
    """A block more was allocated than the program says."""
    status, rows, _ = check("--plant", kind, kind, "a context alone")

    assert (status, rows[kind][0], rows["a context alone"][0]) == (1, "WRONG", "ok")
    assert rows[kind][1].endswith(f" live {sum(gpu_check.KEPT) + gpu_check.KEPT[0]}; {gpu_check.KINDS[kind][0]} allocated "
                                  f"{sum(gpu_check.KEPT) + gpu_check.KEPT[0] + gpu_check.RELEASED}")


def other_build(tmp_path, text):
    """The command, and another library."""
    (tmp_path / "library.c").write_text(text)
    harness.compile_c(tmp_path / "library.c", tmp_path / "libkmemshim.so", "-shared", "-fPIC")
    (tmp_path / "kmemshim").symlink_to(harness.KMEMSHIM)
    return tmp_path


def test_a_library_that_does_not_record_is_told(tmp_path):
    status, rows, _ = check("cudaMalloc", "SIGKILL at any moment", build=other_build(tmp_path, "int nothing;\n"))

    assert (status, [verdict for verdict, _ in rows.values()]) == (1, ["WRONG", "WRONG"])


def test_a_library_that_hangs_is_told(tmp_path):
    hangs = '#include <unistd.h>\n__attribute__((constructor)) static void\nstart(void)\n{\n\tfor (;;)\n\t\tpause();\n}\n'
    status, rows, _ = check("--seconds", "1", "cudaMalloc", "SIGKILL at any moment", build=other_build(tmp_path, hangs))

    assert (status, rows["cudaMalloc"]) == (1, ("WRONG", "AssertionError: the program did not end in 1.0 s"))
    assert rows["SIGKILL at any moment"][0] == "WRONG"


@pytest.mark.parametrize("more, why", [({"KMEMDOUBLE_INIT": 100}, "no CUDA device: cudaSetDevice = 100"),
                                       ({"KMEMDOUBLE_RESULT": 801}, "cudaMalloc: not supported here")], ids=str)
def test_a_check_that_could_check_nothing_is_no_success(more, why):
    assert check("cudaMalloc", **more) == (1, {"cudaMalloc": ("skipped", why)}, "0 ok, 0 WRONG, 1 skipped")


def test_what_others_take_of_the_device_at_the_same_time_is_not_ours():
    assert check("cudaMalloc", "cuMemCreate", KMEMDOUBLE_CAPACITY=1 << 30, KMEMDOUBLE_OTHERS=1 << 29)[0] == 0
