"""Make code objects of different CPython versions comparable.

The output of the running Python's compiler is compared with that of an older one. Where the compilers or the language
differ in a way that the normal form shows, one side is rewritten as the other compiler would have compiled it, by the
rules of ``compiler_changes``. Two changes need more than a rule on operations: comprehensions are inlined since 3.12
(``inlining``), and a class keeps its namespace in a cell for annotations and type parameters in it (3.12), since 3.14
also for functions without any.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable, Dict, FrozenSet, List, Optional, Sequence, Tuple

from depyf.decompiler.bytecode.code import Code, docstring, is_code, version_of
from depyf.decompiler.normal.compiler_changes import CHANGES, Edit, compiled_docstring, without_class_cell
from depyf.decompiler.normal.deferred_annotations import functions_evaluated, taken_out, with_edits
from depyf.decompiler.normal.inlining import COMPREHENSIONS, put_in_line
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import Instr, NormalCode, Op, reachable

_CLASS_CELL = "classes keep their namespace in a cell"
_DEFERRED = "annotations are evaluated when someone asks for them"
_INLINED = "comprehensions are inlined"


def in_common_terms(older: NormalCode, newer: NormalCode) -> Tuple[NormalCode, NormalCode, FrozenSet[str]]:
    """Return both in comparable form, with the changes of the compiler that this needed; unchanged if one compiler made
    both."""
    versions = version_of(older.code), version_of(newer.code)
    if versions[0] == versions[1]:
        return older, newer, frozenset()
    used: List[str] = []
    if versions[0] < (3, 12) <= versions[1]:
        inlined = put_in_line(older, lower)
        used += [_INLINED] if inlined is not older else []
        older = inlined
    for change in CHANGES:
        if versions[0] < change.since <= versions[1]:
            sides = _edited(older, change.older), _edited(newer, change.newer)
            used += [change.what] if sides != (older, newer) else []
            older, newer = sides
    if versions[0] < (3, 14) <= versions[1]:
        before = older, newer
        older, newer = _with_annotations(older, newer)
        used += [_DEFERRED] if before != (older, newer) else []
    if versions[1] >= (3, 12) and not _has_class_cell(older) and _has_class_cell(newer):
        newer, used = _edited(newer, without_class_cell), [*used, _CLASS_CELL]
    return older, newer, frozenset(used)


def _with_annotations(older: NormalCode, newer: NormalCode) -> Tuple[NormalCode, NormalCode]:
    """Return both with the annotations of functions evaluated, and without those of the class or module itself if they
    are the same."""
    out = taken_out(older, newer, lower)
    if out is not None:
        older, newer = with_edits(older, out[0]), with_edits(newer, out[1])
    edits = functions_evaluated(newer, lower)
    return older, with_edits(newer, edits) if edits else newer


def _has_class_cell(normal: NormalCode) -> bool:
    return any(instr.op is Op.STORE and instr.arg == ("name", "__classdictcell__") for instr in normal.ops)


def beyond_comparison(older: NormalCode, newer: NormalCode) -> Optional[str]:
    """Return why the two may differ though they come from the same source; ``None`` if they should not."""
    versions = version_of(older.code), version_of(newer.code)
    names = " and ".join(f"{major}.{minor}" for major, minor in versions)
    constants = [instr.arg for instr in older.ops if instr.op is Op.CONST and is_code(instr.arg)]
    if versions[0] < (3, 12) <= versions[1] and any(code.co_name in COMPREHENSIONS for code in constants):
        return f"CPython {names} compile a comprehension that awaits, or has closures in it, too differently"
    if versions[0] < (3, 14) <= versions[1]:
        if any(
            instr.op is Op.SETUP_ANNOTATIONS or (instr.op is Op.MAKE_FUNCTION and instr.arg & 4) for instr in older.ops
        ):
            return f"CPython {names} evaluate annotations at different times"
    return None


def docstring_today(code: Code, like: Code) -> Optional[str]:
    """Return the docstring of ``code`` as the running Python's compiler, which made ``like``, would store it."""
    text = docstring(code)
    return text if text is None or version_of(code) == version_of(like) else compiled_docstring(text)


def _edited(normal: NormalCode, edit: Optional[Callable[[Sequence[Instr], int], Edit]]) -> NormalCode:
    """Return ``normal`` with some operations replaced; jumps to a removed one go to its replacement."""
    if edit is None:
        return normal
    ops: List[Instr] = []
    new_index: Dict[int, int] = {}
    targets = {instr.target for instr in normal.ops}
    targets.update(instr.handler.target for instr in normal.ops if instr.handler is not None)
    index, changed, jumps = 0, False, False
    while index < len(normal.ops):
        change = edit(normal.ops, index)
        # No edit where a jump leads into the middle of the operations: only the whole sequence has that meaning.
        if change is not None and any(inner in targets for inner in range(index + 1, index + change[0])):
            change = None
        count, new = (1, [normal.ops[index]]) if change is None else change
        changed = changed or change is not None
        jumps = jumps or (change is not None and any(instr.op is Op.JUMP for instr in new))
        for old in range(index, index + count):
            new_index[old] = len(ops)
        ops.extend(new)
        index += count
    if not changed:
        return normal
    made = tuple(instr.retargeted(new_index) for instr in ops)
    # A new jump leaves operations that nothing reaches.
    return replace(normal, ops=reachable([(at, [instr]) for at, instr in enumerate(made)]) if jumps else made)
