"""Annotations that a function makes when they are asked for (3.14), back to where they were written.

The compiler puts all annotations of a function, class or module into one function ``__annotate__``. A function gets
its own when it is made; classes and modules store theirs under a name. Where an annotation may be skipped, because it
stands in an ``if`` or because a module may be left half-way, its number is put into a set as control passes it.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from depyf.bytecode.added_names import CONDITIONAL
from depyf.bytecode.code import Code, is_code
from depyf.lift.items import Function
from depyf.lift.nodes import AnnotationMark, FunctionExpression, FunctionStatement
from depyf.quick_dataclass import dataclass
from depyf.source.rewriting import Rewriter
from depyf.structure.structurer import Unstructured


@dataclass(frozen=True)
class Annotation:
    """``number``: that of its mark; None if it is always there."""

    name: str
    expression: ast.expr
    number: Optional[int] = None


def take_annotate_function(statements: List[ast.stmt], name: str) -> Tuple[List[ast.stmt], Optional[Function]]:
    """The statements of a class or module without the one that stores what makes its annotations as ``name``, and that
    function. (A person may have written one, too.)"""
    for index, statement in enumerate(statements):
        function = _stored_annotate_function(statement, name)
        if function is not None:
            return [*statements[:index], *statements[index + 1 :]], function
    return statements, None


def lost_annotation(code: Code) -> List[ast.stmt]:
    """The annotation of something that is no name, if that is all that the class or module ``code`` annotates.

    What is in ``x.y: int`` leaves no bytecode; that there is an annotation leaves a cell, and another if it stands in
    an ``if``. A name in parentheses that the class or module has anyway represents it.
    """
    is_module = code.co_name == "<module>"
    wanted = CONDITIONAL if is_module else "__classdict__"
    users = [inner for inner in code.co_consts if is_code(inner) and wanted in inner.co_freevars]
    if wanted not in code.co_cellvars or users:
        return []
    target = ast.Name("__name__" if is_module else "__module__", ast.Store())
    annotation: ast.stmt = ast.AnnAssign(target, ast.Constant(...), None, 0)
    if not is_module and CONDITIONAL in code.co_cellvars:
        annotation = ast.If(ast.Constant(False), [annotation], [])
    return [annotation]


def _stored_annotate_function(statement: ast.stmt, name: str) -> Optional[Function]:
    value: Any = None
    if isinstance(statement, FunctionStatement):
        value, names = statement, [statement.name]
    elif isinstance(statement, ast.Assign) and isinstance(statement.value, FunctionExpression):
        value, names = statement.value, [getattr(target, "id", "") for target in statement.targets]
    if value is None or names != [name]:
        return None
    function: Function = value.function
    return function if makes_annotations(function.code) else None


def makes_annotations(code: Code) -> bool:
    """Whether ``code`` is a function that the compiler made for annotations."""
    return code.co_name == "__annotate__" and code.co_posonlyargcount == 1 and code.co_varnames[:1] == ("format",)


def annotations_of(statements: Sequence[ast.stmt]) -> List[Annotation]:
    """What the body of an ``__annotate__`` function makes. Raises ``Unstructured`` if it does anything else.

    A function's makes one display; a class's and a module's fill a dict, and ask for the marks.
    """
    body = without_format_test(statements)
    last = body.pop() if body else None
    result = last.value if isinstance(last, ast.Return) else None
    if isinstance(result, ast.Dict) and not body:
        return [_annotation(key, value) for key, value in zip(result.keys, result.values)]
    if not body or not isinstance(result, ast.Name):
        raise Unstructured("annotations are made in another way than the compiler's")
    annotations: List[Annotation] = []
    plain: List[ast.stmt] = []
    for statement in body[1:]:
        if isinstance(statement, ast.If) and not statement.orelse:
            annotations.extend(_stored(plain))
            made = statement.body[: -1 if isinstance(statement.body[-1], ast.Return) else None]  # behind the last one
            annotations.extend(_stored(made, _asked_number(statement.test)))
            plain = []
        else:
            plain.append(statement)
    return [*annotations, *_stored(plain)]


def _stored(statements: Sequence[ast.stmt], number: Optional[int] = None) -> Iterator[Annotation]:
    """``result["name"] = expression``; lifting may have kept the expression in a temporary on the way."""
    kept: Dict[str, ast.expr] = {}
    for statement in statements:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(statement, ast.Assign) and isinstance(target, ast.Name):
            kept[target.id] = statement.value
        elif isinstance(statement, ast.Assign) and isinstance(target, ast.Subscript):
            value = statement.value
            yield _annotation(target.slice, kept.pop(getattr(value, "id", ""), value), number)
        else:
            raise Unstructured("an annotation is no expression")
    if kept:
        raise Unstructured("an annotation needs statements")


def without_format_test(statements: Sequence[ast.stmt]) -> List[ast.stmt]:
    """The body of a function that makes annotations, or the value of a type parameter, without what it begins with:
    ``if format > 2: raise NotImplementedError``, for its parameter."""
    body = list(statements)
    first = body[0] if body else None
    if isinstance(first, ast.If) and len(first.body) == 1 and isinstance(first.body[0], ast.Raise):
        body[:1] = first.orelse
    return body


def _annotation(key: object, value: ast.expr, number: Optional[int] = None) -> Annotation:
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        raise Unstructured("what is annotated has no name")
    return Annotation(key.value, value, number)


def _asked_number(test: ast.expr) -> int:
    """``number in __conditional_annotations__``."""
    number = test.left.value if isinstance(test, ast.Compare) and isinstance(test.left, ast.Constant) else None
    if type(number) is not int:
        raise Unstructured("an annotation depends on something else than whether control passed it")
    return number


def annotated(
    statements: List[ast.stmt], annotations: Sequence[Annotation], *, marked_in_blocks: bool
) -> List[ast.stmt]:
    """The statements of a class or module with ``annotations`` where they were written.

    Those without a mark can stand anywhere in their order: at the assignment to their name if they can. In a class
    (``marked_in_blocks``) those with a mark stand in some block.
    """
    numbered = {annotation.number: annotation for annotation in annotations if annotation.number is not None}
    places = _places(statements, annotations)
    alone: Dict[int, List[ast.stmt]] = {}
    valued: Dict[int, Annotation] = {}
    free = _docstring_length(statements)
    for order, annotation in enumerate(annotations):
        if order not in places:
            statement = _bare(annotation) if annotation.number is None else _never_passed(annotation)
            alone.setdefault(free, []).append(statement)
            continue
        if annotation.number is None:
            valued[places[order]] = annotation
        free = places[order] + 1
    result: List[ast.stmt] = []
    for position, written in enumerate([*statements, None]):
        result.extend(alone.get(position, ()))
        if isinstance(written, ast.Assign) and position in valued:
            result.append(_bare(valued[position], written.value))
        elif written is not None:
            result.append(written)
    marks = _Marks(numbered)
    if not marked_in_blocks:
        return marks.visit_list(result)
    placed: List[ast.stmt] = []
    for statement in result:
        if isinstance(statement, AnnotationMark):  # the compiler has decided the ``if`` around it
            assigned = placed and _assigned_name(placed[-1]) == marks.annotation(statement).name
            statement = ast.If(ast.Constant(True), [placed.pop(), statement] if assigned else [statement], [])
        placed.append(statement)
    return marks.visit_list(placed)


def _places(statements: List[ast.stmt], annotations: Sequence[Annotation]) -> Dict[int, int]:
    """By the order of the annotations: at which statement they stand. Their order is kept."""
    assigned: Dict[str, int] = {}
    marked: Dict[int, int] = {}
    for position, statement in enumerate(statements):
        name = _assigned_name(statement)
        if name is not None:
            assigned.setdefault(name, position)
        for inner in ast.walk(statement):
            if isinstance(inner, AnnotationMark):
                marked.setdefault(inner.number, position)
    places: Dict[int, int] = {}
    run: List[Tuple[int, int]] = []
    floor = -1
    for order, annotation in enumerate(annotations):
        if annotation.number is None:
            if assigned.get(annotation.name, -1) > floor:
                run.append((order, assigned[annotation.name]))
        elif annotation.number in marked:
            floor = places[order] = marked[annotation.number]
            places.update(_longest_rise([pair for pair in run if pair[1] < floor]))
            run = []
    places.update(_longest_rise(run))
    return places


def _longest_rise(pairs: List[Tuple[int, int]]) -> List[Tuple[int, int]]:
    """As many of ``pairs`` as have rising positions, in their order."""
    ends: List[int] = []  # the lowest last position of a rise of each length
    chosen: List[Tuple[Tuple[int, int], object]] = []  # the last pair of such a rise, with those before it
    for pair in pairs:
        length = bisect_left(ends, pair[1])
        link = (pair, chosen[length - 1] if length else None)
        ends[length : length + 1] = [pair[1]]
        chosen[length : length + 1] = [link]
    result: List[Tuple[int, int]] = []
    last: Any = chosen[-1] if chosen else None
    while last is not None:
        result.append(last[0])
        last = last[1]
    return result[::-1]


class _Marks(Rewriter):
    """Puts annotations in the place of their marks, and together with the assignment before."""

    def __init__(self, annotations: Dict[int, Annotation]) -> None:
        super().__init__()
        self.annotations = annotations

    def visit_list(self, nodes: List[Any]) -> List[Any]:
        result: List[Any] = []
        for node in super().visit_list(nodes):
            if isinstance(node, AnnotationMark):
                annotation = self.annotation(node)
                before = result.pop().value if result and _assigned_name(result[-1]) == annotation.name else None
                node = _bare(annotation, before)
            result.append(node)
        return result

    def annotation(self, mark: AnnotationMark) -> Annotation:
        found = self.annotations.get(mark.number)
        if found is None:
            raise Unstructured("control passes an annotation that is never made")
        return found


def _assigned_name(statement: ast.stmt) -> Optional[str]:
    """The name that ``statement`` assigns to, if it does nothing else."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    return None


def _bare(annotation: Annotation, value: Optional[ast.expr] = None) -> ast.stmt:
    return ast.AnnAssign(ast.Name(annotation.name, ast.Store()), annotation.expression, value, 1)


def _never_passed(annotation: Annotation) -> ast.stmt:
    """The compiler has dropped what was around it, but still makes it."""
    return ast.If(ast.Constant(False), [_bare(annotation)], [])


def _docstring_length(statements: List[ast.stmt]) -> int:
    first = statements[0] if statements else None
    return int(isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant))
