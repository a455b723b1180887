"""``pytest --depyf``: count what each test compiles, and compare it with a baseline.

Pytest loads this module whenever it starts (entry point ``pytest11``). Without an option of its own it only adds the
options: nothing else of depyf is imported, and PyTorch is not.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Dict, Iterator, List, Optional, Tuple

import pytest

if TYPE_CHECKING:
    from depyf.dynamo.questions.shadow.question import Shadow
    from depyf.dynamo.questions.watch import Watch
    from depyf.running.baseline import BaselineSummary, Counts, TestResult

_PROPERTY = "depyf"
_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("depyf", "torch.compile, counted by depyf")
    group.addoption(
        "--depyf",
        action="store_true",
        help="count graph breaks, recompiles, graphs and fallbacks of each test, and summarize them; in the file that "
        f"{_STEP_SUMMARY} names, too",
    )
    group.addoption(
        "--depyf-baseline",
        metavar="FILE",
        help="fail tests whose numbers are worse than those of this file (with --depyf-baseline-update: write it)",
    )
    group.addoption(
        "--depyf-baseline-update",
        action="store_true",
        help="write the numbers of the tests that pass into the file of --depyf-baseline; other tests in it are kept",
    )
    group.addoption(
        "--depyf-reset",
        action="store_true",
        help="call torch._dynamo.reset() before each test, so that its numbers do not depend on the tests before it",
    )
    group.addoption(
        "--depyf-shadow",
        metavar="N",
        type=int,
        help="check one in N calls of compiled code in each test against eager mode; a test in which it is wrong fails",
    )
    group.addoption(
        "--depyf-format",
        choices=("text", "github"),
        default="text",
        help="github: also print an annotation of GitHub Actions for each line with a graph break, a recompile or a "
        "fallback; with --depyf-baseline for the tests that got worse",
    )
    group.addoption("--depyf-summary", metavar="FILE", help="append a summary in Markdown to this file")


def pytest_configure(config: pytest.Config) -> None:
    """Start counting, if an option asks for it."""
    option = config.getoption
    names = ("depyf", "depyf_baseline", "depyf_baseline_update", "depyf_reset", "depyf_summary")
    if any(option(name) for name in names) or option("depyf_format") == "github":
        config.pluginmanager.register(_Counting(config), "depyf-counting")
    every = option("depyf_shadow")
    if every is not None:
        if every < 1:
            raise pytest.UsageError("--depyf-shadow needs a number of calls, one of which is checked")
        config.pluginmanager.register(_Shadowing(every), "depyf-shadowing")


class _Shadowing:
    """Checks compiled code while each test runs. A test that imports the compiler itself is checked from there on."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._findings: List[str] = []

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Check while the test runs."""
        from depyf.running.torch_import import when_compiler_is_imported

        self._findings = []
        begun: List[Shadow] = []
        stop_waiting = when_compiler_is_imported(lambda: self._begin(begun))
        try:
            yield
        finally:
            stop_waiting()
            for seen in begun:
                seen.__exit__(None, None, None)

    def _begin(self, begun: List[Shadow]) -> None:
        from depyf.base.asynchronous import synchronous

        try:
            from depyf.dynamo.questions.shadow.question import shadow

            seen = shadow(self._every, callback=lambda found: self._findings.append(str(found)))
            seen.__enter__()
            begun.append(seen)
        except synchronous() as error:
            self._findings.append(f"depyf.shadow can't check: {type(error).__name__}: {error}")

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Fail a test that passed with compiled code that is wrong."""
        outcome = yield
        report = outcome.get_result()  # type: ignore[attr-defined]
        if call.when == "call" and self._findings and report.outcome == "passed":
            report.outcome = "failed"
            report.longrepr = "\n".join(["depyf shadow:", *self._findings])


class _Counting:
    """Counts for each test, from the import of the compiler on."""

    def __init__(self, config: pytest.Config) -> None:
        from depyf.running.baseline import BaselineError, read_baseline
        from depyf.running.torch_import import when_compiler_is_imported

        self._is_worker = hasattr(config, "workerinput")  # of pytest-xdist, whose controller writes the files
        self._results: Dict[str, TestResult] = {}
        self._problems: List[str] = []
        self._is_imported = self._is_running = False
        self._watched: Optional[Watch] = None
        self._result: Optional[TestResult] = None
        self._resets = bool(config.getoption("depyf_reset"))
        self._path: Optional[str] = config.getoption("depyf_baseline")
        self._updates = bool(config.getoption("depyf_baseline_update"))
        self._annotates = config.getoption("depyf_format") == "github"
        self._root = os.environ.get("GITHUB_WORKSPACE") or config.invocation_params.dir
        self._summaries = [config.getoption("depyf_summary"), os.environ.get(_STEP_SUMMARY)]
        if self._updates and self._path is None:
            raise pytest.UsageError("--depyf-baseline-update needs --depyf-baseline FILE")
        self._baseline: Optional[Dict[str, Counts]] = None
        if self._path is not None:
            self._path = os.path.abspath(self._path)  # tests may change the directory
            try:
                if not self._updates or os.path.exists(self._path):
                    self._baseline = read_baseline(self._path)
            except BaselineError as error:
                raise pytest.UsageError(f"depyf: {error}") from error
        self._stop_waiting = when_compiler_is_imported(self._imported)

    def _imported(self) -> None:
        self._is_imported = True
        if self._is_running:  # a test has imported it
            self._begin()

    def _begin(self) -> None:
        from depyf.base.asynchronous import synchronous

        try:
            from depyf.dynamo.questions.watch import watch

            watched = watch(lambda _: None)
            watched.__enter__()
            self._watched = watched
        except synchronous() as error:
            self._note(f"nothing is counted: {type(error).__name__}: {error}")

    def _note(self, problem: str) -> None:
        if problem not in self._problems:
            self._problems.append(problem)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Reset Dynamo, so that it forgets what earlier tests have compiled, if an option asks for it."""
        if self._resets and self._is_imported:
            from depyf.base.asynchronous import synchronous

            try:
                from depyf.dynamo.hooks.private_names import DYNAMO_RESET

                reset = DYNAMO_RESET.find()
                if reset is not None:
                    reset()
            except synchronous() as error:
                self._note(f"Dynamo could not be reset: {type(error).__name__}: {error}")

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        """Count while the test runs; compilations of its fixtures are not counted."""
        self._result, self._is_running = None, True
        if self._is_imported:
            self._begin()
        try:
            yield
        finally:
            self._is_running = False
            watched, self._watched = self._watched, None
            if watched is not None:
                watched.__exit__(None, None, None)
                self._result = _result_of(watched)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """Put the counts into the report, and fail a test that got worse."""
        result = self._result if call.when == "call" else None
        if result is not None:
            item.user_properties.append((_PROPERTY, result.to_json()))
        outcome = yield
        report = outcome.get_result()  # type: ignore[attr-defined]
        before = (self._baseline or {}).get(item.nodeid)
        if result is not None and before is not None and not self._updates and report.outcome == "passed":
            from depyf.running.baseline import worse

            words = worse(before, result.counts)
            if words:
                report.outcome = "failed"
                report.longrepr = "\n".join(
                    [f"depyf: worse than the baseline: {'; '.join(words)}", *filter(None, [result.details])]
                )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Collect the counts of this process or its workers for tests that have ended, in whatever way."""
        if report.when == "call":
            from depyf.running.baseline import TestResult

            for name, value in report.user_properties:
                if name == _PROPERTY:
                    result = TestResult.from_json(str(value))
                    if report.outcome != "passed" and not self._failed_here(report.nodeid, result):
                        result = replace(result, unfinished=report.outcome)
                    self._results[report.nodeid] = result

    def _failed_here(self, test: str, result: TestResult) -> bool:
        from depyf.running.baseline import worse

        before = (self._baseline or {}).get(test)
        return before is not None and bool(worse(before, result.counts))

    def _passed(self) -> List[Tuple[str, TestResult]]:
        """Return the results of the tests that have passed, or that failed because of their counts."""
        return [(test, each) for test, each in self._results.items() if not each.unfinished]

    def _summary(self) -> BaselineSummary:
        from depyf.running.baseline import BaselineSummary

        return BaselineSummary(self._results, None if self._updates else self._baseline)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the baseline and the Markdown."""
        self._stop_waiting()
        if self._is_worker:
            return
        from depyf.base.asynchronous import synchronous
        from depyf.running.baseline import write_baseline

        if self._updates and self._path is not None:
            now = {**(self._baseline or {}), **{test: each.counts for test, each in self._passed()}}
            try:
                write_baseline(self._path, now)
            except synchronous(OSError) as error:
                self._note(f"the baseline is not written: {error}")
                session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED
        for path in dict.fromkeys(filter(None, self._summaries)):
            try:
                with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(self._summary().markdown() + "\n")
            except synchronous(OSError) as error:
                self._note(f"the summary is not written: {error}")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the counts."""
        from depyf.base.visible import visible

        terminalreporter.section("depyf")
        lines = list(self._summary().lines()) if self._results else ["no test has compiled anything"]
        for line in lines:
            terminalreporter.write_line(visible(line), red=line.startswith("worse: "))
        if self._annotates:
            for line in self._summary().annotations(str(self._root)):
                terminalreporter.write_line(line)
        if self._updates and not any(each.startswith("the baseline") for each in self._problems):
            terminalreporter.write_line(f"the baseline is written: {visible(str(self._path))}")
        for problem in self._problems:
            terminalreporter.write_line(visible(f"! {problem}"), red=True)


def _result_of(watched: Watch) -> TestResult:
    from depyf.answers.expectation import NAMES, Counted, described
    from depyf.running.baseline import TestResult

    counted = Counted(tuple(watched.happened), watched.graphs)
    happened = [each for name in NAMES if name != "graphs" for each in counted.relevant(name)]
    lines = tuple(dict.fromkeys(map(str, happened)))
    known = [(each, each.place or (None, 0)) for each in happened]
    places = [(path, line, each.kind, f"{each.words}. {each.advice}".rstrip(". ")) for each, (path, line) in known]
    return TestResult(counted.counts, lines, "\n".join(described(happened)).strip(), tuple(places))
