"""What a newer compiler does differently with the same source, as one table.

Each change has the version that it came with and up to two rules on the normal form: ``older`` writes what an older
compiler emitted as the newer one does, ``newer`` writes what the newer one emits as older ones did. A rule gets the
operations and an index, and returns how many operations it replaces there and by what, or ``None``. ``across`` applies
the rules of the changes between two versions; the verifier compares what is left, and names the changes that it needed.

A rule may only relate what two compilers make of one source: its test has a similar program that is not related.
"""

from __future__ import annotations

import functools
import inspect
from typing import Callable, List, Optional, Sequence, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.code import docstring, is_code
from depyf.decompiler.bytecode.opcode_table import Version
from depyf.decompiler.normal.effects import begin_of_value
from depyf.decompiler.normal.ops import Instr, Op

Edit = Optional[Tuple[int, List[Instr]]]
"""The number of operations to replace from an index on, and their replacements."""

Rule = Callable[[Sequence[Instr], int], Edit]


@dataclass(frozen=True)
class CompilerChange:
    """A change of CPython's compiler, new in ``since``. ``what`` is for the reader of a verdict."""

    since: Version
    what: str
    older: Optional[Rule] = None
    newer: Optional[Rule] = None


def _at(ops: Sequence[Instr], index: int, op: Op, arg: object = ...) -> bool:
    return index < len(ops) and ops[index].op is op and (arg is ... or ops[index].arg == arg)


# --- 3.9

_UNPACKED = {
    "tuple_of": ("list", "list"),
    "arguments_of": ("list", "list"),
    "list_of": ("list", "list"),
    "set_of": ("set", "set"),
    "map_of": ("map", "map"),
    "keywords_of": ("map", "kwargs"),
}
"""Containers built from several iterables at once: the container that collects them since, and its update."""

_LONGEST = 500
"""The limit on constants of a set in one search: each constant before a set starts a search."""

_ATOMS = (type(None), bool, int, float, complex, str, bytes)


def _unpacked_one_by_one(ops: Sequence[Instr], index: int) -> Edit:
    """``[*a, *b]``: 3.8 builds a list of two iterables at once, 3.9 extends an empty list twice. (3.8 evaluates all
    iterables first; the comparison shows whether that matters.)"""
    instr = ops[index]
    if instr.op is not Op.BUILD or instr.arg[0] not in _UNPACKED:
        return None
    kind, count = instr.arg
    container, update = _UNPACKED[kind]
    # a b c -> a b c [] -> [] b c a: the SWAP puts the container below all iterables, and the first of these on top.
    made = [instr.changed(op=Op.BUILD, arg=(container, 0)), instr.changed(op=Op.SWAP, arg=count + 1)]
    waiting = [*range(1, count), 0]
    for number in range(count):
        depth = len(waiting) - waiting.index(number)
        if depth > 1:
            made.append(instr.changed(op=Op.SWAP, arg=depth))
            waiting[-depth], waiting[-1] = waiting[-1], waiting[-depth]
        waiting.pop()
        made.append(instr.changed(op=Op.UPDATE, arg=(update, len(waiting) + 1)))
    if kind in ("tuple_of", "arguments_of"):
        made.append(instr.changed(op=Op.LIST_TO_TUPLE, arg=None))
    return 1, made


def _set_of_constants(ops: Sequence[Instr], index: int) -> Edit:
    """``{1, 2, 3}``: 3.9 updates an empty set with a constant frozenset."""
    instr, end = ops[index], index
    if instr.op is not Op.CONST:
        return None
    while end < len(ops) and end - index < _LONGEST and ops[end].op is Op.CONST:
        end += 1
    made = _at(ops, end, Op.BUILD, ("set", end - index))
    if not made or end - index < 3 or not all(type(each.arg) in _ATOMS for each in ops[index:end]):
        return None
    members = frozenset(each.arg for each in ops[index:end])
    empty = instr.changed(op=Op.BUILD, arg=("set", 0))
    return end - index + 1, [empty, instr.changed(arg=members), ops[end].changed(op=Op.UPDATE, arg=("set", 1))]


def _keywords_merged(ops: Sequence[Instr], index: int) -> Edit:
    """``f(**a)``: 3.8 hands on the mapping, 3.9 merges it into a new dict. (``f(**a, **b)`` is in ``_UNPACKED``.)"""
    instr = ops[index]
    given = ops[index - 1] if index else None
    merged = given is not None and given.op is Op.BUILD and given.arg[0] == "keywords_of"
    if instr.op is not Op.CALL_EX or not instr.arg[0] or merged:
        return None
    fresh = [instr.changed(op=Op.BUILD, arg=("map", 0)), instr.changed(op=Op.SWAP, arg=2)]
    return 1, [*fresh, instr.changed(op=Op.UPDATE, arg=("kwargs", 1)), instr]


def _assertion_by_name(ops: Sequence[Instr], index: int) -> Edit:
    if not _at(ops, index, Op.SPECIAL, "AssertionError"):
        return None
    return 1, [ops[index].changed(op=Op.LOAD, arg=("global", "AssertionError"))]


# --- 3.11, 3.12


def _awaited_anywhere(ops: Sequence[Instr], index: int) -> Edit:
    instr = ops[index]
    return (1, [instr.changed(arg=0)]) if instr.op is Op.AWAITABLE and instr.arg else None


def _super_by_call(ops: Sequence[Instr], index: int) -> Edit:
    """``super(A, self).name`` was a call of two arguments, and an attribute; ``super().name`` a call of none."""
    instr, loads = ops[index], ops[index : index + 3]
    if instr.op is Op.SUPER_ATTR:
        return 1, [instr.changed(op=Op.CALL, arg=(2, (), "")), instr.changed(op=Op.ATTR, arg=instr.arg[0])]
    # super().name: the operands __class__ and self are loaded, too; older code called without arguments.
    if [load.op for load in loads] == [Op.LOAD, Op.LOAD, Op.SUPER_ATTR] and loads[0].arg[1] == "__class__":
        name, with_arguments = loads[2].arg
        if not with_arguments:
            return 3, [loads[2].changed(op=Op.CALL, arg=(0, (), "")), loads[2].changed(op=Op.ATTR, arg=name)]
    return None


def without_class_cell(ops: Sequence[Instr], index: int) -> Edit:
    """NAMESPACE; STORE __classdict__ at the start of a class, CLOSURE __classdict__; STORE __classdictcell__ at the
    end: a cell for annotations and type parameters in the class. ``across`` drops it where the older side has none."""
    if _at(ops, index, Op.NAMESPACE) and _at(ops, index + 1, Op.STORE) and ops[index + 1].arg[1] == "__classdict__":
        return 2, []
    if _at(ops, index, Op.CLOSURE, "__classdict__") and _at(ops, index + 1, Op.STORE, ("name", "__classdictcell__")):
        return 2, []
    return None


# --- 3.13


def _class_facts(ops: Sequence[Instr], index: int) -> Edit:
    """CONST 12; STORE __firstlineno__: what a class body of an older Python does not have."""
    since = (("name", "__firstlineno__"), ("name", "__static_attributes__"))
    found = _at(ops, index, Op.CONST) and _at(ops, index + 1, Op.STORE) and ops[index + 1].arg in since
    return (2, []) if found else None


def _cleaned_docstring(ops: Sequence[Instr], index: int) -> Edit:
    """The docstring of a class or module, which loses its indentation."""
    instr = ops[index]
    stored = _at(ops, index + 1, Op.STORE, ("name", "__doc__")) and instr.op is Op.CONST
    if not stored or type(instr.arg) is not str or not instr.arg:
        return None
    return 1, [instr.changed(arg=compiled_docstring(instr.arg))]


@functools.lru_cache(maxsize=256)
def compiled_docstring(text: str) -> str:
    """Return ``text`` as the running compiler stores it where it is a docstring."""
    module = compile(f"def f():\n  {text!r}\n", "<docstring>", "exec", dont_inherit=True, optimize=0)
    (function,) = (constant for constant in module.co_consts if inspect.iscode(constant))
    compiled = docstring(function)
    return text if compiled is None else compiled


def _converted_before(ops: Sequence[Instr], index: int) -> Edit:
    """``f"{x!s:30}"``: the conversion is an operation of its own, before the format specification. (One that evaluates
    something was evaluated before the conversion; the comparison shows that.)"""
    instr = ops[index]
    if instr.op is not Op.FORMAT or not instr.arg[0] or not instr.arg[1]:
        return None
    swap, convert = instr.changed(op=Op.SWAP, arg=2), instr.changed(op=Op.CONVERT, arg=instr.arg[0])
    return 1, [swap, convert, swap, instr.changed(arg=("", True))]


# --- 3.14


def _not_tested_twice(ops: Sequence[Instr], index: int) -> Edit:
    """``(a and b) or c``: where ``a`` is false, the test of ``a and b`` does not test it again.

    COPY 1; BRANCH false -> 1; ...; 1: COPY 1; BRANCH true -> 2; 3:      the first jumps to 3
    """
    test = ops[index]
    target = test.target
    if test.op is not Op.BRANCH or target is None or not _at(ops, index - 1, Op.COPY, 1) or not index:
        return None
    if not _at(ops, target, Op.COPY, 1) or not _at(ops, target + 1, Op.BRANCH):
        return None
    again = ops[target + 1]
    if test.arg not in ("true", "false") or again.arg not in ("true", "false"):
        return None
    return 1, [test.changed(target=again.target if again.arg == test.arg else target + 2)]


def _call_not_inlined(builtins: Tuple[str, ...], ops: Sequence[Instr], index: int) -> Edit:
    """``any(x for x in xs)``: if the name is bound to the builtin, a loop replaces the call.

    LOAD any; COPY 1; SPECIAL any; IS; BRANCH false -> call; POP; ... the loop ...      call: NULL; CONST <genexpr>; ...
    """
    # No source but such a call compares a value with a builtin that is not looked up.
    test = ops[index : index + 4]
    if [each.op for each in test] != [Op.COPY, Op.SPECIAL, Op.IS, Op.BRANCH] or test[0].arg != 1 or test[2].arg:
        return None
    if test[1].arg not in builtins or test[3].arg != "false" or not _at(ops, index + 4, Op.POP):
        return None
    target = test[3].target
    made = next((at for at in range(target or 0, len(ops)) if ops[at].op is not Op.NULL), len(ops))
    while _at(ops, made, Op.CLOSURE) or _at(ops, made, Op.BUILD):
        made += 1
    if not _at(ops, made, Op.CONST) or not is_code(ops[made].arg) or ops[made].arg.co_name != "<genexpr>":
        return None
    return 4, [test[3].changed(op=Op.JUMP, arg=None)]


def _no_set_of_annotations(ops: Sequence[Instr], index: int) -> Edit:
    """BUILD set 0; STORE __conditional_annotations__; SETUP_ANNOTATIONS: annotations evaluated at once, as with
    ``from __future__ import annotations``, need no set of those whose statements were executed, and it stays empty."""
    stored = _at(ops, index + 1, Op.STORE) and ops[index + 1].arg[1] == "__conditional_annotations__"
    at_once = _at(ops, index, Op.BUILD, ("set", 0)) and _at(ops, index + 2, Op.SETUP_ANNOTATIONS)
    return (2, []) if stored and at_once else None


_INLINED_3_14 = ("all", "any", "tuple")
_not_inlined_3_14 = functools.partial(_call_not_inlined, _INLINED_3_14)
_not_inlined_3_15 = functools.partial(_call_not_inlined, (*_INLINED_3_14, "list", "set"))


# --- 3.15


def _eager_import(ops: Sequence[Instr], index: int) -> Edit:
    """An import in a function, class or ``try`` is marked as one that is never lazy."""
    instr = ops[index]
    return (1, [instr.changed(arg=(instr.arg[0], ""))]) if instr.op is Op.IMPORT and instr.arg[1] == "eager" else None


def _iterated_inside(ops: Sequence[Instr], index: int) -> Edit:
    """``(x for x in xs)``: the generator itself makes the iterator, and not the code around it.

    CONST <genexpr>; MAKE_FUNCTION; LOAD xs; ITER; CALL 0
    """
    # The ITER just before the call belongs to a generator expression if the operation that made the callable, which is
    # the first below the iterable, is the MAKE_FUNCTION of one.
    if not _at(ops, index, Op.ITER) or not _at(ops, index + 1, Op.CALL) or ops[index + 1].arg[1]:
        return None
    return (1, []) if _callee_is_generator(ops, index) else None


def _callee_is_generator(ops: Sequence[Instr], index: int) -> bool:
    begun = begin_of_value(ops, index)
    at = -1 if begun is None else begun - 1
    while at >= 0 and ops[at].op is Op.NULL:
        at -= 1
    before = ops[at - 1].arg if at > 0 and ops[at].op is Op.MAKE_FUNCTION and ops[at - 1].op is Op.CONST else None
    return is_code(before) and before.co_name == "<genexpr>"


def _iterates_argument(ops: Sequence[Instr], index: int) -> Edit:
    """``LOAD .0; FOR`` at the start of a generator expression is ``LOAD .0; ITER; FOR`` since."""
    if not _at(ops, index, Op.LOAD, ("fast", ".0")) or not _at(ops, index + 1, Op.FOR, False):
        return None
    return 1, [ops[index], ops[index].changed(op=Op.ITER, arg=None)]


def _iterator_made_late(ops: Sequence[Instr], index: int) -> Edit:
    """An inlined comprehension makes its iterator after it has saved the variables of the code around it.

    ITER; TAKE x ...; SWAP; BUILD list; SWAP 2; FOR      ITER is just before FOR
    """
    end = index + 1
    while _at(ops, end, Op.TAKE) or _at(ops, end, Op.MAKE_CELL):
        end += 1
    shape = [each.op for each in ops[end : end + 4]] == [Op.SWAP, Op.BUILD, Op.SWAP, Op.FOR]
    if ops[index].op is not Op.ITER or end == index + 1 or not shape or ops[end + 1].arg[1] or ops[end + 2].arg != 2:
        return None
    return end + 3 - index, [*ops[index + 1 : end + 3], ops[index].changed(handler=ops[end + 2].handler)]


CHANGES = (
    CompilerChange((3, 9), "unpacked keywords are merged into a new dict", older=_keywords_merged),
    CompilerChange((3, 9), "several unpacked iterables are collected one by one", older=_unpacked_one_by_one),
    CompilerChange((3, 9), "a set of constants is made of one constant", older=_set_of_constants),
    CompilerChange((3, 9), "assert raises AssertionError itself, not the variable", newer=_assertion_by_name),
    CompilerChange(
        (3, 11), "an awaitable records where it is awaited", older=_awaited_anywhere, newer=_awaited_anywhere
    ),
    CompilerChange((3, 12), "super().name is one operation", newer=_super_by_call),
    CompilerChange((3, 13), "a value is converted before its format is evaluated", older=_converted_before),
    CompilerChange((3, 13), "docstrings lose their indentation", older=_cleaned_docstring),
    CompilerChange((3, 12), "a value may be tested twice", _not_tested_twice, _not_tested_twice),
    CompilerChange((3, 13), "classes store their first line and the attributes of their methods", newer=_class_facts),
    CompilerChange((3, 14), "a value is not tested twice", older=_not_tested_twice),
    CompilerChange((3, 14), "calls of any, all and tuple with a generator are inlined", newer=_not_inlined_3_14),
    CompilerChange((3, 14), "postponed annotations come with an empty set", newer=_no_set_of_annotations),
    CompilerChange(
        (3, 15), "calls of list and set with a generator are inlined", newer=_not_inlined_3_15, older=_not_inlined_3_15
    ),
    CompilerChange((3, 15), "imports in functions and classes are never lazy", newer=_eager_import),
    CompilerChange((3, 15), "a generator expression makes its iterator itself", older=_iterated_inside),
    CompilerChange((3, 15), "a comprehension makes its iterator when it starts", older=_iterator_made_late),
    CompilerChange((3, 15), "a generator expression iterates over its argument", older=_iterates_argument),
)
"""The changes, oldest first, in the order in which they are applied: the first looks for what the second replaces. What
needs more than a rule on operations is in ``across``."""
