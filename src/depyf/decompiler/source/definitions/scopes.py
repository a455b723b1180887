"""Declarations that give the names in a body the scopes that they have in the bytecode.

The compiler derives from the whole body whether a name is local, free or global. Where the statements that survive in
the bytecode would give another result, a declaration is needed.
"""

from __future__ import annotations

import ast
import inspect
from typing import FrozenSet, Iterable, List, Optional, Set, Tuple

from depyf.decompiler.bytecode.code import parameter_names
from depyf.decompiler.bytecode.syntax_trees import children
from depyf.decompiler.normal.ops import NormalCode, Op


def declarations(
    normal: NormalCode,
    enclosing: FrozenSet[str] = frozenset(),
    type_parameters: FrozenSet[str] = frozenset(),
    *,
    nested: bool = False,
    comprehensions: Iterable[NormalCode] = (),
    annotated: bool = True,
) -> List[ast.stmt]:
    """Return the statements to put first into the body of ``normal``, after the docstring.

    ``enclosing`` are the local names of the enclosing functions (see ``local_names``), which a plain name would refer
    to; ``nonlocal`` may not name ``type_parameters``. ``nested``: the body is inside another function in the text,
    whose cells it must refer to even where no code uses them; for a body on its own, the scaffolding does that.
    ``comprehensions`` are the code objects that the text shows as comprehensions inside this body: a ``:=`` in them
    binds a name of this body. ``annotated``: the statements of a class or module show an annotation, so that the
    compiler makes the dict for them.
    """
    stored, loaded, closures = _uses(normal)
    # [y := x for x in z]     binds ``y`` of this body, in the code of the comprehension
    for comprehension in comprehensions:
        bound, read, _ = _uses(comprehension)
        own = {*comprehension.code.co_varnames, *comprehension.code.co_cellvars}
        stored |= {use for use in bound if use[0] not in ("fast", "deref") or use[1] not in own}
        # A nested comprehension may read a variable of the outer one, which is no variable of this body.
        ours = {*normal.code.co_cellvars, *normal.code.co_freevars} - own
        loaded |= {use for use in read if use[0] == "deref" and use[1] in ours}
    result: List[ast.stmt] = []
    global_names = _global_names(normal, stored, loaded, enclosing)
    if global_names:
        result.append(ast.Global(names=sorted(global_names)))
    free = _free_names(normal)
    nonlocal_names = {name for scope, name in stored if scope == "deref" and name in free}
    unused = free - nonlocal_names - _used(loaded, closures) if nested else set()
    declared = unused & enclosing - type_parameters
    if nonlocal_names or declared:
        result.append(ast.Nonlocal(names=sorted(nonlocal_names | declared)))
    # if False: x             for the other free variables that no statement uses (see ``_used``)
    for name in sorted(unused - declared):
        result.append(_unreached(ast.Expr(ast.Name(id=name, ctx=ast.Load()))))
    # if False: _: object     makes the compiler set up ``__annotations__``, as an annotation in dead code did
    if Op.SETUP_ANNOTATIONS in normal.kinds and not annotated:
        result.append(_unreached(_annotation("_")))
    if _is_function(normal):
        result.extend(_unbound_locals(normal, stored, loaded, closures))
        result.extend(_generator_mark(normal))
    return result


def unused_names(normal: NormalCode) -> List[str]:
    """Return the free variables of a lambda or comprehension that only dead code uses."""
    stored, loaded, closures = _uses(normal)
    return sorted(_free_names(normal) - {name for _, name in stored} - _used(loaded, closures))


def needed_in_module(head: List[ast.stmt], statements: List[ast.stmt]) -> List[ast.stmt]:
    """Return the declarations ``head`` of a module without the names that ``statements`` make global: CPython's symbol
    table takes every ``global`` statement, and a ``:=`` in a comprehension of the module, as one of the module's."""
    if not any(isinstance(statement, ast.Global) for statement in head):
        return head
    known = _globals_below(statements)
    result: List[ast.stmt] = []
    for statement in head:
        if isinstance(statement, ast.Global):
            names = [name for name in statement.names if name not in known]
            result.extend([ast.Global(names=names)] if names else [])
        else:
            result.append(statement)
    return result


def _globals_below(statements: List[ast.stmt]) -> Set[str]:
    """Return the names that bodies and comprehensions in the ``statements`` of a module make global. In a class, a
    private name is another one."""
    known: Set[str] = set()
    todo: List[Tuple[ast.AST, Optional[type]]] = [(statement, None) for statement in statements]
    while todo:
        node, scope = todo.pop()
        if isinstance(node, ast.Global):
            known.update(name for name in node.names if scope is not ast.ClassDef or not name.startswith("__"))
        elif isinstance(node, ast.NamedExpr) and scope is ast.ListComp:
            known.add(node.target.id)
        elif isinstance(node, ast.ClassDef):
            scope = ast.ClassDef
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            scope = scope if scope is ast.ClassDef else ast.FunctionDef
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)) and scope is None:
            scope = ast.ListComp
        todo.extend((child, scope) for child in children(node))
    return known


def _free_names(normal: NormalCode) -> Set[str]:
    return set(normal.code.co_freevars) - {"__classdict__"}


def local_names(normal: NormalCode) -> FrozenSet[str]:
    """Return the names that functions nested in ``normal`` would find before globals; none for classes and modules."""
    code = normal.code
    own = set(code.co_varnames) | set(code.co_cellvars) if _is_function(normal) else set()
    return frozenset(own - _hidden_names(normal) | set(code.co_freevars))


def _hidden_names(normal: NormalCode) -> Set[str]:
    """Return the local variables that only inlined comprehensions have."""
    if Op.COMPREHENSION not in normal.kinds:
        return set()
    codes = [instr.arg for instr in normal.ops if instr.op is Op.COMPREHENSION]
    hidden: Set[str] = set()
    for code in codes:
        hidden.update(code.co_varnames, code.co_cellvars)
        codes.extend(instr.arg for instr in code.ops if instr.op is Op.COMPREHENSION)
    if hidden:
        stored, loaded, closures = _uses(normal)
        hidden -= {name for scope, name in stored | loaded if scope in ("fast", "deref")}
        hidden -= closures.union(parameter_names(normal.code))
    return hidden


def docstring_statement(text: str) -> ast.stmt:
    """Return the statement that makes ``text`` the docstring when it comes first."""
    return ast.Expr(value=ast.Constant(value=text, kind=None))


def _is_function(normal: NormalCode) -> bool:
    return bool(normal.code.co_flags & inspect.CO_OPTIMIZED)


_Names = Set[Tuple[str, str]]


def _uses(normal: NormalCode) -> Tuple[_Names, _Names, Set[str]]:
    """Return (scope, name) for all stores and deletions, the same for all loads, and the names in closures."""
    stored: _Names = set()
    loaded: _Names = set()
    found = {Op.STORE: stored, Op.DELETE: stored, Op.LOAD: loaded}
    for instr in normal.ops:
        if instr.op in found:
            found[instr.op].add(instr.arg)
    has_closures = Op.CLOSURE in normal.kinds
    closures = {instr.arg for instr in normal.ops if instr.op is Op.CLOSURE} if has_closures else set()
    return stored, loaded, closures


def _global_names(normal: NormalCode, stored: _Names, loaded: _Names, enclosing: FrozenSet[str]) -> Set[str]:
    names = {name for scope, name in stored if scope == "global"}
    read = {name for scope, name in loaded if scope == "global"}
    if _is_function(normal):
        return names | (read & enclosing)
    # Class bodies and modules look up every name in their own namespace first, unless declared otherwise.
    return names | read


def _used(loaded: _Names, closures: Set[str]) -> Set[str]:
    """Return the names that the compiler finds a use of in the statements.

    A free variable without one is declared, or has a use in dead code.

        def g():            def g():            the compiler drops the dead branch, but g keeps x as a free variable
            nonlocal x          if 0: x
    """
    implied = {"__class__"} if ("global", "super") in loaded else set()
    return closures | implied | {name for scope, name in loaded if scope in ("deref", "classderef", "bodyderef")}


def _unbound_locals(normal: NormalCode, stored: _Names, loaded: _Names, closures: Set[str]) -> List[ast.stmt]:
    """Return annotations without a value, which run nothing, for locals that are read and never bound.

    def f():            only the load is left of this, and a load alone would refer to the global x
        return x
        x = 1
    """
    code = normal.code
    bound = set(parameter_names(code)) | set(code.co_freevars)
    bound |= {name for scope, name in stored if scope in ("fast", "deref")}
    read = {name for scope, name in loaded if scope in ("fast", "deref")} | closures
    return [_annotation(name) for name in sorted(read - bound)]


def _annotation(name: str) -> ast.stmt:
    """Return ``name: object``."""
    target = ast.Name(id=name, ctx=ast.Store())
    return ast.AnnAssign(target=target, annotation=ast.Name(id="object", ctx=ast.Load()), value=None, simple=1)


def _unreached(statement: ast.stmt) -> ast.stmt:
    """Return ``if False: statement``: it runs nothing, but the compiler analyses it."""
    return ast.If(test=ast.Constant(value=False, kind=None), body=[statement], orelse=[])


def _generator_mark(normal: NormalCode) -> List[ast.stmt]:
    """Return ``if False: yield`` for a generator without a reachable ``yield``; else an empty list."""
    flags = normal.code.co_flags
    if flags & inspect.CO_ASYNC_GENERATOR:
        yields = {Op.YIELD}  # the other one is ``await`` there
    elif flags & inspect.CO_GENERATOR:
        yields = {Op.YIELD, Op.YIELD_FROM}
    else:
        return []
    if not yields.isdisjoint(normal.kinds):
        return []
    return [_unreached(ast.Expr(value=ast.Yield(value=None)))]
