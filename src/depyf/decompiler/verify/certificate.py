"""Write the certificate of a proof: the simulation relation that ``certificates/check.py`` checks.

The relation is what ``Product`` found: the states where paths meet, as pairs of positions, and in each slot of either
side a constant or a number, the same number for the same object. What the checker knows in another way than the
verifier (such as new objects that only one side has) gets a number: then it refuses the certificate, never the
contrary.
"""

from __future__ import annotations

import json
from typing import Dict, Hashable, List, Tuple

from depyf.decompiler.bytecode.code import Code, is_code
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import Op
from depyf.decompiler.verify.compare import Comparer
from depyf.decompiler.verify.constants import constant_key
from depyf.decompiler.verify.product import Product
from depyf.decompiler.verify.program import Program
from depyf.decompiler.verify.settings import Settings
from depyf.decompiler.verify.side import Side
from depyf.decompiler.verify.values import LASTI, NULL, OUTER, Const, Maybe, Prev, Saved, Sym, Value

_MARKS = {NULL: "NULL", LASTI: "LASTI", OUTER: "OUTER"}
_UNBOUND = ["mark", "unbound"]


def write_certificate(original: Code, candidate: Code, *, always_prove: bool = False, refused: bool = False) -> str:
    """Return the certificate of the proof that the two mean the same, as JSON.

    ``always_prove``: also where all operations are the same, which needs no certificate. Raises ``ValueError`` if there
    is no proof; with ``refused`` it returns what the attempt has found (for tests of the checker).
    """
    proofs: List[Tuple[Program, Program, Product]] = []
    settings = Settings(frozenset(), {}, frozenset(), {}, check_docstring=True, always_prove=always_prove)
    found = Comparer(settings, lower, lambda *proof: proofs.append(proof)).compare(original, candidate, None)
    if not found.proved and not refused:
        raise ValueError(f"no certificate: {found.finding.value}: {found.reason}")
    paths = _paths(original), _paths(candidate)
    return json.dumps([
        {
            "original": paths[0][id(left.code)],
            "candidate": paths[1][id(right.code)],
            "states": [_state(*each.sides()) for each in product.states() if not any(s.has_left for s in each.sides())],
        }
        for left, right, product in proofs
    ])  # fmt: skip


def _paths(code: Code) -> Dict[int, List[int]]:
    """Return the indices among constants that lead to each code object in ``code``, by its ``id``."""
    found: Dict[int, List[int]] = {}
    todo: List[Tuple[Code, List[int]]] = [(code, [])]
    while todo:
        each, path = todo.pop()
        if id(each) not in found:
            found[id(each)] = path
            todo += [(inner, [*path, at]) for at, inner in enumerate(each.co_consts) if is_code(inner)]
    return found


def _state(left: Side, right: Side) -> Dict[str, object]:
    numbers: Dict[Hashable, int] = {}  # of both sides
    state: Dict[str, object] = {"left": _slots(left, numbers), "right": _slots(right, numbers)}
    return state


def _slots(side: Side, numbers: Dict[Hashable, int]) -> List[object]:
    constants = {constant_key(each.arg): at for at, each in enumerate(side.program.ops) if each.op is Op.CONST}
    saved = {f"{each.key}" for each in side.stack if isinstance(each, Saved)}

    def slot(value: Value) -> object:
        if value in _MARKS:
            return ["mark", _MARKS[value]]
        if isinstance(value, Const):
            at = constants.get(constant_key(value.value))
            if at is not None:
                return ["const", at]
            if type(value.value) is bool:
                return ["truth", value.value]
        if isinstance(value, Prev):
            return ["prev", slot(value.inner)]
        if isinstance(value, Saved):
            return ["saved", slot(side.locals[value.key]) if value.key in side.locals else _UNBOUND]
        if isinstance(value, Maybe):
            return ["maybe", numbers.setdefault(value.inner, len(numbers))]
        if isinstance(value, Sym) and value.named and value.name.startswith("cell "):
            return ["cell", value.name[len("cell ") :]]
        return ["sym", numbers.setdefault(value, len(numbers))]

    variables = {name: slot(value) for name, value in side.locals.items() if name not in saved}
    return [side.position, [slot(value) for value in side.stack], variables, slot(side.handled)]
