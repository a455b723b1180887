"""The progress of a sweep; its results as a table, as reasons with examples, as JSON, and compared with another run."""

from __future__ import annotations

import json
import platform
import time
from dataclasses import field
from pathlib import Path
from typing import Dict, FrozenSet, Iterator, List, Mapping, TextIO, Tuple

from depyf.base.messages import takes_escapes
from depyf.base.quick_dataclass import dataclass
from depyf.sweep.judge import Outcome, Result, reason_group
from depyf.sweep.pool import Message, Skipped


@dataclass
class Summary:
    """The results of a sweep. ``seconds`` is the wall-clock time of the whole."""

    results: List[Result] = field(default_factory=list)
    skipped: List[Skipped] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def all_proved(self) -> bool:
        return all(result.outcome.proved for result in self.results)

    @property
    def unreadable(self) -> List[Skipped]:
        return [skipped for skipped in self.skipped if skipped.unreadable]

    @property
    def shortfalls(self) -> List[Result]:
        return [result for result in self.results if not result.outcome.proved]

    def count(self, outcome: Outcome) -> int:
        return sum(1 for result in self.results if result.outcome is outcome)


def table(summary: Summary) -> str:
    """Return the totals, a row for each kind of code object; percentages are of the total."""
    kinds = sorted({result.kind for result in summary.results})
    header = ["", "total", *(outcome.value for outcome in Outcome), "proved", "time"]
    rows = [_row(kind, [r for r in summary.results if r.kind == kind]) for kind in kinds]
    rows.append(_row("all", summary.results))
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)).rstrip() for row in [header, *rows]]
    instructions = sum(result.size for result in summary.results)
    busy = sum(result.seconds for result in summary.results)
    per_instruction = 1e6 * busy / instructions if instructions else 0.0
    lines.append(
        f"{summary.seconds:.1f} s on the clock, {busy:.1f} s decompiling and verifying "
        f"{instructions:,} instructions ({per_instruction:.0f} us each); {_skipped_words(summary)}"
    )
    return "\n".join(lines)


def _skipped_words(summary: Summary) -> str:
    unread = len(summary.unreadable)
    words = f"{len(summary.skipped) - unread} files do not compile"
    return f"{words}, {unread} can't be read" if unread else words


def _row(name: str, results: List[Result]) -> List[str]:
    total = len(results)
    counts = {outcome: sum(1 for result in results if result.outcome is outcome) for outcome in Outcome}
    proved = sum(count for outcome, count in counts.items() if outcome.proved)
    share = f"{100 * proved / total:.2f}%" if total else "-"
    seconds = sum(result.seconds for result in results)
    return [name, str(total), *(str(counts[outcome]) for outcome in Outcome), share, f"{seconds:.1f}s"]


def groups(shortfalls: List[Result]) -> List[Tuple[str, List[Result]]]:
    """Return the shortfalls by outcome and reason, the most frequent first; in each group the smallest first."""
    found: Dict[str, List[Result]] = {}
    for result in shortfalls:
        found.setdefault(f"{result.outcome.value}: {reason_group(result)}", []).append(result)
    for members in found.values():
        members.sort(key=lambda result: (result.size, result.label))
    return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))


def shortfall_lines(summary: Summary, top: int, names: int) -> Iterator[str]:
    """Yield the ``top`` most frequent reasons, each with its ``names`` smallest examples (0 means all, for both)."""
    found = groups(summary.shortfalls)
    shown = found[: top or None]
    for reason, members in shown:
        yield f"{len(members):6}  {reason}"
        for result in members[: names or None]:
            detail = result.reason.split("\n", 1)[0]
            yield f"          {result.label}  ({result.size} instructions, {result.seconds:.3f} s)  {detail}"
        if names and len(members) > names:
            yield f"          ... and {len(members) - names} more"
    if len(found) > len(shown):
        rest = sum(len(members) for _reason, members in found[len(shown) :])
        yield f"{rest:6}  for {len(found) - len(shown)} rarer reasons (--top 0 shows all)"
    for skipped in summary.skipped if top == 0 else []:
        if not skipped.unreadable:
            yield f"  does not compile: {_with_path(skipped)}"
    for skipped in summary.unreadable:
        yield f"  can't be read: {_with_path(skipped)}"


def _with_path(skipped: Skipped) -> str:
    return skipped.reason if skipped.path in skipped.reason else f"{skipped.path}: {skipped.reason}"


def write_json(summary: Summary, path: str) -> None:
    """Write every row, one per line and sorted by location, so that two runs can be compared with ``diff``."""
    head = {
        "python": platform.python_version(),
        "seconds": round(summary.seconds, 1),
        "totals": {outcome.value: summary.count(outcome) for outcome in Outcome},
        "skipped": {skipped.path: skipped.reason for skipped in summary.skipped},
    }
    rows = sorted(summary.results, key=lambda result: (result.path, result.ordinal))
    lines = ",\n".join(json.dumps(_as_json(result)) for result in rows)
    Path(path).write_text(json.dumps(head)[:-1] + ', "objects": [\n' + lines + "\n]}\n")


def _as_json(result: Result) -> Mapping[str, object]:
    return {**vars(result), "outcome": result.outcome.value}


def read_json(path: str) -> Summary:
    """Return what ``write_json`` wrote. Raises ``OSError``, ``ValueError`` or ``KeyError`` for other contents."""
    data = json.loads(Path(path).read_text())
    results = [Result(**{**row, "outcome": Outcome(row["outcome"])}) for row in data["objects"]]
    return Summary(results, [Skipped(*item) for item in data["skipped"].items()], data["seconds"])


def places_of_shortfalls(summary: Summary) -> Mapping[str, FrozenSet[int]]:
    """Return the ordinals of the code objects that were not proved, by file."""
    found: Dict[str, List[int]] = {}
    for result in summary.shortfalls:
        found.setdefault(result.path, []).append(result.ordinal)
    return {path: frozenset(ordinals) for path, ordinals in found.items()}


def comparison_lines(old: Summary, new: Summary) -> Iterator[str]:
    """Yield what became better or worse since ``old``, among the code objects that both runs judged."""
    before = {(result.path, result.ordinal, result.qualname): result for result in old.results}
    worse: List[str] = []
    better = 0
    for result in new.results:
        earlier = before.get((result.path, result.ordinal, result.qualname))
        if earlier is None or earlier.outcome is result.outcome:
            continue
        if earlier.outcome.proved and not result.outcome.proved:
            worse.append(f"  was {earlier.outcome.value}: {result.label}  {result.outcome.value}: {result.reason}")
        elif result.outcome.proved and not earlier.outcome.proved:
            better += 1
    yield f"since the earlier run: {better} newly proved, {len(worse)} no longer proved"
    yield from worse


class SweepProgress:
    """The progress on the error stream: a line that is rewritten on terminals, else one every half minute. Called with
    each message of a sweep, and closed at the end."""

    def __init__(self, stream: TextIO, files: int) -> None:
        self._stream = stream
        self._terminal = takes_escapes(stream)
        self._files = files
        self._files_done = 0
        self._objects = 0
        self._proved = 0
        self._start = self._shown = time.monotonic()

    def __call__(self, message: Message) -> None:
        if isinstance(message, Result):
            self._objects += 1
            self._proved += message.outcome.proved
        else:
            self._files_done += 1
        now = time.monotonic()
        if now - self._shown >= (0.2 if self._terminal else 30.0):
            self._shown = now
            self._write()

    def close(self) -> None:
        if self._terminal:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def _write(self) -> None:
        share = 100 * self._proved / self._objects if self._objects else 0.0
        text = (
            f"{self._files_done}/{self._files} files, {self._objects} code objects, {share:.2f}% proved, "
            f"{time.monotonic() - self._start:.0f} s"
        )
        self._stream.write(f"\r{text}\x1b[K" if self._terminal else f"{text}\n")
        self._stream.flush()
