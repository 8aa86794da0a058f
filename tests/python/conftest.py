"""The table that ends the run: interpreters and what they were found to do."""
import interpreters


def pytest_configure(config):
    config.addinivalue_line("markers", "framework: needs a framework from PyPI (make test-frameworks)")


def pytest_terminal_summary(terminalreporter):
    if interpreters.rows:
        terminalreporter.section("interpreters")
    for row in interpreters.rows:
        terminalreporter.write_line(row)
