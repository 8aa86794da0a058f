"""
NVIDIA's own headers and runtimes, as far as they go without a device: those of a toolkit that is installed (CUDA_HOME), and those
of CUDA 11, 12 and 13 from PyPI.
"""
import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "preload"))
import harness  # noqa: E402
import test_cuda  # noqa: E402

HERE = Path(__file__).resolve().parent
CUDA_HOME = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
VERSIONS = ["11", "12", "13"]


def toolkit(*names):
    for name in names:
        if not (CUDA_HOME / name).exists():
            pytest.skip(f"no CUDA toolkit: {CUDA_HOME / name} (CUDA_HOME=)")
    return CUDA_HOME


@pytest.fixture(scope="session")
def wheel():
    """The folder of the runtime of one version: include and lib."""
    def made(version):
        harness.ok(harness.run([harness.ROOT / "tools" / "venv", f"cuda{version}"], harness.plain_env(BUILD=harness.BUILD), timeout=600))
        return next((harness.BUILD / f"venv-cuda{version}").glob("lib/python3*/site-packages/nvidia/*/include")).parent

    return made


def check_prototypes(include):
    harness.ok(harness.run(["g++", "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-isystem", include, HERE / "abi_check.cc"]))


def test_prototypes_are_the_toolkits():
    check_prototypes(toolkit("include/cuda.h", "include/cuda_runtime_api.h") / "include")


@pytest.mark.framework
@pytest.mark.parametrize("version", VERSIONS)
def test_prototypes_are_those_of_each_cuda(version, wheel):
    check_prototypes(wheel(version) / "include")


def check_binding(tmp_path, command, libraries):
    """
    The real runtime stops at a driver that is not NVIDIA's, but only after it has looked everything up: all of it must
    have passed our cuGetProcAddress. The double answers to every name.
    """
    driver = tmp_path / "driver"
    driver.mkdir()
    shutil.copy(test_cuda.DOUBLES / "libcuda.so.1", driver)

    def run(**more):
        return harness.run(command, harness.plain_env(LD_LIBRARY_PATH=f"{driver}:{libraries}", KMEMDOUBLE_GENERIC=1, **more))

    plain = run()
    done = run(LD_PRELOAD=harness.SHIM, KMEMSHIM_OUT=tmp_path / "out", KMEMDOUBLE_LEDGER=tmp_path / "ledger")
    assert (done.returncode, done.stdout) == (plain.returncode, plain.stdout), done.stderr
    double = test_cuda.Double(tmp_path / "ledger")
    assert double.lookups > 300
    assert double.lookups_by_shim == double.lookups
    return done


@pytest.mark.framework
@pytest.mark.parametrize("version", VERSIONS)
def test_the_real_runtime_of_each_cuda_binds_to_our_hooks(version, wheel, tmp_path):
    """By a library that was opened, as Python does."""
    runtime = next((wheel(version) / "lib").glob("libcudart.so.*"))
    program = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).cudaMalloc(ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1000)))"

    assert int(check_binding(tmp_path, [sys.executable, "-c", program, runtime], "").stdout) > 0


@pytest.mark.framework
def test_the_real_pytorch_binds_to_our_hooks(tmp_path):
    """Its build for CUDA: what its runtime looks up passes us, what its allocator tells libc10 is what we export."""
    venv = harness.BUILD / "venv-torch"
    if not (venv / "complete").exists():
        pytest.skip("no PyTorch: tools/venv torch")
    libraries = next(venv.glob("lib/python3*/site-packages/torch/lib"))
    if not (libraries / "libc10_cuda.so").exists():
        pytest.skip("this PyTorch is not built for CUDA")

    def names(path, which):
        lines = harness.run(["nm", "-D", which, path]).stdout.splitlines()
        return {word for line in lines for word in line.split() if "reportMemoryUsageToProfiler" in word or "reportOutOfMemory" in word}

    told = names(libraries / "libc10_cuda.so", "--undefined-only")
    assert len(told) == 2 and told <= names(libraries / "libc10.so", "--defined-only")
    assert told <= names(harness.SHIM, "--defined-only")
    program = "import torch\nprint(torch.cuda.is_available())\ntry:\n    torch.ones(10, device='cuda')\nexcept RuntimeError:\n    print('no')"
    assert check_binding(tmp_path, [venv / "bin" / "python", "-W", "ignore", "-c", program], "").stdout == "False\nno\n"


@pytest.fixture(scope="session")
def nvcc(tmp_path_factory):
    home = toolkit("bin/nvcc")
    folder = tmp_path_factory.mktemp("nvcc")

    def build(source, cudart):
        program = folder / f"{source.stem}_{cudart}"
        harness.ok(harness.run([home / "bin" / "nvcc", "-g", "-cudart", cudart, "-o", program, source]))
        return program

    return build


@pytest.mark.parametrize("program", ["shared", "static"])
def test_the_real_runtime_binds_to_our_hooks(program, nvcc, tmp_path):
    check_binding(tmp_path, [nvcc(harness.EXAMPLES / "cuda_leak.cu", program)], CUDA_HOME / "lib64")


def test_the_cuda_example_reports_its_line(nvcc, tmp_path):
    """Built by nvcc over the real headers and library, run over the doubles."""
    source = harness.EXAMPLES / "cuda_leak.cu"
    program = nvcc(source, "shared")
    done = harness.run([program], harness.plain_env(
        LD_PRELOAD=harness.SHIM, KMEMSHIM_OUT=tmp_path / "out", LD_LIBRARY_PATH=test_cuda.DOUBLES,
        KMEMDOUBLE_LEDGER=tmp_path / "ledger"))

    assert (done.returncode, done.stdout, done.stderr) == (0, "2000 steps\n", "")
    assert test_cuda.recorded(tmp_path / "out") == test_cuda.Double(tmp_path / "ledger").books
    harness.check_expectations(source, tmp_path / "out")
