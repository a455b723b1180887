"""Mutators of expressions."""

from __future__ import annotations

import ast
from typing import Any, Dict, Iterator, List, Type

from mutators.places import (
    COMPREHENSIONS,
    FUNCTIONS,
    Change,
    Mutator,
    Place,
    constant,
    is_loud,
    load,
    same,
    simple_name,
    swap,
)

EXPRESSIONS: List[Mutator] = []


def mutator(function: Mutator) -> Mutator:
    EXPRESSIONS.append(function)
    return function


def _set(node: Any, field: str, value: Any) -> Change:
    return lambda: setattr(node, field, value)


def _in_place(items: List[Any], value: List[Any]) -> Change:
    def change() -> None:
        items[:] = value

    return change


# --- operators


@mutator
def swap_operands(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.BinOp) and not same(node.left, node.right):

        def change() -> None:
            node.left, node.right = node.right, node.left

        yield change


@mutator
def other_operator(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        for operator in (ast.Add, ast.Sub, ast.FloorDiv, ast.Div, ast.MatMult):
            if not isinstance(node.op, operator):
                yield _set(node, "op", operator())


@mutator
def other_unary_operator(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        yield _set(node, "op", ast.Invert() if isinstance(node.op, ast.USub) else ast.USub())
        if not isinstance(node.op, ast.Not):
            yield lambda: place.replace(node.operand)


@mutator
def drop_not(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield lambda: place.replace(node.operand)


_OTHER_COMPARISONS: Dict[Type[ast.cmpop], List[Type[ast.cmpop]]] = {
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt],
    ast.Eq: [ast.NotEq, ast.Is],
    ast.NotEq: [ast.Eq, ast.IsNot],
    ast.Is: [ast.IsNot, ast.Eq],
    ast.IsNot: [ast.Is, ast.NotEq],
    ast.In: [ast.NotIn, ast.Eq],
    ast.NotIn: [ast.In],
}


@mutator
def other_comparison(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            for other in _OTHER_COMPARISONS[type(operator)]:
                yield lambda at=at, other=other: node.ops.__setitem__(at, other())  # type: ignore[misc]


@mutator
def swap_compared(place: Place) -> Iterator[Change]:
    """``a < b`` becomes ``b > a``: evaluated, and asked, in the other order. ``is`` asks nobody."""
    node = place.node
    mirrored = {
        ast.Lt: ast.Gt,
        ast.Gt: ast.Lt,
        ast.LtE: ast.GtE,
        ast.GtE: ast.LtE,
        ast.Eq: ast.Eq,
        ast.NotEq: ast.NotEq,
    }
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in mirrored:
        right = node.comparators[0]
        if not same(node.left, right):

            def change() -> None:
                node.left, node.comparators, node.ops = right, [node.left], [mirrored[type(node.ops[0])]()]

            yield change


@mutator
def chain_twice(place: Place) -> Iterator[Change]:
    """``a < b() < c`` becomes ``a < b() and b() < c``."""
    node = place.node
    if isinstance(node, ast.Compare) and len(node.ops) == 2 and is_loud(node.comparators[0]):
        first = ast.Compare(node.left, node.ops[:1], node.comparators[:1])
        second = ast.Compare(node.comparators[0], node.ops[1:], node.comparators[1:])
        yield lambda: place.replace(ast.BoolOp(ast.And(), [first, second]))


@mutator
def shorten_chain(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Compare) and len(node.ops) > 1:

        def change() -> None:
            del node.ops[-1], node.comparators[-1]

        yield change


@mutator
def swap_and_or(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.BoolOp):
        yield _set(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())


@mutator
def swap_alternatives(place: Place) -> Iterator[Change]:
    """``a and b`` becomes ``b and a``; tests of one another's loud parts only, as ``x is None`` is silent."""
    node = place.node
    if isinstance(node, ast.BoolOp):
        for at in range(len(node.values) - 1):
            one, other = node.values[at], node.values[at + 1]
            if not same(one, other) and (is_loud(one) or is_loud(other)):
                yield swap(node.values, at, at + 1)


@mutator
def drop_alternative(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.BoolOp) and len(node.values) > 1:
        yield lambda: place.replace(node.values[0]) if len(node.values) == 2 else node.values.pop()


@mutator
def regroup_and_or(place: Place) -> Iterator[Change]:
    """``(a and b) or c`` becomes ``a and (b or c)``."""
    node = place.node
    if (
        isinstance(node, ast.BoolOp)
        and isinstance(node.values[0], ast.BoolOp)
        and type(node.op) is not type(node.values[0].op)
    ):
        inner = node.values[0]
        rest = ast.BoolOp(node.op, [inner.values[-1], *node.values[1:]])
        yield lambda: place.replace(ast.BoolOp(inner.op, [*inner.values[:-1], rest]))


@mutator
def swap_branches(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.IfExp) and not same(node.body, node.orelse):

        def change() -> None:
            node.body, node.orelse = node.orelse, node.body

        yield change


@mutator
def always_first_branch(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.IfExp) and not same(node.body, node.orelse):
        yield lambda: place.replace(node.body)


# --- constants and names


def _is_unused(place: Place) -> bool:
    """Whether a constant is a statement of its own, or stored to a variable that the next statement stores again."""
    statement = place.parent
    if statement is None:
        return False
    if isinstance(statement.node, ast.Assign) and statement.is_local and statement.following:
        following = statement.following[0]
        names = [ast.dump(target) for target in getattr(following, "targets", [])]
        return any(ast.dump(target) in names for target in statement.node.targets) and not is_loud(following)
    return isinstance(statement.node, ast.Expr)


def _in_text(place: Place) -> bool:
    return place.parent is not None and isinstance(place.parent.node, ast.JoinedStr)


@mutator
def other_number(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Constant) and type(node.value) in (int, float, complex) and not _is_unused(place):
        yield _set(node, "value", node.value + 1)


@mutator
def other_number_type(place: Place) -> Iterator[Change]:
    """A constant that is equal, and yet another one: ``1``, ``1.0``, ``True``, ``(1+0j)``; ``0.0``, ``-0.0``."""
    node = place.node
    if not isinstance(node, ast.Constant) or _is_unused(place):
        return
    if type(node.value) is int and abs(node.value) < 10**15:
        yield _set(node, "value", float(node.value))
        yield _set(node, "value", complex(node.value))
        if node.value in (0, 1):
            yield _set(node, "value", bool(node.value))
    elif type(node.value) is bool:
        yield _set(node, "value", int(node.value))
        yield _set(node, "value", not node.value)
    elif type(node.value) is float:
        yield _set(node, "value", complex(node.value))
        if node.value == 0.0:
            yield lambda: place.replace(ast.UnaryOp(ast.USub(), constant(0.0)))


@mutator
def other_text(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Constant) and type(node.value) in (str, bytes):
        more = "x" if isinstance(node.value, str) else b"x"
        yield _set(node, "value", node.value + more)  # type: ignore[operator]
        if node.value and not _in_text(place):
            yield _set(node, "value", node.value[:0])


@mutator
def text_or_bytes(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Constant) and type(node.value) in (str, bytes) and not _in_text(place):
        if isinstance(node.value, str) and node.value.isascii():
            yield _set(node, "value", node.value.encode())
        elif isinstance(node.value, bytes):
            yield _set(node, "value", node.value.decode("latin-1"))


@mutator
def other_singleton(place: Place) -> Iterator[Change]:
    """``None`` becomes ``...`` or ``False``, which a test can't tell but everything else can."""
    node = place.node
    if isinstance(node, ast.Constant) and (node.value is None or node.value is ...) and not _is_unused(place):
        if place.parent is not None and type(place.parent.node).__name__ != "MatchSingleton":
            yield _set(node, "value", False)
            yield _set(node, "value", None if node.value is ... else ...)


@mutator
def other_name(place: Place) -> Iterator[Change]:
    """Another name that is read; ``x_other`` is a global that nobody else has."""
    node = place.node
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and not node.id.startswith("__const_"):
        yield _set(node, "id", simple_name(node.id))


@mutator
def other_parameter(place: Place) -> Iterator[Change]:
    """Another parameter of the same function is read, in a function that never stores one."""
    node = place.node
    function = place.scope
    if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load) or not isinstance(function, FUNCTIONS):
        return
    names = [argument.arg for argument in function.args.args]
    stored = {
        each.id for each in ast.walk(function) if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)
    }
    if node.id in names and not stored & set(names) and not place.inside(COMPREHENSIONS, FUNCTIONS):
        for name in names:
            if name != node.id:
                yield _set(node, "id", name)


@mutator
def swap_names(place: Place) -> Iterator[Change]:
    """What is stored to ``a, b`` goes to ``b, a``, with something behind it that can be told."""
    node = place.node
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Store):
        assignment = place.parent
        if assignment is not None and isinstance(assignment.node, ast.Assign) and place.is_local:
            values = getattr(assignment.node.value, "elts", [])
            if len({ast.dump(value) for value in values}) < len(values) or not assignment.shows:
                return
        if len({ast.dump(target) for target in node.elts}) < len(node.elts):
            return
        for at in range(len(node.elts) - 1):
            if not same(node.elts[at], node.elts[at + 1]):
                yield swap(node.elts, at, at + 1)


@mutator
def move_star(place: Place) -> Iterator[Change]:
    """``a, *b = c`` becomes ``*a, b = c``."""
    node = place.node
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(node.ctx, ast.Store) and len(node.elts) > 1:
        for at, item in enumerate(node.elts):
            if isinstance(item, ast.Starred):
                to = at - 1 if at else 1

                def change(at: int = at, to: int = to, item: ast.Starred = item) -> None:
                    node.elts[at], node.elts[to] = item.value, ast.Starred(node.elts[to], ast.Store())

                yield change
                yield lambda at=at, item=item: node.elts.__setitem__(at, item.value)  # type: ignore[misc]


@mutator
def other_attribute(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Attribute):
        yield _set(node, "attr", simple_name(node.attr))


@mutator
def drop_attribute(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        yield lambda: place.replace(node.value)


# --- containers and subscripts


@mutator
def swap_items(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)) and not isinstance(getattr(node, "ctx", None), ast.Store):
        for at in range(len(node.elts) - 1):
            if not same(node.elts[at], node.elts[at + 1]):
                yield swap(node.elts, at, at + 1)


@mutator
def drop_item(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (ast.Tuple, ast.List, ast.Set)) and len(node.elts) > 1:
        if not isinstance(getattr(node, "ctx", None), ast.Del):
            yield lambda: node.elts.pop(0)
            yield lambda: node.elts.pop()


@mutator
def other_display(place: Place) -> Iterator[Change]:
    """Another kind of container, unless it is taken apart again at once and nobody sees it."""
    node, parent = place.node, place.parent
    if not isinstance(node, (ast.Tuple, ast.List, ast.Set)) or not isinstance(
        getattr(node, "ctx", ast.Load()), ast.Load
    ):
        return
    if (
        parent is None
        or isinstance(parent.node, (ast.Assign, ast.Starred, ast.Subscript, ast.For))
        or place.field == "iter"
    ):
        return
    if isinstance(node, ast.Tuple):
        yield lambda: place.replace(ast.List(node.elts, ast.Load()))
    elif isinstance(node, ast.List):
        yield lambda: place.replace(ast.Tuple(node.elts, ast.Load()))
    if not isinstance(node, ast.Set) and node.elts:
        yield lambda: place.replace(ast.Set(node.elts))


@mutator
def change_dict(place: Place) -> Iterator[Change]:
    """An entry dropped, two exchanged, the values of two exchanged."""
    node = place.node
    if not isinstance(node, ast.Dict):
        return
    for at in range(len(node.keys)):

        def drop(at: int = at) -> None:
            del node.keys[at], node.values[at]

        yield drop
    for at in range(len(node.keys) - 1):

        def exchange(at: int = at) -> None:
            node.keys[at], node.keys[at + 1] = node.keys[at + 1], node.keys[at]
            node.values[at], node.values[at + 1] = node.values[at + 1], node.values[at]

        yield exchange
        if not same(node.values[at], node.values[at + 1]):
            yield swap(node.values, at, at + 1)


@mutator
def drop_star(place: Place) -> Iterator[Change]:
    """``f(*a)`` becomes ``f(a)``."""
    node = place.node
    if isinstance(node, ast.Starred) and isinstance(node.ctx, ast.Load):
        yield lambda: place.replace(node.value)


@mutator
def change_slice(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Slice):
        for field in ("lower", "upper", "step"):
            value = getattr(node, field)
            if value is None:
                yield _set(node, field, constant(7))
            elif not (isinstance(value, ast.Constant) and value.value is None):
                yield _set(node, field, None)
        if node.lower is not None and node.upper is not None and not same(node.lower, node.upper):

            def change() -> None:
                node.lower, node.upper = node.upper, node.lower

            yield change


@mutator
def drop_subscript(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield lambda: place.replace(node.value)


# --- calls


@mutator
def swap_arguments(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Call):
        for at in range(len(node.args) - 1):
            if not same(node.args[at], node.args[at + 1]):
                yield swap(node.args, at, at + 1)


@mutator
def drop_argument(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Call) and node.args:
        yield lambda: node.args.pop()
        if len(node.args) > 1:
            yield lambda: node.args.pop(0)


@mutator
def add_argument(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Call):
        yield lambda: node.args.append(constant(None))


@mutator
def change_keywords(place: Place) -> Iterator[Change]:
    """A keyword dropped, renamed, made positional; two in the other order."""
    node = place.node
    keywords: List[ast.keyword] = getattr(node, "keywords", [])
    if not isinstance(node, (ast.Call, ast.ClassDef)):
        return
    for at, keyword in enumerate(keywords):
        yield lambda at=at: keywords.pop(at)  # type: ignore[misc]
        if keyword.arg is None:
            yield _set(keyword, "arg", "other")
        else:
            yield _set(keyword, "arg", simple_name(keyword.arg))
            yield _set(keyword, "arg", None)
    if isinstance(node, ast.Call) and keywords and keywords[0].arg is not None:
        yield lambda: node.args.append(keywords.pop(0).value)
    for at in range(len(keywords) - 1):
        yield swap(keywords, at, at + 1)


@mutator
def drop_call(place: Place) -> Iterator[Change]:
    """``f(x)`` becomes ``f``."""
    node = place.node
    if isinstance(node, ast.Call):
        yield lambda: place.replace(node.func)


@mutator
def argument_first(place: Place) -> Iterator[Change]:
    """``a.method(b())`` becomes ``(first := b(), a.method(first))[1]``: the argument before the method is looked up."""
    node = place.node
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 1 and place.is_local:
        argument = node.args[0]
        if isinstance(argument, ast.Call) and not place.inside(COMPREHENSIONS, FUNCTIONS):
            target = ast.NamedExpr(ast.Name("first_argument", ast.Store()), argument)
            later = ast.Call(node.func, [load("first_argument")], node.keywords)
            both = ast.Tuple([target, later], ast.Load())
            yield lambda: place.replace(ast.Subscript(both, constant(1), ast.Load()))


@mutator
def keep_alive(place: Place) -> Iterator[Change]:
    """``f(g()); h()`` becomes ``f((kept := g())); h()``: what ``g`` gave lives on while ``h`` runs."""
    node = place.node
    following = place.following
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call) or not place.is_local or not following:
        return
    if isinstance(following[0], ast.Expr) and isinstance(following[0].value, ast.Call):
        arguments = node.value.args
        for at, argument in enumerate(arguments):
            if isinstance(argument, ast.Call):
                kept = ast.NamedExpr(ast.Name("kept", ast.Store()), argument)
                yield lambda at=at, kept=kept: arguments.__setitem__(at, kept)  # type: ignore[misc]


# --- texts


@mutator
def change_formatting(place: Place) -> Iterator[Change]:
    """Another conversion, another or no format specification."""
    node = place.node
    if isinstance(node, ast.FormattedValue):
        for conversion in (-1, ord("r"), ord("a"), ord("s")):
            if conversion != node.conversion:
                yield _set(node, "conversion", conversion)
        if node.format_spec is None:
            yield _set(node, "format_spec", ast.JoinedStr([constant(">10")]))
        else:
            yield _set(node, "format_spec", None)


@mutator
def change_text_parts(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.JoinedStr) and len(node.values) > 1:
        yield lambda: node.values.pop()
        for at in range(len(node.values) - 1):
            if not same(node.values[at], node.values[at + 1]):
                yield swap(node.values, at, at + 1)


# --- comprehensions


@mutator
def drop_filter(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.comprehension) and node.ifs:
        yield lambda: node.ifs.pop()


@mutator
def other_comprehension(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        for kind in (ast.ListComp, ast.SetComp, ast.GeneratorExp):
            if not isinstance(node, kind):
                yield lambda kind=kind: place.replace(kind(node.elt, node.generators))  # type: ignore[misc]
    elif isinstance(node, ast.DictComp) and not same(node.key, node.value):

        def change() -> None:
            node.key, node.value = node.value, node.key

        yield change
        yield lambda: place.replace(ast.SetComp(node.key, node.generators))


@mutator
def other_element(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        yield _set(node, "elt", ast.Tuple([node.elt], ast.Load()))


@mutator
def swap_comprehension_loops(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, COMPREHENSIONS) and len(node.generators) > 1:
        yield swap(node.generators, 0, 1)


@mutator
def move_filter(place: Place) -> Iterator[Change]:
    """The filter of the last loop is asked in the loop around it."""
    node = place.node
    if isinstance(node, COMPREHENSIONS) and len(node.generators) > 1 and node.generators[-1].ifs:
        inner, outer = node.generators[-1], node.generators[-2]
        yield lambda: outer.ifs.append(inner.ifs.pop(0))


@mutator
def asynchronous_comprehension(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.comprehension):
        yield _set(node, "is_async", 1 - node.is_async)


# --- waiting


@mutator
def drop_await(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Await):
        yield lambda: place.replace(node.value)


@mutator
def other_yield(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.Yield):
        yield lambda: place.replace(ast.YieldFrom(node.value or constant(None)))
        yield _set(node, "value", None if node.value is not None else constant(0))
    elif isinstance(node, ast.YieldFrom):
        yield lambda: place.replace(ast.Yield(node.value))
    elif isinstance(node, ast.Await):
        yield lambda: place.replace(ast.Yield(node.value))


@mutator
def drop_yield(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, (ast.Yield, ast.YieldFrom)):
        yield lambda: place.replace(node.value if node.value is not None else constant(None))


# --- lambdas and walrus


@mutator
def drop_walrus(place: Place) -> Iterator[Change]:
    node = place.node
    if isinstance(node, ast.NamedExpr) and not same(node.value, load(node.target.id)):
        yield lambda: place.replace(node.value)
        yield _set(node.target, "id", simple_name(node.target.id))


@mutator
def call_now(place: Place) -> Iterator[Change]:
    """``lambda: x`` becomes ``x``."""
    node = place.node
    if isinstance(node, ast.Lambda) and not _is_unused(place):
        yield lambda: place.replace(node.body)


@mutator
def capture_now(place: Place) -> Iterator[Change]:
    """``lambda: x`` becomes ``lambda x=x: x``."""
    node = place.node
    if isinstance(node, ast.Lambda) and not node.args.defaults and node.args.vararg is None:
        taken = {argument.arg for argument in [*node.args.args, *node.args.kwonlyargs]}
        names = {each.id for each in ast.walk(node.body) if isinstance(each, ast.Name)} - taken
        for name in sorted(names)[:1]:

            def change(name: str = name) -> None:
                node.args.args.append(ast.arg(name, None))
                node.args.defaults.append(load(name))

            yield change
