"""Add to PyTorch's reasons of a recompilation what only the running program shows, while the call is there.

PyTorch reports ``___check_obj_id(L['m'], 94), type=<class 'a.Mode'>``; that the one object is ``Mode.TRAIN`` and the
other ``Mode.EVAL`` is known in that moment only, and how many other guards of each entry fail. A module of its own: the
event is read later, without the program.
"""

from __future__ import annotations

import json
import sys
import weakref
from types import FrameType
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from depyf.answers.why import GuardFailure
from depyf.base.quick_dataclass import replace
from depyf.diagnosis.guard import Guard, GuardKind
from depyf.diagnosis.guard_explanations import GuardExplanation
from depyf.diagnosis.guard_sources import as_written
from depyf.diagnosis.guard_text import facts_of, read_failed
from depyf.dynamo.entries.entry_check import first_failure
from depyf.dynamo.guards.current_values import as_known_here
from depyf.dynamo.guards.entry_guards import Checked, EntryGuards
from depyf.dynamo.guards.failing import failing_guards
from depyf.dynamo.guards.live_facts import WITH_FACTS, with_facts
from depyf.dynamo.hooks import cache_entries, private_names
from depyf.torch_trace import recompiles
from depyf.torch_trace.events import RECOMPILATION, Event

_MOST_OTHERS = 20
"""So many guards are noted that fail beside the first one of an entry."""

_MOST_ENTRIES, _MOST_GUARDS, _MOST_FAILING = 16, 2000, 100
"""The bounds on what is looked up: entries, in PyTorch's order (what was made or used last comes first); guards of
entries that have been searched for all guards that fail before; and guards of one entry that fail, which are explained.
Each entry is searched once, when it is among the first. PyTorch's limit is 8 entries, unless the program raises it.

Measured with 120 blocks of three modules (360 modules, about 3,000 guards an entry), of which all parameters change
their dtype (the worst case), on PyTorch 2.13 with the backend "eager": 0.35 to 0.43 s of CPU time in each of five
recompilations, 6 to 9 % of their 4.3 to 6.2 s. Without these bounds it was 0.7 s in the first (16 %) and 3.7 s in the
fifth (71 %): each entry cost as much again, and half of that was explaining 1,000 guards. Of 60 blocks it is 5 to 9 %
(with a bound of 3,000, which two entries keep to, up to 25 %), of 30 blocks 10 to 21 % of 1 to 1.7 s. Inductor takes
longer, so that the share is smaller.
"""


def with_live_facts(event: Event) -> Event:
    """Return the event with facts of the call that is compiled again; other events as they are."""
    if event.name != RECOMPILATION:
        return event
    frame = _frame_of_torch()
    if frame is None:
        return event
    reasons = recompiles.reasons_of(event)
    first, rest = reasons[:_MOST_ENTRIES], reasons[_MOST_ENTRIES:]
    known = [_with_facts(reason, frame, causes) for reason, causes in zip(first, _causes(first, frame))]
    known += map(_with_names, rest)
    return event if known == reasons else replace(event, text=json.dumps(known))


def _frame_of_torch() -> Optional[FrameType]:
    """Return the frame of PyTorch's function that collects the reasons; it has the frame that is compiled."""
    caller: Optional[FrameType] = sys._getframe(1)
    while caller is not None and private_names.RECOMPILED_FRAME.in_frame(caller) is None:
        caller = caller.f_back
    return caller


def _causes(reasons: Sequence[str], frame: FrameType) -> List[Tuple[GuardFailure, ...]]:
    """Return all guards that fail on their own in the entry of each reason; none if they are not known."""
    compiled = private_names.RECOMPILED_FRAME.in_frame(frame)
    values, code = dict(getattr(compiled, "f_locals", {})), getattr(compiled, "f_code", None)
    entries: object = private_names.FAILED_ENTRIES.in_frame(frame)
    if code is not None and not isinstance(entries, list):  # before 2.13
        entries = cache_entries.cache_entries(code)
    if not isinstance(entries, list):
        return [()] * len(reasons)
    managers = {str(getattr(each, "compile_id", None)): cache_entries.guards_of(each) for each in entries}
    found: List[Tuple[GuardFailure, ...]] = []
    number = 0
    known: Dict[int, Checked] = {}
    for reason in reasons:
        failed = recompiles.failed_guard(reason)
        manager = managers.get(failed.entry or "")
        if manager is None or code is None or number + _NUMBERS.get(manager, 0) > _MOST_GUARDS:
            found.append(())
        else:
            first, _ = first_failure(manager, values)
            failing = failing_guards(manager, values, first, code.co_filename, most=_MOST_FAILING, known=known)
            _NUMBERS[manager] = failing.of
            number += failing.of
            found.append(failing.causes)
    return found


_NUMBERS: weakref.WeakKeyDictionary[object, int] = weakref.WeakKeyDictionary()
"""The numbers of guards of the entries whose guards were looked at."""


def _with_facts(reason: str, frame: FrameType, causes: Sequence[GuardFailure]) -> str:
    guard = read_failed(recompiles.failed_guard(reason))
    together = next((each.explanation.guard.together for each in causes if each.explanation.guard.together), ())
    known = replace(as_known_here(guard), differences=len(causes))
    if guard.kind is GuardKind.SIZE:
        known = replace(known, together=together)
    if guard.kind is GuardKind.MISSING and causes:
        missing = causes[0].explanation.guard
        known = replace(
            known,
            kind=missing.kind,
            source=missing.source,
            detail=missing.detail,
            expected=missing.expected,
            actual=missing.actual,
        )
    if guard.kind in WITH_FACTS:
        compiled = private_names.RECOMPILED_FRAME.in_frame(frame)
        values, scope = dict(getattr(compiled, "f_locals", {})), getattr(compiled, "f_globals", {})
        entry = recompiles.failed_guard(reason).entry
        known = with_facts(known, _in_entry(known, entry, frame), values, scope)
    others = [recompiles.with_facts(each.guard.code, facts_of(each.guard)) for each in _others(causes)]
    if known == guard and not causes:
        return reason
    facts = {**facts_of(known), recompiles.OTHERS: json.dumps(others)} if causes else facts_of(known)
    return recompiles.with_facts(reason, facts)


def _with_names(reason: str) -> str:
    """Return a reason with what is known of its guard without the entry: the object that has an id, the state now."""
    guard = read_failed(recompiles.failed_guard(reason))
    known = as_known_here(guard)
    return reason if known == guard else recompiles.with_facts(reason, facts_of(known))


def _others(causes: Sequence[GuardFailure]) -> Iterator[GuardExplanation]:
    """Yield the guards that fail beside the first: one for each value and cause, and not more than are shown."""
    seen = {(each.explanation.subject, each.explanation.cause) for each in causes[:1]}
    for each in (failure.explanation for failure in causes[1:]):
        key = each.subject, each.cause
        if key not in seen and len(seen) <= _MOST_OTHERS:
            seen.add(key)
            yield each


def _in_entry(guard: Guard, entry: Optional[str], frame: FrameType) -> Guard:
    """Return the guard as its entry has it: PyTorch's reason does not say which tensor a check of metadata is about,
    nor what else the entry requires of a tensor."""
    if guard.kind is GuardKind.METADATA:
        return next((each for each in _guards_of(None, frame) if each.identity == guard.identity), guard)
    if guard.kind is GuardKind.SIZE:
        of_tensor = (each for each in _guards_of(entry, frame) if each.tensor is not None)
        return next((each for each in of_tensor if as_written(each.source) == as_written(guard.source)), guard)
    return guard


def _guards_of(wanted: Optional[str], frame: FrameType) -> Iterator[Guard]:
    """Yield the guards of the entry with this compile id, or of all."""
    entries = private_names.FAILED_ENTRIES.in_frame(frame)
    for entry in entries if isinstance(entries, list) else ():
        if wanted not in (None, str(getattr(entry, "compile_id", None))):
            continue
        for line in EntryGuards.of(entry.guard_manager, "guard").lines:
            yield line.guard if line.guard.source else replace(line.guard, source=line.source)
