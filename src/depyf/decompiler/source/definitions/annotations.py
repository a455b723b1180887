"""Annotations: those that are evaluated lazily (3.14) at their positions, strings of postponed ones as expressions.

The compiler puts all annotations of a function, class or module into one function ``__annotate__``. A function gets its
own when it is made; classes and modules store theirs under a name. An annotation that may be skipped, because it is in
an ``if`` or because a module may stop half-way, has a number that is added to a set when control passes it.

With ``from __future__ import annotations`` the compiler stores the text of each annotation instead.
"""

from __future__ import annotations

import ast
import functools
import inspect
from bisect import bisect_left
from copy import deepcopy
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.added_names import CONDITIONAL
from depyf.decompiler.bytecode.code import Code, is_code
from depyf.decompiler.bytecode.parsing import parse
from depyf.decompiler.bytecode.syntax_trees import statement_lists
from depyf.decompiler.lift.build import constant
from depyf.decompiler.lift.items import Function
from depyf.decompiler.lift.nodes import AnnotationMark, FunctionExpression, FunctionStatement
from depyf.decompiler.source.rewriting import Rewriter
from depyf.decompiler.structure.unstructured import Unstructured


@dataclass(frozen=True)
class Annotation:
    """An annotation. ``number``: the number of its mark, ``None`` if it is unconditional."""

    name: str
    expression: ast.expr
    number: Optional[int] = None


def take_annotate_function(statements: List[ast.stmt], name: str) -> Tuple[List[ast.stmt], Optional[Function]]:
    """Return the statements of a class or module without the store of its annotate function as ``name``, and that
    function (``None`` without such a store). The user may have written one, too."""
    for index, statement in enumerate(statements):
        function = _stored_annotate_function(statement, name)
        if function is not None:
            return [*statements[:index], *statements[index + 1 :]], function
    return statements, None


def lost_annotation(code: Code, statements: Sequence[ast.stmt]) -> List[ast.stmt]:
    """Return the annotation of a target that is not a name, if ``code`` annotates nothing else; else an empty list.
    Postponed annotations are in the ``statements``.
    ``x.y: int`` leaves no bytecode for its parts, only a cell for the annotation, and another if it is in an ``if``. A
    name in parentheses that every class or module has represents it."""
    is_module = code.co_name == "<module>"
    # The cell that an annotation needs, though no nested code uses it: then the target was no name.
    wanted = CONDITIONAL if is_module else "__classdict__"
    users = [inner for inner in code.co_consts if is_code(inner) and wanted in inner.co_freevars]
    in_condition = not is_module and CONDITIONAL in code.co_cellvars
    if wanted not in code.co_cellvars or users or (is_module and _annotate(statements)):
        return []
    if not is_module and not in_condition and _makes_methods(code) and _methods_add_cell():
        return []
    target = ast.Name("__name__" if is_module else "__module__", ast.Store())
    annotation: ast.stmt = ast.AnnAssign(target, ast.Constant(...), None, 0)
    if in_condition:
        annotation = ast.If(ast.Constant(False), [annotation], [])
    return [annotation]


def _annotate(statements: Sequence[ast.stmt]) -> bool:
    """Return whether ``statements`` annotate a name, outside of the functions and classes in them."""
    blocks = [
        each for each in statements if not isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]
    return any(isinstance(each, ast.AnnAssign) or any(map(_annotate, statement_lists(each))) for each in blocks)


def _makes_methods(code: Code) -> bool:
    """Return whether the class body ``code`` has a ``def``."""
    return any(
        is_code(inner) and inner.co_flags & inspect.CO_OPTIMIZED and inner.co_name[:1] != "<"
        for inner in code.co_consts
    )


@functools.lru_cache(maxsize=None)
def _methods_add_cell() -> bool:
    """Return whether the compiler prepares each class with a ``def`` for annotations, even if it has none (3.14.8)."""
    code = compile("class C:\n    def m(self): 0", "", "exec", dont_inherit=True)
    (made,) = filter(is_code, code.co_consts)
    return "__classdict__" in made.co_cellvars


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
    """Return whether ``code`` is a function that the compiler made for annotations."""
    return code.co_name == "__annotate__" and code.co_posonlyargcount == 1 and code.co_varnames[:1] == ("format",)


def annotations_of(statements: Sequence[ast.stmt]) -> List[Annotation]:
    """Return the annotations that the body of an ``__annotate__`` function makes. Raises ``Unstructured`` for other
    bodies. A function's makes one display; a class's and a module's fill a dict and test the marks."""
    body = without_format_test(statements)
    last = body.pop() if body else None
    result = last.value if isinstance(last, ast.Return) else None
    if isinstance(result, ast.Dict) and not body:
        return [_annotation(key, value) for key, value in zip(result.keys, result.values)]
    if not body or not isinstance(result, ast.Name):
        raise Unstructured("annotations are not made as the compiler makes them")
    # result = {}
    # result["a"] = int                             without a number
    # if 0 in __conditional_annotations__:          with number 0
    #     result["b"] = str
    # return result
    annotations: List[Annotation] = []
    plain: List[ast.stmt] = []
    for statement in body[1:]:
        if isinstance(statement, ast.If) and not statement.orelse:
            annotations.extend(_stored(plain))
            made = statement.body[: -1 if isinstance(statement.body[-1], ast.Return) else None]  # after the last one
            annotations.extend(_stored(made, _asked_number(statement.test)))
            plain = []
        else:
            plain.append(statement)
    return [*annotations, *_stored(plain)]


def _stored(statements: Sequence[ast.stmt], number: Optional[int] = None) -> Iterator[Annotation]:
    """Yield the annotations that ``result["name"] = expression`` stores; lifting may have put one into a temporary."""
    kept: Dict[str, ast.expr] = {}
    for statement in statements:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if isinstance(statement, ast.Assign) and isinstance(target, ast.Name):
            kept[target.id] = statement.value
        elif isinstance(statement, ast.Assign) and isinstance(target, ast.Subscript):
            value = statement.value
            yield _annotation(target.slice, kept.pop(getattr(value, "id", ""), value), number)
        else:
            raise Unstructured("an annotation is not an expression")
    if kept:
        raise Unstructured("an annotation needs statements")


def without_format_test(statements: Sequence[ast.stmt]) -> List[ast.stmt]:
    """Return the body of a lazily evaluated function without its test of the parameter: ``if format > 2: raise
    NotImplementedError``. Annotations and values of type parameters have it."""
    body = list(statements)
    first = body[0] if body else None
    if isinstance(first, ast.If) and len(first.body) == 1 and isinstance(first.body[0], ast.Raise):
        body[:1] = first.orelse
    return body


def _annotation(key: object, value: ast.expr, number: Optional[int] = None) -> Annotation:
    if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
        raise Unstructured("the target of an annotation has no name")
    return Annotation(key.value, value, number)


def _asked_number(test: ast.expr) -> int:
    """Return the number in ``number in __conditional_annotations__``. Raises ``Unstructured`` for other tests."""
    number = test.left.value if isinstance(test, ast.Compare) and isinstance(test.left, ast.Constant) else None
    if type(number) is not int:
        raise Unstructured("an annotation depends on another condition than that it was executed")
    return number


def annotated(
    statements: List[ast.stmt], annotations: Sequence[Annotation], *, marked_in_blocks: bool
) -> List[ast.stmt]:
    """Return the statements of a class or module with ``annotations`` at their positions. Annotations without a mark
    may be anywhere in their order: at the assignment to their name if possible. In a class (``marked_in_blocks``)
    annotations with a mark are in a block."""
    numbered = {annotation.number: annotation for annotation in annotations if annotation.number is not None}
    # An unmarked annotation goes to the assignment of its name (``x: int = 1``). Without an assignment, ``x: int`` is
    # put after the statement of the last annotation that has one; at the earliest, after the docstring.
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
    for position, statement_or_end in enumerate([*statements, None]):
        result.extend(alone.get(position, ()))
        if isinstance(statement_or_end, ast.Assign) and position in valued:
            result.append(_bare(valued[position], statement_or_end.value))
        elif statement_or_end is not None:
            result.append(statement_or_end)
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
    """Return the statement of each annotation, by their order, which is kept."""
    assigned: Dict[str, int] = {}
    marked: Dict[int, int] = {}
    for position, statement in enumerate(statements):
        name = _assigned_name(statement)
        if name is not None:
            assigned.setdefault(name, position)
        for inner in ast.walk(statement):
            if isinstance(inner, AnnotationMark):
                marked.setdefault(inner.number, position)
    # Marks fix the positions of their annotations. Between two marks, unmarked annotations are in order, so among the
    # annotations with an assignment the longest sequence with rising positions is taken.
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
    """Return the longest subsequence of ``pairs`` with increasing positions."""
    # Patience sorting (Fredman 1975): pairs are linked to the best shorter rise, which is read back at the end.
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
    """Replaces marks by annotations, each joined with the assignment before it."""

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
            raise Unstructured("an annotation is executed, but never made")
        return found


def _assigned_name(statement: ast.stmt) -> Optional[str]:
    """Return the name that ``statement`` assigns to, if it does nothing else; ``None`` otherwise."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        return target.id if isinstance(target, ast.Name) else None
    return None


def _bare(annotation: Annotation, value: Optional[ast.expr] = None) -> ast.stmt:
    return ast.AnnAssign(ast.Name(annotation.name, ast.Store()), annotation.expression, value, 1)


def _never_passed(annotation: Annotation) -> ast.stmt:
    """Return an annotation in dead code, which the compiler removes without the annotation."""
    return ast.If(ast.Constant(False), [_bare(annotation)], [])


def _docstring_length(statements: List[ast.stmt]) -> int:
    first = statements[0] if statements else None
    return int(isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant))


# --- annotations that are strings ------------------------------------------------------------------------------------


_IMPORT = "from __future__ import annotations\n"


def postpones_annotations(statement: ast.stmt) -> bool:
    """Return whether ``statement`` is ``from __future__ import annotations``. The text of a function alone lacks the
    import: there, strings stay strings."""
    if not isinstance(statement, ast.ImportFrom) or statement.module != "__future__":
        return False
    return any(alias.name == "annotations" for alias in statement.names)


def expression_of(annotation: ast.expr) -> ast.expr:
    """Return the expression whose text the compiler stored, or ``annotation`` itself if it is not one."""
    text = constant(annotation)
    if not isinstance(text, str):
        return annotation
    try:
        parsed = parse(f"({text}\n,)", mode="eval").body  # a tuple, because there may be a star
    except synchronous(SyntaxError, ValueError):
        return annotation
    assert isinstance(parsed, ast.Tuple)
    if len(parsed.elts) != 1:
        return annotation
    return _with_ellipses(parsed.elts[0], text) if "Ellipsis" in text else parsed.elts[0]


def _with_ellipses(expr: ast.expr, text: str) -> ast.expr:
    """Return ``expr`` with ``...`` for the name ``Ellipsis``, where only that compiles to ``text``. 3.8 folds a tuple
    of constants first: ``Callable[..., None]`` becomes ``Callable[(Ellipsis, None)]``."""
    dotted = _Dots().visit(deepcopy(expr))
    return dotted if _gives(dotted, text) and not _gives(expr, text) else expr


class _Dots(ast.NodeTransformer):
    """Replaces ``Ellipsis`` by ``...`` in the tuples of subscripts, and in tuples in those."""

    def __init__(self) -> None:
        self._inside = False

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        before, self._inside = self._inside, False
        node.value = self.visit(node.value)
        self._inside = True
        node.slice = self.visit(node.slice)
        self._inside = before
        return node

    def visit_Tuple(self, node: ast.Tuple) -> ast.Tuple:
        if self._inside and any(map(_is_the_name, node.elts)):
            node.elts = [ast.Constant(...) if _is_the_name(each) else each for each in node.elts]
        return self.generic_visit(node)  # type: ignore[return-value]


def _is_the_name(expr: ast.expr) -> bool:
    return isinstance(expr, ast.Name) and expr.id == "Ellipsis"


def _gives(expr: ast.expr, text: str) -> bool:
    """Return whether the running compiler stores ``text`` for the annotation ``expr``."""
    tree = parse(_IMPORT + "x: 0")
    (statement,) = [each for each in tree.body if isinstance(each, ast.AnnAssign)]
    statement.annotation = expr
    return text in compile(ast.fix_missing_locations(tree), "<annotation>", "exec", dont_inherit=True).co_consts
