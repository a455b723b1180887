"""Why an entry computes something else than eager mode: a guard that is not evaluated, a value that no guard checks, or
neither, and then its graph is the suspect.
"""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.answers.compared import Measured, StaleRead
from depyf.answers.shadowed import DROPPED, STALE, WRONG, ShadowFinding
from depyf.answers.why import GuardFailure
from depyf.base.asynchronous import synchronous
from depyf.base.messages import cut, listed
from depyf.dynamo.entries.call_target import CallTarget
from depyf.dynamo.entries.entry_check import first_failure
from depyf.dynamo.guards.entry_guards import EntryGuards
from depyf.dynamo.guards.failing import failing_guards
from depyf.dynamo.hooks import cache_entries, frame_evaluation
from depyf.dynamo.hooks.dropped_guards import UnfilteredGuards
from depyf.dynamo.hooks.torch_types import Guards
from depyf.dynamo.questions.compare.hit_entry import HitEntry
from depyf.dynamo.questions.compare.observed_reads import ATTRIBUTE, Read
from depyf.dynamo.questions.compare.stale_reads import KnownBefore, StaleSearch
from depyf.dynamo.questions.shadow.earlier import EarlierValues, in_words
from depyf.dynamo.questions.shadow.protected import StoppedError
from depyf.dynamo.questions.shadow.runs import ShadowRuns

_NAMED = 3
_LONGEST = 160


class FailingGuard:
    """A guard that the entry of a call is not checked against, and that fails for the call."""

    def __init__(self, target: CallTarget, entry: cache_entries.CacheEntry, guard: GuardFailure, why: str) -> None:
        self._target = target
        self._entry = entry
        self._guard = guard
        self._why = why

    @property
    def key(self) -> Tuple[object, ...]:
        """What identifies the guard: its value may be another one in each call."""
        return id(self._entry.guard_manager), self._guard.code, self._guard.source, self._why

    def finding(self, wrong: Sequence[Measured], skipped: str = "") -> ShadowFinding:
        """Return what is reported; ``wrong`` are the values that differ, ``skipped`` is why nothing was run twice."""
        name, code = self._target.shown
        place = self._guard.location or (code.co_filename, code.co_firstlineno)
        ran = in_short(wrong) if wrong else "the results were not compared" + (f": {skipped}" if skipped else "")
        advice = "let the filter keep this guard" if self._why == _FILTER else "do not skip guards here"
        cause = f"{self._guard.explanation.words}, and {self._why}"
        said = self._guard.explanation
        values = tuple(each for each in (said.before, said.now) if each)
        return ShadowFinding(DROPPED, name, self._entry.compile_id or "", place, cause, ran, advice, values)


_FILTER = "guard_filter_fn has dropped the guard on this"
_STANCE = "the stance skips the guard on this (skip_guard_eval_unsafe)"


def failing_guard(
    target: CallTarget, entry: cache_entries.CacheEntry, values: Mapping[str, object], unfiltered: UnfilteredGuards
) -> Optional[FailingGuard]:
    """Return the first guard that was dropped or is skipped, and that fails for these local variables."""
    everything = unfiltered.of(entry.guard_manager)
    checked: List[Tuple[Optional[Guards], str]] = [(everything, _FILTER)]
    if frame_evaluation.skips_guards():
        checked.append((entry.guard_manager, _STANCE))
    for guards, why in checked:
        if guards is None:
            continue
        first, holds = first_failure(guards, values)
        if not holds:
            failing = failing_guards(guards, values, first, target.code.co_filename)
            return FailingGuard(target, entry, failing.causes[0], why)
    return None


class CauseSearch:
    """Finds the reason why the entry of a call is wrong."""

    def __init__(self, runs: ShadowRuns, earlier: EarlierValues, unfiltered: UnfilteredGuards) -> None:
        self._runs = runs
        self._hit: HitEntry = runs.hit
        self._before = earlier.before(self._hit.target.code, self._hit.entry)
        self._unfiltered = unfiltered
        self._names: Dict[int, str] = {}
        """What is read now, by the ``id`` of the program's objects."""
        self._changed: Dict[Tuple[str, str], Tuple[Read, KnownBefore, object]] = {}
        """The values then and now of what has changed, by function and text."""

    def finding(self, wrong: Sequence[Measured]) -> ShadowFinding:
        """Return what is reported for values of the entry that are wrong."""
        reads = self._reads()
        proved = [each for each in reads if each.proof]
        target, entry = self._hit.target, self._hit.entry.compile_id or ""
        name, code = target.shown
        begin = (code.co_filename, code.co_firstlineno)
        if proved:
            read = proved[0]
            cause, values = self._stale(proved)
            place, advice = read.place or begin, read.advice or _ADVICE
            return ShadowFinding(STALE, name, entry, place, cause, in_short(wrong), advice, values)
        cause = f"no value was found that explains it, so what {entry} computes is wrong"
        if reads:
            cause += f"; or one of these has changed, which no guard checks: {listed([e.name for e in reads], _NAMED)}"
        advice = f"find the operation: depyf.compare(<{name}, compiled>, <the arguments of this call>)"
        return ShadowFinding(WRONG, name, entry, begin, cause, in_short(wrong), advice)

    def _reads(self) -> Tuple[StaleRead, ...]:
        runs = self._runs

        def run_eager(change: object) -> Dict[str, object]:
            return runs.of_eager(change=change)  # type: ignore[arg-type]

        search = StaleSearch(
            self._hit, runs.args, runs.kwargs, self._fresh(), run_eager, runs.of_entry, before=self._noted
        )
        runs.limit_search()
        try:
            return search.reads(runs.agree)
        except StoppedError:
            return ()
        except synchronous():  # the time is over, or a changed call can't be run
            return ()

    def _noted(self, read: Read, now: object) -> Optional[KnownBefore]:
        known = self._before(read, now)
        self._names.setdefault(id(now), read.text)
        if known is not None:
            self._changed.setdefault((read.function, read.text), (read, known, now))
        return known

    def _named(self, read: Read, value: object, words: str) -> str:
        """Return an object in words: another name of it says more than its address."""
        if " at 0x" not in words:
            return words
        holder, owner = read.text[: -len(str(read.name)) - 1], self._runs.original_of(read.owner)
        beside = getattr(owner, "__dict__", {}) if read.kind == ATTRIBUTE else {}
        names = (f"{holder}.{name}" for name, each in list(beside.items()) if each is value and name != read.name)
        other = next(names, self._names.get(id(value), read.text))
        return words if other == read.text else other

    def _fresh(self) -> Set[str]:
        """Return the sources of all guards before some were dropped, as far as they are known."""
        guards = self._unfiltered.of(self._hit.entry.guard_manager)
        return set() if guards is None else {line.source for line in EntryGuards.of(guards, "guard").lines}

    def _stale(self, proved: Sequence[StaleRead]) -> Tuple[str, Tuple[str, ...]]:
        """Return the cause in words, and the values that it quotes."""
        names: List[str] = []
        values: List[str] = []
        for read in proved[:_NAMED]:
            known = self._changed.get((read.function, read.name))
            if known is None:
                names.append(f"no guard checks {read.name}, read by {read.function}: {read.proof}")
                values.append(read.proof)
            else:
                was = self._named(known[0], known[1].value, known[1].words)
                now = self._named(known[0], known[2], in_words(known[2]))
                names.append(f"{read.name} was {was}, is {now}, and no guard checks it")
                values += [said for said in (was, now) if said in (known[1].words, in_words(known[2]))]
        return ("; or " if not proved[0].alone else "; ").join(names), tuple(values)


_ADVICE = "compile anew after the change (torch.compiler.reset()), or read the value where Dynamo guards it"


def in_short(wrong: Sequence[Measured]) -> str:
    """Return what differs, in one sentence: the first value, and how many there are."""
    first = wrong[0]
    error = "" if first.compiled is None else f" ({first.compiled})"
    more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    return cut(f"{first.name}: {first.reason}{error}{more}", _LONGEST)
