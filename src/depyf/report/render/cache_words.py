"""Where the seconds of a start from PyTorch's caches go, and what missed and why, in a few lines."""

from __future__ import annotations

from typing import Dict, Iterator, List, Sequence

from depyf.base.messages import cut
from depyf.report.model.cache_lookup import CacheLookup, changed_in_words
from depyf.report.model.headline import many
from depyf.report.model.run import Compilation, Run
from depyf.report.model.starts import PARTS, saved_seconds, states_of, total_parts
from depyf.torch_trace.cache_lookups import FORCED_REASON

_MOST = 30
"""Lines for a whole start."""
_LONGEST = 150
_SHORT = 0.005

_FIRST_RUN = f"{'the first run':<33}  not measured by PyTorch (depyf trace counts runs and their time)"
_UNKNOWN = "no earlier run is on record to compare the key with (depyf diff BEFORE AFTER compares two dumps)"
_NO_PARTS = "PyTorch does not report the parts of this cache's key (the parts of fx_graph's key show what is new)"
_GRAPH = "gm", "! gm is the graph itself: depyf diff BEFORE AFTER shows which operations are new"
"""A part of the key that says little by its name, and what it is."""


def start_lines(run: Run) -> List[str]:
    """Return the lines: the whole start, then its compilations, those first in which something missed."""
    if not run.compilations:
        return ["nothing was compiled"]
    lines = list(_whole(run))
    order = sorted(run.compilations, key=lambda each: (not _missed(_of(run, each)), -_seconds(each)))
    for number, each in enumerate(order):
        told = list(_compilation(run, each))
        left = len(order) - number
        if len(lines) + len(told) + (left > 1) > _MOST:
            rest = sum(map(_seconds, order[number:]))
            missed = sum(_missed(_of(run, one)) for one in order[number:])
            what = f", {missed} of them with something that missed" if missed else ""
            lines.append(f"and {many(left, 'more compilation')}, {rest:.2f} s{what}")
            break
        lines += told
    return lines


def _whole(run: Run) -> Iterator[str]:
    lookups = run.cache_lookups
    yield f"{many(len(run.compilations), 'compilation')}, {sum(map(_seconds, run.compilations)):.2f} s"
    parts = total_parts(run)
    for part, seconds in parts.items():
        if seconds >= _SHORT:
            yield f"  {PARTS[part]:<33}{seconds:8.2f} s"
    if parts:
        yield f"  {_FIRST_RUN}"
    else:
        yield "  PyTorch reports no phases: the parts of this time are not known"
    states: Dict[str, List[str]] = {}
    for (cache, state), count in states_of(lookups).items():
        states.setdefault(cache, []).append(f"{count} {state}")
    for cache, answers in states.items():
        yield f"{cache}: {', '.join(answers)}"
    if not lookups:
        yield "no cache of compiled graphs was asked, or PyTorch did not report it"
    saved = saved_seconds(lookups)
    if saved is not None:
        yield f"saved, as PyTorch's caches report it: {saved:.2f} s"
    if any(part.name == _GRAPH[0] for each in lookups for part in each.changed):
        yield _GRAPH[1]
    forced = sum(each.reason == FORCED_REASON for each in lookups)
    if forced:
        yield f"! {many(forced, 'graph')} of these would have been a hit without depyf: {FORCED_REASON}"


def _compilation(run: Run, each: Compilation) -> Iterator[str]:
    name = "" if each.function is None else f" {run.functions[each.function].qualified_name}"
    parts = [f"{part} {seconds:.2f}" for part, seconds in each.time_parts.items() if seconds >= _SHORT]
    yield cut(
        f"[{each.compile_id}]{name}: {_seconds(each):.2f} s" + (f" ({', '.join(parts)})" if parts else ""), _LONGEST
    )
    hits = [one for one in _of(run, each) if one.state == "hit"]
    if hits:
        saved = ("" if one.saved is None else f" (saved {one.saved:.2f} s)" for one in hits)
        told = ", ".join(f"{_cache(one).rstrip(',')}{text}" for one, text in zip(hits, saved))
        yield cut(f"    hit: {told}", _LONGEST)
    # Equal answers, such as those for the graphs of a split one, are one line.
    alike: Dict[str, int] = {}
    for one in _of(run, each):
        if one.state != "hit":
            text = lookup_in_words(one)
            alike[text] = alike.get(text, 0) + 1
    for text, times in alike.items():
        yield cut(f"    {text}" + (f" ({times} times)" if times > 1 else ""), _LONGEST)


def lookup_in_words(each: CacheLookup) -> str:
    """Return what a cache answered that had no entry, and why, as far as that is known."""
    reason = each.reason
    if not reason and each.state == "miss":
        reason = _UNKNOWN if each.parts else _NO_PARTS
    return f"{_cache(each)} {each.state}" + (f": {reason}" if reason else "") + changed_in_words(each.changed)


def _cache(each: CacheLookup) -> str:
    return f"{each.cache}, backward," if each.backward else each.cache


def _of(run: Run, each: Compilation) -> Sequence[CacheLookup]:
    return [one for one in run.cache_lookups if one.compile_id == each.compile_id]


def _missed(lookups: Sequence[CacheLookup]) -> bool:
    return any(each.state != "hit" for each in lookups)


def _seconds(each: Compilation) -> float:
    return (each.seconds or 0.0) + (each.backward_seconds or 0.0)
