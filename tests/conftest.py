"""Keeps what became of each test in the file that RAN names, for check_cases.py; marks those that selection.py names."""
import os
import re
import signal
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import selection  # noqa: E402

outcomes = {}

# A shell starts what runs in the background with SIGINT ignored, and every program under test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def tmp_path_factory(tmp_path_factory):
    """Lines of source are shown of files that everybody can get at, from the folder on where the reader stands."""
    make, before, base = tmp_path_factory.mktemp, os.getcwd(), tmp_path_factory.getbasetemp()

    def mktemp(*words, **more):
        folder = make(*words, **more)
        folder.chmod(0o755)
        return folder

    tmp_path_factory.mktemp = mktemp
    base.chmod(0o755)
    os.chdir(base)
    yield tmp_path_factory
    os.chdir(before)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        for name, patterns in (("long", selection.LONG), ("quick", selection.QUICK)):
            if any(re.match(pattern, item.nodeid) for pattern in patterns):
                item.add_marker(name)


def pytest_runtest_logreport(report):
    """A test passed when its three phases did; one that failed or was skipped in any of them stays so."""
    if report.outcome == "failed" or outcomes.get(report.nodeid, "passed") == "passed":
        outcomes[report.nodeid] = report.outcome


def pytest_deselected(items):
    outcomes.update((item.nodeid, "long" if item.get_closest_marker("long") else "left out") for item in items)


def pytest_sessionfinish():
    if "RAN" in os.environ:
        lines = "".join(f"{outcome}\t{' '.join(node.split())}\n" for node, outcome in outcomes.items())
        with open(os.environ["RAN"], "ab", buffering=0) as ran:  # one write: others append at the same time
            ran.write(lines.encode())
