"""One attempt: a code object written in one form, the text recompiled and compared with the original."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from typing import AbstractSet, Dict, List, Optional, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.code import COMPREHENSIONS, Code, is_code
from depyf.decompiler.bytecode.parsing import parse
from depyf.decompiler.flow.body_end import join_ends, returns_inside, without_mark
from depyf.decompiler.flow.comprehensions import outline
from depyf.decompiler.flow.copies import undo_copies
from depyf.decompiler.flow.graph import FlowGraph, build
from depyf.decompiler.hints import Hints
from depyf.decompiler.lift.items import Function
from depyf.decompiler.lift.lifter import lift
from depyf.decompiler.lift.nodes import LiftedGraph
from depyf.decompiler.normal.inlined import InlinedCode
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.modes import Mode, is_module, mode_of
from depyf.decompiler.normal.ops import NormalCode, Op
from depyf.decompiler.normal.stack_check import bounds, nesting
from depyf.decompiler.pipeline.compilers import RUNNING, Compiler
from depyf.decompiler.pipeline.forms import Form
from depyf.decompiler.source.author_form import restore_author_form
from depyf.decompiler.source.compiling.placeholders import Placeholder, placeholders_of
from depyf.decompiler.source.compiling.scaffold import MAY_BE_AWAITED
from depyf.decompiler.source.compiling.to_code import Compiled, compile_source
from depyf.decompiler.source.deep_stack import has_stack, needs_stack
from depyf.decompiler.source.definitions.function_objects import FunctionFacts
from depyf.decompiler.source.definitions.missing import Missing
from depyf.decompiler.source.definitions.nested import Definer
from depyf.decompiler.source.definitions.put_aside import put_aside, put_back
from depyf.decompiler.source.futures import ANNOTATIONS, imported_flags, needed_imports
from depyf.decompiler.source.inventory import Inventory, take_inventory
from depyf.decompiler.source.passes import simplify
from depyf.decompiler.source.passes.naming import name_temporaries
from depyf.decompiler.source.passes.placed_release import Places, delete_before, release_all
from depyf.decompiler.source.passes.plumbing import drop_plumbing
from depyf.decompiler.source.passes.release import foreseen
from depyf.decompiler.source.printing.text import to_source
from depyf.decompiler.source.source_text import SourceText
from depyf.decompiler.source.unfolded import keep_unfolded
from depyf.decompiler.structure.leaving import without_returns
from depyf.decompiler.structure.sequences import structure
from depyf.decompiler.structure.unstructured import Unstructured
from depyf.decompiler.verify import Comparison, Finding, compare, same_docstring


@dataclass(frozen=True)
class Attempt:
    """One form of the source, recompiled and compared. ``placeholders`` belong to the candidate.
    Without a proof, ``numbers`` are the numbers of the statements (``placed_release``)."""

    source: SourceText
    candidate: Code
    comparison: Comparison
    placeholders: Tuple[Placeholder, ...] = ()
    numbers: Tuple[Optional[int], ...] = ()


class Attempts:
    """The attempts for one code object: its source in the chosen form, recompiled and compared. The attributes select
    the form: ``form``, the ``missing`` functions, the ``released`` temporaries, the ``places`` of their deletions."""

    def __init__(
        self,
        code: Code,
        name: str,
        hints: Optional[Hints],
        facts: Optional[FunctionFacts],
        compiler: Compiler = RUNNING,
    ) -> None:
        self.compiler = compiler
        self.code, self.name, self.facts = code, name, facts or FunctionFacts()
        self.filename = f"<decompiled {name}>"
        self.is_module = is_module(code)
        self.written_by_tool, self.hints = hints is not None, hints or Hints()
        self.culprits: Set[int] = set()  # the ids of code objects that no other form could prove
        self.normal_forms: Dict[int, NormalCode] = {}  # by the id of a code object, which they hold
        self.missing: Optional[Missing] = None
        self.holed: Set[int] = set()  # the ids of code objects that were searched for statements to omit
        self.places: Places = {}
        self.emptied = False  # whether variables are emptied there instead
        self.assumed: AbstractSet[int] = set()  # the ids of functions that are not proved, and are assumed to be
        self.form = Form.WRITTEN
        self.released: Set[str] = set()
        self.released_inside: Set[str] = set()  # those of the functions inside
        self.foreseeing = False  # whether ``released`` is to be what will most likely have to be
        self.unreleased: Optional[ast.Module] = None  # the tree of the first attempt of a form, for the next one
        self.inventory: Optional[Inventory] = None  # of the tree before its statements were changed
        self.thorough = False
        self.shows_differences = False  # whether text that is known to differ is shown, as unverified

    def attempt(self) -> Attempt:
        tree, self.unreleased = self.unreleased, None
        # The tree of the last attempt, if it has no ``del`` yet, serves for the one with ``del``: the lift is not
        # repeated.
        if tree is None or not (self.released or self.released_inside or self.places):
            tree = self._tree()
        function = tree.body[-1] if self.foreseeing and tree.body else None
        if isinstance(function, ast.FunctionDef):
            self.released |= foreseen(function, _local_names(self.lowered(self.code)))
        # Compare without ``del`` first: most functions need none.
        changed = bool(self.released or self.released_inside or self.places)
        if not changed:
            self.unreleased = tree
        names = self.released, self.released_inside
        release_all(tree, *names, thorough=self.thorough, noticed=self.foreseeing)
        numbers = delete_before(tree, self.places, emptied=self.emptied) if self.places else []
        inventory = None if changed else self.inventory
        source = to_source(tree, mode_of(self.lowered(self.code)), inventory)
        if self.compiler.absent:
            return self._not_compared(source)
        interpreter = self.compiler.interpreter
        compiled = compile_source(source, self.code, self.filename, interpreter, replaceable=not self.holed)
        attempt = self._compared(source, compiled)
        if attempt.comparison.proved:
            return attempt
        return replace(attempt, numbers=tuple(numbers or delete_before(tree, {})))

    def _not_compared(self, source: SourceText) -> Attempt:
        comparison = Comparison(Finding.UNVERIFIED, self.compiler.absent, tuple, (), self.code.co_name, id(self.code))
        return Attempt(source, self.code, comparison, placeholders_of(source.constants, source.names, {}))

    def _tree(self) -> ast.Module:
        tree, self.inventory = ast.Module(self._body(), []), None
        # PLAIN is for culprits only: put their bodies aside, so that the passes below change the other functions alone.
        aside = put_aside(tree, self.culprits) if self.form is Form.PLAIN else []
        if self.form is not Form.PLAIN or self._has_others():
            inventory = take_inventory(tree)
            tree = simplify(tree, inventory)
            if self.form is Form.WRITTEN or self._has_others():
                tree = restore_author_form(tree, inventory.contents)
            self.inventory = None if self.written_by_tool or aside else inventory
        put_back(tree, aside)
        keep_unfolded(tree)
        self._name(tree)
        return tree

    def _has_others(self) -> bool:
        """Return whether only some of the functions can't be proved in a form that is more readable."""
        return bool(self.culprits) and id(self.code) not in self.culprits

    def _is_as_written(self, code: Code) -> bool:
        """Return whether ``code`` gets its author's form: all code objects do that can be proved in it."""
        return self.form is Form.WRITTEN or (self._has_others() and id(code) not in self.culprits)

    def _compared(self, source: SourceText, compiled: Compiled) -> Attempt:
        """Compare the text alone; if that is not proved, the code with restored constants and names, and keep them
        apart. Names that are restored where the text is proved as it is must be proved as well: ``compile_like`` gives
        that code."""
        if not source.constants:
            comparison, restored = self._compare(compiled.alone), bool(source.names or compiled.given)
            if not restored or (comparison.proved and self._compare(compiled.code).proved):
                return Attempt(source, compiled.alone, comparison)
        placeholders = placeholders_of(source.constants, source.names, compiled.given)
        return Attempt(source, compiled.code, self._compare(compiled.code), placeholders)

    def _name(self, tree: ast.Module) -> None:
        """Name the remaining temporaries."""
        function = tree.body[-1] if tree.body else None
        if self.written_by_tool and isinstance(function, ast.FunctionDef):
            function.body = name_temporaries(
                function.body,
                _local_names(self.lowered(self.code)),
                frozenset(self.code.co_varnames),
                self.hints.parameters,
                self.hints.tuple_results,
            )

    def assumptions(self, attempt: Attempt) -> Tuple[str, ...]:
        """Return the assumptions that the proof of ``attempt`` takes from the hints."""
        candidate = attempt.candidate
        if not self.written_by_tool:
            return ()
        if attempt.comparison.finding is Finding.EXACT and same_docstring(self.code, candidate):
            return ()  # the operations are the same, regardless of the hints
        unhinted = compare(
            self.code,
            candidate,
            assumed=self.assumed,
            lowered=self.lowered,
        )
        return () if unhinted.proved else self.hints.assumptions()

    def _compare(self, candidate: Code) -> Comparison:
        return compare(
            self.code,
            candidate,
            hints=self.hints,
            check_docstring=not self.written_by_tool,
            assumed=self.assumed,
            lowered=self.lowered,
        )

    def reserve_stack(self, code: Code, lowered: Dict[int, NormalCode]) -> None:
        """Raise ``RecursionError`` before the work starts, if the tree of some code object will be too deep."""
        try:
            if id(code) not in lowered:
                lowered[id(code)] = lower(code)
        except synchronous():  # reported where it is needed: in a module, one function may be missing
            return
        normal = self.normal_forms[id(code)] = lowered[id(code)]
        if needs_stack(len(normal.ops)):  # hardly any tree has more levels than operations
            least, most = bounds(normal)
            if not has_stack(least) or not (has_stack(most) or has_stack(nesting(normal))):
                raise RecursionError("the tree is nested deeper than the recursion limit allows")
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
            try:
                return [ast.Expr(definer.comprehension(code, ast.Name(code.co_varnames[0], ast.Load())))]
            except Unstructured:
                pass  # a tool has put statements into it: a function
        if not code.co_flags & inspect.CO_OPTIMIZED:
            function.class_arguments = ([], [])
        if code.co_flags & inspect.CO_ITERABLE_COROUTINE:
            function.decorators.append(parse(MAY_BE_AWAITED, mode="eval").body)
        return [definer.definition(function, self.name)]

    def _is_expression(self) -> bool:
        return self.is_module and mode_of(self.lowered(self.code)) is Mode.EVAL

    def _lambda(self, definer: Definer, function: Function) -> ast.stmt:
        """Return the lambda expression, or a ``def`` where a tool has put statements into the code of a lambda."""
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
        # A class or module can't contain ``return``. Lift it as it is, and if ``return`` remains inside of statements,
        # join all its exits in one block at its end.
        failure = Unstructured("a class or module would need a return inside of its statements")
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
        """Return the statement of a lambda in which equal arms are copies of one; an empty list if it is not one
        statement."""
        try:
            statements = self._lifted_statements(code, normal, one_statement=True)
        except synchronous(ValueError, NotImplementedError, Unstructured):
            return []
        return statements if len(statements) == 1 else []

    def _lifted_statements(
        self, code: Code, normal: NormalCode, *, joined: bool = False, one_statement: bool = False
    ) -> List[ast.stmt]:
        """Return the structured statements of ``code``. ``joined``: all exits of a class or module are joined, since it
        can't contain ``return``. ``one_statement``: the code is one expression."""
        culprit = id(code) in self.culprits or not (self.culprits or self.missing)
        # The compiler copies blocks (``finally``, ends of loops). Lines tell copies from code that was written twice,
        # but may mislead: then try without them.
        failure: Optional[ValueError] = None
        for by_lines in [False] if culprit and self.form is Form.COPIED else [True, False]:
            flow = build(normal)
            flow.one_statement = one_statement
            undo_copies(flow, by_lines=by_lines)
            try:
                return self._statements_of(flow, code, culprit=culprit, joined=joined)
            except synchronous(ValueError) as error:  # what is no copy may have been joined, at other depths of stack
                failure = failure or error
        assert failure is not None
        raise failure

    def _statements_of(self, flow: FlowGraph, code: Code, *, culprit: bool, joined: bool) -> List[ast.stmt]:
        if joined:
            join_ends(flow)
        hints = self._hints_for(code)
        whole = flow.one_statement or (culprit and self.form is Form.JOINED)
        lifted = lift(flow, hints, spans=self._is_as_written(code), expressions=whole)
        # Only the code objects that no other form could prove become dispatch loops.
        dispatched = self.form is Form.DISPATCH and culprit and not isinstance(code, InlinedCode)
        statements = _dispatched(lifted, flow) if dispatched else self._structured(lifted, flow, hints)
        result = drop_plumbing(statements, hints.droppable, lifted.temporaries)
        if joined:
            kept = without_mark(result)
            if kept is None:
                raise Unstructured("the end of a class or module is reached from inside of statements")
            return kept
        return result

    def lowered(self, code: Code) -> NormalCode:
        """Return the normal form of ``code``. It is cached: each form that is tried needs it, and so does the
        verifier."""
        known = self.normal_forms.get(id(code))
        if known is None:
            known = self.normal_forms[id(code)] = lower(code)
        return known

    def _structured(self, lifted: LiftedGraph, flow: FlowGraph, hints: Hints) -> List[ast.stmt]:
        try:
            # Statements first; then with tests as expressions wherever possible, for jumps into the middle of a
            # condition; then as a dispatch loop.
            return structure(lifted, flow)
        except Unstructured:
            pass
        try:
            return structure(lift(flow, hints, expressions=True), flow)
        except Unstructured:
            return _dispatched(lift(flow, hints), flow)

    def _hints_for(self, code: Code) -> Hints:
        return self.hints if code is self.code else Hints()


def _dispatched(lifted: LiftedGraph, flow: FlowGraph) -> List[ast.stmt]:
    """Return the statements as a dispatch loop, which hardly any code needs."""
    from depyf.decompiler.structure.dispatch.loop import dispatch

    return dispatch(lifted, flow)


def _local_names(normal: NormalCode) -> Set[str]:
    """Return the local variables that the bytecode uses (Dynamo keeps the user's names where it does not)."""
    code = normal.code
    return {
        instr.arg[1] for instr in normal.ops if instr.op in (Op.LOAD, Op.STORE, Op.DELETE) and instr.arg[0] == "fast"
    } | {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], *code.co_cellvars, *code.co_freevars}
