"""What has to stand first in a body so that its names mean what they mean in the bytecode.

The compiler decides from the whole body whether a name is local, free or global. Where the statements that survive in
the bytecode would make it decide otherwise, a declaration says it.
"""

from __future__ import annotations

import ast
import inspect
from typing import FrozenSet, Iterable, List, Set, Tuple

from depyf.normal.ops import NormalCode, Op
from depyf.source.signature import parameter_names


def declarations(
    normal: NormalCode,
    enclosing: FrozenSet[str] = frozenset(),
    *,
    nested: bool = False,
    comprehensions: Iterable[NormalCode] = (),
    annotated: bool = True,
) -> List[ast.stmt]:
    """The statements to put first into the body of ``normal``, after the docstring.

    ``enclosing`` are the local names of the functions around it (see ``local_names``), which a plain name would mean.
    ``nested`` says that the body stands inside another function in the text, whose cells it must refer to even where
    nothing uses them; for a body that stands alone, compiling sees to that. ``comprehensions`` are the code objects
    that the text shows as comprehensions inside this body: a ``:=`` in them binds a name of this body.
    ``annotated``: the statements of a class or module show an annotation, so that the compiler makes the dict for them.
    """
    stored, loaded, closures = _uses(normal)
    for comprehension in comprehensions:
        bound, read, _ = _uses(comprehension)
        own = {*comprehension.code.co_varnames, *comprehension.code.co_cellvars}
        stored |= {use for use in bound if use[0] not in ("fast", "deref") or use[1] not in own}
        # One that lies in another one may use a variable of that.
        ours = {*normal.code.co_cellvars, *normal.code.co_freevars} - own
        loaded |= {use for use in read if use[0] == "deref" and use[1] in ours}
    result: List[ast.stmt] = []
    global_names = _global_names(normal, stored, loaded, enclosing)
    if global_names:
        result.append(ast.Global(names=sorted(global_names)))
    free = _free_names(normal)
    nonlocal_names = {name for scope, name in stored if scope == "deref" and name in free}
    if nonlocal_names:
        result.append(ast.Nonlocal(names=sorted(nonlocal_names)))
    if nested:
        unused = free - nonlocal_names - _used(loaded, closures)
        result.extend(_unreached(ast.Expr(ast.Name(id=name, ctx=ast.Load()))) for name in sorted(unused))
    if any(instr.op is Op.SETUP_ANNOTATIONS for instr in normal.ops) and not annotated:
        result.append(_unreached(_annotation("_")))
    if _is_function(normal):
        result.extend(_unbound_locals(normal, stored, loaded, closures))
        result.extend(_generator_mark(normal))
    return result


def unused_names(normal: NormalCode) -> List[str]:
    """The free variables of a lambda or comprehension that only unreached code uses."""
    stored, loaded, closures = _uses(normal)
    return sorted(_free_names(normal) - {name for _, name in stored} - _used(loaded, closures))


def _free_names(normal: NormalCode) -> Set[str]:
    return set(normal.code.co_freevars) - {"__classdict__"}


def local_names(normal: NormalCode) -> FrozenSet[str]:
    """The names that functions nested in ``normal`` would find before the globals; none in classes and modules."""
    code = normal.code
    own = set(code.co_varnames) | set(code.co_cellvars) if _is_function(normal) else set()
    return frozenset(own - _hidden_names(normal) | set(code.co_freevars))


def _hidden_names(normal: NormalCode) -> Set[str]:
    """Local variables that only comprehensions in line have."""
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
    """The statement that makes ``text`` the docstring when it stands first."""
    return ast.Expr(value=ast.Constant(value=text, kind=None))


def _is_function(normal: NormalCode) -> bool:
    return bool(normal.code.co_flags & inspect.CO_OPTIMIZED)


_Names = Set[Tuple[str, str]]


def _uses(normal: NormalCode) -> Tuple[_Names, _Names, Set[str]]:
    """(scope, name) of all that is stored or deleted, of all that is loaded, and the names whose cells are taken."""
    stored: _Names = set()
    loaded: _Names = set()
    closures: Set[str] = set()
    for instr in normal.ops:
        if instr.op in (Op.STORE, Op.DELETE):
            stored.add(instr.arg)
        elif instr.op is Op.LOAD:
            loaded.add(instr.arg)
        elif instr.op is Op.CLOSURE:
            closures.add(instr.arg)
    return stored, loaded, closures


def _global_names(normal: NormalCode, stored: _Names, loaded: _Names, enclosing: FrozenSet[str]) -> Set[str]:
    names = {name for scope, name in stored if scope == "global"}
    read = {name for scope, name in loaded if scope == "global"}
    if _is_function(normal):
        return names | (read & enclosing)
    # Class bodies and modules look every name up in their own namespace first, unless declared otherwise.
    return names | read


def _used(loaded: _Names, closures: Set[str]) -> Set[str]:
    """The names that the compiler finds a use of in the statements. A free variable that is none of them has a use that
    is never reached (``nonlocal`` would not do for all: type parameters must not be).

    def g():            the compiler drops the dead branch, but g keeps x as a free variable
        if 0: x
    """
    implied = {"__class__"} if ("global", "super") in loaded else set()
    return closures | implied | {name for scope, name in loaded if scope in ("deref", "classderef", "bodyderef")}


def _unbound_locals(normal: NormalCode, stored: _Names, loaded: _Names, closures: Set[str]) -> List[ast.stmt]:
    """Annotations without a value, which run nothing, for locals that are read and never bound.

    def f():            only the load is left of this, and a load alone would mean the global x
        return x
        x = 1
    """
    code = normal.code
    bound = set(parameter_names(code)) | set(code.co_freevars)
    bound |= {name for scope, name in stored if scope in ("fast", "deref")}
    read = {name for scope, name in loaded if scope in ("fast", "deref")} | closures
    return [_annotation(name) for name in sorted(read - bound)]


def _annotation(name: str) -> ast.stmt:
    """``name: object``."""
    target = ast.Name(id=name, ctx=ast.Store())
    return ast.AnnAssign(target=target, annotation=ast.Name(id="object", ctx=ast.Load()), value=None, simple=1)


def _unreached(statement: ast.stmt) -> ast.stmt:
    """``if False: statement``, which runs nothing, but the compiler has seen it."""
    return ast.If(test=ast.Constant(value=False, kind=None), body=[statement], orelse=[])


def _generator_mark(normal: NormalCode) -> List[ast.stmt]:
    """``if False: yield`` for a generator that has no ``yield`` which could be reached."""
    flags = normal.code.co_flags
    if flags & inspect.CO_ASYNC_GENERATOR:
        yields = {Op.YIELD}  # the other one is ``await`` there
    elif flags & inspect.CO_GENERATOR:
        yields = {Op.YIELD, Op.YIELD_FROM}
    else:
        return []
    if any(instr.op in yields for instr in normal.ops):
        return []
    return [_unreached(ast.Expr(value=ast.Yield(value=None)))]
