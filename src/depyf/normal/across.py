"""Make code objects of different CPython versions comparable.

The output of the running Python's compiler is compared with that of an older one. Where the compilers or the language
differ in a way that the normal form shows, the newer side is rewritten as the older compiler would have compiled it:

3.9     ``assert`` raises AssertionError itself, not the value of a global variable of that name
3.11    an awaitable records where it is awaited, for messages
3.12    classes keep their namespace in a cell for annotations and type parameters in them
3.12    ``super().name`` is one operation; comprehensions are inlined (here the older side is rewritten)
3.13    class bodies store their first line and the attributes that their methods set; docstrings lose their
        indentation (here the older side is rewritten)
"""

from __future__ import annotations

import functools
import inspect
from dataclasses import replace
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from depyf.bytecode.code import Code, docstring, is_code, version_of
from depyf.bytecode.opcode_table import Version
from depyf.normal.inlining import COMPREHENSIONS, put_in_line
from depyf.normal.lowering import lower
from depyf.normal.ops import Instr, NormalCode, Op

_SINCE_313 = (("name", "__firstlineno__"), ("name", "__static_attributes__"))


def in_common_terms(older: NormalCode, newer: NormalCode) -> Tuple[NormalCode, NormalCode]:
    """Return both in comparable form; unchanged if one compiler made both."""
    version = version_of(older.code)
    if version == version_of(newer.code):
        return older, newer
    if version < (3, 12) <= version_of(newer.code):
        older = put_in_line(older, lower)
    today = _edited(older, lambda ops, index: _as_today(ops, index, version))
    return today, _edited(newer, lambda ops, index: _as_before(ops, index, version))


def beyond_comparison(older: NormalCode, newer: NormalCode) -> Optional[str]:
    """Return why the two may differ though they come from the same source; ``None`` if they should not."""
    versions = version_of(older.code), version_of(newer.code)
    names = " and ".join(f"{major}.{minor}" for major, minor in versions)
    constants = [instr.arg for instr in older.ops if instr.op is Op.CONST and is_code(instr.arg)]
    if versions[0] < (3, 12) <= versions[1] and any(code.co_name in COMPREHENSIONS for code in constants):
        return f"CPython {names} compile a comprehension that awaits, or has closures in it, too differently"
    if versions[0] < (3, 14) <= versions[1]:
        if any(instr.op is Op.SETUP_ANNOTATIONS or _is_annotated(instr) for instr in older.ops):
            return f"CPython {names} evaluate annotations at different times"
    return None


def _is_annotated(instr: Instr) -> bool:
    return instr.op is Op.MAKE_FUNCTION and bool(instr.arg & 4)


def docstring_today(code: Code, like: Code) -> Optional[str]:
    """Return the docstring of ``code`` as the running Python's compiler, which made ``like``, would store it."""
    text = docstring(code)
    return text if text is None or version_of(code) == version_of(like) else _compiled_docstring(text)


@functools.lru_cache(maxsize=256)
def _compiled_docstring(text: str) -> str:
    module = compile(f"def f():\n  {text!r}\n", "<docstring>", "exec", dont_inherit=True, optimize=0)
    (function,) = (constant for constant in module.co_consts if inspect.iscode(constant))
    compiled = docstring(function)
    return text if compiled is None else compiled


Edit = Optional[Tuple[int, List[Instr]]]
"""The number of operations to replace from an index on, and their replacements."""


def _as_today(ops: Sequence[Instr], index: int, version: Version) -> Edit:
    """Return what the running compiler emits for the operations of an older one at ``index``."""
    instr = ops[index]
    if version < (3, 11) and instr.op is Op.AWAITABLE and instr.arg:
        return 1, [instr.changed(arg=0)]
    if version < (3, 9):
        if instr.op is Op.BUILD and instr.arg[0] in _UNPACKED:
            return 1, _one_by_one(instr)
        count = _constants_of_set(ops, index) if instr.op is Op.CONST else 0
        if count:
            members = frozenset(each.arg for each in ops[index : index + count])
            empty = instr.changed(op=Op.BUILD, arg=("set", 0))
            update = ops[index + count].changed(op=Op.UPDATE, arg=("set", 1))
            return count + 1, [empty, instr.changed(arg=members), update]
        given = ops[index - 1] if index else None
        if instr.op is Op.CALL_EX and instr.arg[0] and not (given is not None and _gives_keywords(given)):
            fresh = [instr.changed(op=Op.BUILD, arg=("map", 0)), instr.changed(op=Op.SWAP, arg=2)]
            return 1, [*fresh, instr.changed(op=Op.UPDATE, arg=("kwargs", 1)), instr]
    stores = index + 1 < len(ops) and ops[index + 1].op is Op.STORE and ops[index + 1].arg == ("name", "__doc__")
    if stores and instr.op is Op.CONST and type(instr.arg) is str and instr.arg:
        return 1, [instr.changed(arg=_compiled_docstring(instr.arg))]
    return None


ATOMS = (type(None), bool, int, float, complex, str, bytes)

_LONGEST = 500
"""The limit on constants of a set in one search: each constant before a set starts a search."""

_UNPACKED = {
    "tuple_of": ("list", "list"),
    "arguments_of": ("list", "list"),
    "list_of": ("list", "list"),
    "set_of": ("set", "set"),
    "map_of": ("map", "map"),
    "keywords_of": ("map", "kwargs"),
}
"""Containers built from several iterables at once: the container that collects them today, and its update."""


def _constants_of_set(ops: Sequence[Instr], index: int) -> int:
    """Return how many constants from ``index`` on form a set, if the running compiler folds sets of that size."""
    end = index
    while end < len(ops) and end - index < _LONGEST and ops[end].op is Op.CONST:
        end += 1
    made = end < len(ops) and ops[end].op is Op.BUILD and ops[end].arg == ("set", end - index)
    plain = made and all(type(each.arg) in ATOMS for each in ops[index:end])
    return end - index if plain and end - index >= 3 else 0


def _gives_keywords(instr: Instr) -> bool:
    return instr.op is Op.BUILD and instr.arg[0] == "keywords_of"


def _one_by_one(instr: Instr) -> List[Instr]:
    """Return a container that is updated with one iterable after the other. (3.8 evaluates all of them first; the
    comparison shows whether that matters.)"""
    kind, count = instr.arg
    container, update = _UNPACKED[kind]
    made = [instr.changed(op=Op.BUILD, arg=(container, 0)), instr.changed(op=Op.SWAP, arg=count + 1)]
    waiting = [*range(1, count), 0]  # above the container, the first one on top
    for number in range(count):
        place = len(waiting) - waiting.index(number)
        if place > 1:
            made.append(instr.changed(op=Op.SWAP, arg=place))
            waiting[-place], waiting[-1] = waiting[-1], waiting[-place]
        waiting.pop()
        made.append(instr.changed(op=Op.UPDATE, arg=(update, len(waiting) + 1)))
    if kind in ("tuple_of", "arguments_of"):
        made.append(instr.changed(op=Op.LIST_TO_TUPLE, arg=None))
    return made


def _as_before(ops: Sequence[Instr], index: int, version: Version) -> Edit:
    """Return what an older compiler emitted for the operations at ``index``."""
    instr = ops[index]
    following = ops[index + 1] if index + 1 < len(ops) else None
    if version < (3, 13) and following is not None and following.op is Op.STORE and following.arg in _SINCE_313:
        if instr.op is Op.CONST:
            return 2, []
    if version < (3, 12) and following is not None and following.op is Op.STORE:
        if instr.op is Op.NAMESPACE and following.arg[1] == "__classdict__":
            return 2, []
        if instr.op is Op.CLOSURE and following.arg == ("name", "__classdictcell__"):
            return 2, []
    if version < (3, 9) and instr.op is Op.SPECIAL and instr.arg == "AssertionError":
        return 1, [instr.changed(op=Op.LOAD, arg=("global", "AssertionError"))]
    if version < (3, 11) and instr.op is Op.AWAITABLE and instr.arg:
        return 1, [instr.changed(arg=0)]
    if version < (3, 12):
        if instr.op is Op.SUPER_ATTR:
            name, _with_arguments = instr.arg
            return 1, [instr.changed(op=Op.CALL, arg=(2, (), "")), instr.changed(op=Op.ATTR, arg=name)]
        loads = ops[index : index + 3]
        if [load.op for load in loads] == [Op.LOAD, Op.LOAD, Op.SUPER_ATTR] and loads[0].arg[1] == "__class__":
            name, with_arguments = loads[2].arg
            if not with_arguments:
                call = loads[2].changed(op=Op.CALL, arg=(0, (), ""))
                return 3, [call, loads[2].changed(op=Op.ATTR, arg=name)]
    return None


def _edited(normal: NormalCode, edit: Callable[[Sequence[Instr], int], Edit]) -> NormalCode:
    """Return ``normal`` with some operations replaced; jumps to a removed one go to its replacement."""
    ops: List[Instr] = []
    place: Dict[int, int] = {}
    targets = {instr.target for instr in normal.ops}
    targets.update(instr.handler.target for instr in normal.ops if instr.handler is not None)
    index = 0
    while index < len(normal.ops):
        change = edit(normal.ops, index)
        if change is not None and any(inner in targets for inner in range(index + 1, index + change[0])):
            change = None
        count, new = (1, [normal.ops[index]]) if change is None else change
        for old in range(index, index + count):
            place[old] = len(ops)
        ops.extend(new)
        index += count
    return replace(normal, ops=tuple(_moved(instr, place) for instr in ops))


def _moved(instr: Instr, place: Dict[int, int]) -> Instr:
    target = None if instr.target is None else place[instr.target]
    handler = instr.handler and replace(instr.handler, target=place[instr.handler.target])
    return instr.changed(target=target, handler=handler)
