"""Find where the ranks of a distributed program diverge: what one compiles and another does not.

Ranks that compile different graphs issue different collectives, and one that recompiles keeps all others waiting.
"""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Sequence, Tuple

from depyf.report.diff.graph_text import without_types
from depyf.report.diff.matching import NO_FUNCTION, FunctionKey, Side, name_of
from depyf.report.diff.unified import changed_lines
from depyf.report.model.counts import counts_of
from depyf.report.model.run import Compilation, Place, Recompile
from depyf.torch_trace.breaks import title_line

Difference = Dict[str, Any]
"""``title``, ``text``, ``ranks`` (what there is to say of each, by its name), ``place`` in the first one's sources."""

_WORTH_SECONDS = 1.0


def differences(sides: Sequence[Side]) -> List[Difference]:
    """Return all differences, causes first; empty if all compiled the same in the same order."""
    if len(sides) < 2:
        return []
    found: List[Difference] = []
    for find in (_breaks, _functions, _recompiles, _graphs, _fallbacks, _order, _times):
        found.extend(find(sides))
    return found


def _difference(sides: Sequence[Side], title: str, text: str, ranks: Sequence[str], path_and_line: Any) -> Difference:
    return {
        "title": title,
        "text": text,
        "ranks": {side.name: each for side, each in zip(sides, ranks)},
        "place": _place_in_first(sides[0], path_and_line),
    }


def _place_in_first(first: Side, path_and_line: Optional[Tuple[str, int]]) -> Optional[List[int]]:
    if path_and_line is None:
        return None
    paths = [source.path for source in first.run.sources]
    return [paths.index(path_and_line[0]), path_and_line[1]] if path_and_line[0] in paths else None


def _path_and_line(side: Side, place: Optional[Place]) -> Optional[Tuple[str, int]]:
    return None if place is None else (side.run.sources[place[0]].path, place[1])


def _where(sides: Sequence[Side], present: Sequence[object]) -> str:
    """``on rank 1 only``, ``on all but rank 0``, ``not equally on all``."""
    having = [side.name for side, each in zip(sides, present) if each]
    if len(having) == len(sides):
        return "not equally on all"
    lacking = [side.name for side, each in zip(sides, present) if not each]
    return f"on {', '.join(having)} only" if len(having) <= len(lacking) else f"on all but {', '.join(lacking)}"


def _breaks(sides: Sequence[Side]) -> List[Difference]:
    Key = Tuple[Optional[Tuple[str, int]], str]  # noqa: N806 - a type
    counts: Dict[Key, List[int]] = {}
    for number, side in enumerate(sides):
        for each in side.run.breaks:
            key = (_path_and_line(side, each.place), title_line(each.reason))
            counts.setdefault(key, [0] * len(sides))[number] += 1
    return [
        _difference(
            sides,
            f"Graph break {_where(sides, numbers)}",
            f"{key[1].rstrip('.')}. What follows is compiled as functions of its own there, so that the graphs differ.",
            [_times_text(number) for number in numbers],
            key[0],
        )
        for key, numbers in counts.items()
        if len(set(numbers)) > 1
    ]


def _times_text(number: int) -> str:
    return {0: "no", 1: "yes"}.get(number, f"{number} times")


def _functions(sides: Sequence[Side]) -> List[Difference]:
    """Functions that not all compile. Resume functions follow from graph breaks, which are shown."""
    found = []
    by_side = [side.compilations() for side in sides]
    for key in _all_keys(by_side):
        present = [compilations.get(key, []) for compilations in by_side]
        if key == NO_FUNCTION or all(present) or _is_resume(sides, present):
            continue
        found.append(
            _difference(
                sides,
                f"{key[0]} was compiled {_where(sides, present)}",
                "The others did not call it, ran it as plain Python, or had compiled it before.",
                [_ids(each) for each in present],
                _function_place(sides, present),
            )
        )
    return found


def _recompiles(sides: Sequence[Side]) -> List[Difference]:
    """Functions that all compile, and some more often."""
    found = []
    by_side = [side.compilations() for side in sides]
    for key in _all_keys(by_side):
        present = [compilations.get(key, []) for compilations in by_side]
        numbers = [len(each) for each in present]
        if key == NO_FUNCTION or not all(present) or len(set(numbers)) == 1:
            continue
        more = [number > min(numbers) for number in numbers]
        found.append(
            _difference(
                sides,
                f"{key[0]} was recompiled {_where(sides, more)}",
                f"Compilations: {', '.join(f'{s.name}: {n}' for s, n in zip(sides, numbers))}. "
                "The others wait at the next collective while a rank compiles.",
                [_reasons(side, each) for side, each in zip(sides, present)],
                _function_place(sides, present),
            )
        )
    return found


def _graphs(sides: Sequence[Side]) -> List[Difference]:
    """The n-th compilation of a function gave graphs that compute something else, or the same on other shapes."""
    found = []
    by_side = [side.compilations() for side in sides]
    for key in _all_keys(by_side):
        present = [compilations.get(key, []) for compilations in by_side]
        if key == NO_FUNCTION or not all(present):
            continue
        for number, same in enumerate(zip(*present)):
            texts = [side.captured_graph(each.compile_id) for side, each in zip(sides, same)]
            if None in texts or len(set(texts)) < 2:
                continue
            bare = {without_types(text or "") for text in texts}
            what = "another graph" if len(bare) > 1 else "the same operations on other shapes or types"
            found.append(
                _difference(
                    sides,
                    f"{key[0]} gave {what}" + (f" (compilation {number + 1})" if number else ""),
                    "Collectives in it must be the same on all ranks, or the program hangs."
                    if len(bare) > 1
                    else "Ranks with uneven inputs recompile at different times.",
                    [texts[0] or ""] + [changed_lines(texts[0] or "", text or "") for text in texts[1:]],
                    _function_place(sides, present),
                )
            )
    return found


def _fallbacks(sides: Sequence[Side]) -> List[Difference]:
    texts: Dict[Tuple[FunctionKey, str], List[str]] = {}
    for number, side in enumerate(sides):
        for each in side.run.fallbacks:
            key = (side.function_at(each.function), each.cause)
            texts.setdefault(key, [""] * len(sides))[number] = title_line(each.reason) or each.cause
    return [
        _difference(
            sides,
            f"{key[0] or 'A frame'} runs as plain Python {_where(sides, by_rank)}",
            cause,
            [text or "compiled" for text in by_rank],
            None,
        )
        for (key, cause), by_rank in texts.items()
        if not all(by_rank)
    ]


def _order(sides: Sequence[Side]) -> List[Difference]:
    """Functions that all compile, in another order: compared by what each compiles first."""
    orders = [list(dict.fromkeys(side.function(each) for each in side.run.compilations)) for side in sides]
    common = set(orders[0]).intersection(*orders[1:]) - {NO_FUNCTION}
    orders = [[key for key in order if key in common] for order in orders]
    if all(order == orders[0] for order in orders):
        return []
    return [
        _difference(
            sides,
            "Compiled in another order",
            "Ranks that compile at different times wait for each other at every collective in between.",
            ["\n".join(f"{number}. {name_of(key)}" for number, key in enumerate(order, 1)) for order in orders],
            None,
        )
    ]


def _times(sides: Sequence[Side]) -> List[Difference]:
    seconds = [counts_of(side.run).seconds for side in sides]
    if max(seconds) - min(seconds) < _WORTH_SECONDS or max(seconds) < 1.5 * min(seconds):
        return []
    return [
        _difference(
            sides,
            f"Compiling took {max(seconds) - min(seconds):.1f} s longer on "
            f"{sides[seconds.index(max(seconds))].name} than on {sides[seconds.index(min(seconds))].name}",
            "The others wait for the slowest rank.",
            [f"{each:.2f} s" for each in seconds],
            None,
        )
    ]


def _all_keys(by_side: Sequence[Dict[FunctionKey, List[Compilation]]]) -> List[FunctionKey]:
    return list(dict.fromkeys(key for compilations in by_side for key in compilations))


def _is_resume(sides: Sequence[Side], present: Sequence[List[Compilation]]) -> bool:
    return any(side.is_resume(each.function) for side, some in zip(sides, present) for each in some)


def _function_place(sides: Sequence[Side], present: Sequence[List[Compilation]]) -> Optional[Tuple[str, int]]:
    for side, some in zip(sides, present):
        for each in some:
            if each.function is not None:
                function = side.run.functions[each.function]
                return (side.run.sources[function.source].path, function.first_line)
    return None


def _ids(compilations: Sequence[Compilation]) -> str:
    return "\n".join(f"{each.compile_id} {each.status}" for each in compilations) or "not compiled"


def _reasons(side: Side, compilations: Sequence[Compilation]) -> str:
    """Each compilation with the guards that failed before it."""
    recompiles: Dict[str, Recompile] = {each.compile_id: each for each in side.run.recompiles}
    lines = []
    for each in compilations:
        recompile = recompiles.get(each.compile_id)
        words = "" if recompile is None else "; ".join(failed.words or failed.text for failed in recompile.failed)
        lines.append(f"{each.compile_id}" + (f": {words}" if words else ""))
    return "\n".join(lines)
