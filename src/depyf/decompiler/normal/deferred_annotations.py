"""Annotations of a compiler since 3.14, which evaluates them when someone asks for them, beside older ones (PEP 649).

A newer function with annotations is made with one that computes them; here it gets them evaluated, as before:

    CONST <__annotate__>; MAKE_FUNCTION; CONST <f>; MAKE_FUNCTION 16       CONST 'a'; LOAD int; BUILD tuple 2;
                                                                            CONST <f>; MAKE_FUNCTION 4

The annotations of a class or module are compared one by one with those in the function that the newer side stores, by
their operations, and then taken out of both sides. Names in them are resolved at another time, and are compared as
names. Whatever has another shape stays as it is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.code import Code, is_code
from depyf.decompiler.normal.effects import begin_of_value
from depyf.decompiler.normal.ops import Instr, NormalCode, Op

Edits = Dict[int, Tuple[int, List[Instr]]]
"""Replacements by index: the number of operations, and those that replace them."""

_ANNOTATE = "__annotate__"
_CONDITIONAL = "__conditional_annotations__"
_STORED_AS = (("name", "__annotate__"), ("name", "__annotate_func__"))
_LOADS = {"bodyglobal": "name", "bodyderef": "classderef"}


@dataclass(frozen=True)
class _Annotation:
    """``name`` is annotated by the value of ``ops``; ``mark`` is the number that its statement adds to a set, if it may
    not be executed."""

    name: str
    ops: Tuple[Tuple[object, object], ...]
    mark: Optional[int] = None


def functions_evaluated(newer: NormalCode, lower: Callable[[Code], NormalCode]) -> Edits:
    """Return the edits that evaluate the annotations of the functions that ``newer`` makes."""
    edits: Edits = {}
    ops = newer.ops
    for at, instr in enumerate(ops):
        if instr.op is not Op.MAKE_FUNCTION or not instr.arg & 16:
            continue
        # The function that makes the annotations is below the closure, if there is one, and the code.
        before = at - 1
        if instr.arg & 8:
            found = begin_of_value(ops, before)
            before = at if found is None else found
        made = _annotate_made(ops, before)
        if made is None:
            continue
        first, code = made
        body = _returned(lower(code))
        if body is None or body[-1].op is not Op.BUILD or body[-1].arg[0] != "map":
            continue
        pairs = body[-1].changed(arg=("tuple", 2 * body[-1].arg[1]))
        evaluated = [_in_place(each, newer) for each in (*body[:-1], pairs)]
        edits[first] = before - first, [each.changed(offset=instr.offset, handler=instr.handler) for each in evaluated]
        edits[at] = 1, [instr.changed(arg=instr.arg & ~16 | 4)]
    return edits


def _annotate_made(ops: Sequence[Instr], end: int) -> Optional[Tuple[int, Code]]:
    """Return where the function that ends at ``end`` begins to be made, and its code, if it makes annotations."""
    if end < 2 or ops[end - 1].op is not Op.MAKE_FUNCTION or ops[end - 2].op is not Op.CONST:
        return None
    code = ops[end - 2].arg
    first = begin_of_value(ops, end)
    return (first, code) if first is not None and is_code(code) and code.co_name == _ANNOTATE else None


def _returned(annotate: NormalCode) -> Optional[Tuple[Instr, ...]]:
    """Return the operations after the test of the format, without RETURN, if they are one straight path."""
    # LOAD format; CONST 2; COMPARE >; BRANCH false -> 6; SPECIAL NotImplementedError; RAISE 1
    ops = annotate.ops
    start = next((instr.target for instr in ops[:8] if instr.op is Op.BRANCH), None)
    if start is None or not 4 <= start <= 8 or ops[-1].op is not Op.RETURN:
        return None
    body = ops[start:-1]
    jumps = any(instr.target is not None or instr.handler is not None for instr in body)
    return None if jumps or not body or any(instr.op in (Op.RETURN, Op.RAISE) for instr in body) else body


def _in_place(instr: Instr, around: NormalCode) -> Instr:
    """Return an operation of annotations as it is evaluated in the code ``around`` the function."""
    if instr.op is not Op.LOAD:
        return instr
    scope, name = instr.arg
    is_function = bool(around.code.co_flags & 1)
    return instr.changed(arg=("name" if scope == "global" and not is_function else _LOADS.get(scope, scope), name))


# --- classes and modules


def taken_out(
    older: NormalCode, newer: NormalCode, lower: Callable[[Code], NormalCode]
) -> Optional[Tuple[Edits, Edits]]:
    """Return the edits that take the annotations of a class or module out of both sides; ``None`` if they differ."""
    # From 3.14 on a function computes the annotations, and the body stores it once; before, the body evaluates each.
    stored = [
        (made[0], at, made[1])
        for at, instr in enumerate(newer.ops)
        if instr.op is Op.STORE and instr.arg in _STORED_AS
        for made in [_annotate_made(newer.ops, at)]
        if made is not None
    ]
    mine = _evaluated(older)
    theirs = _computed(lower(stored[0][2])) if len(stored) == 1 else None
    if mine is None or theirs is None or len(mine) != len(theirs):
        return None
    # The newer side loses the function and the marks of annotations that were reached, the older one SETUP_ANNOTATIONS.
    first, last, _code = stored[0]
    new_edits: Edits = {first: (last - first + 1, [])}
    old_edits: Edits = {at: (1, []) for at, instr in enumerate(older.ops) if instr.op is Op.SETUP_ANNOTATIONS}
    marks = {annotation.mark: annotation.name for annotation in theirs if annotation.mark is not None}
    new_edits.update(_marks(newer, marks))
    for (start, end, one), other in zip(mine, theirs):
        if (one.name, one.ops) != (other.name, other.ops):
            return None
        # An annotation without a mark is computed whatever the body did: the older body has to reach it always.
        if other.mark is None and not _is_always_reached(older.ops, start):
            return None
        instr = older.ops[end - 1]
        old_edits[start] = end - start, [] if other.mark is None else _noted(instr, other.name)
    return old_edits, new_edits


def _noted(instr: Instr, name: str) -> List[Instr]:
    """Return operations for the execution of an annotated statement, which are the same on both sides."""
    noted = instr.changed(op=Op.INTRINSIC, arg=("ANNOTATED", 1))
    return [instr.changed(op=Op.CONST, arg=name), noted, instr.changed(op=Op.POP, arg=None)]


def _marks(newer: NormalCode, marks: Dict[int, str]) -> Edits:
    """Return the edits for ``LOAD __conditional_annotations__; CONST 0; ADD set; POP``, and for the set itself."""
    edits: Edits = {}
    for at, instr in enumerate(newer.ops):
        if instr.op is Op.STORE and instr.arg[1] == _CONDITIONAL and newer.ops[at - 1].arg == ("set", 0):
            edits[at - 1] = 2, []
        if instr.op is Op.LOAD and instr.arg[1] == _CONDITIONAL:
            number = newer.ops[at + 1].arg
            kinds = [each.op for each in newer.ops[at + 1 : at + 4]]
            if kinds == [Op.CONST, Op.ADD, Op.POP] and number in marks:
                edits[at] = 4, _noted(instr, marks[number])
    return edits


def _evaluated(older: NormalCode) -> Optional[List[Tuple[int, int, _Annotation]]]:
    """Return where annotations are evaluated and stored."""
    # LOAD int; LOAD __annotations__; CONST 'x'; STORE_SUBSCR
    found = []
    ops = older.ops
    for at in range(len(ops) - 2):
        if ops[at].op is not Op.LOAD or ops[at].arg[1] != "__annotations__":
            continue
        start = begin_of_value(ops, at)
        if start is None or [each.op for each in ops[at + 1 : at + 3]] != [Op.CONST, Op.STORE_SUBSCR]:
            return None
        found.append((start, at + 3, _Annotation(ops[at + 1].arg, _comparable(ops[start:at]))))
    return found


def _computed(annotate: NormalCode) -> Optional[List[_Annotation]]:
    """Return the annotations that the function of a class or module computes, in order."""
    # BUILD map 0; [CONST 0; LOAD __conditional_annotations__; IN; BRANCH false;] LOAD int; COPY 2; CONST 'x';
    # STORE_SUBSCR; ...; RETURN
    ops = annotate.ops
    at = next((index for index, instr in enumerate(ops) if instr.op is Op.BUILD and instr.arg == ("map", 0)), len(ops))
    found: List[_Annotation] = []
    at += 1
    while at < len(ops) - 1:
        test = ops[at : at + 4]
        mark = None
        if [each.op for each in test] == [Op.CONST, Op.LOAD, Op.IN, Op.BRANCH] and test[1].arg[1] == _CONDITIONAL:
            mark, at = test[0].arg, at + 4
        end = next((index for index in range(at, len(ops)) if ops[index].op is Op.STORE_SUBSCR), None)
        if end is None or end < at + 3 or [each.op for each in ops[end - 2 : end]] != [Op.COPY, Op.CONST]:
            return None
        value = ops[at : end - 2]
        skips = mark is not None and test[3].target != end + 1
        if skips or ops[end - 2].arg != 2 or begin_of_value(ops, end - 2) != at:
            return None
        found.append(_Annotation(ops[end - 1].arg, _comparable(value), mark))
        at = end + 1
    return found if at == len(ops) - 1 and ops[at].op is Op.RETURN else None


def _comparable(ops: Sequence[Instr]) -> Tuple[Tuple[object, object], ...]:
    """Return operations with the types of their constants, and with names for loads, wherever they are resolved."""
    return tuple(
        (instr.op, instr.arg[1] if instr.op is Op.LOAD else (type(instr.arg), repr(instr.arg), instr.arg))
        for instr in ops
    )


def _is_always_reached(ops: Sequence[Instr], start: int) -> bool:
    """Return whether the operations at ``start`` are in no branch, loop or ``try`` (or that can't be seen)."""
    around = any(instr.target is not None and instr.target > start for instr in ops[:start])
    behind = any(instr.target is not None and instr.target <= start for instr in ops[start:])
    return not around and not behind and ops[start].handler is None


def with_edits(normal: NormalCode, edits: Edits) -> NormalCode:
    """Return ``normal`` with ``edits``. Jumps to a removed operation go to what follows."""
    ops: List[Instr] = []
    new_index: Dict[int, int] = {}
    at = 0
    while at < len(normal.ops):
        count, new = edits.get(at, (1, [normal.ops[at]]))
        for old in range(at, at + count):
            new_index[old] = len(ops)
        ops.extend(new)
        at += count
    return replace(normal, ops=tuple(instr.retargeted(new_index) for instr in ops))
