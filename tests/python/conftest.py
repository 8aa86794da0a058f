"""The table that ends the run: interpreters and what they were found to do."""

rows = []  # of texts


def pytest_terminal_summary(terminalreporter):
    if rows:
        terminalreporter.section("interpreters")
    for row in rows:
        terminalreporter.write_line(row)
