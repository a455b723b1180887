"""New functions: by MAKE_FUNCTION, and by a call of their class, which text needs where no variable has the cells."""

from __future__ import annotations

from types import FunctionType
from typing import Optional, Tuple

from depyf.decompiler.bytecode.code import is_code, own_qualified_name
from depyf.decompiler.normal.ops import Instr
from depyf.decompiler.verify.containers import Answer, Items, contents, new_object, replace_topmost
from depyf.decompiler.verify.events import topmost
from depyf.decompiler.verify.machine import Machine
from depyf.decompiler.verify.program import cell_name
from depyf.decompiler.verify.side import Fresh, Side
from depyf.decompiler.verify.stops import Event
from depyf.decompiler.verify.values import Const, Ref, Value

ANNOTATIONS = 4
"""The flag of MAKE_FUNCTION for evaluated annotations."""
CLOSURE = 8
"""The flag of MAKE_FUNCTION for a tuple of cells."""


def make_function(machine: Machine, side: Side, instr: Instr) -> Answer:
    """Make a function: its code first, then the parts that the flags name."""
    count = 1 + bin(instr.arg).count("1")
    taken = topmost(side, count)
    if instr.arg & ANNOTATIONS:
        _keep_pairs(machine, side, -count + bin(instr.arg & (ANNOTATIONS - 1)).count("1"))
        taken = topmost(side, count)
    return _make(machine, side, instr.arg, (taken[-1], *taken[:-1]), count)


def _keep_pairs(machine: Machine, side: Side, slot: int) -> None:
    """Replace annotations in a dict, as Python 3.8 and 3.9 make them, by the tuple of names and values of later ones.
    The function has the same ``__annotations__`` of either."""
    items = contents(machine, side, side.stack[slot], ("map",))
    if items is not None:
        made = new_object(machine, side, "tuple", items)
        side.hold(made)
        side.release(side.stack[slot])
        side.stack[slot] = made


def _make(machine: Machine, side: Side, flags: int, parts: Items, pops: int) -> Answer:
    """Make a function of ``parts``. What may be no cell in its closure is an event: the function's class refuses it."""
    unknown = _unknown_cells(machine, side, parts) if flags & CLOSURE else ()
    if unknown:
        return Event("check the cells of a function", None, unknown, "", 0, advance=False, outcome="cells")
    replace_topmost(side, pops, side.allocate(Fresh("function", parts, flags)))
    return None


def _unknown_cells(machine: Machine, side: Side, parts: Items) -> Items:
    """Return the items of the closure that may be no cells; the closure itself if its items are unknown."""
    # The closure is the last part: see MAKE_FUNCTION.
    items = contents(machine, side, parts[-1], ("tuple",))
    items = (parts[-1],) if items is None else items
    return tuple(item for item in items if not _is_cell(machine, side, item))


def _is_cell(machine: Machine, side: Side, item: Value) -> bool:
    """Return whether ``item`` is a cell: made by MAKE_CELL, the cell of a variable, or checked before."""
    if isinstance(item, Ref):
        return side.heap[item].kind == "cell"
    if machine.values.is_named("cell", item) or machine.values.fits_closures(item) in machine.facts:
        return True
    return any(side.locals.get(cell_name(name)) is item for name in side.program.changing_cells)


def attribute(machine: Machine, function: Fresh, name: str) -> Optional[Value]:
    """Return an attribute of a new function, ``None`` for those that are not known."""
    if name == "__class__":
        return machine.values.const(FunctionType)
    if name == "__globals__":
        return machine.values.named("frame", "globals")
    if name == "__closure__" and isinstance(function.detail, int):
        return function.items[-1] if function.detail & CLOSURE else machine.values.none
    return None


def call_of_class(machine: Machine, side: Side, operands: Items, pops: int) -> Tuple[bool, Answer]:
    """Execute ``FunctionType(code, globals, None, None, closure)`` with the globals of the frame like MAKE_FUNCTION;
    return whether it is such a call, and the answer. Both call ``PyFunction_New`` (Objects/funcobject.c), which takes
    the qualified name from the code (3.11)."""
    if len(operands) != 6 or operands[0] is not machine.values.const(FunctionType):
        return False, None
    _, code, namespace, name, defaults, closure = operands
    cells = contents(machine, side, closure, ("tuple",))
    if (
        cells is None
        or not (isinstance(code, Const) and is_code(code.value) and own_qualified_name(code.value) is not None)
        or not 0 < len(cells) == len(code.value.co_freevars)
        or namespace is not machine.values.named("frame", "globals")
        or name is not machine.values.none
        or defaults is not machine.values.none
    ):
        return False, None
    return True, _make(machine, side, CLOSURE, (code, closure), pops)
