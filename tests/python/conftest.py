"""The table that ends the run: interpreters and what they were found to do."""
import os
import sys

import interpreters

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "preload"))
from harness import as_users_run_it  # noqa: E402, F401 - a fixture


def pytest_terminal_summary(terminalreporter):
    if interpreters.rows:
        terminalreporter.section("interpreters")
    for row in interpreters.rows:
        terminalreporter.write_line(row)
