"""The guard that caused a recompilation, among those that failed."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar, Union

from depyf.base.quick_dataclass import replace
from depyf.diagnosis.compiled_meanwhile import COMPILED_MEANWHILE
from depyf.diagnosis.guard import Guard, GuardKind
from depyf.diagnosis.guard_advice import GuardCause, GuardedFrame
from depyf.diagnosis.guard_explanations import GuardExplanation, explain, with_sizes_together
from depyf.diagnosis.guard_sources import as_written
from depyf.diagnosis.guard_text import read
from depyf.report.model.run import EntryGuard, FailedEntryGuard
from depyf.torch_trace.guards import GuardText

Failures = List[Tuple[FailedEntryGuard, GuardExplanation]]

_OF_AN_OBJECT = frozenset((GuardCause.IDENTITY, GuardCause.MEMBER, GuardCause.NAMED))
_OF_SHAPE = frozenset((GuardKind.SIZE, GuardKind.STRIDE, GuardKind.RANK))


Pair = TypeVar("Pair", bound=Tuple[object, GuardExplanation])


def what_is_new(failed: Sequence[Pair], seen: Set[Tuple[str, str]]) -> Tuple[List[Pair], List[Pair]]:
    """Split the failed guards into guards whose value is new or unknown, and the others.

    torch reports a failed guard for each entry, the latest entry first. A value that the function has already been
    compiled for is not the cause of a recompilation. ``seen`` has the known values, and is updated.
    """
    values = [(pair, None if pair[1].cause is GuardCause.SIZES else pair[1].now) for pair in failed]
    news = [pair for pair, now in values if now is None or (_about(pair[1]), now) not in seen]
    for (_, explained), now in values:
        seen.update((_about(explained), value) for value in (explained.before, now) if value is not None)
        if explained.guard.kind is GuardKind.CLASS:
            seen.add((explained.subject, "not None"))
    return news, [pair for pair in failed if pair not in news]


def _about(explained: GuardExplanation) -> str:
    """Return what the guard compares; sizes of several dimensions of a tensor are not the same."""
    return explained.checked if explained.guard.kind in _OF_SHAPE else explained.subject


def nearest(news: Sequence[Pair], rest: Sequence[Pair] = ()) -> List[Pair]:
    """Return the failed guards, one for each entry, in the order of how much the call differs from the entry, as far as
    that is known; among equals, what the caller can avoid first. The values of the guards in ``rest`` were compiled for
    before: another entry of the same object shows the cause, even if the call differs more from that. Entries that
    another thread has compiled meanwhile come first, entries whose number of differences is unknown last, both in the
    given order."""
    failed, known = [*news, *rest], {id(pair) for pair in rest}

    def distance(pair: Pair) -> Tuple[int, ...]:
        explained = pair[1]
        if explained.kind == COMPILED_MEANWHILE:
            return (0,)
        if not explained.guard.differences:
            return (2,)
        is_for_another = any(each.is_for_another for each in (explained, *explained.others))
        differences = explained.guard.differences
        return 1, is_for_another, id(pair) in known, differences, values_changed(explained), explained.is_of_a_kind

    return sorted(failed, key=distance)


def values_changed(explained: GuardExplanation) -> int:
    """Return how many of PyTorch's global settings, or sizes of one tensor, have changed: of several entries, the one
    with the fewest shows what is enough."""
    sizes = explained.guard.detail.count(", ") if explained.guard.kind is GuardKind.SIZE else 0
    return len(explained.guard.changed) + sizes


def required_values(guards: Sequence[Union[EntryGuard, GuardText]]) -> Dict[str, str]:
    """Return the values that these guards require, by torch's names: constants, None, and sizes of tensors. A
    relation of two values holds for many, so it requires none."""
    values: Dict[str, str] = {}
    for guard in guards:
        # ``L['n'] == 3``, ``not L['items']``, ``L['mask'] is None``, ``check_tensor(L['x'], ..., size=[4, 8])``
        left, equals, right = guard.text.partition(" == ")
        # ``L['x'].stride()[0] == L['x'].size()[1]`` names another value: both may be the same.
        if equals and "L['" not in right and "G['" not in right:
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


def with_others(
    required: Mapping[str, str], explained: GuardExplanation, values: Mapping[str, str], frame: GuardedFrame
) -> GuardExplanation:
    """Return the explanation with the values, besides the failed guard's, in which the call differs from a cache entry
    with these ``required_values``. torch reports the first guard that fails; to avoid that failure alone would not be
    enough."""
    failed = explained.guard
    changed = {as_written(name): (name, value) for name, value in required.items() if values.get(name, value) != value}
    differ = list(changed)
    if not differ:
        return explained
    # What the failed guard compares does not count, nor do the sizes of a tensor that has another rank now.
    own = {explained.subject, f"len({explained.subject})", as_written(failed.code.partition(" == ")[0].strip())}
    if failed.kind is GuardKind.SIZE:
        own.update(f"{explained.subject}.size()[{at}]" for at in failed.detail.split(", "))
    if failed.kind is GuardKind.RANK:
        own.update(name for name in differ if name.startswith(f"{explained.subject}.size()["))
    if explained.cause in _OF_AN_OBJECT:  # other values of another object follow from it
        own.update(name for name in differ if name.startswith((f"{explained.subject}.", f"{explained.subject}[")))
    if explained.cause is GuardCause.MODES:  # the default device is one
        own.update(name for name in differ if "CURRENT_DEVICE" in name or "mode_stack" in name)
    found = (_guard_of(*changed[name], values[changed[name][0]]) for name in differ if name not in own)
    explained, *others = with_sizes_together([explained, *(explain(each, frame) for each in found)], frame)
    return replace(explained, others=tuple(others))


def _guard_of(name: str, required: str, now: str) -> Guard:
    """Return the guard on a value, by one of torch's names, that requires another value than that of now."""
    source, _, at = name.partition(".size()[")
    if at:
        return Guard(GuardKind.SIZE, source, required, now, detail=at.rstrip("]"), code=f"{name} == {required}")
    return read(f"{name} is None" if required == "None" else f"{name} == {required}").with_actual(now)


def with_all_sizes(guard: Guard, required: Mapping[str, str], values: Mapping[str, str]) -> Guard:
    """Return a guard on one size of a tensor with all sizes in which the call differs from the entry."""
    if guard.kind is not GuardKind.SIZE or guard.expected is None or guard.actual is None:
        return guard
    if not guard.detail.isdecimal():  # the running program has shown all
        return guard
    changed = {int(guard.detail): (guard.expected, guard.actual)}
    for name, size in required.items():
        source, _, at = name.partition(".size()[")
        now = values.get(name, size)
        if at and as_written(source) == guard.subject and now != size:
            changed.setdefault(int(at.rstrip("]")), (size, now))
    if len(changed) < 2:
        return guard
    pairs = sorted(changed.items())
    detail, before, now = (", ".join(texts) for texts in zip(*((str(at), one, other) for at, (one, other) in pairs)))
    return replace(guard, detail=detail, expected=before, actual=now)


def value_now(guard: Guard, values: Mapping[str, str]) -> Optional[str]:
    """Return the guarded value in the following compilation; ``values`` are by torch's names.

    torch writes ``x.n == 1`` in its reasons where its guards say ``L['x'].n``. For a range of a size it is what ``why``
    says: ``x.size()[0] is 5``.
    """
    if guard.kind is GuardKind.RELATION:
        return _size_now(guard, values)
    if guard.kind is GuardKind.CLASS:
        return "None" if any(as_written(each) == guard.subject and values[each] == "None" for each in values) else None
    if guard.kind is GuardKind.EMPTY:
        return _value_of(f"len({guard.source})", "0", values)
    if len(guard.operands) != 2:
        return None
    return _value_of(guard.operands[0], guard.operands[1], values)


def _size_now(relation: Guard, values: Mapping[str, str]) -> Optional[str]:
    if set(relation.operators) != {"<="}:
        return None
    sizes = [as_written(each) for each in relation.operands if not each.isdigit()]
    found = {value for each, value in values.items() if [as_written(each)] == sizes}
    return f"{sizes[0]} is {min(found)}" if len(found) == 1 and min(found).isdigit() else None


def _value_of(source: str, before: str, values: Mapping[str, str]) -> Optional[str]:
    wanted = as_written(source)
    found = [value for each, value in values.items() if as_written(each) == wanted and value != before]
    return found[-1] if found else None
