"""The effect of each operation on the symbolic stack and the statements: one table of all rules."""

from __future__ import annotations

from typing import Dict

from depyf.decompiler.lift.rules.calls import (
    _call,
    _call_ex,
    _comprehension_in_line,
    _import,
    _import_from,
    _import_star,
    _make_function,
    _setup_annotations,
)
from depyf.decompiler.lift.rules.control import (
    _aiter,
    _awaitable,
    _check_exc,
    _check_group,
    _end_groups,
    _iter,
    _pop_exc,
    _push_exc,
    _raise,
    _reraise,
    _return,
    _unsupported,
    _with,
    _with_except,
    _yield,
    _yield_from,
    _yield_from_iter,
)
from depyf.decompiler.lift.rules.displays import (
    _add,
    _build,
    _convert,
    _format,
    _interpolation,
    _list_to_tuple,
    _template,
    _unpack,
    _update,
)
from depyf.decompiler.lift.rules.generics import _intrinsic
from depyf.decompiler.lift.rules.operators import _attr, _binary, _compare, _inplace, _subscr, _super_attr, _unary
from depyf.decompiler.lift.rules.stack import (
    _closure,
    _const,
    _copy,
    _load,
    _namespace,
    _null,
    _pop,
    _print,
    _special,
    _swap,
)
from depyf.decompiler.lift.rules.stores import _delete, _delete_attr, _delete_subscr, _store, _store_attr, _store_subscr
from depyf.decompiler.lift.simulator import Rule
from depyf.decompiler.normal.ops import Op

RULES: Dict[Op, Rule] = {
    Op.CONST: _const, Op.NULL: _null, Op.LOAD: _load,
    Op.CLOSURE: _closure, Op.SPECIAL: _special,
    Op.STORE: _store, Op.DELETE: _delete, Op.COPY: _copy, Op.SWAP: _swap, Op.POP: _pop,
    Op.UNARY: _unary, Op.BINARY: _binary, Op.INPLACE: _inplace, Op.COMPARE: _compare, Op.IS: _compare,
    Op.IN: _compare, Op.SUBSCR: _subscr, Op.STORE_SUBSCR: _store_subscr, Op.DELETE_SUBSCR: _delete_subscr,
    Op.ATTR: _attr, Op.STORE_ATTR: _store_attr, Op.DELETE_ATTR: _delete_attr, Op.BUILD: _build, Op.ADD: _add,
    Op.UPDATE: _update, Op.LIST_TO_TUPLE: _list_to_tuple, Op.UNPACK: _unpack, Op.UNPACK_EX: _unpack,
    Op.SUPER_ATTR: _super_attr, Op.CONVERT: _convert, Op.FORMAT: _format, Op.INTERPOLATION: _interpolation,
    Op.TEMPLATE: _template,
    Op.COMPREHENSION: _comprehension_in_line, Op.TAKE: _unsupported, Op.MAKE_CELL: _unsupported,
    Op.INTRINSIC: _intrinsic, Op.NAMESPACE: _namespace,
    Op.CALL: _call, Op.CALL_EX: _call_ex, Op.MAKE_FUNCTION: _make_function,
    Op.IMPORT: _import, Op.IMPORT_FROM: _import_from, Op.IMPORT_STAR: _import_star,
    Op.SETUP_ANNOTATIONS: _setup_annotations, Op.PRINT: _print,
    Op.ITER: _iter, Op.AITER: _aiter, Op.YIELD_FROM_ITER: _yield_from_iter,
    Op.AWAITABLE: _awaitable, Op.YIELD: _yield, Op.YIELD_FROM: _yield_from, Op.RETURN: _return, Op.RAISE: _raise,
    Op.RERAISE: _reraise, Op.PUSH_EXC: _push_exc, Op.POP_EXC: _pop_exc, Op.CHECK_EXC: _check_exc,
    Op.WITH: _with, Op.ASYNC_WITH: _with, Op.WITH_EXCEPT: _with_except,
    Op.CHECK_EXC_GROUP: _check_group, Op.PREP_RERAISE_STAR: _end_groups, Op.MATCH_MAPPING: _unsupported,
    Op.MATCH_SEQUENCE: _unsupported, Op.GET_LEN: _unsupported, Op.MATCH_KEYS: _unsupported,
    Op.MATCH_CLASS: _unsupported,
}  # fmt: skip
