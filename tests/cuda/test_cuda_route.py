"""What kmemshim doctor says of CUDA, before a program runs: over our own doubles, and without loading any of them."""
import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "preload"))
import harness  # noqa: E402
from test_doctor import OK, findings  # noqa: E402
from test_doctor_machine import one  # noqa: E402

PROGRAMS = harness.BUILD / "tests" / "cuda"
DOUBLES = PROGRAMS / "lib"
PYTHON = "/usr/bin/python3"
HAS_DRIVER = "libcuda.so.1 " in harness.run(["/sbin/ldconfig", "-p"]).stdout
HAS_DEVICE = os.path.exists("/dev/nvidiactl") or os.path.exists("/dev/dxg")


def found_with(tmp_path, *words, libraries=DOUBLES, **more):
    env = harness.plain_env(LD_LIBRARY_PATH=libraries, **more)
    if "CUDA_VISIBLE_DEVICES" not in more:
        env.pop("CUDA_VISIBLE_DEVICES", None)
    return findings("-o", tmp_path / "out", *words, status=OK, env=env)


@pytest.mark.parametrize("program, said", [
    ("runtime_shared", f"it uses CUDA's runtime as a library, {DOUBLES}/libcudart.so.13: recorded"),
    ("runtime_static", "it has CUDA's runtime linked into it: recorded where that calls the driver"),
    ("linked", "it calls CUDA's driver itself: recorded"), ("dlsym", "it calls CUDA's driver itself: recorded"),
])
def test_the_way_of_a_program(program, said, tmp_path):
    found = found_with(tmp_path, PROGRAMS / program)
    assert one(found, program) == {"level": "ok", "where": program, "what": said, "next": ""}
    row = one(found, "CUDA driver")
    assert str(DOUBLES / "libcuda.so.1") in row["what"]
    assert HAS_DEVICE or (row["level"], row["what"].endswith("no device (/dev/nvidiactl)")) == ("note", True)


def test_a_program_without_cuda(tmp_path):
    assert not [row for row in found_with(tmp_path, "/bin/ls") if "CUDA" in row["where"] + row["what"]]


def test_no_driver(tmp_path):
    if HAS_DRIVER:
        pytest.skip("this machine has one")
    row = one(found_with(tmp_path, PROGRAMS / "dlsym", libraries=tmp_path), "CUDA driver")
    assert row["level"] == "note" and "does not find libcuda.so.1" in row["what"] and "--gpus all" in row["next"]


def test_a_driver_that_is_for_the_linker(tmp_path):
    (tmp_path / "stubs").mkdir()
    shutil.copy(DOUBLES / "libcuda.so.1", tmp_path / "stubs")
    row = one(found_with(tmp_path, PROGRAMS / "dlsym", libraries=tmp_path / "stubs"), "CUDA driver")
    assert row["level"] == "note" and "only for linking" in row["what"]


@pytest.mark.parametrize("devices, is_told", [("", True), ("-1", True), ("0,1", False)])
def test_devices_that_are_hidden(devices, is_told, tmp_path):
    found = found_with(tmp_path, PROGRAMS / "linked", CUDA_VISIBLE_DEVICES=devices)
    assert len([row for row in found if row["where"] == "CUDA_VISIBLE_DEVICES"]) == is_told


# --- frameworks of a Python ---------------------------------------------------------------------

@pytest.fixture
def packages(tmp_path):
    """A folder of packages. Who imports one of them fails."""
    def add(name):
        folder = tmp_path / "packages" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text("raise SystemExit('imported')\n")
        return folder
    return add


def library(folder, name, text, *flags):
    folder.mkdir(exist_ok=True)
    (folder / "source.c").write_text(text)
    harness.ok(harness.run(["gcc", "-shared", "-fPIC", folder / "source.c", "-o", folder / name, *flags]))
    return folder / name


def test_a_framework_with_the_shared_runtime(packages, tmp_path):
    folder = packages("torch") / "lib"
    folder.mkdir()
    for name in ("libc10_cuda.so", "libc10.so"):
        shutil.copy(PROGRAMS / "torch2" / name, folder)
    found = found_with(tmp_path, PYTHON, PYTHONPATH=tmp_path / "packages")
    assert one(found, "torch")["what"] == f"libc10_cuda.so uses CUDA's runtime as a library, {DOUBLES}/libcudart.so.13: recorded"
    assert "libcuda.so.1" in one(found, "CUDA driver")["what"]


def test_a_framework_with_a_runtime_of_its_own(packages, tmp_path):
    library(packages("jaxlib") / "cuda", "xla_cuda_plugin.so", 'const char *kept[] = { "libcuda.so.1", "cudaMalloc" };\n')
    found = found_with(tmp_path, PYTHON, PYTHONPATH=tmp_path / "packages")
    assert one(found, "jaxlib")["what"] == "xla_cuda_plugin.so has CUDA's runtime linked into it: recorded where that calls the driver"


def test_a_framework_whose_runtime_is_missing(packages, tmp_path):
    folder = packages("torch") / "lib"
    runtime = library(folder, "libcudart.so.99", "int cudaMalloc(void) { return 0; }\n", "-Wl,-soname,libcudart.so.99")
    library(folder, "libtorch_cuda.so", "int cudaMalloc(void);\nint use(void) { return cudaMalloc(); }\n", runtime)
    runtime.unlink()
    row = one(found_with(tmp_path, PYTHON, PYTHONPATH=tmp_path / "packages"), "torch")
    assert (row["level"], row["what"]) == ("note", "libtorch_cuda.so needs libcudart.so.99, which the loader does not find")


def test_a_framework_without_cuda(packages, tmp_path):
    library(packages("torch") / "lib", "libtorch_cpu.so", "int nothing;\n")
    assert not [row for row in found_with(tmp_path, PYTHON, PYTHONPATH=tmp_path / "packages") if row["where"] in ("torch", "CUDA driver")]
