"""Prove operations of the normal form written by hand equivalent to some source."""

from __future__ import annotations

from types import CodeType
from typing import Any, List, Tuple

from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import Instr, NormalCode, Op
from depyf.decompiler.verify import Comparison, Finding
from depyf.decompiler.verify.comparison import MismatchError
from depyf.decompiler.verify.product import Product
from depyf.decompiler.verify.program import Program
from depyf.decompiler.verify.settings import Settings

Step = Tuple[Any, ...]


def code(source: str) -> CodeType:
    module = compile(source, "<test>", "exec")
    return next(const for const in module.co_consts if isinstance(const, CodeType))


def listing(*steps: Step) -> NormalCode:
    """Operations from (op, arg) or (op, arg, target); the code object only gives the arguments ``a`` and ``b``."""
    ops: List[Instr] = []
    for index, step in enumerate(steps):
        op, arg = step[0], step[1] if len(step) > 1 else None
        ops.append(Instr(op, arg, index, None, step[2] if len(step) > 2 else None))
    return NormalCode(code("def f(a, b): pass"), tuple(ops))


def finding(original: NormalCode, candidate: str, **changes: Any) -> Tuple[Finding, str]:
    """Whether ``original`` is proved to do what ``candidate`` does, and if not, why."""
    return _prove(original, lower(code(candidate)), **changes)


def proved(original: NormalCode, candidate: NormalCode) -> bool:
    """The same for two listings."""
    return _prove(original, candidate)[0].proved


def _prove(original: NormalCode, candidate: NormalCode, **changes: Any) -> Tuple[Finding, str]:
    settings = {"droppable": frozenset(), "renamed": {}, "stable_globals": frozenset(), "tuple_results": {}}
    settings.update(changes)
    product = Product(
        Program(original, {}, None),
        Program(candidate, {}, None),
        lambda mine, theirs: Comparison(Finding.EXACT if mine is theirs else Finding.DIFFERENT, "", tuple, (), ""),
        ["a", "b"],
        Settings(**settings, check_docstring=False, always_prove=True),
    )
    try:
        product.prove()
    except MismatchError as mismatch:
        return mismatch.finding, mismatch.reason
    return Finding.EQUIVALENT, ""


def local(name: str) -> Step:
    return (Op.LOAD, ("fast", name))


CALL_G = ((Op.NULL,), (Op.LOAD, ("global", "g")))
