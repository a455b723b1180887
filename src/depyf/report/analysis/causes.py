"""The guard that caused a recompilation, among those that failed."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.diagnosis.guard import Guard, GuardKind
from depyf.diagnosis.guard_explanations import GuardExplanation
from depyf.diagnosis.guard_sources import as_written, in_words
from depyf.diagnosis.guard_text import read
from depyf.report.model.run import FailedGuard
from depyf.report.model.run import Guard as EntryGuard

Failures = List[Tuple[FailedGuard, GuardExplanation]]

_OF_SHAPE = frozenset((GuardKind.SIZE, GuardKind.STRIDE, GuardKind.RANK))


def what_is_new(failed: Failures, seen: Set[Tuple[str, str]]) -> Tuple[Failures, Failures]:
    """Split the failed guards, of which torch reports one for each entry, latest first: those with a new or unknown
    value, and the others. Values that the function has already been compiled for are not the cause. ``seen`` has the
    known values, and is updated.
    """
    news = [
        (guard, explained)
        for guard, explained in failed
        if guard.now is None or (_about(explained), guard.now) not in seen
    ]
    for guard, explained in failed:
        seen.update((_about(explained), value) for value in (guard.before, guard.now) if value is not None)
        if explained.guard.kind is GuardKind.CLASS:
            seen.add((explained.subject, "not None"))
    return news, [pair for pair in failed if pair not in news]


def _about(explained: GuardExplanation) -> str:
    """Return what the guard compares; sizes of several dimensions of a tensor are not the same."""
    return explained.checked if explained.guard.kind in _OF_SHAPE else explained.subject


def settings_changed(explained: GuardExplanation) -> int:
    """Return how many of PyTorch's global settings have changed: of several entries, the one with the fewest shows what
    is enough."""
    return len(explained.guard.operands) if explained.guard.kind is GuardKind.GLOBAL_STATE else 0


def required_values(guards: Sequence[EntryGuard]) -> Dict[str, str]:
    """Return the values that these guards require, by torch's names: constants, None, and sizes of tensors."""
    values: Dict[str, str] = {}
    for guard in guards:
        left, equals, right = guard.text.partition(" == ")
        if equals:
            values[left.strip()] = right.strip()
        elif guard.text == f"not {guard.source}":  # of an empty container
            values[f"len({guard.source})"] = "0"
        elif guard.text.endswith(" is None"):
            values[guard.text[: -len(" is None")]] = "None"
        elif guard.text.startswith("check_tensor("):
            tensor = read(guard.text)
            sizes = (tensor.tensor.sizes if tensor.tensor is not None else None) or ()
            values.update({f"{tensor.source}.size()[{at}]": size for at, size in enumerate(sizes) if size != "None"})
    return values


def also_fail(required: Mapping[str, str], explained: GuardExplanation, values: Mapping[str, str]) -> List[str]:
    """Return what a cache entry with these ``required_values`` has others of, apart from the guard that has failed:
    torch reports the first that fails, and what avoids that failure would not be enough."""
    failed = explained.guard
    differ: List[str] = []
    for name, value in required.items():
        now = values.get(name, value)
        if now != value and not _is_relation(now) and not _is_relation(value):
            differ.append(as_written(name))
    if not differ:
        return differ
    own = {explained.subject, f"len({explained.subject})", as_written(failed.code.partition(" == ")[0].strip())}
    if failed.kind is GuardKind.SIZE:
        own.add(f"{explained.subject}.size()[{failed.detail}]")
    if failed.kind is GuardKind.RANK:
        own.update(name for name in differ if name.startswith(f"{explained.subject}.size()["))
    return [in_words(name) for name in dict.fromkeys(differ) if name not in own]


def _is_relation(value: str) -> bool:
    """Return whether it names another value, as in ``L['x'].stride()[0] == L['x'].size()[1]``: both may be the same."""
    return "L['" in value or "G['" in value


def value_now(guard: Guard, values: Mapping[str, str]) -> Optional[str]:
    """Return the guarded value in the following compilation; ``values`` are by torch's names.

    torch writes ``x.n == 1`` in its reasons where its guards say ``L['x'].n``. For a range of a size it is what ``why``
    says: ``x.size()[0] is 5``.
    """
    if guard.kind is GuardKind.RELATION:
        return _size_now(as_written(guard.code), values)
    if guard.kind is GuardKind.CLASS:
        return "None" if any(as_written(each) == guard.subject and values[each] == "None" for each in values) else None
    if guard.kind is GuardKind.EMPTY:
        return _value_of(f"len({guard.source})", "0", values)
    if len(guard.operands) != 2:  # changed global state has as many as settings have changed
        return None
    return _value_of(guard.operands[0], guard.operands[1], values)


def _size_now(relation: str, values: Mapping[str, str]) -> Optional[str]:
    sizes = [each for each in relation.split(" <= ") if not each.isdigit()]
    found = {value for each, value in values.items() if [as_written(each)] == sizes}
    return f"{sizes[0]} is {min(found)}" if len(found) == 1 and min(found).isdigit() else None


def _value_of(source: str, before: str, values: Mapping[str, str]) -> Optional[str]:
    wanted = as_written(source)
    found = [value for each, value in values.items() if as_written(each) == wanted and value != before]
    return found[-1] if found else None
