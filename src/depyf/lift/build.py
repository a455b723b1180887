"""Makers of ``ast`` expressions from operations and operands."""

from __future__ import annotations

import ast
import keyword
import unicodedata
from typing import Callable, Dict, List, Optional, Sequence, Tuple, Type

from depyf.bytecode.set_order import display_order
from depyf.lift.items import Augmented, ChainTest, Function
from depyf.lift.nodes import FunctionExpression, FunctionStatement
from depyf.lift.places import moved
from depyf.normal.ops import Instr, Op

UNARY: Dict[str, Type[ast.unaryop]] = {"+": ast.UAdd, "-": ast.USub, "~": ast.Invert, "not": ast.Not}
BINARY: Dict[str, Type[ast.operator]] = {
    "+": ast.Add, "&": ast.BitAnd, "//": ast.FloorDiv, "<<": ast.LShift, "@": ast.MatMult, "*": ast.Mult,
    "%": ast.Mod, "|": ast.BitOr, "**": ast.Pow, ">>": ast.RShift, "-": ast.Sub, "/": ast.Div, "^": ast.BitXor,
}  # fmt: skip
_COMPARE: Dict[str, Type[ast.cmpop]] = {
    "<": ast.Lt, "<=": ast.LtE, "==": ast.Eq, "!=": ast.NotEq, ">": ast.Gt, ">=": ast.GtE,
}  # fmt: skip


class Special(ast.Name):
    """A name that is not looked up: what ``assert`` raises."""


class CellName(ast.Name):
    """The cell object of a variable, which has no syntax outside a closure."""


class TestedAgain(ast.BoolOp):
    """An ``and`` or ``or`` whose value is tested by the next one, though its own test has decided that already."""


def tested_again(expr: ast.expr) -> ast.expr:
    """``expr``, whose value is now tested."""
    return TestedAgain(expr.op, expr.values) if isinstance(expr, ast.BoolOp) else expr


def constant(expr: Optional[ast.expr]) -> object:
    """The object that ``expr`` is a constant of; None for other expressions. Any object can be a constant here."""
    return expr.value if isinstance(expr, ast.Constant) else None


def augmented(target: ast.expr, augmented: Augmented) -> ast.stmt:
    """``target += operand`` for a name, attribute or item."""
    assert isinstance(target, (ast.Name, ast.Attribute, ast.Subscript))
    return ast.AugAssign(target, augmented.operator, augmented.operand)


def special(name: str) -> ast.expr:
    """What the compiler means by ``name`` without looking it up, where syntax of its own says so."""
    return (Special if name == "AssertionError" else ast.Name)(name, ast.Load())


def cell(name: str) -> ast.expr:
    return CellName(name, ast.Load())


def comparison(instr: Instr) -> ast.cmpop:
    if instr.op is Op.IS:
        return ast.IsNot() if instr.arg else ast.Is()
    if instr.op is Op.IN:
        return ast.NotIn() if instr.arg else ast.In()
    return _COMPARE[instr.arg]()


def chain_expression(chain: ChainTest) -> ast.expr:
    return ast.Compare(chain.left, list(chain.operators), list(chain.operands))


def negate(test: ast.expr) -> ast.expr:
    """``not test``, as one would write it. Only for tests whose truth alone counts."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        opposite = {ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}.get(type(test.ops[0]))
        if opposite is not None:
            return moved(ast.Compare(test.left, [opposite()], test.comparators), test)
    if isinstance(test, ast.BoolOp):
        values = [negate(value) for value in test.values]
        if sum(map(_is_not, values)) <= sum(map(_is_not, test.values)):
            return ast.BoolOp(ast.And() if isinstance(test.op, ast.Or) else ast.Or(), values)
    return ast.UnaryOp(ast.Not(), test)


def _is_not(test: ast.expr) -> bool:
    return isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)


def both(operator: ast.boolop, left: ast.expr, right: ast.expr) -> ast.expr:
    """``left and/or right``, flat where the left side is the same operator."""
    if type(right) is ast.BoolOp and type(right.op) is type(operator):
        right_values = right.values
    else:
        right_values = [right]
    if type(left) is ast.BoolOp and type(left.op) is type(operator):
        return ast.BoolOp(operator, [*left.values, *right_values])
    return ast.BoolOp(operator, [left, *right_values])


def slice_of(parts: List[ast.expr]) -> ast.expr:
    def bound(part: ast.expr) -> Optional[ast.expr]:
        return None if isinstance(part, ast.Constant) and part.value is None else part

    return ast.Slice(bound(parts[0]), bound(parts[1]), parts[2] if len(parts) == 3 else None)


def subscript(base: ast.expr, key: ast.expr, context: ast.expr_context) -> ast.Subscript:
    """``base[key]``. Where the compiler makes constants of slices, a constant key is written as the slices it has."""
    value = constant(key)
    if _SLICES_ARE_CONSTANTS:
        parts: List[ast.expr] = []
        if isinstance(key, ast.Tuple):
            parts = key.elts
        elif type(value) is tuple:
            parts = [ast.Constant(part) for part in value]
        if any(type(constant(part)) is slice for part in parts):
            key = ast.Tuple([_with_slice(part) for part in parts], ast.Load())
        else:
            key = _with_slice(key)
    return ast.Subscript(base, key, context)


def _with_slice(part: ast.expr) -> ast.expr:
    value = constant(part)
    if type(value) is not slice:
        return part
    bounds: List[ast.expr] = [ast.Constant(value.start), ast.Constant(value.stop)]
    return slice_of(bounds if value.step is None else [*bounds, ast.Constant(value.step)])


_SLICES_ARE_CONSTANTS = any(type(value) is slice for value in compile("_[1:2]", "", "eval").co_consts)


def _string(parts: List[ast.expr]) -> ast.expr:
    """``f"..."`` of several parts: constants stay text, formatted values stay fields."""
    values: List[ast.expr] = []
    for part in parts:
        values.extend(part.values if isinstance(part, ast.JoinedStr) else [part])
    return ast.JoinedStr(values)


def _unpacked(parts: List[ast.expr], kind: type = ast.Tuple) -> List[ast.expr]:
    """The elements of a display of several iterables (3.8). Elements that stand side by side without a star are one of
    them, a display of this ``kind``."""
    grouped = [_is_group(part, kind) for part in parts]
    result: List[ast.expr] = []
    for index, part in enumerate(parts):
        if grouped[index] and grouped[index + 1 : index + 2] != [True] and len(parts) > 1:
            result.extend(part.elts if isinstance(part, (ast.Tuple, ast.Set)) else elements(part))
        else:
            result.append(ast.Starred(part, ast.Load()))
    return result


def _is_group(part: ast.expr, kind: type) -> bool:
    if isinstance(part, kind):
        return not any(isinstance(element, ast.Starred) for element in getattr(part, "elts", ()))
    return kind is ast.Tuple and bool(_constant_tuple(part))


def _constant_tuple(expr: ast.expr) -> Tuple[object, ...]:
    value = constant(expr)
    return value if type(value) is tuple else ()


def _unpacked_map(parts: List[ast.expr]) -> ast.expr:
    """As above, for a display of several mappings."""
    keys: List[Optional[ast.expr]] = []
    values: List[ast.expr] = []
    for part, behind in zip(parts, [*parts[1:], None]):
        if isinstance(part, ast.Dict) and part.keys and not isinstance(behind, ast.Dict) and len(parts) > 1:
            keys.extend(part.keys)
            values.extend(part.values)
        else:
            keys.append(None)
            values.append(part)
    return ast.Dict(keys, values)


DISPLAYS: Dict[str, Callable[[List[ast.expr]], ast.expr]] = {
    "tuple_of": lambda parts: ast.Tuple(_unpacked(parts), ast.Load()),
    "list_of": lambda parts: ast.List(_unpacked(parts), ast.Load()),
    "set_of": lambda parts: ast.Set(_unpacked(parts, ast.Set)),
    "map_of": _unpacked_map,
    "arguments_of": lambda parts: ast.Tuple(_unpacked(parts), ast.Load()),
    "keywords_of": lambda parts: ast.Dict([None] * len(parts), parts),
    "tuple": lambda parts: ast.Tuple(parts, ast.Load()),
    "list": lambda parts: ast.List(parts, ast.Load()),
    "set": lambda parts: ast.Set(parts),
    "slice": slice_of,
    "string": _string,
}


def formatted(conversion: str, value: ast.expr, spec: Optional[ast.expr] = None) -> ast.expr:
    return ast.JoinedStr([ast.FormattedValue(value, _conversion(conversion), _format_spec(spec))])


def _conversion(conversion: str) -> int:
    return ord(conversion) if conversion else -1


def _format_spec(spec: Optional[ast.expr]) -> Optional[ast.expr]:
    if spec is None or isinstance(spec, ast.JoinedStr):
        return spec
    return ast.JoinedStr([spec] if isinstance(spec, ast.Constant) else [ast.FormattedValue(spec, -1, None)])


def interpolation(conversion: str, value: ast.expr, text: ast.expr, spec: Optional[ast.expr] = None) -> ast.expr:
    """A field of a t-string (3.14). Its expression as ``text`` has it is what stands in the source."""
    return _node("Interpolation")(value, constant(text), _conversion(conversion), _format_spec(spec))


def template(strings: ast.expr, fields: ast.expr) -> ast.expr:
    """A t-string: texts with a field between each two."""
    values: List[ast.expr] = []
    for text, field in zip(elements(strings), [*elements(fields), None]):
        if constant(text):
            values.append(text)
        if field is not None:
            values.append(field)
    return _node("TemplateStr")(values)


def _node(kind: str) -> Callable[..., ast.expr]:
    """A class of ``ast`` that not every supported Python has."""
    made: Callable[..., ast.expr] = getattr(ast, kind)
    return made


def _iterable_constant(expr: ast.expr) -> Optional[List[ast.expr]]:
    value = constant(expr)
    elements = display_order(value) if isinstance(value, frozenset) else value
    return [ast.Constant(element) for element in elements] if isinstance(elements, (tuple, list)) else None


def extend_display(display: ast.expr, more: ast.expr, *, for_call: bool = False) -> ast.expr:
    """``[..., *more]``, ``{..., *more}`` or ``{..., **more}``; constants that the compiler put together fall apart.

    ``for_call``: a dict of keyword arguments grows, in which ``**{"a": b, **c}`` keeps its braces.
    """
    if isinstance(display, ast.Dict):
        apart = isinstance(more, ast.Dict) and not (for_call and None in more.keys)
        if apart and isinstance(more, ast.Dict) and more.keys and _dict_goes_on(display):
            longer = ast.Dict([*display.keys, *more.keys], [*display.values, *more.values])
            if None not in more.keys:
                longer.__dict__["plain"] = _plain_items(display) + len(more.keys)
            return longer
        return ast.Dict([*display.keys, None], [*display.values, more])
    assert isinstance(display, (ast.List, ast.Set))
    constants = [] if display.elts else _folded_elements(display, constant(more))
    elements = constants or [ast.Starred(more, ast.Load())]
    if isinstance(display, ast.List):
        return ast.List([*display.elts, *elements], ast.Load())
    return ast.Set([*display.elts, *elements])


def _folded_elements(display: ast.expr, value: object) -> List[ast.expr]:
    """The elements that were written if the compiler made the constant ``value`` of all of them: it does so with three
    or more. Of a set, some of them may have been equal."""
    if isinstance(display, ast.List) and isinstance(value, tuple) and len(value) > 2:
        return [ast.Constant(element) for element in value]
    if isinstance(display, ast.Set) and isinstance(value, frozenset) and value:
        elements = display_order(value) or list(value)
        return [ast.Constant(element) for element in elements + elements[-1:] * (3 - len(elements))]
    return []


def _dict_goes_on(display: ast.Dict) -> bool:
    """Whether the compiler would put further items of ``display`` into a dict of their own: behind ``**``, and
    after every 17 items."""
    return _plain_items(display) % 17 == 0 and bool(display.keys)


def _plain_items(display: ast.Dict) -> int:
    """How many items of ``display`` stand behind the last ``**``. Remembered in the node."""
    facts = display.__dict__
    if "plain" not in facts:
        plain = next((index for index, key in enumerate(reversed(display.keys)) if key is None), len(display.keys))
        facts["plain"] = plain
    found: int = facts["plain"]
    return found


def add_to_display(display: ast.expr, kind: str, element: ast.expr, key: Optional[ast.expr]) -> ast.expr:
    if isinstance(display, ast.Dict):
        return ast.Dict([*display.keys, key], [*display.values, element])
    if isinstance(display, ast.List):
        return ast.List([*display.elts, element], ast.Load())
    assert isinstance(display, ast.Set)
    return ast.Set([*display.elts, element])


def call(exprs: Sequence[ast.expr], names: Tuple[str, ...]) -> ast.expr:
    positional = len(exprs) - len(names)
    keywords = [ast.keyword(name, value) for name, value in zip(names, exprs[positional:])]
    return ast.Call(exprs[0], list(exprs[1:positional]), keywords)


def call_ex(callee: ast.expr, positional: ast.expr, keywords: Optional[ast.expr] = None) -> ast.Call:
    """``f(*positional, **keywords)``, with displays taken apart."""
    arguments: List[ast.expr]
    constants = _iterable_constant(positional)
    if isinstance(positional, ast.Tuple):
        arguments = positional.elts
    elif constants is not None and isinstance(constant(positional), tuple):
        arguments = constants
    else:
        arguments = [ast.Starred(positional, ast.Load())]
    pairs: List[ast.keyword] = []
    if isinstance(keywords, ast.Dict) and keywords.keys:
        inside: List[Optional[ast.expr]] = []
        for key, value in zip(keywords.keys, keywords.values):
            # What stands side by side without stars is one group: of two, the second has braces.
            inside = value.keys if key is None and isinstance(value, ast.Dict) and not inside else []
            if inside and isinstance(value, ast.Dict) and all(map(_keyword_name, inside)):
                pairs.extend(ast.keyword(_keyword_name(inner), field) for inner, field in zip(value.keys, value.values))
            elif key is None:
                pairs.append(ast.keyword(None, value))
            elif _keyword_name(key):
                pairs.append(ast.keyword(_keyword_name(key), value))
            else:
                return ast.Call(callee, arguments, [ast.keyword(None, keywords)])
    elif keywords is not None:
        pairs = [ast.keyword(None, keywords)]
    return ast.Call(callee, arguments, pairs)


def is_writable(name: str) -> bool:
    """Whether ``name`` can stand in a program and is read as exactly this name."""
    return (
        name.isidentifier()
        and not keyword.iskeyword(name)
        and name != "__debug__"
        and (name.isascii() or unicodedata.normalize("NFKC", name) == name)
    )


def _keyword_name(key: Optional[ast.expr]) -> Optional[str]:
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and is_writable(key.value):
        return key.value
    return None


def elements(expr: ast.expr) -> List[ast.expr]:
    """The elements of a tuple display or constant."""
    if isinstance(expr, ast.Tuple):
        return list(expr.elts)
    value = constant(expr)
    if isinstance(value, tuple):
        return [ast.Constant(element) for element in value]
    raise ValueError("the defaults of a function are no tuple display")


def string_pairs(expr: ast.expr) -> Dict[str, ast.expr]:
    """A dict display with strings as keys."""
    if not isinstance(expr, ast.Dict):
        raise ValueError("the keyword defaults of a function are no dict display")
    pairs: Dict[str, ast.expr] = {}
    for key, value in zip(expr.keys, expr.values):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise ValueError("the keyword defaults of a function have a computed key")
        pairs[key.value] = value
    return pairs


def annotation_pairs(expr: ast.expr) -> Dict[str, ast.expr]:
    """Annotations as 3.10 to 3.13 make them: ``('name', annotation, ...)``; before that a dict display."""
    if isinstance(expr, ast.Dict):
        return string_pairs(expr)
    parts = elements(expr)
    pairs: Dict[str, ast.expr] = {}
    for part, annotation in zip(parts[::2], parts[1::2]):
        name = constant(part)
        if not isinstance(name, str):
            raise ValueError("an annotation belongs to something that is no name")
        pairs[name] = annotation
    return pairs


def names_match(code_name: str, stored: str) -> bool:
    """Whether a definition called ``code_name`` may be stored as ``stored`` (a private name is stored mangled)."""
    if code_name == stored:
        return True
    return (
        code_name.startswith("__")
        and not code_name.endswith("__")
        and stored.startswith("_")
        and stored.endswith(code_name)
    )


def function_expression(function: Function) -> ast.expr:
    expression = FunctionExpression()
    expression.function = function
    return expression


def function_statement(function: Function, name: str) -> ast.stmt:
    statement = FunctionStatement()
    statement.function = function
    statement.name = name
    return statement
