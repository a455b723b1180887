"""Type parameters and type aliases (PEP 695, 3.12). A module of its own: each topic of the rules is one.

A generic definition is made in a function, ``<generic parameters of name>``, which is called at once: it makes the
parameters, then the function, class or alias, and returns it.

    def f[T: int](): ...        LOAD_CONST 'T'; LOAD_CONST <code of the bound>; MAKE_FUNCTION
                                CALL_INTRINSIC_2 TYPEVAR_WITH_BOUND; COPY 1; STORE_FAST T; BUILD_TUPLE 1
                                LOAD_CONST <code of f>; MAKE_FUNCTION
                                SWAP 2; CALL_INTRINSIC_2 SET_FUNCTION_TYPE_PARAMS; RETURN_VALUE
"""

from __future__ import annotations

import ast
from typing import List

from depyf.decompiler.lift import build, display_expressions
from depyf.decompiler.lift.items import GENERIC_BASE, Function
from depyf.decompiler.lift.nodes import FunctionExpression, TypeParameter
from depyf.decompiler.lift.simulator import Simulator
from depyf.decompiler.normal.ops import Instr

_PARAMETERS = {
    "TYPEVAR": "TypeVar",
    "TYPEVAR_WITH_BOUND": "TypeVar",
    "TYPEVAR_WITH_CONSTRAINTS": "TypeVar",
    "PARAMSPEC": "ParamSpec",
    "TYPEVARTUPLE": "TypeVarTuple",
}


def _intrinsic(sim: Simulator, instr: Instr) -> None:
    name, count = instr.arg
    if name in _PARAMETERS:
        bound = _function(sim, instr) if count == 2 else None
        parameter, its_name = TypeParameter(), build.constant(sim.pop_value().expr)
        if not isinstance(its_name, str):
            raise ValueError(f"a type parameter has no name at offset {instr.offset}")
        parameter.kind, parameter.name = _PARAMETERS[name], its_name
        parameter.bound, parameter.default = bound, None
        sim.push(parameter)
    elif name == "SET_TYPEPARAM_DEFAULT":
        default = _function(sim, instr)
        value = sim.pop_value().expr
        if not isinstance(value, TypeParameter):
            raise ValueError(f"a default at offset {instr.offset} does not belong to a type parameter")
        value.default = default
        sim.push(value)
    elif name == "SET_FUNCTION_TYPE_PARAMS":
        parameters = display_expressions.elements(sim.pop_value().expr)
        function = _function(sim, instr)
        function.type_parameters = parameters
        sim.stack.append(function)
    elif name == "SUBSCRIPT_GENERIC":
        sim.pop_value()
        sim.push(ast.Name(GENERIC_BASE, ast.Load()), stable=True)
    elif name == "TYPEALIAS":
        _alias(sim, display_expressions.elements(sim.pop_value().expr), instr)
    else:
        raise ValueError(f"the intrinsic function {name} has no syntax at offset {instr.offset}")


def _alias(sim: Simulator, parts: List[ast.expr], instr: Instr) -> None:
    _, parameters, value = parts
    if not isinstance(value, FunctionExpression):
        raise ValueError(f"the value of a type alias at offset {instr.offset} is not a function")
    function: Function = value.function
    function.is_alias = True
    function.type_parameters = [] if isinstance(parameters, ast.Constant) else display_expressions.elements(parameters)
    function.order = sim.context.next_order()
    sim.stack.append(function)


def _function(sim: Simulator, instr: Instr) -> Function:
    item = sim.pop()
    if not isinstance(item, Function):
        raise ValueError(f"the bound or default of a type parameter at offset {instr.offset} is not a function")
    return item
