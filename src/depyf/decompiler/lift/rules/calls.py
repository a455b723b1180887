"""Calls, functions, classes, imports."""

from __future__ import annotations

import ast
from typing import List, Optional, Sequence, Tuple

from depyf.decompiler.bytecode.code import COMPREHENSIONS, Code, check_facts, is_code
from depyf.decompiler.lift import build, call_expressions, display_expressions
from depyf.decompiler.lift.followed import call_container_method, call_with_containers, take_result_apart
from depyf.decompiler.lift.items import (
    DEFAULTS,
    GENERIC_BASE,
    GENERIC_PREFIX,
    KW_DEFAULTS,
    BoundMethod,
    Container,
    Function,
    Import,
    ImportMarker,
    Item,
    Mark,
    Marker,
    Value,
)
from depyf.decompiler.lift.nodes import ComprehensionExpression, WithExit
from depyf.decompiler.lift.simulator import Simulator
from depyf.decompiler.normal.ops import Instr


def _call(sim: Simulator, instr: Instr) -> None:
    """Call the top items; some calls are syntax of their own: decorators, classes, comprehensions, ``with``."""
    count, names, null = instr.arg
    arguments = sim.stack[len(sim.stack) - count :] if count else []
    del sim.stack[len(sim.stack) - count :]
    callee, first = sim.pop_callee(null)
    arguments = [*first, *arguments]
    if isinstance(callee, Marker):
        _call_marker(sim, callee, arguments, names)
        return
    if isinstance(callee, BoundMethod):
        call_container_method(sim, callee, arguments)
        return
    sim.stack.extend([callee, *arguments])  # a callee with containers as arguments may need temporaries for them
    if sim.context.follows_containers:
        for item in arguments:
            if isinstance(item, Container):
                sim.share_container(item)
    callee, arguments = sim.stack[len(sim.stack) - len(arguments) - 1], sim.stack[len(sim.stack) - len(arguments) :]
    del sim.stack[len(sim.stack) - len(arguments) - 1 :]
    if isinstance(callee, Function) and len(arguments) == 1 and callee.code.co_name in COMPREHENSIONS:
        _comprehension(sim, callee, arguments[0])
        return
    # @d            LOAD d; MAKE_FUNCTION; CALL 0 (the function is in the slot of the NULL: 3.11)
    # def f(): ...
    if (first or not null) and len(arguments) == 1 and isinstance(arguments[0], Function) and not names:
        if not arguments[0].is_lambda:
            arguments[0].decorators.insert(0, sim.as_value(callee).expr)
            arguments[0].order = sim.context.next_order()
            sim.stack.append(arguments[0])
            return
    if isinstance(callee, Function) and callee.code.co_name.startswith(GENERIC_PREFIX):
        values = [sim.as_value(item) for item in arguments]
        callee.generic = [value.expr for value in values]
        callee.order = sim.context.next_order()
        sim.stack.append(callee)
        return
    values = [sim.as_value(item) for item in [callee, *arguments]]
    sim.combine(lambda *exprs: call_expressions.call(exprs, names), values)
    take_result_apart(sim, instr.offset)


def _call_marker(sim: Simulator, callee: Marker, arguments: List[Item], names: Tuple[str, ...]) -> None:
    """Call the exit method of a ``with`` statement, or the function that builds a class."""
    if callee.kind is Mark.EXIT and len(arguments) == 3:  # with None, None, None: no exception
        sim.settle_exit()
        sim.node.leave(WithExit(callee.origin, sim.pending()))
        sim.stack.append(Marker(Mark.EXIT_RESULT, callee.origin))
        return
    if callee.kind is Mark.BUILD_CLASS and len(arguments) >= 2 and isinstance(arguments[0], Function):
        function = arguments[0]
        values = [sim.as_value(item) for item in arguments[2:]]
        positional = len(values) - len(names)
        bases = _without_generic_base([value.expr for value in values[:positional]])
        keywords = [ast.keyword(name, value.expr) for name, value in zip(names, values[positional:])]
        sim.check_order(values)
        function.class_arguments = (bases, keywords)
        function.order = sim.context.next_order()
        sim.stack.append(function)
        return
    raise ValueError(f"a {callee.kind.value} marker is called at offset {sim.ops[sim.index - 1].offset}")


def _comprehension(sim: Simulator, function: Function, iterable: Item) -> None:
    if isinstance(iterable, Value):
        iterable.iterated_at = -1  # the comprehension makes the iterator
    value = sim.as_value(iterable)
    expression = ComprehensionExpression()
    expression.function = function
    expression.iterable = value.expr
    sim.push(expression)


def _comprehension_in_line(sim: Simulator, instr: Instr) -> None:
    _comprehension(sim, Function(instr.arg), sim.pop())


def _call_ex(sim: Simulator, instr: Instr) -> None:
    has_keywords, null = instr.arg
    if sim.context.follows_containers and call_with_containers(sim, null, has_keywords=has_keywords):
        return
    keywords = sim.pop_value() if has_keywords else None
    positional = sim.pop_value()
    callee, more = sim.pop_callee(null)
    if more:
        raise ValueError(f"no NULL beside the callable at offset {instr.offset}")
    if isinstance(callee, Marker) and callee.kind is Mark.BUILD_CLASS:
        _class_ex(sim, positional, keywords)
        return
    if positional.whole:
        positional.expr = ast.Tuple([ast.Starred(positional.expr, ast.Load())], ast.Load())
    if keywords is not None and keywords.whole:
        keywords.expr = ast.Dict([None], [keywords.expr])
    values = [sim.as_value(callee), positional, *([keywords] if keywords else [])]
    sim.combine(lambda *exprs: call_expressions.call_ex(*exprs), values)


def _class_ex(sim: Simulator, positional: Value, keywords: Optional[Value]) -> None:
    """Build ``class C(*bases, **keywords)``: the function and the name are the first positional arguments."""
    if not isinstance(positional.expr, ast.Tuple) or len(positional.expr.elts) < 2:
        raise ValueError("the arguments of a class definition are not a display")
    expression = positional.expr.elts[0]
    function: Function = expression.function  # type: ignore[attr-defined]
    call = call_expressions.call_ex(
        ast.Name("class"), ast.Tuple(positional.expr.elts[2:], ast.Load()), *([keywords.expr] if keywords else [])
    )
    function.class_arguments = (_without_generic_base(call.args), call.keywords)
    function.order = sim.context.next_order()
    sim.stack.append(function)


def _without_generic_base(bases: List[ast.expr]) -> List[ast.expr]:
    """Return the bases without the one that type parameters add."""
    last = bases[-1] if bases else None
    return bases[:-1] if isinstance(last, ast.Name) and last.id == GENERIC_BASE else bases


def _inherits(function: Function, expr: ast.expr, name: str) -> bool:
    """Return whether ``expr`` is a parameter of the code that makes the type parameters; record it as ``name``."""
    if isinstance(expr, ast.Name) and expr.id in (DEFAULTS, KW_DEFAULTS):
        function.inherits[name] = expr.id
        return True
    return False


def _make_function(sim: Simulator, instr: Instr) -> None:
    code = build.constant(sim.pop_value().expr)
    if not is_code(code):
        raise ValueError(f"the operand of MAKE_FUNCTION at offset {instr.offset} is not a code object")
    check_facts(code)
    function = Function(code)
    flags = instr.arg
    values = []
    # The flags say what is on the stack below the code object: 1 defaults, 2 keyword defaults, 4 annotations, 16 the
    # function that makes the annotations (3.14), 8 the cells of the free variables.
    if flags & 8 and not _are_own_cells(sim.stack[-1], code):
        _function_of_cells(sim, code, flags)
        return
    if flags & 8:
        sim.pop()
    if flags & 16:
        annotate = sim.pop()
        if not isinstance(annotate, Function):
            raise ValueError(f"the annotations at offset {instr.offset} are not made by a function")
        function.annotate = annotate
    annotations = sim.pop_value() if flags & 4 else None
    kw_defaults = sim.pop_value() if flags & 2 else None
    defaults = sim.pop_value() if flags & 1 else None
    if defaults is not None:
        if not _inherits(function, defaults.expr, DEFAULTS):
            function.defaults = display_expressions.elements(defaults.expr)
        values.append(defaults)
    if kw_defaults is not None:
        if not _inherits(function, kw_defaults.expr, KW_DEFAULTS):
            function.kw_defaults = display_expressions.string_pairs(kw_defaults.expr)
        values.append(kw_defaults)
    if annotations is not None:
        function.annotations = display_expressions.annotation_pairs(annotations.expr)
        values.append(annotations)
    sim.check_order(values)
    function.order = sim.context.next_order()
    sim.stack.append(function)


def _are_own_cells(closure: Item, code: Code) -> bool:
    """Return whether ``closure`` is the tuple that a compiler writes: the cells of all free variables of ``code``."""
    cells: Sequence[object] = ()
    if isinstance(closure, Container):
        cells = [element.expr if isinstance(element, Value) else None for element in closure.elements]
    elif isinstance(closure, Value) and isinstance(closure.expr, ast.Tuple):
        cells = closure.expr.elts
    return [cell.id if isinstance(cell, build.CellName) else None for cell in cells] == list(code.co_freevars)


def _function_of_cells(sim: Simulator, code: Code, flags: int) -> None:
    """Make a function of cells that were computed, which Dynamo does (2.11, with nested graph breaks).

    LOAD_DEREF              6 (middle)        the variable of the inner function is no variable of this one: its cell
    LOAD_ATTR               2 (__closure__)   belongs to the function that was called
    LOAD_CONST              1 (0)
    BINARY_SUBSCR
    BUILD_TUPLE             1
    LOAD_CONST              4 (<code object torch_dynamo_resume_in_middle_at_121>)
    MAKE_FUNCTION           8 (closure)
    """
    if flags != 8:
        raise ValueError(f"the function {code.co_name} has computed cells, and defaults or annotations")
    sim.combine(lambda cells: call_expressions.function_of(code, cells), [sim.pop_value()])


def _import(sim: Simulator, instr: Instr) -> None:
    names = build.constant(sim.pop_value().expr)
    level = build.constant(sim.pop_value().expr)
    if type(level) is not int or not (names is None or type(names) is tuple):
        raise ValueError(f"the import at offset {instr.offset} has no constant names or level")
    name, laziness = instr.arg
    sim.stack.append(ImportMarker(Import(name, level, names, laziness == "lazy")))


def _import_from(sim: Simulator, instr: Instr) -> None:
    module = sim.stack[-1]
    if not isinstance(module, ImportMarker) or not (module.name is None or module.request.names is None):
        raise ValueError(f"a name is imported from an object other than a module at offset {instr.offset}")
    sim.stack.append(ImportMarker(module.request, instr.arg))


def _import_star(sim: Simulator, instr: Instr) -> None:
    module = sim.pop()
    if not isinstance(module, ImportMarker) or module.name is not None:
        raise ValueError(f"names are imported from an object other than a module at offset {instr.offset}")
    sim.emit(module.request.statement(ast.alias("*", None)), "*")


def _setup_annotations(sim: Simulator, instr: Instr) -> None:
    return
