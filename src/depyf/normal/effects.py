"""Stack effects: how many values each operation pops and pushes."""

from __future__ import annotations

from typing import Any, Dict, Tuple

from depyf.normal.ops import Op

_FIXED: Dict[Op, Tuple[int, int]] = {
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


def effect(op: Op, arg: Any) -> Tuple[int, int]:
    """Return ``(popped, pushed)`` when control continues at the next operation. COPY and SWAP count what they read."""
    fixed = _FIXED.get(op)
    if fixed is not None:
        return fixed
    if op is Op.COPY:
        return arg, arg + 1
    if op is Op.SWAP:
        return arg, arg
    if op is Op.BUILD:
        kind, count = arg
        return (2 * count if kind == "map" else count + (kind == "const_key_map")), 1
    if op in (Op.ADD, Op.UPDATE):
        operands = 2 if arg[0] == "map" and op is Op.ADD else 1
        return operands + arg[1], arg[1]
    if op is Op.UNPACK:
        return 1, arg
    if op is Op.UNPACK_EX:
        return 1, arg[0] + 1 + arg[1]
    if op is Op.FORMAT:
        return 1 + arg[1], 1
    if op is Op.INTERPOLATION:
        return 2 + arg[1], 1
    if op is Op.INTRINSIC:
        return arg[1], 1
    if op is Op.CALL:
        return arg[0] + 1 + bool(arg[2]), 1
    if op is Op.CALL_EX:
        return 2 + arg[0] + bool(arg[1]), 1
    if op is Op.MAKE_FUNCTION:
        return 1 + bin(arg).count("1"), 1
    if op is Op.RAISE:
        return int(arg), 0
    raise AssertionError(f"{op} has no stack effect")
