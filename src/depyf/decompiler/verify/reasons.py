"""Messages for differences: what differs, and whether that is certain."""

from __future__ import annotations

from itertools import zip_longest
from typing import AbstractSet, Dict, List, Mapping, Optional, Union

from depyf.base.messages import cut
from depyf.decompiler.verify.comparison import Comparison, Finding, MismatchError, OffsetPair
from depyf.decompiler.verify.joint import Joint, Matcher
from depyf.decompiler.verify.side import Side
from depyf.decompiler.verify.stops import Event, Exit, Stop
from depyf.decompiler.verify.values import Const, Maybe, Ref, Sym, Value


def offsets_of(joint: Joint) -> OffsetPair:
    """Return the bytecode offsets of both sides; -1 for a side that an exception has left."""
    return _offset(joint.left), _offset(joint.right)


def _offset(side: Side) -> int:
    return -1 if side.has_left else side.program.ops[side.position].offset


def where(joint: Joint) -> str:
    left, right = offsets_of(joint)
    return f"at offset {left} (candidate: {right})"


def different_event(joint: Joint, mine: Stop, theirs: Stop) -> MismatchError:
    """Return the error for different next events."""
    operands = [*_operands(mine), *_operands(theirs)]
    sure = not joint.doubtful and not any(_loose(value) for value in operands)
    return MismatchError(
        Finding.DIFFERENT if sure else Finding.UNVERIFIED,
        f"{where(joint)} the original does: {mine.describe()}; the candidate does: {theirs.describe()}",
    )


def operand_differs(
    joint: Joint, matcher: Matcher, mine: Union[Event, Exit], one: Value, other: Value
) -> MismatchError:
    """Return the error for the same event with different operands."""
    if matcher.nested is not None:
        return nested_differs(matcher.nested)
    sure = not joint.doubtful and not _loose(one) and not _loose(other)
    what, that = (_object(side, value) for side, value in zip(joint.sides(), (one, other)))
    inside = _texts_apart(one, other)
    if isinstance(one, Ref) and isinstance(other, Ref) and matcher.inner is not None:
        inside = ": {!r} inside of the one, {!r} inside of the other".format(*matcher.inner)
        inside = _texts_apart(*matcher.inner) or inside
    return MismatchError(
        Finding.DIFFERENT if sure else Finding.UNVERIFIED,
        f"{where(joint)} the original does: {mine.describe()}, with {what} where the candidate has {that}{inside}",
    )


def _texts_apart(one: Value, other: Value) -> str:
    """Describe where two texts of several lines begin to differ: the kernels in Inductor's files are such constants."""
    mine, theirs = (value.value if isinstance(value, Const) else None for value in (one, other))
    if not isinstance(mine, str) or not isinstance(theirs, str) or "\n" not in mine + theirs:
        return ""
    for number, (line, edited) in enumerate(zip_longest(mine.split("\n"), theirs.split("\n"), fillvalue=""), 1):
        if line != edited:
            return f": from line {number} of the text on, {cut(line, 120)!r} and {cut(edited, 120)!r}"
    return ""


_PARTS_OF_FUNCTIONS = ("default values", "keyword defaults", "annotations", "a closure")
"""What the flags of MAKE_FUNCTION say that a function has, from the lowest bit on."""


def _object(side: Side, value: Value) -> str:
    """Describe a value; a new function with its parts, as in ``<a new function with default values>``."""
    made = side.heap.get(value) if isinstance(value, Ref) else None
    if made is None or made.kind != "function" or not isinstance(made.detail, int):
        return repr(value) if made is None else f"<a new {made.kind}>"
    parts = [part for bit, part in enumerate(_PARTS_OF_FUNCTIONS) if made.detail >> bit & 1]
    return f"<a new function with {', '.join(parts) or 'no default values'}>"


def nested_differs(nested: Comparison) -> MismatchError:
    return MismatchError(nested.finding, f"in {nested.original_name}: {nested.reason}")


def _operands(stop: Stop) -> List[Value]:
    if isinstance(stop, Event):
        return list(stop.operands)
    return [stop.value] if isinstance(stop, Exit) else []


def _loose(value: Value) -> bool:
    return isinstance(value, Sym) and value.loose


def local_differs(name: str, mine: Optional[Value], theirs: Optional[Value], matcher: Matcher, location: str) -> str:
    if matcher.nested is not None:
        return nested_differs(matcher.nested).reason
    mine_text, theirs_text = ("nothing" if value is None else repr(value) for value in (mine, theirs))
    return f"locals: {location} {name!r} is {mine_text} in the original, {theirs_text} in the candidate"


def lifetimes(joint: Joint, onesided: AbstractSet[Value], location: str) -> str:
    """Describe which of the values ``onesided`` only one side still keeps alive."""
    texts = []
    for side, owner in zip(joint.sides(), ("original", "candidate")):
        held = [value for value in onesided if value in side.counts]
        if held:
            variables = _variables(side)
            names = ", ".join(sorted(f"{value!r} ({_holder(side, value, variables)})" for value in held))
            texts.append(f"only the {owner} keeps {names} alive")
    return f"lifetime: {location} " + "; ".join(texts)


def _variables(side: Side) -> Dict[Value, str]:
    """Return the first variable that holds a value, by the value."""
    variables: Dict[Value, str] = {}
    for name, held in side.locals.items():
        variables.setdefault(held, name)
        if isinstance(held, Maybe):
            variables.setdefault(held.inner, name)
    return variables


def _holder(side: Side, value: Value, variables: Mapping[Value, str]) -> str:
    if value in variables:
        return f"in {variables[value]}"
    return "on the stack" if value in side.stack else "inside something"
