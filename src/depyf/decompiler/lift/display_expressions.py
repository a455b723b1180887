"""Displays and formatted strings as expressions: built, extended and read."""

from __future__ import annotations

import ast
from typing import Callable, Dict, List, Optional, Tuple

from depyf.decompiler.bytecode.set_order import display_order
from depyf.decompiler.lift.build import constant, is_writable, slice_of
from depyf.decompiler.lift.node_attributes import attributes_of


def _string(parts: List[ast.expr]) -> ast.expr:
    """Return ``f"..."`` of several parts: constants stay text, formatted values stay fields."""
    values: List[ast.expr] = []
    first = parts[0] if parts else None
    if isinstance(first, ast.BoolOp):  # ``after_test(test, text)``
        return ast.BoolOp(first.op, [first.values[0], _string([first.values[1], *parts[1:]])])
    for part in parts:
        values.extend(part.values if isinstance(part, ast.JoinedStr) else [part])
    return ast.JoinedStr(values)


def _unpacked(parts: List[ast.expr], kind: type = ast.Tuple) -> List[ast.expr]:
    """Return the elements of a display of several iterables (3.8). Adjacent elements without a star arrive as one part,
    a display of this ``kind``."""
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
    """Return the display of several mappings, grouped like ``_unpacked``."""
    keys: List[Optional[ast.expr]] = []
    values: List[ast.expr] = []
    for part, following in zip(parts, [*parts[1:], None]):
        if isinstance(part, ast.Dict) and part.keys and not isinstance(following, ast.Dict) and len(parts) > 1:
            keys.extend(part.keys)
            values.extend(part.values)
        else:
            keys.append(None)
            values.append(part)
    return ast.Dict(keys, values)


def _keywords_of(parts: List[ast.expr]) -> ast.expr:
    """Return the keyword arguments of a call that unpacks several mappings (3.8). A dict display of names is a group of
    ``name=value``; of two such groups in a row, the second is in braces."""
    keywords = ast.Dict([], [])
    in_group = False
    for part in parts:
        in_group = not in_group and isinstance(part, ast.Dict) and _adds_keywords(keywords, part)
        keywords.keys.extend(part.keys if in_group and isinstance(part, ast.Dict) else [None])
        keywords.values.extend(part.values if in_group and isinstance(part, ast.Dict) else [part])
    return keywords


DISPLAYS: Dict[str, Callable[[List[ast.expr]], ast.expr]] = {
    "tuple_of": lambda parts: ast.Tuple(_unpacked(parts), ast.Load()),
    "list_of": lambda parts: ast.List(_unpacked(parts), ast.Load()),
    "set_of": lambda parts: ast.Set(_unpacked(parts, ast.Set)),
    "map_of": _unpacked_map,
    "arguments_of": lambda parts: ast.Tuple(_unpacked(parts), ast.Load()),
    "keywords_of": _keywords_of,
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
    """Return ``[..., *more]``, ``{..., *more}`` or ``{..., **more}``; folded constants are split again. ``for_call``:
    the display is a dict of keyword arguments, in which ``**{"a": b, **c}`` and ``**{"a b": c}`` keep their braces."""
    if isinstance(display, ast.Dict):
        apart = isinstance(more, ast.Dict) and (not for_call or _adds_keywords(display, more))
        if apart and isinstance(more, ast.Dict) and more.keys and _dict_goes_on(display, for_call=for_call):
            longer = ast.Dict([*display.keys, *more.keys], [*display.values, *more.values])
            if None not in more.keys:
                attributes_of(longer)["plain_items"] = _plain_items(display) + len(more.keys)
            return longer
        return ast.Dict([*display.keys, None], [*display.values, more])
    assert isinstance(display, (ast.List, ast.Set))
    constants = [] if display.elts else _folded_elements(display, constant(more))
    elements = constants or [ast.Starred(more, ast.Load())]
    if isinstance(display, ast.List):
        return ast.List([*display.elts, *elements], ast.Load())
    return ast.Set([*display.elts, *elements])


def _adds_keywords(keywords: ast.Dict, more: ast.Dict) -> bool:
    """Return whether the keys of ``more`` may be written as ``name=`` after ``keywords``: each name may be given
    once."""
    names = [keyword_name(key) for key in more.keys]
    used = {keyword_name(key) for key in keywords.keys}
    return all(names) and len({*names} - used) == len(names) > 0


def keyword_name(key: Optional[ast.expr]) -> Optional[str]:
    """Return the name, if ``key`` is a string that may be written as ``name=``."""
    if isinstance(key, ast.Constant) and isinstance(key.value, str) and is_writable(key.value):
        return key.value
    return None


def _folded_elements(display: ast.expr, value: object) -> List[ast.expr]:
    """Return the source elements if the compiler folded all of them to the constant ``value``; else an empty list. The
    compiler folds three elements or more. In a set some elements may have been equal."""
    if isinstance(display, ast.List) and isinstance(value, tuple) and len(value) > 2:
        return [ast.Constant(element) for element in value]
    if isinstance(display, ast.Set) and isinstance(value, frozenset) and value:
        elements = display_order(value) or list(value)
        return [ast.Constant(element) for element in elements + elements[-1:] * (3 - len(elements))]
    return []


def _dict_goes_on(display: ast.Dict, *, for_call: bool) -> bool:
    """Return whether the compiler builds a separate dict for further items of ``display``: after ``**``, and after
    every 17 items unless they are keyword arguments."""
    items = _plain_items(display)
    return bool(display.keys) and (not items if for_call else items % 17 == 0)


def _plain_items(display: ast.Dict) -> int:
    """Return the number of items of ``display`` after the last ``**``. Cached in the node."""
    known = attributes_of(display)
    if "plain_items" not in known:
        count = next((index for index, key in enumerate(reversed(display.keys)) if key is None), len(display.keys))
        known["plain_items"] = count
    return known["plain_items"]


def add_to_display(display: ast.expr, element: ast.expr, key: Optional[ast.expr]) -> ast.expr:
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
    raise ValueError("the defaults of a function are not a tuple display")


def string_pairs(expr: ast.expr) -> Dict[str, ast.expr]:
    """Return the items of a dict display with strings as keys."""
    if not isinstance(expr, ast.Dict):
        raise ValueError("the keyword defaults of a function are not a dict display")
    pairs: Dict[str, ast.expr] = {}
    for key, value in zip(expr.keys, expr.values):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise ValueError("the keyword defaults of a function have a computed key")
        pairs[key.value] = value
    return pairs


def annotation_pairs(expr: ast.expr) -> Dict[str, ast.expr]:
    """Return the annotations of ``('name', annotation, ...)``, as built by 3.10-3.13, or of an older dict display."""
    if isinstance(expr, ast.Dict):
        return string_pairs(expr)
    parts = elements(expr)
    pairs: Dict[str, ast.expr] = {}
    for part, annotation in zip(parts[::2], parts[1::2]):
        name = constant(part)
        if not isinstance(name, str):
            raise ValueError("the target of an annotation is not a name")
        pairs[name] = annotation
    return pairs


# --- formatted strings -----------------------------------------------------------------------------------------------


def formatted(conversion: str, value: ast.expr, spec: Optional[ast.expr] = None) -> ast.expr:
    return ast.JoinedStr([ast.FormattedValue(value, _conversion(conversion), _format_spec(spec))])


def _conversion(conversion: str) -> int:
    return ord(conversion) if conversion else -1


def _format_spec(spec: Optional[ast.expr]) -> Optional[ast.expr]:
    if spec is None or isinstance(spec, ast.JoinedStr):
        return spec
    return ast.JoinedStr([spec] if isinstance(spec, ast.Constant) else [ast.FormattedValue(spec, -1, None)])


def interpolation(conversion: str, value: ast.expr, text: ast.expr, spec: Optional[ast.expr] = None) -> ast.expr:
    """Return a field of a t-string (3.14); ``text`` is its expression as written in the source."""
    return _node("Interpolation")(value, constant(text), _conversion(conversion), _format_spec(spec))


def template(strings: ast.expr, fields: ast.expr) -> ast.expr:
    """Return a t-string: texts with a field between each two."""
    values: List[ast.expr] = []
    for text, field in zip(elements(strings), [*elements(fields), None]):
        if constant(text):
            values.append(text)
        if field is not None:
            values.append(field)
    return _node("TemplateStr")(values)


def _node(kind: str) -> Callable[..., ast.expr]:
    """Return a class of ``ast`` that some supported Pythons lack."""
    made: Callable[..., ast.expr] = getattr(ast, kind)
    return made
