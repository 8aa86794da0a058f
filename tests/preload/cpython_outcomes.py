"""Runs unittest modules named on the command line and prints the outcome of every test as JSON, last line."""
import importlib
import json
import sys
import unittest


class Outcomes(unittest.TestResult):
    def __init__(self):
        super().__init__()
        self.seen = {}

    def note(self, test, outcome):
        self.seen[str(test).split("\n")[0]] = outcome

    def addSuccess(self, test):
        self.note(test, "ok")

    def addError(self, test, err):
        self.note(test, f"error {err[0].__name__}: {str(err[1])[:200]}")

    def addFailure(self, test, err):
        self.note(test, f"failure {str(err[1])[:200]}")

    def addSkip(self, test, reason):
        self.note(test, "skipped")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note(test, f"failure {str(err[1])[:200]}")


if __name__ == "__main__":
    outcomes = Outcomes()
    for name in sys.argv[1:]:
        unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name)).run(outcomes)
    sys.stdout.flush()
    print("\n" + json.dumps(outcomes.seen))
