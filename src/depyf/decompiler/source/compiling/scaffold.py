"""The surroundings that a function needs to compile to its original code object.

The scaffolding is added to the tree that is compiled, never to the text. It makes the free variables, ``__class__`` for
``super()``, and the cells that no code in the text captures any more.
"""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any, Dict, List, Optional, Sequence, Union, cast

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.code import Code, is_code, may_use, nested_codes
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.source.rewriting import Node, replaced

Target = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Expr]

NAME = "depyf_scaffold"
"""The name of the enclosing function, and of the function itself while it is compiled."""

_CLASS = "_" * 12
"""The name of the enclosing class: one without letters mangles no names, and Dynamo's start with two underscores."""

MARKS = (NAME, _CLASS)
"""The prefixes of qualified names inside of the scaffolding."""

_CONDITIONAL = "__conditional_annotations__"
_MADE_BY_CLASSES = frozenset({"__class__", _CONDITIONAL})
"""Free variables that an enclosing class provides. ``__conditional_annotations__`` is a cell of each class that
annotates conditionally (3.14), and also a free variable if there is an enclosing class."""
TYPE_PARAMS = ".type_params"
"""The variable that holds the type parameters of a class (3.12)."""

_COMPREHENSIONS = {
    "<listcomp>": ast.ListComp,
    "<setcomp>": ast.SetComp,
    "<dictcomp>": ast.DictComp,
    "<genexpr>": ast.GeneratorExp,
}

_SUPER = "super"

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Scaffolded:
    """``tree`` is compiled; the wanted code is ``depth`` code objects inside, and called ``qualname``."""

    tree: ast.Module
    depth: int
    qualname: str


def target_of(tree: ast.Module, reference: Code) -> Target:
    """Return the definition in ``tree`` that ``reference``, which is no module, is the code of. A lambda is returned as
    a function, except for generators; a comprehension as the statement that contains it. Raises ``DecompilationError``
    when ``tree`` has no definition."""
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return statement
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Expr) and isinstance(value, _COMPREHENSIONS.get(reference.co_name, ())):
            return statement
        if isinstance(value, ast.Lambda) and _is_generator(reference):
            # Since 3.12 a lambda that yields lacks the code that turns StopIteration into RuntimeError.
            bare = replaced(value, args=_bare_arguments(value.args))
            alone: object = replaced(statement, value=bare)
            return cast(ast.Expr, alone)
        if isinstance(value, ast.Lambda):
            returned = ast.copy_location(ast.Return(value=value.body), value.body)
            function: ast.FunctionDef = _at(value, _function(NAME, value.args, [returned]))
            return function
    raise DecompilationError(f"{reference.co_name}: the source has no function, lambda or class")


def with_marked_name(text: str, reference: Code) -> Optional[str]:
    """Return ``text`` with its function called ``NAME``; ``None`` where it needs more surroundings, or is none."""
    if not reference.co_flags & inspect.CO_OPTIMIZED or reference.co_flags & _IN_SURROUNDINGS or reference.co_freevars:
        return None
    definition = None if _calls_super_plainly(reference) else _DEFINITION.search(text)
    return None if definition is None else text[: definition.start(1)] + NAME + text[definition.end(1) :]


_IN_SURROUNDINGS = inspect.CO_NESTED | inspect.CO_ITERABLE_COROUTINE
"""The flags of functions that an enclosing function or a decorator changes."""

_DEFINITION = regex(r"^(?:async )?def (\w+)", re.MULTILINE)


def scaffold(
    target: Target, reference: Code, free: Sequence[str], cells: Sequence[str], unused: Sequence[str] = ()
) -> Scaffolded:
    """Return the tree that makes ``target`` a code object with the variables ``free`` of ``reference``, as spelled.
    ``cells`` are variables that must become its cells though no code in it captures them, ``unused`` are local
    variables that it must have though no code uses them."""
    bare: Any = target if isinstance(target, ast.Expr) else _without_surroundings(target)
    name = reference.co_name if isinstance(target, ast.Expr) else bare.name
    if isinstance(bare, _FUNCTIONS):
        name = NAME
        bare = replaced(bare, name=NAME, body=_with_mentions(bare, free, cells, unused))
    depth = 1
    # What makes the free variables and the flags, from the inside out:
    #
    #     class C[T]: ...                   the variable ``.type_params``
    #     def depyf_scaffold():             local variables of an enclosing function
    #         x = None
    #         def depyf_scaffold(): ...
    #     class ____________:               ``__class__``
    #         def depyf_scaffold(): ...
    if TYPE_PARAMS in free:  # any type parameter makes the variable; a code object around the class makes the parameter
        free = [name for name in free if name != TYPE_PARAMS]
        bare = replaced(bare, type_params=[_at(bare, getattr(ast, "TypeVar")(name=NAME))])  # noqa: B009
        depth = 2
    enclosing: object
    if _is_nested(reference) or set(free) - _MADE_BY_CLASSES:
        enclosing = _function(NAME, _no_arguments(), [*_bindings(free), bare])
        if isinstance(target, ast.Expr) and reference.co_flags & inspect.CO_COROUTINE:  # it may be awaited only there
            enclosing = ast.AsyncFunctionDef(**vars(enclosing))
        return Scaffolded(_module(_at(bare, enclosing), reference), depth + 1, f"{NAME}.<locals>.{name}")
    if free or (isinstance(bare, ast.ClassDef) and _CONDITIONAL not in reference.co_cellvars):
        enclosing = ast.ClassDef(name=_CLASS, bases=[], keywords=[], body=[bare], decorator_list=[])
        return Scaffolded(_module(_at(bare, enclosing), reference), depth + 1, f"{_CLASS}.{name}")
    return Scaffolded(_module(bare, reference), depth, name)


MAY_BE_AWAITED = "types.coroutine"
"""The decorator that sets the flag in the code of a generator: code with the flag is written with the decorator."""


def marks(target: Target) -> int:
    """Return the flags that the decorators of ``target`` set in its code at run time."""
    decorators = getattr(target, "decorator_list", [])
    is_coroutine = any(
        isinstance(each, ast.Attribute)
        and isinstance(each.value, ast.Name)
        and f"{each.value.id}.{each.attr}" == MAY_BE_AWAITED
        for each in decorators
    )
    return inspect.CO_ITERABLE_COROUTINE if is_coroutine else 0


def dig(module: Code, scaffolded: Scaffolded) -> Code:
    """Return the code object of the function in the compiled scaffolding. Raises ``DecompilationError`` if it is not
    unique."""
    code = module
    for _ in range(scaffolded.depth):
        inner = [constant for constant in code.co_consts if is_code(constant)]
        if len(inner) != 1:
            raise DecompilationError(f"the scaffolding has {len(inner)} code objects where one was expected")
        code = inner[0]
    return code


def _is_generator(reference: Code) -> bool:
    return bool(reference.co_flags & (inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR))


def _is_nested(reference: Code) -> bool:
    """Return whether ``reference`` comes from inside a function; only functions have that flag, so classes ask their
    methods."""
    if reference.co_flags & inspect.CO_OPTIMIZED:
        return bool(reference.co_flags & inspect.CO_NESTED)
    return any(_is_nested(constant) for constant in reference.co_consts if is_code(constant))


def _without_surroundings(
    target: Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef],
) -> Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef]:
    """Return ``target`` without the parts that the enclosing code evaluates: defaults, decorators, annotations, bases,
    type parameters."""
    changes: Dict[str, object] = {"decorator_list": []}
    if hasattr(target, "type_params"):
        changes["type_params"] = []
    if isinstance(target, ast.ClassDef):
        return replaced(target, bases=[], keywords=[], **changes)
    return replaced(target, args=_bare_arguments(target.args), returns=None, **changes)


def _bare_arguments(arguments: ast.arguments) -> ast.arguments:
    def bare(argument: Optional[ast.arg]) -> Any:
        return argument and replaced(argument, annotation=None)

    return ast.arguments(
        posonlyargs=[bare(argument) for argument in arguments.posonlyargs],
        args=[bare(argument) for argument in arguments.args],
        vararg=bare(arguments.vararg),
        kwonlyargs=[bare(argument) for argument in arguments.kwonlyargs],
        kw_defaults=[None] * len(arguments.kwonlyargs),
        kwarg=bare(arguments.kwarg),
        defaults=[],
    )


def _with_mentions(
    target: Union[ast.FunctionDef, ast.AsyncFunctionDef],
    free: Sequence[str],
    cells: Sequence[str],
    unused: Sequence[str],
) -> List[ast.stmt]:
    """Return the body of ``target`` with statements that emit no bytecode but declare variables to the compiler."""
    body = target.body
    documented = isinstance(body[0], ast.Expr) and isinstance(getattr(body[0].value, "value", None), str)
    mentions: List[ast.stmt] = []
    if free:
        mentions.append(ast.Nonlocal(names=list(free)))
    if cells or unused:
        # if 0:                                 The dead branch is not compiled, but its names count, and those that
        #     x = lambda: x                     a function in it captures become cells.
        dead = [*(_bind(cell, _capture(cell)) for cell in cells), *_bindings(unused)]
        mentions.append(ast.If(test=ast.Constant(value=0, kind=None), body=dead, orelse=[]))
    # On the line of the next statement: otherwise an instruction that marks the line of the ``if`` would stay.
    rest = body[1:] if documented else body
    place = rest[0] if rest else target
    return [*body[:documented], *(_at(place, mention) for mention in mentions), *rest]


def _bindings(names: Sequence[str]) -> List[ast.stmt]:
    return [_bind(name, ast.Constant(value=None, kind=None)) for name in names]


def _bind(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign(targets=[ast.Name(id=name, ctx=ast.Store())], value=value)


def _capture(name: str) -> ast.expr:
    return ast.Lambda(args=_no_arguments(), body=ast.Name(id=name, ctx=ast.Load()))


def _no_arguments() -> ast.arguments:
    return ast.arguments(posonlyargs=[], args=[], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[])


def _function(name: str, arguments: ast.arguments, body: List[ast.stmt]) -> ast.FunctionDef:
    return ast.FunctionDef(name=name, args=arguments, body=body, decorator_list=[], returns=None, type_comment=None)


def _module(statement: ast.stmt, reference: Code) -> ast.Module:
    body: List[ast.stmt] = [statement]
    if _calls_super_plainly(reference):
        body.insert(0, _at(statement, ast.Expr(ast.Name(id=_SUPER, ctx=ast.Load()))))
    return ast.Module(body=body, type_ignores=[])


def _calls_super_plainly(reference: Code) -> bool:
    """Return whether ``super().name`` is not one instruction, as it is since 3.12. It is not in modules that mention
    ``super`` outside functions."""
    users = [code for code in nested_codes(reference) if _SUPER in code.co_names]
    return bool(users) and not any(may_use(code, "LOAD_SUPER_ATTR") for code in users)


def _at(place: ast.AST, node: Node) -> Node:
    """Return ``node`` at the position of ``place``, and its inner nodes too where they have none."""
    pending: List[ast.AST] = [node]
    while pending:
        current = pending.pop()
        if "lineno" in current._attributes and not hasattr(current, "lineno"):
            ast.copy_location(current, place)
        elif current is not node and "lineno" in current._attributes:
            continue  # it is part of the source, with all of its descendants
        pending.extend(ast.iter_child_nodes(current))
    return node
