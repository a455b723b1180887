"""Run unit tests and doctests and record how each ended. It imports nothing of depyf.

    python tools/others_tests/record_outcomes.py OUTCOMES.json FOLDER MODULE [TEST ...]

Runs the doctests of ``MODULE`` and the unit tests of every ``TEST``. With a ``FOLDER`` (``-``: none), ``MODULE`` must
be imported from there. The file maps every test to its outcome.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import json
import os
import sys
import unittest
from typing import Any, Dict, List


class Recorder(unittest.TestResult):
    """The outcome of every test by its id."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: Dict[str, str] = {}

    def _failed(self, test: Any, how: str, err: Any) -> None:
        self.outcomes[test.id()] = f"{how}: {err[0].__name__}: {err[1]}"[:500]

    def addSuccess(self, test: unittest.TestCase) -> None:
        self.outcomes.setdefault(test.id(), "passed")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._failed(test, "failed", err)

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self._failed(test, "error", err)

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self.outcomes[test.id()] = "skipped"

    def addExpectedFailure(self, test: unittest.TestCase, err: Any) -> None:
        self.outcomes[test.id()] = "expected failure"

    def addUnexpectedSuccess(self, test: unittest.TestCase) -> None:
        self.outcomes[test.id()] = "unexpected success"

    def addSubTest(self, test: unittest.TestCase, subtest: unittest.TestCase, err: Any) -> None:
        if err is not None:
            self._failed(subtest, "failed", err)


def run_tests(module: str, tests: List[str]) -> Dict[str, str]:
    """Return every outcome. Tests that need the network, much memory or a display do not run, as with ``python -m
    test``."""
    with contextlib.suppress(ImportError):
        from test import support

        support.use_resources = []
    recorder = Recorder()
    suite = unittest.TestSuite()
    imported = importlib.import_module(module)
    with contextlib.suppress(ValueError):  # it has no doctests
        suite.addTests(doctest.DocTestSuite(imported, optionflags=doctest.ELLIPSIS))
    for test in tests:
        suite.addTests(unittest.defaultTestLoader.loadTestsFromName(test))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        suite.run(recorder)
    return recorder.outcomes


def main() -> int:
    file, folder, module, *tests = sys.argv[1:]
    # The tests must not import from this script's own folder.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != os.path.dirname(os.path.abspath(__file__))]
    origin = getattr(importlib.import_module(module), "__file__", None) or ""
    if folder != "-" and not os.path.abspath(origin).startswith(os.path.join(os.path.abspath(folder), "")):
        raise SystemExit(f"{module} was imported from {origin}, not from {folder}")
    outcomes = run_tests(module, tests)
    with open(file, "w", encoding="utf-8") as handle:
        json.dump(outcomes, handle)
    return 0


if __name__ == "__main__":
    # Tests start threads and leave some running; they are no longer needed.
    status = main()
    sys.stdout.flush()
    os._exit(status)
