"""Fixtures of the notebook tests; they run in the environment `tools/venv notebook`, which has what a server and a browser need."""
import contextlib
import os
import signal
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "preload"))
import harness  # noqa: E402
import notebooks  # noqa: E402


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A home with one recorded kernel, "recorded", and nothing else of Jupyter's."""
    return notebooks.Place(tmp_path, monkeypatch)


@pytest.fixture
def server(place):
    with notebooks.server(place) as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    if not os.path.exists(notebooks.CHROMIUM):
        pytest.skip(f"{notebooks.CHROMIUM} is missing: tools/install-deps notebook")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=notebooks.CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@contextlib.contextmanager
def group_of(limit):
    with harness.memory_group(limit) as group:
        yield group
        for pid in (group / "cgroup.procs").read_text().split():  # kernels that their server left behind
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        notebooks.wait_for(lambda: not (group / "cgroup.procs").read_text())


@pytest.fixture
def small_group():
    """The memory cgroup that a kernel may be put into: 300 MiB, without swap."""
    with group_of(300 << 20) as group:
        yield group


@pytest.fixture
def large_group():
    """The same with 600 MiB."""
    with group_of(600 << 20) as group:
        yield group
