"""One attempt: a code object written in some form, the text recompiled and compared with the original."""

from __future__ import annotations

import ast
import enum
import inspect
import os
from dataclasses import replace
from types import CodeType
from typing import AbstractSet, Dict, List, Optional, Set, Tuple

from depyf.asynchronous import synchronous
from depyf.bytecode.code import Code, is_code
from depyf.bytecode.parsing import parse
from depyf.bytecode.syntax_trees import fix_missing_locations
from depyf.flow.body_end import join_ends, returns_inside, without_mark
from depyf.flow.comprehensions import outline
from depyf.flow.copies import undo_copies
from depyf.flow.graph import FlowGraph, build
from depyf.lift.items import COMPREHENSIONS, Function
from depyf.lift.lifter import lift
from depyf.lift.nodes import LiftedGraph
from depyf.normal.inlined import InlinedCode
from depyf.normal.lowering import lower
from depyf.normal.modes import Mode, is_module, mode_of
from depyf.normal.nesting import nesting
from depyf.normal.ops import NormalCode, Op
from depyf.quick_dataclass import dataclass
from depyf.result import Hints
from depyf.source.compiling.placeholders import Placeholder, placeholders_of
from depyf.source.compiling.scaffold import MAY_BE_AWAITED
from depyf.source.compiling.to_code import Compiled, compile_source
from depyf.source.deep_stack import reserve_stack
from depyf.source.definitions.function_objects import FunctionFacts
from depyf.source.definitions.missing import Missing
from depyf.source.definitions.nested import Definer
from depyf.source.futures import ANNOTATIONS, imported_flags, needed_imports
from depyf.source.passes import simplify
from depyf.source.passes.naming import name_temporaries
from depyf.source.passes.placed_release import Places, delete_before
from depyf.source.passes.plumbing import drop_plumbing
from depyf.source.passes.release import release
from depyf.source.printing.text import to_source
from depyf.source.source_text import SourceText
from depyf.source.unfolded import keep_unfolded
from depyf.source.written import as_written
from depyf.structure.body_returns import without_returns
from depyf.structure.dispatch import dispatch
from depyf.structure.structurer import Unstructured, structure
from depyf.verify import Comparison, Finding, compare, same_docstring


class Form(enum.Enum):
    """How the statements are written, most readable first."""

    WRITTEN = "written"
    """As its author wrote it, as far as lines and columns of the instructions tell."""
    READABLE = "readable"
    """With the readability passes alone: columns may be those of another text."""
    PLAIN = "plain"
    """Without the readability passes."""
    DISPATCH = "dispatch"
    """All jumps through a state variable, where no statement stands for them."""


def forms() -> List[Form]:
    """The forms to try.

    ``DEPYF_REMOVE_TEMP=0`` in the environment leaves out the readability passes. In depyf 0.20 that kept its temporary
    variables; here most of them are expressions from the start.
    """
    raw = os.environ.get("DEPYF_REMOVE_TEMP", "1") == "0"
    return [Form.PLAIN, Form.DISPATCH] if raw else list(Form)


@dataclass(frozen=True)
class Attempt:
    """One form of the source, recompiled and compared. ``placeholders`` are what was put into the candidate."""

    source: SourceText
    candidate: CodeType
    comparison: Comparison
    placeholders: Tuple[Placeholder, ...] = ()
    numbers: Tuple[Optional[int], ...] = ()


class Attempts:
    """What is made of one code object: its source in the chosen form, recompiled and compared.

    The attributes say how: ``form``, which functions are ``missing``, what is ``released`` and where (``places``).
    """

    def __init__(self, code: Code, name: str, hints: Optional[Hints], facts: Optional[FunctionFacts]) -> None:
        self.code, self.name, self.facts = code, name, facts or FunctionFacts()
        self.filename = f"<decompiled {name}>"
        self.is_module = is_module(code)
        self.written_by_tool, self.hints = hints is not None, hints or Hints()
        self.culprits: Set[int] = set()  # the ids of what no other form could prove
        self.normal_forms: Dict[int, NormalCode] = {}  # by the id of a code object, which they hold
        self.missing: Optional[Missing] = None
        self.holed: Set[int] = set()  # the ids of code objects that such statements were looked for in
        self.places: Places = {}
        self.assumed: AbstractSet[int] = set()  # the ids of functions that are not proved, and count as if they were
        self.form = Form.WRITTEN
        self.released: Set[str] = set()
        self.unreleased: Optional[ast.Module] = None  # what the first attempt of a form printed, for the one behind it
        self.thorough = False

    def attempt(self) -> Attempt:
        tree, self.unreleased = self.unreleased, None
        if tree is None or not (self.released or self.places):
            tree = self._tree()
        if not (self.released or self.places):
            self.unreleased = tree
        self._release(tree)
        numbers = delete_before(tree, self.places)
        fix_missing_locations(tree)
        source = to_source(tree, mode_of(self.lowered(self.code)))
        compiled = compile_source(source, self.code, self.filename, replaceable=not self.holed)
        return replace(self._compared(source, compiled), numbers=tuple(numbers))

    def _tree(self) -> ast.Module:
        tree = ast.Module(self._body(), [])
        fix_missing_locations(tree)
        if self.form is not Form.PLAIN:
            tree = simplify(tree)
        if self.form is Form.WRITTEN:
            tree = as_written(tree)
        keep_unfolded(tree)
        self._name(tree)
        return tree

    def _compared(self, source: SourceText, compiled: Compiled) -> Attempt:
        """What counts is the text alone. What can be proved only of the code that has constants and names put into it
        is kept apart."""
        if not source.constants:
            comparison = self._compare(compiled.alone)
            if comparison.proved or not (source.names or compiled.given):
                return Attempt(source, compiled.alone, comparison)
        placeholders = placeholders_of(source.constants, source.names, compiled.given)
        return Attempt(source, compiled.code, self._compare(compiled.code), placeholders)

    def _name(self, tree: ast.Module) -> None:
        """Name what is left of temporaries."""
        function = tree.body[-1] if tree.body else None
        if self.written_by_tool and isinstance(function, ast.FunctionDef):
            function.body = name_temporaries(
                function.body,
                _local_names(self.lowered(self.code)),
                frozenset(self.code.co_varnames),
                self.hints.parameters,
                self.hints.tuple_results,
            )

    def _release(self, tree: ast.Module) -> None:
        """Delete temporaries where they would live too long."""
        if self.released:
            for node in ast.walk(tree):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    node.body = release(node.body, self.released, thorough=self.thorough)

    def assumptions(self, attempt: Attempt) -> Tuple[str, ...]:
        """What the proof of ``attempt`` needs of the hints."""
        candidate = attempt.candidate
        if not self.written_by_tool:
            return ()
        if attempt.comparison.finding is Finding.EXACT and same_docstring(self.code, candidate):
            return ()  # the operations are the same, whatever the hints say
        unhinted = compare(
            self.code,
            candidate,
            assumed=self.assumed,
            lowered=self.lowered,
        )
        return () if unhinted.proved else self.hints.assumptions()

    def _compare(self, candidate: CodeType) -> Comparison:
        return compare(
            self.code,
            candidate,
            hints=self.hints,
            check_docstring=not self.written_by_tool,
            assumed=self.assumed,
            lowered=self.lowered,
        )

    def reserve_stack(self, code: Code, lowered: Dict[int, NormalCode]) -> None:
        """Raise ``RecursionError`` before the work begins, if what is made of some code object will be too deep."""
        try:
            if id(code) not in lowered:
                lowered[id(code)] = lower(code)
        except synchronous():  # refused where it is needed: in a module, one function may be missing
            return
        self.normal_forms[id(code)] = lowered[id(code)]
        reserve_stack(nesting(lowered[id(code)]))
        for constant in code.co_consts:
            if is_code(constant):
                self.reserve_stack(constant, lowered)

    # --- the tree ----------------------------------------------------------------------------------------------------

    def _body(self) -> List[ast.stmt]:
        imports = [] if self.is_module else needed_imports(self.code)
        return [*imports, *self._definition(postponed=bool(imported_flags(ast.Module(imports, [])) & ANNOTATIONS))]

    def _definition(self, *, postponed: bool) -> List[ast.stmt]:
        definer = Definer(self._statements, postponed=postponed, missing=self.missing)
        code, function = self.code, Function(self.code)
        function.defaults, function.kw_defaults = list(self.facts.defaults), dict(self.facts.kw_defaults)
        function.annotations = dict(self.facts.annotations)
        if self._is_expression():
            return [ast.Expr(definer.expression(code))]
        if self.is_module:
            return definer.function_body(code)
        if code.co_name == "<lambda>":
            return [self._lambda(definer, function)]
        if code.co_name in COMPREHENSIONS and code.co_argcount == 1:  # its first iterable is an argument: ".0"
            return [ast.Expr(definer.comprehension(code, ast.Name(code.co_varnames[0], ast.Load())))]
        if not code.co_flags & inspect.CO_OPTIMIZED:
            function.class_arguments = ([], [])
        if code.co_flags & inspect.CO_ITERABLE_COROUTINE:
            function.decorators.append(parse(MAY_BE_AWAITED, mode="eval").body)
        return [definer.definition(function, self.name)]

    def _is_expression(self) -> bool:
        return self.is_module and mode_of(self.lowered(self.code)) is Mode.EVAL

    def _lambda(self, definer: Definer, function: Function) -> ast.stmt:
        """The lambda expression; a ``def`` where a tool has put statements into the code of one."""
        if self.form is not Form.DISPATCH:
            try:
                return ast.Expr(definer.lambda_(function))
            except Unstructured:
                pass
        return definer.definition(function, self.name)

    def _statements(self, code: Code) -> Tuple[NormalCode, List[ast.stmt]]:
        normal = outline(self.lowered(code))
        if code.co_flags & inspect.CO_OPTIMIZED or (code is self.code and self._is_expression()):
            statements = self._lifted_statements(code, normal)
            if code.co_name == "<lambda>" and len(statements) > 1:
                statements = self._as_one_statement(code, normal) or statements
            return normal, statements
        failure = Unstructured("a class or module would have to be left from inside of its statements")
        for joined in (False, True):
            try:
                statements = self._lifted_statements(code, normal, joined=joined)
            except Unstructured as error:
                failure = error
                continue
            if returns_inside(statements):
                statements = without_returns(statements)
            if not returns_inside(statements):
                return normal, statements
        raise failure

    def _as_one_statement(self, code: Code, normal: NormalCode) -> List[ast.stmt]:
        """The statement of a lambda, where the same arm in several places was taken for arms that somebody wrote."""
        try:
            statements = self._lifted_statements(code, normal, one_statement=True)
        except synchronous(ValueError, NotImplementedError, Unstructured):
            return []
        return statements if len(statements) == 1 else []

    def _lifted_statements(
        self, code: Code, normal: NormalCode, *, joined: bool = False, one_statement: bool = False
    ) -> List[ast.stmt]:
        """``joined``: all ways out of a class or module lead to one place, as no ``return`` can be written there.
        ``one_statement``: all is one expression."""
        flow = build(normal)
        flow.one_statement = one_statement
        undo_copies(flow)
        if joined:
            join_ends(flow)
        hints = self._hints_for(code)
        lifted = lift(flow, hints, places=self.form is Form.WRITTEN)
        culprit = id(code) in self.culprits or not (self.culprits or self.missing)
        if self.form is Form.DISPATCH and culprit and not isinstance(code, InlinedCode):
            statements = dispatch(lifted, flow)
        else:
            statements = self._structured(lifted, flow, hints)
        result = drop_plumbing(statements, hints.droppable, lifted.temporaries)
        if joined:
            kept = without_mark(result)
            if kept is None:
                raise Unstructured("the end of a class or module is reached from inside of statements")
            return kept
        return result

    def lowered(self, code: Code) -> NormalCode:
        """The normal form of ``code``, made once: each form that is tried needs it, and so does the verifier."""
        known = self.normal_forms.get(id(code))
        if known is None:
            known = self.normal_forms[id(code)] = lower(code)
        return known

    def _structured(self, lifted: LiftedGraph, flow: FlowGraph, hints: Hints) -> List[ast.stmt]:
        try:
            return structure(lifted, flow)
        except Unstructured:
            return dispatch(lift(flow, hints), flow)

    def _hints_for(self, code: Code) -> Hints:
        return self.hints if code is self.code else Hints()


def _local_names(normal: NormalCode) -> Set[str]:
    """The local variables that the bytecode uses (Dynamo leaves the user's names where it does not)."""
    code = normal.code
    return {
        instr.arg[1] for instr in normal.ops if instr.op in (Op.LOAD, Op.STORE, Op.DELETE) and instr.arg[0] == "fast"
    } | {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], *code.co_cellvars, *code.co_freevars}
