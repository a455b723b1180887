"""Find where the ranks of a distributed program diverge: what one compiles and another does not.

Ranks that compile different graphs issue different collectives, and one that recompiles blocks all others. Only
summaries are compared, made by the ranks themselves or by the reader of their dumps.
"""

from __future__ import annotations

from collections import Counter
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from depyf.report.diff.matching import FunctionKey, name_of
from depyf.report.diff.rank_groups import (
    MOST_NAMED,
    SLOW,
    WORTH_SECONDS,
    Difference,
    listed,
    median,
    seconds_in_words,
    slow_ranks,
)
from depyf.report.diff.rank_summary import CompilationSummary, FunctionSummary, RankSummary
from depyf.report.diff.unified import changed_lines
from depyf.report.model.counts import RAISED
from depyf.report.model.headline import in_seconds

GraphOf = Callable[[str, str], Optional[str]]
"""The text of a captured graph, by the name of the rank and the compile id; None where the dump was not read."""

_MOST_OF_A_KIND = 50
_NOT_READ = "(the dump of this rank was not read)"


def differences(ranks: Sequence[RankSummary], paths: Sequence[str], graph_of: GraphOf) -> List[Difference]:
    """Return all differences, causes first; empty if all compiled the same in the same order.

    ``paths`` are the sources of the run that places refer to.
    """
    return _Ranks(ranks, paths, graph_of).differences() if len(ranks) > 1 else []


class _Ranks:
    """The ranks that are compared."""

    def __init__(self, ranks: Sequence[RankSummary], paths: Sequence[str], graph_of: GraphOf) -> None:
        self._ranks = ranks
        self._sources = {path: index for index, path in reversed(list(enumerate(paths)))}
        self._graph_of = graph_of
        self._few = len(ranks) <= MOST_NAMED
        self._by_function = [rank.by_function() for rank in ranks]
        self._functions = list(dict.fromkeys(key for found in self._by_function for key in found))

    def differences(self) -> List[Difference]:
        found: List[Difference] = []
        # Causes come before what follows from them: a break before other graphs, a recompilation before other times.
        for find in (
            self._breaks,
            self._compiled,
            self._recompiles,
            self._graphs,
            self._fallbacks,
            self._order,
            self._times,
        ):
            found.extend(self._bounded(find()))
        return found

    def _bounded(self, found: List[Difference]) -> List[Difference]:
        """Return all differences if the ranks are few; of many ranks only so many of one kind."""
        if self._few or len(found) <= _MOST_OF_A_KIND:
            return found
        title = f"{len(found) - _MOST_OF_A_KIND} more like these: {found[_MOST_OF_A_KIND]['title']}, ..."
        more: Difference = {"title": title, "text": "", "ranks": {}, "place": None}
        return [*found[:_MOST_OF_A_KIND], more]

    def _difference(self, title: str, text: str, texts: Sequence[str], path: str = "", line: int = 0) -> Difference:
        """Return one difference; ``texts`` has the text of each rank."""
        place = [self._sources[path], line] if path in self._sources and line else None
        return {"title": title, "text": text, "ranks": self._by_rank(texts), "place": place}

    def _by_rank(self, texts: Sequence[str]) -> Dict[str, str]:
        if self._few:
            return {rank.name: text for rank, text in zip(self._ranks, texts)}
        groups = self._groups(texts)
        by_size = sorted(groups.items(), key=lambda each: -len(each[1]))
        found = {listed(names): text for text, names in by_size[:MOST_NAMED]}
        if len(by_size) > MOST_NAMED:
            rest = [name for _, names in by_size[MOST_NAMED:] for name in names]
            found[listed(rest)] = f"{len(by_size) - MOST_NAMED:,} other texts"
        return found

    def _groups(self, values: Sequence[str]) -> Dict[str, List[str]]:
        groups: Dict[str, List[str]] = {}
        for rank, value in zip(self._ranks, values):
            groups.setdefault(value, []).append(rank.name)
        return groups

    def _where(self, present: Sequence[object]) -> str:
        """Return ``on rank 1 only``, ``on all but rank 0``, ``not equally on all``."""
        having = [rank.name for rank, each in zip(self._ranks, present) if each]
        if len(having) == len(self._ranks):
            return "not equally on all"
        lacking = [rank.name for rank, each in zip(self._ranks, present) if not each]
        names = ", ".join if self._few else listed
        return f"on {names(having)} only" if len(having) <= len(lacking) else f"on all but {names(lacking)}"

    def _breaks(self) -> List[Difference]:
        counts: Dict[Tuple[str, int, str], List[int]] = {}
        for number, rank in enumerate(self._ranks):
            for each in rank.breaks:
                counts.setdefault((each.path, each.line, each.title), [0] * len(self._ranks))[number] += each.count
        return [
            self._difference(
                f"Graph break {self._where(numbers)}{_location(path, line)}",
                f"{title.rstrip('.')}. What follows is compiled as functions of its own there, "
                "so that the graphs differ.",
                [{0: "no", 1: "yes"}.get(number, f"{number} times") for number in numbers],
                path,
                line,
            )
            for (path, line, title), numbers in counts.items()
            if len(set(numbers)) > 1
        ]

    def _present(self, key: FunctionKey) -> List[Optional[FunctionSummary]]:
        return [found.get(key) for found in self._by_function]

    def _compiled(self) -> List[Difference]:
        """Return functions that not all ranks compile. Resume functions follow from graph breaks, which are shown."""
        found = []
        for key in self._functions:
            present = self._present(key)
            some = [each for each in present if each is not None]
            # On all ranks, or a resume function: the graph break that it follows from is listed.
            if len(some) == len(present) or any(each.is_resume for each in some):
                continue
            ids = [[f"{one.compile_id} {one.status}" for one in each.compilations] if each else [] for each in present]
            found.append(
                self._difference(
                    f"{key[0]} was compiled {self._where(present)}",
                    "The others compiled it as a part of what calls it, did not call it, ran it as plain Python, or "
                    "had compiled it before.",
                    ["\n".join(each) or "not compiled" for each in ids],
                    some[0].path,
                    some[0].line,
                )
            )
        return found

    def _recompiles(self) -> List[Difference]:
        """Return functions that all ranks compile, and some more often."""
        found = []
        for key in self._functions:
            present = [each for each in self._present(key) if each is not None]
            numbers = [len(each.compilations) for each in present]
            if len(present) < len(self._ranks) or len(set(numbers)) == 1:
                continue
            # The ranks that compiled it more often than the others.
            more = [number > min(numbers) for number in numbers]
            found.append(
                self._difference(
                    f"{key[0]} was recompiled {self._where(more)}",
                    f"Compilations: {self._counted(numbers)}. "
                    "The others wait at the next collective while a rank compiles.",
                    [_reasons(each) for each in present],
                    present[0].path,
                    present[0].line,
                )
            )
        return found

    def _counted(self, numbers: Sequence[int]) -> str:
        if self._few:
            return ", ".join(f"{rank.name}: {number}" for rank, number in zip(self._ranks, numbers))
        groups = self._groups([str(number) for number in numbers])
        return "; ".join(f"{listed(groups[each])}: {each}" for each in sorted(groups, key=int))

    def _graphs(self) -> List[Difference]:
        """Return the functions whose n-th graphs compute something else, or the same on other shapes."""
        found = []
        for key in self._functions:
            present = [each for each in self._present(key) if each is not None]
            if len(present) < len(self._ranks):
                continue
            for number, same in enumerate(zip(*(each.compilations for each in present))):
                # A graph that is not known says nothing; equal graphs are no difference.
                if not all(each.graph for each in same) or len({each.graph for each in same}) < 2:
                    continue
                # Equal operations, and other texts: shapes or types differ, which recompiles but does not hang.
                others = len({each.operations for each in same}) > 1
                what = "another graph" if others else "the same operations on other shapes or types"
                found.append(
                    self._difference(
                        f"{key[0]} gave {what}"
                        + ("" if len(self._ranks) < 3 else f" {self._where(_unusual(same))}")
                        + (f" (compilation {number + 1})" if number else ""),
                        "Collectives in it must be the same on all ranks, or the program hangs."
                        if others
                        else "Ranks with uneven inputs recompile at different times.",
                        self._graph_texts(same),
                        present[0].path,
                        present[0].line,
                    )
                )
        return found

    def _graph_texts(self, same: Sequence[CompilationSummary]) -> List[str]:
        """Return the graph of the first rank, or of most, and the differences of the others."""
        usual = same[0].graph if self._few else _usual(same)
        texts: Dict[str, str] = {}
        for rank, each in zip(self._ranks, same):
            if each.graph not in texts:
                text = self._graph_of(rank.name, each.compile_id)
                if text is not None:
                    texts[each.graph] = text
        changed = {
            graph: changed_lines(texts[usual], text) if usual in texts else text for graph, text in texts.items()
        }
        found = [changed.get(each.graph, f"another graph {_NOT_READ}") for each in same]
        whole = texts.get(usual, _NOT_READ)
        if self._few:
            return [whole, *found[1:]]
        return [whole if each.graph == usual else text for each, text in zip(same, found)]

    def _fallbacks(self) -> List[Difference]:
        found: Dict[Tuple[FunctionKey, str], List[str]] = {}
        for number, rank in enumerate(self._ranks):
            for each in rank.fallbacks:
                key = ((each.name, each.file), each.cause)
                found.setdefault(key, [""] * len(self._ranks))[number] = each.reason or each.cause
        return [
            self._difference(
                f"{key[0] or 'A frame'} {'fails to compile' if cause == RAISED else 'runs as plain Python'} "
                f"{self._where(by_rank)}",
                cause,
                [text or "compiled" for text in by_rank],
            )
            for (key, cause), by_rank in found.items()
            if not all(by_rank)
        ]

    def _order(self) -> List[Difference]:
        """Return functions that all ranks compile, in another order: compared by what each compiles first."""
        # Only functions of all ranks: the others are listed by ``_compiled``.
        common = set(self._functions).intersection(*self._by_function)
        orders = [[key for key in found if key in common] for found in self._by_function]
        if all(order == orders[0] for order in orders):
            return []
        return [
            self._difference(
                "Compiled in another order",
                "Ranks that compile at different times wait for each other at every collective in between.",
                ["\n".join(f"{number}. {name_of(key)}" for number, key in enumerate(order, 1)) for order in orders],
            )
        ]

    def _times(self) -> List[Difference]:
        seconds = [rank.seconds for rank in self._ranks]
        least, most = min(seconds), max(seconds)
        if self._few:
            if most - least < WORTH_SECONDS or most < SLOW * least:
                return []
            # Few ranks: the slowest against the fastest. Many: ranks that are slower than most, with their phases.
            names = [self._ranks[seconds.index(each)].name for each in (most, least)]
            title = f"Compiling took {most - least:.1f} s longer on {names[0]} than on {names[1]}"
            texts = [in_seconds(each) for each in seconds]
            return [self._difference(title, "The others wait for the slowest rank.", texts)]
        slow = slow_ranks(self._ranks)
        if not slow:
            return []
        others = [rank for at, rank in enumerate(self._ranks) if at not in set(slow)]
        texts = [seconds_in_words(others)] * len(seconds)
        for at in slow[: MOST_NAMED - 1]:
            phases = [f"{name}  {in_seconds(each)}" for name, each in self._ranks[at].phases.items()]
            texts[at] = "\n".join([f"compile time {in_seconds(seconds[at])}", *phases])
        for at in slow[MOST_NAMED - 1 :]:
            texts[at] = seconds_in_words([self._ranks[each] for each in slow[MOST_NAMED - 1 :]])
        return [
            self._difference(
                f"Compiling took up to {most - median(seconds):.1f} s longer on "
                f"{listed([self._ranks[at].name for at in sorted(slow)])} than on most",
                "The others wait for the slowest rank.",
                texts,
            )
        ]


def _location(path: str, line: int) -> str:
    """Return a location for the end of a title, which stands alone on a terminal; empty if it is not known."""
    name = path.replace("\\", "/").rpartition("/")[2]
    return f" ({name}:{line})" if name and line else ""


def _usual(same: Sequence[CompilationSummary]) -> str:
    """Return the graph that most ranks have; of several the first."""
    return Counter(each.graph for each in same).most_common(1)[0][0]


def _unusual(same: Sequence[CompilationSummary]) -> List[bool]:
    usual = _usual(same)
    return [each.graph != usual for each in same]


def _reasons(function: FunctionSummary) -> str:
    """Return the compilations as text, each with the guards that failed before it."""
    return "\n".join(
        f"{each.compile_id}" + (f": {each.reasons}" if each.reasons else "") for each in function.compilations
    )
