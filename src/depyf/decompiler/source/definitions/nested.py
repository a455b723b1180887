"""Functions, classes, lambdas and comprehensions: each nested code object becomes the syntax it was made from.

Lifting leaves placeholders where a function is made; ``Definer`` inserts the definition. Each code object is first
structured on its own, by the function ``body`` that the pipeline provides.
"""

from __future__ import annotations

import ast
import inspect
from typing import Any, Callable, Dict, FrozenSet, List, Optional, Tuple

from depyf.base.late_regex import regex
from depyf.decompiler.bytecode.code import COMPREHENSIONS, Code, docstring
from depyf.decompiler.bytecode.parsing import parse
from depyf.decompiler.bytecode.syntax_trees import Transformer, statement_lists
from depyf.decompiler.lift.build import CellName, Special, constant
from depyf.decompiler.lift.items import Function
from depyf.decompiler.lift.nodes import ComprehensionExpression, FunctionExpression, FunctionStatement
from depyf.decompiler.lift.spans import has_columns, put, span_of
from depyf.decompiler.normal.inlined import InlinedCode
from depyf.decompiler.normal.modes import is_module
from depyf.decompiler.normal.ops import NormalCode, Op
from depyf.decompiler.source.definitions.annotations import (
    annotated,
    annotations_of,
    expression_of,
    lost_annotation,
    postpones_annotations,
    take_annotate_function,
)
from depyf.decompiler.source.definitions.bodies import source_body
from depyf.decompiler.source.definitions.comprehension import as_expression, comprehension, mentioning
from depyf.decompiler.source.definitions.missing import Missing
from depyf.decompiler.source.definitions.parameters import (
    arguments,
    evaluated,
    type_alias,
    type_parameter,
    with_parameters,
)
from depyf.decompiler.source.definitions.put_aside import mark
from depyf.decompiler.source.definitions.scopes import (
    declarations,
    docstring_statement,
    local_names,
    needed_in_module,
    unused_names,
)
from depyf.decompiler.source.passes.endings import returns_only_none
from depyf.decompiler.source.printing.fstrings import COMPILER_KNOWS_PERCENT
from depyf.decompiler.structure.accumulation import AccumulateStatement
from depyf.decompiler.structure.unstructured import Unstructured

_FIELD = regex(r"%-?\d*(?:\.\d+)?[sra]")
_FORMATTED = regex(r"(?:[^%]|%%|%-?\d*(?:\.\d+)?[sra])*")
"""Formats that CPython's compiler (3.11, ``optimize_format`` in ast_opt.c) turns into f-strings."""

Body = Callable[[Code], Tuple[NormalCode, List[ast.stmt]]]


class Definer(Transformer):
    """Replaces placeholders below the statements it visits.

    ``body`` returns the normal form and the structured statements of a nested code object. ``enclosing`` are the names
    of the enclosing functions that a plain name would refer to, ``type_parameters`` those that enclosing definitions
    have as parameters, ``nested`` whether there is an enclosing function, ``postponed`` whether the module has ``from
    __future__ import annotations``. With ``missing``, functions whose body can't be made are recorded there; without,
    that is an error.
    """

    def __init__(
        self,
        body: Body,
        enclosing: FrozenSet[str] = frozenset(),
        type_parameters: FrozenSet[str] = frozenset(),
        *,
        nested: bool = False,
        postponed: bool = False,
        missing: Optional[Missing] = None,
    ) -> None:
        super().__init__()
        self.body, self.enclosing, self.nested, self.postponed = body, enclosing, nested, postponed
        self.type_parameters = type_parameters
        self.missing = missing
        self.comprehensions: List[NormalCode] = []
        self._before: List[ast.stmt] = []  # definitions that the statement being visited needs

    def inside(self, code: Code) -> Tuple[NormalCode, List[ast.stmt], Definer]:
        """Return the normal form and the complete statements of ``code``, and the definer that completed them."""
        normal, statements = self.body(code)
        definer = self._within(normal, statements)
        return normal, definer.visit_all(statements) if definer.may_change(normal) else statements, definer

    def visit_all(self, statements: List[ast.stmt]) -> List[ast.stmt]:
        """Return the statements, with definitions in front of those that need some."""
        result: List[ast.stmt] = []
        for statement in statements:
            visited = self.visit(statement)
            result.extend(visited if isinstance(visited, list) else [visited])
        return result

    def may_change(self, normal: NormalCode) -> bool:
        """Return whether statements that are lifted from ``normal`` may contain something to define or to rewrite."""
        makes = _MAKES_PLACEHOLDERS | {Op.STORE_SUBSCR} if self.postponed else _MAKES_PLACEHOLDERS
        if Op.BINARY in normal.kinds and any(instr.op is Op.BINARY and instr.arg == "%" for instr in normal.ops):
            return True
        return not makes.isdisjoint(normal.kinds)

    def visit(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.stmt):
            return super().visit(node)
        around, self._before = self._before, []
        visited = super().visit(node)
        before, self._before = self._before, around
        return [*before, visited] if before else visited

    def _within(self, normal: NormalCode, statements: List[ast.stmt]) -> Definer:
        """Return the definer for code nested in the code object of ``normal``, which has these statements."""
        is_function = bool(normal.code.co_flags & inspect.CO_OPTIMIZED)
        enclosing = (self.enclosing | local_names(normal)) if is_function else self.enclosing
        postponed = self.postponed or any(map(postpones_annotations, statements))
        nested = self.nested or is_function or normal.code.co_name != "<module>"
        given = enclosing, self.type_parameters
        return Definer(self.body, *given, nested=nested, postponed=postponed, missing=self.missing)

    def function_body(self, code: Code) -> List[ast.stmt]:
        """Return the body of the ``def`` or ``class`` of ``code``: docstring, declarations, statements."""
        if code.co_flags & inspect.CO_OPTIMIZED:
            normal, statements, definer = self.inside(code)
        else:
            normal, statements, definer = self._inside_class(code)
        if code.co_name in COMPREHENSIONS and any(map(_accumulates, statements)):
            raise Unstructured(f"the code of a {code.co_name} is made a function that nothing iterates")
        annotated = bool(code.co_flags & inspect.CO_OPTIMIZED) or any(map(_annotates, statements))
        head = declarations(
            normal,
            self.enclosing,
            self.type_parameters,
            nested=self.nested,
            comprehensions=definer.comprehensions,
            annotated=annotated,
        )
        if is_module(code):
            head = needed_in_module(head, statements)
        # Declarations follow the docstring, and imports from ``__future__`` in a class or module.
        text = docstring(code)
        if text is not None:
            head.insert(0, docstring_statement(text))
        elif head and not code.co_flags & inspect.CO_OPTIMIZED:
            first = _first_of_all(statements)
            return [*statements[:first], *head, *statements[first:]]
        if returns_only_none(statements):
            statements = [_BareReturns().visit(statement) for statement in statements]
        return [*head, *statements] or [ast.Pass()]

    def _inside_class(self, code: Code) -> Tuple[NormalCode, List[ast.stmt], Definer]:
        """Return the same as ``inside`` for the body of a class or module: without additions, with annotations."""
        normal, statements = self.body(code)
        is_module = code.co_name == "<module>"
        # First the annotate function goes, then the compiler's additions; then annotations come to their positions.
        statements, annotate = take_annotate_function(statements, "__annotate__" if is_module else "__annotate_func__")
        definer = self._within(normal, statements)
        statements = definer.visit_all(statements) if definer.may_change(normal) else statements
        statements = source_body(statements, normal)
        if annotate is not None:
            made = annotations_of(definer.inside(annotate.code)[1])
            statements = annotated(statements, made, marked_in_blocks=not is_module)
        else:
            statements = [*statements, *lost_annotation(code, statements)]
        return normal, statements, definer

    def definition(self, function: Function, name: str) -> ast.stmt:
        """Return the ``def`` or ``class`` statement that makes ``function`` under the name ``name``."""
        if function.generic is not None:
            return self._generic(function, name)
        if function.is_alias:
            return type_alias(name, self._type_parameters(function), self._evaluated(function))
        node = mark(self._function_or_class(function, name), function.code)
        if function.type_parameters:
            setattr(node, "type_params", self._type_parameters(function))  # noqa: B010
        return node

    def _function_or_class(self, function: Function, name: str) -> ast.stmt:
        decorators = [self.visit(decorator) for decorator in function.decorators]
        if function.class_arguments is not None:
            bases, keywords = function.class_arguments
            return ast.ClassDef(
                name=name,
                bases=[self.visit(base) for base in bases],
                keywords=[ast.keyword(keyword.arg, self.visit(keyword.value)) for keyword in keywords],
                body=self._body_or_stub(function.code),
                decorator_list=decorators,
            )
        annotations = self._annotations(function)
        kind = ast.AsyncFunctionDef if _is_async(function.code) else ast.FunctionDef
        return kind(
            name=name,
            args=self._arguments(function, annotations),
            body=self._body_or_stub(function.code),
            decorator_list=decorators,
            returns=annotations.get("return"),
        )

    def _body_or_stub(self, code: Code) -> List[ast.stmt]:
        return self.function_body(code) if self.missing is None else self.missing.body(code, self.function_body)

    def lambda_(self, function: Function) -> ast.Lambda:
        """Return the ``lambda`` expression that makes ``function``."""
        return ast.Lambda(self._arguments(function, {}), self.expression(function.code))

    def expression(self, code: Code) -> ast.expr:
        """Return the expression whose value ``code`` returns."""
        normal, statements, _ = self.inside(code)
        return mentioning(as_expression(statements), unused_names(normal) if self.nested else [])

    def comprehension(self, code: Code, iterable: ast.expr) -> ast.expr:
        """Return the comprehension or generator expression over ``iterable`` that ``code`` executes."""
        normal, statements, definer = self.inside(code)
        self.comprehensions.extend([normal, *definer.comprehensions])
        unreached = unused_names(normal) if self.nested and not isinstance(code, InlinedCode) else []
        return comprehension(code, statements, iterable, unreached)

    # --- type parameters ---------------------------------------------------------------------------------------------

    def _generic(self, function: Function, name: str) -> ast.stmt:
        """Return the definition of ``name`` with its type parameters, which ``function`` makes and returns."""
        # def f[T](x): ...      the compiler calls a function ``<generic parameters of f>``, which makes T and f
        normal, statements = self.body(function.code)
        inner = with_parameters(function, statements)
        made = local_names(normal)
        given = self.enclosing | made, self.type_parameters | (made - set(normal.code.co_freevars))
        definer = Definer(self.body, *given, nested=self.nested, postponed=self.postponed, missing=self.missing)
        result = definer.definition(inner, name)
        self.comprehensions.extend(definer.comprehensions)
        return result

    def _type_parameters(self, function: Function) -> List[ast.AST]:
        return [type_parameter(expr, self._evaluated) for expr in function.type_parameters]

    def _evaluated(self, function: Function) -> ast.expr:
        """Return the expression whose value ``function`` returns."""
        return evaluated(self.inside(function.code)[1])

    # --- names without syntax ----------------------------------------------------------------------------------------

    def visit_CellName(self, node: CellName) -> ast.expr:
        """Return an expression for the cell itself, which only a closure has."""
        closure = parse("(lambda: cell).__closure__[0]", mode="eval").body
        for inner in ast.walk(closure):
            if isinstance(inner, ast.Lambda):
                inner.body = ast.Name(node.id, ast.Load())
        return closure

    def visit_Special(self, node: Special) -> ast.expr:
        return ast.Name(node.id, ast.Load())

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Return ``f"%s" % (x,)`` where the bytecode has ``%``, and the compiler would turn ``"%s" % (x,)`` into
        formatting."""
        self.generic_visit(node)
        text = constant(node.left) if COMPILER_KNOWS_PERCENT else None
        if isinstance(node.op, ast.Mod) and isinstance(text, str) and isinstance(node.right, ast.Tuple):
            if _FORMATTED.fullmatch(text) and len(_FIELD.findall(text)) == len(node.right.elts):
                return ast.BinOp(ast.JoinedStr([node.left]), node.op, node.right)
        return node

    # --- placeholders ------------------------------------------------------------------------------------------------

    def visit_FunctionExpression(self, node: FunctionExpression) -> ast.expr:
        name = node.function.code.co_name
        if name == "<lambda>":
            return self.lambda_(node.function)
        if node.function.defaults or node.function.kw_defaults:
            raise Unstructured(f"the function {name} is used without a name")
        # No compiler does that, but Dynamo: it calls a function that it has just made, and making it is not observable.
        self._before.append(self.definition(node.function, name))
        return ast.Name(name, ast.Load())

    def visit_ComprehensionExpression(self, node: ComprehensionExpression) -> ast.expr:
        return self.comprehension(node.function.code, self.visit(node.iterable))

    def visit_FunctionStatement(self, node: FunctionStatement) -> ast.stmt:
        statement = self.definition(node.function, node.name)
        put(statement, span_of(node))
        return statement

    def _arguments(self, function: Function, annotations: Dict[str, ast.expr]) -> ast.arguments:
        return arguments(
            function.code,
            [self.visit(default) for default in function.defaults],
            {name: self.visit(default) for name, default in function.kw_defaults.items()},
            annotations,
        )

    # --- annotations -------------------------------------------------------------------------------------------------

    def _annotations(self, function: Function) -> Dict[str, ast.expr]:
        if function.annotate is not None:
            made = annotations_of(self.inside(function.annotate.code)[1])
            annotations = {annotation.name: annotation.expression for annotation in made}
        else:
            annotations = {name: self.visit(value) for name, value in function.annotations.items()}
        if self.postponed:
            return {name: expression_of(value) for name, value in annotations.items()}
        return annotations

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        self.generic_visit(node)
        if self.postponed:
            node.annotation = expression_of(node.annotation)
        return node


class _BareReturns(Transformer):
    """Replaces ``return None`` by ``return`` in functions that return nothing else."""

    def visit_Return(self, node: ast.Return) -> ast.Return:
        return node if has_columns(node) else ast.Return(None)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        return node

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AsyncFunctionDef:
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        return node if isinstance(node, ast.expr) else super().generic_visit(node)


_MAKES_PLACEHOLDERS = frozenset({Op.MAKE_FUNCTION, Op.COMPREHENSION, Op.CLOSURE, Op.SPECIAL})
"""The operations that ``Definer`` writes; postponed annotations are stored by STORE_SUBSCR."""


def _accumulates(statement: ast.AST) -> bool:
    """Return whether ``statement`` adds an element to the result of a comprehension."""
    return any(isinstance(node, AccumulateStatement) for node in ast.walk(statement))


def _annotates(statement: ast.AST) -> bool:
    """Return whether the compiler finds an annotation in ``statement`` for its class or module."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False
    if isinstance(statement, ast.AnnAssign):
        return True
    return any(_annotates(each) for block in statement_lists(statement) for each in block)


def _is_async(code: Code) -> bool:
    return bool(code.co_flags & (inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR))


def _first_of_all(statements: List[ast.stmt]) -> int:
    """Return the number of statements that must come first: the docstring, imports from ``__future__``."""
    count = int(_is_docstring(statements))
    while count < len(statements):
        statement = statements[count]
        if not isinstance(statement, ast.ImportFrom) or statement.module != "__future__":
            break
        count += 1
    return count


def _is_docstring(statements: List[ast.stmt]) -> bool:
    first = statements[0] if statements else None
    return isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
