"""Stack effects: how many values each operation pops and pushes."""

from __future__ import annotations

from typing import Any, Callable, Dict, Optional, Sequence, Tuple

from depyf.decompiler.normal.ops import ENDS, Instr, Op

FIXED: Dict[Op, Tuple[int, int]] = {
    Op.CONST: (0, 1), Op.NULL: (0, 1), Op.NAMESPACE: (0, 1), Op.LOAD: (0, 1), Op.CLOSURE: (0, 1), Op.SPECIAL: (0, 1),
    Op.TAKE: (0, 1), Op.MAKE_CELL: (0, 0), Op.COMPREHENSION: (1, 1),
    Op.STORE: (1, 0), Op.DELETE: (0, 0), Op.POP: (1, 0),
    Op.UNARY: (1, 1), Op.BINARY: (2, 1), Op.INPLACE: (2, 1), Op.COMPARE: (2, 1), Op.IS: (2, 1), Op.IN: (2, 1),
    Op.SUBSCR: (2, 1), Op.STORE_SUBSCR: (3, 0), Op.DELETE_SUBSCR: (2, 0),
    Op.ATTR: (1, 1), Op.STORE_ATTR: (2, 0), Op.DELETE_ATTR: (1, 0),
    Op.SUPER_ATTR: (3, 1), Op.CONVERT: (1, 1), Op.LIST_TO_TUPLE: (1, 1),
    Op.TEMPLATE: (2, 1),
    Op.IMPORT: (2, 1), Op.IMPORT_FROM: (1, 2), Op.IMPORT_STAR: (1, 0), Op.SETUP_ANNOTATIONS: (0, 0),
    Op.PRINT: (1, 0),
    Op.ITER: (1, 1), Op.YIELD_FROM_ITER: (1, 1), Op.AITER: (1, 1), Op.AWAITABLE: (1, 1),
    Op.YIELD: (1, 1), Op.YIELD_FROM: (2, 1), Op.BRANCH: (1, 0), Op.JUMP: (0, 0), Op.RETURN: (1, 0), Op.RERAISE: (1, 0),
    Op.PUSH_EXC: (1, 2), Op.POP_EXC: (1, 0), Op.CHECK_EXC: (2, 2), Op.CHECK_EXC_GROUP: (2, 2),
    Op.PREP_RERAISE_STAR: (2, 1), Op.WITH: (1, 2), Op.ASYNC_WITH: (1, 2), Op.WITH_EXCEPT: (4, 5),
    Op.MATCH_MAPPING: (1, 2), Op.MATCH_SEQUENCE: (1, 2), Op.GET_LEN: (1, 2), Op.MATCH_KEYS: (2, 3),
    Op.MATCH_CLASS: (3, 1), Op.FOR: (1, 2),
}  # fmt: skip
"""The effects of the operations for which they do not depend on the argument."""


_BY_ARGUMENT: Dict[Op, Callable[[Any], Tuple[int, int]]] = {
    Op.COPY: lambda depth: (depth, depth + 1),
    Op.SWAP: lambda depth: (depth, depth),
    Op.CALL: lambda arg: (arg[0] + (2 if arg[2] else 1), 1),
    Op.BUILD: lambda arg: (2 * arg[1] if arg[0] == "map" else arg[1] + (arg[0] == "const_key_map"), 1),
    Op.ADD: lambda arg: ((2 if arg[0] == "map" else 1) + arg[1], arg[1]),
    Op.UPDATE: lambda arg: (1 + arg[1], arg[1]),
    Op.UNPACK: lambda count: (1, count),
    Op.UNPACK_EX: lambda counts: (1, counts[0] + 1 + counts[1]),
    Op.FORMAT: lambda arg: (1 + arg[1], 1),
    Op.INTERPOLATION: lambda arg: (2 + arg[1], 1),
    Op.INTRINSIC: lambda arg: (arg[1], 1),
    Op.CALL_EX: lambda arg: (2 + arg[0] + bool(arg[1]), 1),
    Op.MAKE_FUNCTION: lambda flags: (1 + bin(flags).count("1"), 1),
    Op.RAISE: lambda count: (int(count), 0),
}
"""Those of the others, by the argument. COPY and SWAP count what they read."""


def effect(op: Op, arg: Any) -> Tuple[int, int]:
    """Return ``(popped, pushed)`` when control continues at the next operation. COPY and SWAP count what they read."""
    return FIXED.get(op) or _BY_ARGUMENT[op](arg)


def begin_of_value(ops: Sequence[Instr], end: int) -> Optional[int]:
    """Return where the operations before ``end`` begin that leave one value; ``None`` if that is not seen from the
    operations in their order."""
    needed, at = 1, end
    while needed:
        at -= 1
        if at < 0 or ops[at].target is not None or ops[at].op in ENDS:
            return None
        takes, leaves = effect(ops[at].op, ops[at].arg)
        if leaves > needed:
            return None
        needed += takes - leaves
    return at
