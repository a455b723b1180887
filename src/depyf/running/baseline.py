"""The counts of what each test compiles: compared with a baseline file, summarised in text and Markdown."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.expectation import NAMES, WORDS
from depyf.answers.watch import counted
from depyf.base.asynchronous import synchronous
from depyf.base.regular_files import write_whole
from depyf.report.render.annotations import github_annotation, relative_to
from depyf.report.render.markdown_text import code, fenced, html

Counts = Mapping[str, int]
"""By name: ``breaks``, ``recompiles``, ``graphs``, ``fallbacks``."""

_FORMAT = 1
_MOST_TESTS = 50
"""The limit on tests in a summary."""


class BaselineError(Exception):
    """Raised when a baseline can't be read; names the reason."""


@dataclass(frozen=True)
class TestResult:
    """What one test has compiled: the counts, a line for each event, and the details of the events. ``places`` has of
    each event the path, the line, the kind and the text for an annotation. ``unfinished`` is the outcome of a test that
    has not passed (``failed``, ``skipped``): how far it came is no measure."""

    __test__ = False  # for pytest, which would collect it by its name

    counts: Counts
    lines: Tuple[str, ...] = ()
    details: str = ""
    places: Tuple[Tuple[Optional[str], int, str, str], ...] = ()
    unfinished: str = field(default="", compare=False)

    def to_json(self) -> str:
        """Return it as text, for the transfer from a worker of pytest-xdist to the controller."""
        named = {"counts": dict(self.counts), "lines": self.lines, "details": self.details, "places": self.places}
        return json.dumps(named)

    @classmethod
    def from_json(cls, text: str) -> TestResult:
        """Return the result that ``to_json`` has written."""
        data = json.loads(text)
        places = tuple((path, line, kind, text) for path, line, kind, text in data["places"])
        return cls(data["counts"], tuple(data["lines"]), data["details"], places)


def read_baseline(path: str) -> Dict[str, Counts]:
    """Return the counts by test. Raises ``BaselineError`` if the file is missing, unreadable or not a baseline."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
    except synchronous(FileNotFoundError) as error:
        raise BaselineError(f"{path}: no such baseline (--depyf-baseline-update writes one)") from error
    except synchronous(OSError, ValueError, RecursionError) as error:
        raise BaselineError(f"{path}: this baseline can't be read: {error}") from error
    if not isinstance(data, dict) or data.get("depyf_baseline") != _FORMAT or not isinstance(data.get("tests"), dict):
        raise BaselineError(f"{path}: not a baseline of depyf, or one of a newer version")
    tests: Dict[str, Counts] = {}
    for test, counts in data["tests"].items():
        if not isinstance(counts, dict) or not all(isinstance(counts.get(name), int) for name in NAMES):
            raise BaselineError(f"{path}: the counts of {test} are not those of a baseline")
        tests[test] = {name: counts[name] for name in NAMES}
    return tests


def write_baseline(path: str, tests: Mapping[str, Counts]) -> None:
    """Write the counts by test, sorted, whole or not at all. Raises ``OSError``."""
    data = {"depyf_baseline": _FORMAT, "tests": {test: dict(tests[test]) for test in sorted(tests)}}
    write_whole(path, [json.dumps(data, indent=1), "\n"])


def worse(before: Counts, now: Counts) -> List[str]:
    """Return descriptions of what got worse; an empty list if nothing did. More graph breaks, recompilations, graphs or
    fallbacks are worse; so is that nothing is compiled any more."""
    found = [
        f"{counted(now[name], word)}, {before[name]} in the baseline"
        for name, word in WORDS.items()
        if now[name] > before[name]
    ]
    if before["graphs"] and not now["graphs"]:
        found.append(f"nothing is compiled any more: {counted(before['graphs'], 'graph')} in the baseline")
    return found


def better(before: Counts, now: Counts) -> bool:
    """Return whether something got better and nothing worse."""
    return not worse(before, now) and any(now[name] < before[name] for name in NAMES)


@dataclass(frozen=True)
class BaselineSummary:
    """The results by test, with the counts of a baseline where there is one."""

    results: Mapping[str, TestResult]
    baseline: Optional[Mapping[str, Counts]] = None

    def worse(self) -> Dict[str, List[str]]:
        """Return the tests that got worse, with what did."""
        known = self.baseline or {}
        found = {test: worse(known[test], each.counts) for test, each in self._passed() if test in known}
        return {test: words for test, words in found.items() if words}

    def better(self) -> List[str]:
        """Return the tests that got better."""
        known = self.baseline or {}
        return [test for test, each in self._passed() if test in known and better(known[test], each.counts)]

    def new(self) -> List[str]:
        """Return the tests that are not in the baseline."""
        return [] if self.baseline is None else [test for test, _ in self._passed() if test not in self.baseline]

    def _passed(self) -> List[Tuple[str, TestResult]]:
        return [(test, each) for test, each in self.results.items() if not each.unfinished]

    def _title(self, test: str) -> str:
        """Return the name of a test, with its outcome if it has not passed."""
        return test + (f" ({self.results[test].unfinished})" if self.results[test].unfinished else "")

    def headline(self) -> str:
        """Return the counts of all tests together, in one line."""
        compiled = [each for each in self.results.values() if each.counts["graphs"]]
        totals = [sum(each.counts[name] for each in self.results.values()) for name in NAMES]
        breaks, recompiles, graphs, fallbacks = (counted(n, word) for n, word in zip(totals, WORDS.values()))
        return f"{counted(len(compiled), 'test')} compiled {graphs}: {breaks}, {recompiles}, {fallbacks}"

    def _not_compared(self) -> str:
        unfinished = len(self.results) - len(self._passed())
        return f"; not compared: {counted(unfinished, 'test')} that did not pass" if unfinished else ""

    def lines(self) -> Iterator[str]:
        """Return the summary for a terminal."""
        yield self.headline()
        shown = [(test, each) for test, each in self.results.items() if each.lines]
        for test, each in shown[:_MOST_TESTS]:
            yield self._title(test)
            yield from (f"  {line}" for line in each.lines)
        if len(shown) > _MOST_TESTS:
            yield f"and {len(shown) - _MOST_TESTS} more tests with graph breaks, recompiles or fallbacks"
        yield from self._compared()

    def annotations(self, root: str) -> Iterator[str]:
        """Yield a workflow command of GitHub for each line that something happened at; with a baseline, for those of
        the tests that got worse. ``root`` is the directory of the checkout."""
        tests = self.results if self.baseline is None else self.worse()
        found = {place: None for test in tests for place in self.results[test].places}
        for path, line, kind, text in found:
            yield github_annotation("warning", path and relative_to(root, path), line, kind, text)

    def _compared(self) -> Iterator[str]:
        if self.baseline is None:
            return
        got_worse, got_better, new = self.worse(), self.better(), self.new()
        yield (
            f"compared with the baseline: {counted(len(got_worse), 'test')} worse, {len(got_better)} better, "
            f"{len(new)} new{self._not_compared()}"
        )
        for test, words in got_worse.items():
            yield f"worse: {test}: {'; '.join(words)}"
        for test in got_better[:_MOST_TESTS]:
            yield f"better: {test}"

    def markdown(self) -> str:
        """Return the summary for GitHub."""
        got_worse = self.worse()
        lines = ["### What the tests compiled", "", f"{self.headline()}.", ""]
        if self.baseline is not None:
            lines += [
                f"Compared with the baseline: **{counted(len(got_worse), 'test')} worse**, "
                f"{len(self.better())} better, {len(self.new())} new{self._not_compared()}.",
                "",
            ]
        tests = list(got_worse) or [test for test, each in self.results.items() if each.lines]
        if tests:
            lines += ["| Test | graph breaks | recompiles | graphs | fallbacks |", "|---|---|---|---|---|"]
            lines += [self._row(test) for test in tests[:_MOST_TESTS]]
            lines += [""] if len(tests) <= _MOST_TESTS else ["", f"and {len(tests) - _MOST_TESTS} more.", ""]
        lines += _folded([(test, self.results[test]) for test in tests[:_MOST_TESTS]])
        return "\n".join(lines) + "\n"

    def _row(self, test: str) -> str:
        now, before = self.results[test].counts, (self.baseline or {}).get(test)
        cells = [
            str(now[name]) if before is None or before[name] == now[name] else f"{before[name]} → **{now[name]}**"
            for name in NAMES
        ]
        return f"| {code(self._title(test), in_table=True)} | {' | '.join(cells)} |"


def _folded(results: Sequence[Tuple[str, TestResult]]) -> Iterator[str]:
    """Yield the events of each test, in a folded section."""
    for test, each in results:
        if each.details:
            yield from (f"<details><summary>{html(test)}</summary>", "", *fenced(each.details), "")
            yield from ("</details>", "")
