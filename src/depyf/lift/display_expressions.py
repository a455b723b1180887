"""Displays as expressions: built, extended and read."""

from __future__ import annotations

import ast
from typing import Callable, Dict, List, Optional, Tuple

from depyf.bytecode.set_order import display_order
from depyf.lift.build import constant, slice_of


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


def iterable_constant(expr: ast.expr) -> Optional[List[ast.expr]]:
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


def elements(expr: ast.expr) -> List[ast.expr]:
    """Return the elements of a tuple display or constant."""
    if isinstance(expr, ast.Tuple):
        return list(expr.elts)
    value = constant(expr)
    if isinstance(value, tuple):
        return [ast.Constant(element) for element in value]
    raise ValueError("the defaults of a function are no tuple display")


def string_pairs(expr: ast.expr) -> Dict[str, ast.expr]:
    """Return the items of a dict display with strings as keys."""
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
