"""Fixtures; the work is in harness.py."""
import pytest

import harness
from harness import as_users_run_it  # noqa: F401 - a fixture


def pytest_configure(config):
    for needed in (harness.SHIM, harness.KMEMSHIM):
        if not needed.exists():
            raise pytest.UsageError(f"{needed} is missing: run make first")


@pytest.fixture
def out(tmp_path):
    """The folder of a capture."""
    return tmp_path / "capture"


@pytest.fixture(scope="session")
def numpy_python():
    python = harness.find_python("numpy")
    if python is None:
        pytest.skip("no interpreter with numpy: apt-get install python3-numpy")
    return python


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """Compiles a C file once per session: programs("ledger.c", *flags)."""
    folder = tmp_path_factory.mktemp("programs")
    built = {}

    def build(source, *flags):
        path = harness.HERE / source if (harness.HERE / source).exists() else harness.EXAMPLES / source
        key = (path, flags)
        if key not in built:
            built[key] = harness.compile_c(path, folder / f"{path.stem}{len(built)}", *flags)
        return built[key]

    return build
