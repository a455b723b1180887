"""Whether two runs of a program did the same: exit status, printed text, all that outermost calls computed and left.

A program that does not do the same in two runs of its own can't be verified, and no edit of it is kept. Floating point
numbers may differ by rounding, as kernels differ where graphs do; everything else has the same bits.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
from typing import Callable, Collection, Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.parted import relative_difference
from depyf.answers.recorded import LEAF, Digest, Event, Recording
from depyf.answers.worth import SLOWER
from depyf.base.messages import cut, duration
from depyf.base.quick_dataclass import dataclass
from depyf.base.source_lines import source_line
from depyf.fixing.trials import Trial
from depyf.report.diff.times import Times

_ALLOWED: Mapping[str, float] = {"float64": 1e-10, "complex128": 1e-10, "float32": 1e-5, "complex64": 1e-5}
_ALLOWED_OTHERWISE = 1e-2
"""The relative difference that may be rounding, by dtype; of half precision and below the last."""

_ADDRESS = re.compile(r"\b0x[0-9a-f]{4,}\b")
_NUMBER = re.compile(r"(\d[\d.]*(?:e[+-]?\d+)?)")
_OF_TORCHS_LOG = re.compile(r"(?:\[[^\]]*\]:)?[VIWECF]\d{4} |\[[VIWECF](?:\d{4} [\d:.]+)? \S+:\d+\] ")
"""The start of a line of torch's log in Python (each line has one), or in C++."""
_WARNING = re.compile(r"(.+?):(\d+): \w+: ")
_LONGEST_WARNING = 100
_LAST_CALLS = 20
_FEWEST_CALLS = 12
_CLEARLY = 1.3
"""A median of times that is so many times larger, beyond the noise, is worse."""


@dataclass(frozen=True)
class Baseline:
    """Two runs of the unchanged program; ``unstable`` are globals that differ between these runs, and ``masked`` the
    number of printed lines whose numbers do."""

    first: Trial
    second: Trial
    unstable: Tuple[str, ...] = ()
    masked: int = 0
    unseeded: Tuple[str, ...] = ()
    """The random number generators that the program does not seed."""


def baseline_of(first: Trial, second: Trial) -> Tuple[Optional[Baseline], str]:
    """Return the two runs as what candidates are compared with; or None and why they are none."""
    for each in (first, second):
        if each.unseen:
            return None, f"not all that the program computes could be recorded: {each.unseen[0]}"
    if first.status != second.status:
        return None, f"the program ends with exit status {first.status}, then with {second.status}"
    unstable = _unstable_globals(first.recording, second.recording)
    unseeded = _unseeded(first.recording, second.recording)
    why = _values_differ(first.recording, second.recording, unstable, unseeded, exactly=True)
    if why:
        return None, f"two runs of the unchanged program differ: {why}. Set seeds, so that it can be verified"
    if first.written.keys() != second.written.keys():
        return None, "two runs of the unchanged program write files of different names"
    if not first.times:
        return None, "no call of a module or compiled function was seen (calls of other threads are not seen)"
    out, masked = _text_differs(first.out, second.out, second.out)
    if out:
        return None, f"two runs of the unchanged program print different text: {out}"
    return Baseline(first, second, unstable, masked, unseeded), ""


def why_not_same(known: Baseline, trial: Trial, *, exact_text: bool, exactly: bool = False) -> str:
    """Return what a run did that the unchanged program does not do; empty if it did the same. ``exact_text``: nothing
    that is printed may differ between runs anyway; ``exactly``: not even rounding may differ."""
    if trial.timed_out:
        return "it takes more than three times as long"
    if trial.status != known.first.status:
        lines = [each.strip() for each in _without_torchs(trial.err).splitlines() if each.strip()]
        last = cut(lines[-1], 120) if lines else "no message"
        return f"it ends with exit status {trial.status}, and not {known.first.status}: {last}"
    if trial.unseen:
        return f"not all that it computes could be recorded: {trial.unseen[0]}"
    why = _values_differ(known.first.recording, trial.recording, known.unstable, known.unseeded, exactly=exactly)
    if why:
        return why
    if exact_text and known.masked:
        return "the program prints other numbers in each run, so that text that is moved can't be compared"
    why = _text_differs(known.first.out, known.second.out, trial.out)[0]
    if why:
        return f"it prints other text: {why}"
    errors = [_without_torchs(each.err) for each in (known.first, known.second, trial)]
    why, masked = _text_differs(*errors)
    if exact_text and masked:
        return "the program writes other numbers to stderr in each run, so that text that is moved can't be compared"
    if why:
        return f"it writes other text to stderr: {why}"
    return _files_differ(known, trial)


def _files_differ(known: Baseline, trial: Trial) -> str:
    """Return which file a run has written otherwise: text and names are compared, and sizes of other files."""
    first, second, now = known.first.written, known.second.written, trial.written
    for name in sorted({*first, *second, *now}):
        if (name in now) != (name in first):
            return f"it {'writes' if name in now else 'does not write'} the file {name}"
        if name in now and first[name] == second.get(name) != now[name]:
            return f"it writes other content to the file {name}"
    return ""


def _unstable_globals(one: Optional[Recording], other: Optional[Recording]) -> Tuple[str, ...]:
    """Return the globals that hold another number at the end of two runs, as a time does; tensors have to agree."""
    if one is None or other is None:
        return ()
    found = []
    sides = [
        {each.where: each.values for each in side.events if each.where.startswith("global ")} for side in (one, other)
    ]
    for where, values in sides[0].items():
        others = {each.name: each for each in sides[1].get(where, ())}
        differing = [each for each in values if each.name not in others or others[each.name].bits != each.bits]
        if differing and all(each.name.endswith((":float", ":int", ":str")) for each in values):
            found.append(where)
    return tuple(found)


def _values_differ(
    before: Optional[Recording],
    after: Optional[Recording],
    unstable: Collection[str],
    unseeded: Collection[str],
    *,
    exactly: bool,
) -> str:
    """Return what two recordings do not agree in; empty if they agree."""
    if before is None or after is None or before.damaged or after.damaged:
        return "what it computes was not recorded"
    ours, theirs = ([each for each in side.events if each.where not in unstable] for side in (before, after))
    for one, other, *drawn in zip(ours, theirs, _drawn(ours, unseeded), _drawn(theirs, unseeded)):
        if (one.kind, one.where) != (other.kind, other.where):
            return f"it calls {_where(other)} where the unchanged program calls {_where(one)}"
        if any(drawn[0][each] != drawn[1][each] for each in drawn[0] if each in drawn[1]):
            return f"random numbers are drawn in another way before {_where(one)}"
        if [each.name for each in one.values] != [each.name for each in other.values]:
            return f"{_where(one)} has other values, or other requires_grad"
        for mine, his in zip(one.values, _paired(one, other, exactly=exactly)):
            why = _differs(mine, his, exactly=exactly)
            if why:
                return f"{_where(one)}{f' {mine.name}' if mine.name else ''}: {why}"
    if len(ours) != len(theirs):
        return f"{len(theirs)} calls and values were recorded, and {len(ours)} of the unchanged program"
    return ""


def _paired(one: Event, other: Event, *, exactly: bool) -> List[Digest]:
    """Return the values of the second event in the order of the first one. Leaves without a name have no order: the
    gradients of these are compared as a multiset, which is all that is known of them. So each difference in a value is
    seen, but not that two such leaves have changed places; parameters and variables of the program have names."""
    left = [each for each in other.values if each.name == LEAF]
    pairs: Dict[int, Digest] = {}
    mine = [each for each in enumerate(one.values) if each[1].name == LEAF]
    # What has the same bits belongs together, then what agrees, then what has the same shape; the rest differs anyway.
    rules: Sequence[Callable[[Digest, Digest], bool]] = (
        lambda a, b: (a.dtype, a.shape, a.bits) == (b.dtype, b.shape, b.bits),
        lambda a, b: not _differs(a, b, exactly=exactly),
        lambda a, b: (a.dtype, a.shape) == (b.dtype, b.shape),
        lambda a, b: True,
    )
    for agree in rules:
        for at, value in mine:
            his = next((each for each in left if at not in pairs and agree(value, each)), None)
            if his is not None:
                pairs[at] = his
                left = [each for each in left if each is not his]
    return [pairs.get(at, each) for at, each in enumerate(other.values)]


def _drawn(events: Sequence[Event], unseeded: Collection[str]) -> List[Dict[str, object]]:
    """Return the states of the random number generators at each event; of those that the program does not seed, the
    number of their changes so far."""
    found: List[Dict[str, object]] = []
    changes: Dict[str, int] = {}
    last: Dict[str, str] = {}
    for event in events:
        states = dict(each.partition(":")[::2] for each in event.random.split())
        for name, state in states.items():
            changes[name] = changes.get(name, 0) + (last.get(name, state) != state)
        last.update(states)
        found.append({name: changes[name] if name in unseeded else state for name, state in states.items()})
    return found


def _unseeded(one: Optional[Recording], other: Optional[Recording]) -> Tuple[str, ...]:
    """Return the random number generators that begin with another state in two runs of the unchanged program."""
    if one is None or other is None or not one.events or not other.events:
        return ()
    states = [_drawn(side.events[:1], ())[0] for side in (one, other)]
    return tuple(name for name, state in states[0].items() if states[1].get(name) != state)


def _where(event: Event) -> str:
    return f"the {event.kind} of {event.where} (call {event.call})" if event.kind != "start" else event.where


def _differs(one: Digest, other: Digest, *, exactly: bool) -> str:
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return f"{other.dtype}{list(other.shape)} in the place of {one.dtype}{list(one.shape)}"
    if one.bits == other.bits:
        return ""
    if one.nonfinite != other.nonfinite:
        return f"{other.nonfinite} values are NaN or infinite, and not {one.nonfinite}"
    error = relative_difference(one, other)
    if one.is_discrete:
        return "another number"
    # Extremes of single values are compared, too, as a sketch has the size of the whole tensor. Where not even rounding
    # is allowed, the sign of a zero is: it is all that the bits can differ in then.
    allowed = 0.0 if exactly else _ALLOWED.get(one.dtype, _ALLOWED_OTHERWISE)
    size = max(abs(one.least), abs(one.most))
    extremes = max(abs(one.least - other.least), abs(one.most - other.most))
    if error <= allowed and extremes <= allowed * size:
        return ""
    return f"relative difference {max(error, extremes / size if size else error):.2g}"


def _text_differs(first: str, second: str, text: str) -> Tuple[str, int]:
    """Return where a text differs from two texts of the unchanged program, and how many lines have numbers that differ
    between these, which are not compared. Addresses count as equal."""
    sides: List[List[str]] = [_ADDRESS.sub("0x", each).splitlines() for each in (first, second, text)]
    if len({len(each) for each in sides[:2]}) > 1:
        return f"{len(sides[0])} lines, then {len(sides[1])}", 0
    masked = 0
    for one, other, now in zip(*sides):
        if one == other == now:
            continue
        parts = [_NUMBER.split(each) for each in (one, other, now)]
        same_shape = parts[0][::2] == parts[1][::2] == parts[2][::2]
        masked += one != other
        if not same_shape or any(a == b != c for a, b, c in zip(*parts)):
            return f"{cut(now, 100)!r} in the place of {cut(one, 100)!r}", masked
    if len(sides[0]) != len(sides[2]):
        return f"{len(sides[2])} lines, and not {len(sides[0])}", masked
    return "", masked


def _without_torchs(text: str) -> str:
    """Return what the program itself wrote to stderr: no lines of depyf, of torch's log, and no warnings of torch."""
    found: List[str] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        length = _length_of_warning(lines, at)
        is_ours = lines[at].startswith(("depyf:", "depyf ")) or _OF_TORCHS_LOG.match(lines[at])
        if not length and not is_ours:
            found.append(lines[at])
        at += length or 1
    return "\n".join(found)


def _length_of_warning(lines: Sequence[str], at: int) -> int:
    """Return how many lines a warning has that names a file of torch; 0 where none begins."""
    written = _WARNING.match(lines[at])
    if written is None or not written[1].startswith(_folder_of_torch()):
        return 0
    # The message may have several lines. The last one of the warning is the line of the source, if there is one.
    source = source_line(written[1], int(written[2]))
    if source:
        for last in range(at + 1, min(len(lines), at + _LONGEST_WARNING)):
            if lines[last] == f"  {source}":
                return last - at + 1
    return 1


@functools.lru_cache(maxsize=None)
def _folder_of_torch() -> str:
    """Return the folder of the torch that trials import. A folder of the program may have the same name."""
    spec = importlib.util.find_spec("torch")
    return os.path.join(os.path.dirname(spec.origin), "") if spec is not None and spec.origin else "torch is missing"


def slower(known: Baseline, trial: Trial) -> Tuple[str, str]:
    """Return why calls take clearly longer (empty if they do not), and their times before and after in words."""
    sides: List[Dict[str, List[float]]] = []
    for each in (known.first, known.second, trial):
        of_calls: Dict[str, List[float]] = {}
        for where, seconds in each.times:
            of_calls.setdefault(where, []).append(seconds)
        sides.append(of_calls)
    shown = []
    for where, before in sides[0].items():
        again, now = (side.get(where, []) for side in sides[1:])
        if min(len(before), len(again), len(now)) < _FEWEST_CALLS:
            continue
        # The first calls compile.
        last = [each[len(each) // 2 :][-_LAST_CALLS // 2 :] for each in (before, again, now)]
        times = Times((*last[0], *last[1]), tuple(last[2]))
        middle = [Times(tuple(each), (0.0,)).medians[0] for each in last]
        if times.verdict() == SLOWER and middle[2] > _CLEARLY * max(middle[:2]):
            return f"calls of {where} take longer: {duration(middle[2])}, and {duration(max(middle[:2]))} before", ""
        known_as = " and ".join(map(duration, sorted(middle[:2])))
        shown.append(f"{where} {known_as} in two runs before, {duration(middle[2])} after")
    return "", "; ".join(shown[:3]) or "too few calls to time"
