"""What a run has found, as units that an edit can remove: a graph break at a line, the recompilations of a function by
one cause, a function that falls back. Two runs are compared by them, although their lines have moved."""

from __future__ import annotations

import os
from collections import Counter
from typing import Dict, Iterator, List, Mapping, Optional, Tuple, Union

from depyf.base.quick_dataclass import dataclass
from depyf.diagnosis.break_advice import cause_of_break
from depyf.report.model.counts import LIMIT as AT_LIMIT
from depyf.report.model.counts import RAISED, counts_of, distinct_breaks, lost, raised
from depyf.report.model.places import own_place
from depyf.report.model.run import BREAK, ERROR, FALLBACK, LIMIT, RECOMPILATION, Fallback, GraphBreak, Place, Run
from depyf.torch_trace.breaks import reason_in_parts, without_type

Key = Tuple[str, ...]

_MANY = 99


@dataclass(frozen=True)
class Problem:
    """One finding. ``cause`` is the value of a ``BreakCause`` or a ``GuardCause``, empty if there is none. ``file`` is
    relative to the folder of the program, empty for a file outside; ``text`` is the line without spaces around it.
    ``frames`` is the largest number of functions that were traced, one in the other, where it was found.
    ``compiled_at`` are the file and line of the call of ``torch.compile``. ``about`` tells findings of a line apart.
    ``checked`` is what a guard has checked, in words."""

    kind: str
    cause: str
    file: str
    line: int
    text: str
    about: str
    words: str
    advice: str = ""
    frames: int = 1
    compiled_at: Optional[Tuple[str, int]] = None
    checked: str = ""

    @property
    def key(self) -> Key:
        """What identifies it in another run. A line that is edited makes another problem of it."""
        return self.kind, self.cause, self.file, self.text, self.about

    @property
    def place(self) -> str:
        """``train.py:12``, as far as it is known. A line without a file is one of a file elsewhere."""
        if self.file:
            return f"{self.file}:{self.line}"
        return "outside of the program's folder" if self.line else "an unknown line"


def problems_of(run: Run, root: str) -> List[Problem]:
    """Return the problems of a run, each once, in the order of the run; ``root`` is the folder of the program."""
    found: Dict[Key, Problem] = {}
    for each in _occurrences(run, root):
        found.setdefault(each.key, each)
    return list(found.values())


def _breaks(run: Run, root: str) -> Iterator[Problem]:
    at_compile = {each.compile_id: each.compiled_at for each in run.compilations}
    gave_up = {(each.place, each.compile_id) for each in (*lost(run), *raised(run))}
    depths: Dict[Tuple[Optional[Place], str], int] = {}
    for each in run.breaks:
        at = each.place, each.reason
        depths[at] = max(depths.get(at, 0), _frames_of(run, each))
    for each in distinct_breaks(run.breaks):
        place = own_place(run, each.place, each.stack)
        if (place, each.compile_id) in gave_up:  # listed as the fallback that it led to
            continue
        file, line, text = _located(run, root, place)
        cause = cause_of_break(each.reason, each.explanation)
        name = cause.value if cause is not None else ""
        yield Problem(
            BREAK,
            name,
            file,
            line,
            text,
            each.reason,
            f"graph break: {name or each.reason}",
            each.advice,
            depths[each.place, each.reason] if place == each.place else _MANY,
            _file_and_line(run, root, at_compile.get(each.compile_id or "")),
        )


def _recompilations(run: Run, root: str) -> Iterator[Problem]:
    at_compile = {each.function: each.compiled_at for each in reversed(run.compilations) if each.compiled_at}
    for each in run.recompiles:
        function = run.functions[run.root(each.function)]
        checked = each.failed[0].checked if each.failed else ""
        file, line, _ = _located(run, root, each.place or (function.source, function.first_line))
        yield Problem(
            RECOMPILATION,
            each.cause,
            file,
            line,
            "",
            f"{function.qualified_name}: {_without_numbers(checked) or each.cause}",
            f"{function.qualified_name} was recompiled: {checked or each.cause}",
            each.advice,
            compiled_at=_file_and_line(
                run, root, at_compile.get(each.function) or at_compile.get(run.root(each.function))
            ),
            checked=checked,
        )


def _fallbacks(run: Run, root: str) -> Iterator[Problem]:
    for each in (*lost(run), *raised(run)):
        kind = ERROR if each.cause == RAISED else LIMIT if each.cause == AT_LIMIT else FALLBACK
        function = None if each.function is None else run.functions[run.root(each.function)]
        name = "" if function is None else function.qualified_name
        file, line, text = _located(run, root, own_place(run, each.place, each.stack))
        if each.place is None and function is not None:  # Dynamo has refused the whole function, as it does generators
            # Without the text: the line may be that of the decorator, which edits of other findings change.
            file, line, _ = _located(run, root, (function.source, function.first_line))
        parts = reason_in_parts(without_type(each.reason))
        cause = None if kind == LIMIT else cause_of_break(parts.title, parts.explanation)
        yield Problem(
            kind,
            cause.value if cause is not None else "",
            file,
            line,
            text,
            f"{name}: {_without_numbers(parts.title)}",
            f"{name or 'a function'}: {each.cause}",
            each.advice,
            _frames_of(run, each),
        )


def _frames_of(run: Run, each: Union[GraphBreak, Fallback]) -> int:
    """Return how many functions were traced, one in the other, where it happened; ``_MANY`` if that is not known."""
    callers = next((one.callers for one in run.compilations if one.compile_id == each.compile_id), None)
    if callers is None or len(each.stack) <= len(callers) or each.stack[: len(callers)] != callers:
        return _MANY
    return len(each.stack) - len(callers)


def _without_numbers(text: str) -> str:
    return "".join("#" if each.isdigit() else each for each in text)


def _file_and_line(run: Run, root: str, place: Optional[Place]) -> Optional[Tuple[str, int]]:
    file, line, _ = _located(run, root, place)
    return (file, line) if file else None


def _located(run: Run, root: str, place: Optional[Place]) -> Tuple[str, int, str]:
    """Return the file, relative to the folder of the program (else empty), the line, and the text of the line."""
    if place is None or not 0 <= place[0] < len(run.sources):
        return "", 0, ""
    source, line = run.sources[place[0]], place[1]
    lines = (source.text or "").splitlines()
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    path, base = os.path.realpath(source.path), os.path.realpath(root)
    inside = not source.library and path.startswith(base + os.sep)
    return os.path.relpath(path, base) if inside else "", line, text


def user_files(run: Run, root: str) -> List[str]:
    """Return the files of the program that were compiled, relative to its folder."""
    found = [_located(run, root, (at, 1))[0] for at in range(len(run.sources))]
    return sorted({each for each in found if each})


def compiled_lines(run: Run, root: str) -> Mapping[str, List[int]]:
    """Return the first lines of the program's functions that were compiled, by file."""
    found: Dict[str, List[int]] = {}
    for each in run.functions:
        file, line, _ = _located(run, root, (each.source, each.first_line))
        if file:
            found.setdefault(file, []).append(line)
    return found


def new_problems(before: Run, after: Run, root: str) -> List[str]:
    """Return what the second run has and the first has not, or more often; empty if nothing got worse."""
    known, now = (Counter(each.key for each in _occurrences(run, root)) for run in (before, after))
    found = [
        f"new: {words}" if not known[key] else f"more often: {words}"
        for key, words in ((each.key, f"{each.words} ({each.place})") for each in problems_of(after, root))
        if now[key] > known[key]
    ]
    if counts_of(before).graphs and not counts_of(after).graphs:
        found.append("nothing is compiled any more")
    if counts_of(after).failed > counts_of(before).failed:
        found.append("more compilations fail")
    return found


def _occurrences(run: Run, root: str) -> List[Problem]:
    return [*_breaks(run, root), *_recompilations(run, root), *_fallbacks(run, root)]


def counted_words(run: Run) -> str:
    """Return the counts of a run in a few words."""
    counts = counts_of(run)
    numbers = {
        "break": counts.graph_breaks,
        "recompilation": counts.recompilations,
        "fallback": counts.fallbacks,
        "graph": counts.graphs,
    }
    return ", ".join(f"{number} {word}{'s' * (number != 1)}" for word, number in numbers.items())
