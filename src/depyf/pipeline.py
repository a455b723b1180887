"""The pipeline: a code object in, verified source out.

``decompile_code`` tries the most readable form first. A form that can't be proved gives way to a plainer one, for
those code objects alone that need it; the last form is a dispatch loop, which every code object has.
"""

from __future__ import annotations

import ast
import enum
import inspect
import os
import traceback
from dataclasses import dataclass, replace
from types import CodeType
from typing import AbstractSet, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.asynchronous import synchronous
from depyf.bytecode.code import Code, check_facts, is_code, version_of
from depyf.bytecode.instructions import line_of_offset
from depyf.bytecode.opcode_table import running_version
from depyf.bytecode.parsing import parse
from depyf.dynamo_code import hints_of, shown_by_columns
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
from depyf.normal.ops import NormalCode, Op, byte_offset
from depyf.normal.spine import Segment, with_one_end
from depyf.result import Decompilation, DecompilationError, Hints, Verdict
from depyf.source.compiling.placeholders import Placeholder, head_comment, placeholders_of
from depyf.source.compiling.scaffold import MAY_BE_AWAITED
from depyf.source.compiling.to_code import Compiled, compile_like, compile_source
from depyf.source.deep_stack import reserve_stack, with_deep_stack, without_collector
from depyf.source.definitions.function_objects import FunctionFacts
from depyf.source.definitions.holes import Candidates, Hole, failing, finest, shown, without
from depyf.source.definitions.missing import Missing
from depyf.source.definitions.nested import Definer
from depyf.source.futures import ANNOTATIONS, imported_flags, needed_imports
from depyf.source.line_map import line_map
from depyf.source.passes import simplify
from depyf.source.passes.counting import is_temporary
from depyf.source.passes.naming import name_temporaries
from depyf.source.passes.placed_release import Places, delete_before, places_of
from depyf.source.passes.plumbing import drop_plumbing
from depyf.source.passes.release import release
from depyf.source.printing.text import to_source
from depyf.source.source_text import SourceText
from depyf.source.written import as_written
from depyf.structure.body_returns import without_returns
from depyf.structure.dispatch import dispatch
from depyf.structure.structurer import Unstructured, structure
from depyf.verify import Comparison, Finding, compare

_ROUNDS = 20
"""How often the whole is written again when functions in it fall short; each round finds one of them at least."""


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


def _forms() -> List[Form]:
    """The forms to try.

    ``DEPYF_REMOVE_TEMP=0`` in the environment leaves out the readability passes. In depyf 0.20 that kept its temporary
    variables; here most of them are expressions from the start.
    """
    raw = os.environ.get("DEPYF_REMOVE_TEMP", "1") == "0"
    return [Form.PLAIN, Form.DISPATCH] if raw else list(Form)


def decompile_code(
    code: Code, *, name: Optional[str] = None, hints: Optional[Hints] = None, facts: Optional[FunctionFacts] = None
) -> Decompilation:
    """Decompile and verify one code object; ``name`` is what the function is called in the source.

    ``hints`` are for code that a tool wrote; Dynamo's is recognised without any. ``facts`` are defaults and annotations
    of a function that has this code, which are written with it.

    Raises ``DecompilationError`` when no source could be made, or only source that is known to differ, and for code of
    a newer Python than the running one.
    """
    if version_of(code) > running_version():
        theirs, ours = (".".join(map(str, version)) for version in (version_of(code), running_version()))
        raise DecompilationError(
            f"{code.co_name}: compiled by CPython {theirs}, and this is {ours}, whose compiler could not check the "
            f"source: run depyf with CPython {theirs} or newer"
        )
    try:
        check_facts(code)
        recognised = hints_of(code) if hints is None else None
        if recognised is not None and not shown_by_columns(code):
            return _by_names_alone(code, name or code.co_name, recognised, facts)
        return _with_or_without(code, name or code.co_name, hints or recognised, facts)
    except DecompilationError:
        raise
    except synchronous(ValueError, NotImplementedError, Unstructured) as error:
        raise DecompilationError(f"{code.co_name}: {error}") from error
    except synchronous() as error:  # malformed bytecode, or a bug of ours: callers know one kind of failure
        raise DecompilationError(f"{code.co_name}: internal error, {type(error).__name__} {_place(error)}") from error


def _decompiled(code: Code, name: str, hints: Optional[Hints], facts: Optional[FunctionFacts]) -> Decompilation:
    lowered: Dict[int, NormalCode] = {}
    with without_collector():
        return with_deep_stack(lambda: _Decompiler(code, name, hints, facts).run(lowered))


def _with_or_without(code: Code, name: str, hints: Optional[Hints], facts: Optional[FunctionFacts]) -> Decompilation:
    """Decompile with the hints; without them, if only that is a proof: names that they give may be in the way."""
    try:
        hinted = _decompiled(code, name, hints, facts)
        if hinted.verdict.code_proved or hints is None:
            return hinted
        failure: Optional[BaseException] = None
    except synchronous(DecompilationError, ValueError, NotImplementedError, Unstructured) as error:
        if hints is None:
            raise
        failure = error
    try:
        unhinted = _decompiled(code, name, None, facts)
        if unhinted.verdict.code_proved:
            return unhinted
    except synchronous(DecompilationError, ValueError, NotImplementedError, Unstructured):
        pass
    if failure is not None:
        raise failure
    return hinted


def _by_names_alone(code: Code, name: str, hints: Hints, facts: Optional[FunctionFacts]) -> Decompilation:
    """Decompile what looks like code of Dynamo's, and may be a user's: the hints may serve to write it, and are no part
    of a proof."""
    hinted, failure = None, None
    for each in (hints, None):
        try:
            found = _decompiled(code, name, each, facts)
        except synchronous(DecompilationError, ValueError, NotImplementedError, Unstructured) as error:
            failure = failure or error
            continue
        if found.verdict.code_proved and not found.assumptions:
            return found
        hinted = hinted or found
    if hinted is None:
        assert failure is not None
        raise failure
    if not hinted.assumptions:
        return hinted
    reason = "not proved, unless Dynamo wrote the code, which only its names suggest"
    return replace(hinted, verdict=Verdict.UNVERIFIED, reason=reason)


def _place(error: BaseException) -> str:
    """Where ``error`` was raised, with its text."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"in {os.path.basename(last.filename)}:{last.lineno}: {error}"


class _Decompiler:
    def __init__(self, code: Code, name: str, hints: Optional[Hints], facts: Optional[FunctionFacts]) -> None:
        self.code, self.name, self.facts = code, name, facts or FunctionFacts()
        self.filename = f"<decompiled {name}>"
        self.is_module = is_module(code)
        self.written_by_tool, self.hints = hints is not None, hints or Hints()
        self.culprits: Set[int] = set()  # the ids of what no other form could prove
        self._normal_forms: Dict[int, NormalCode] = {}  # by the id of a code object, which they hold
        self.missing: Optional[Missing] = None
        self.holes: List[Hole] = []
        self._holed: Set[int] = set()  # the ids of code objects that such statements were looked for in
        self.places: Places = {}
        self.assumed: AbstractSet[int] = set()  # the ids of functions that are not proved, and count as if they were

    def run(self, lowered: Dict[int, NormalCode]) -> Decompilation:
        """The answer. ``lowered`` keeps the normal forms when this is started again with a deeper stack."""
        self._reserve_stack(self.code, lowered)
        best: Optional[_Attempt] = None
        failure: Optional[Exception] = None
        for self.form in _forms():
            try:
                attempt = self._settled()
            except RecursionError:
                raise  # the whole of it once more, with a deeper stack
            except synchronous() as error:  # whatever went wrong with this form, the next one may do
                failure = failure or error
                continue
            if attempt.comparison.proved:
                return self._answer(attempt)
            self.culprits |= {part.original_id for part in attempt.comparison.culprits()}
            if best is None or best.comparison.finding is Finding.DIFFERENT:
                best = attempt
        if best is None or best.comparison.finding is Finding.DIFFERENT:
            partial = self._without_what_fails() if self._has_parts() else None
            if partial is not None:
                return partial
        if best is None:
            assert failure is not None
            raise failure
        if best.comparison.finding is Finding.DIFFERENT:
            raise DecompilationError(f"{self.code.co_name}: the source that was made differs: {best.comparison.reason}")
        return self._answer(best)

    def _without_what_fails(self) -> Optional[Decompilation]:
        """The source without those functions and classes in this module or class that can't be had; ``None`` if more
        fails.

        A function that falls short is written as dispatch first, and then, if that is no better, left out; one that is
        merely not proved stays.
        """
        self.form, self.missing = Form.DISPATCH, Missing(self.code)
        unproved: Dict[int, str] = {}
        for _ in range(_ROUNDS):
            self.missing.found.clear()
            try:
                attempt = self._settled()
            except RecursionError:
                raise
            except synchronous():  # it is not one of the functions that fails: the caller raises what it was told first
                if self._leaves_out_statements(self.code):
                    continue
                return None
            if attempt.comparison.proved and not self.missing.found:
                return self._answer(attempt, unproved)
            if attempt.comparison in attempt.comparison.culprits() and self._leaves_out_statements(self.code):
                continue
            short = dict(self.missing.found)
            failed = [*short, *(part.original_id for part in attempt.comparison.culprits())]
            classes = [self.missing.stubs[each] for each in failed if each in self.missing.stubs]
            if [each for each in classes if self._leaves_out_statements(each)]:
                continue
            for name in self.culprits & set(short):
                self.missing.known[name] = short[name]
            for part in attempt.comparison.culprits():
                short.setdefault(part.original_id, part.reason)
                if not self.missing.may_be(part.original_id):
                    return None
                if part.original_id in self.culprits and part.finding is Finding.DIFFERENT:
                    self.missing.known.setdefault(part.original_id, part.reason)
                elif part.original_id in self.culprits:
                    unproved[part.original_id] = part.reason
            self.culprits |= set(short)
            self.assumed = {*self.missing.known, *unproved}
        return None

    def _has_parts(self) -> bool:
        return not self.code.co_flags & inspect.CO_OPTIMIZED or any(map(is_code, self.code.co_consts))

    def _leaves_out_statements(self, code: Code) -> bool:
        """Whether statements of the class or module ``code`` can be left out such that the rest of it is proved. Asked
        once; all functions and classes in it are stubs meanwhile."""
        if id(code) in self._holed or code.co_flags & inspect.CO_OPTIMIZED:
            return False
        self._holed.add(id(code))
        try:
            normal = with_one_end(lower(code))
            candidates = Candidates(normal)
            parts = candidates.at_top()
        except synchronous(ValueError):
            return False
        alone = _Decompiler(code, code.co_name, None, None)
        alone._holed.add(id(code))
        alone.form, alone.missing = Form.READABLE, Missing(code, stubs_only=True)
        alone.assumed = alone.missing.stubs.keys()
        first = len(self.holes)

        def objection(left_out: Sequence[Segment]) -> str:
            holes = candidates.holes(dict.fromkeys(left_out, ""), first)
            alone._normal_forms[id(code)] = without(normal, holes)
            return alone._objection()

        def others(visible: Sequence[Segment]) -> List[Segment]:
            return [part for part in parts if part not in visible]

        bad: Dict[Segment, str] = {}
        for part, why in failing(parts, lambda visible: objection(others(visible))).items():
            bad.update(finest(part, why, others([part]), candidates.within, objection))
        if not bad or bad.keys() >= set(parts) or objection(list(bad)):
            return False
        holes = candidates.holes(bad, first)
        self.holes.extend(holes)
        self._normal_forms[id(code)] = without(normal, holes)
        return True

    def _objection(self) -> str:
        """Why what is made of the code is not proved; "" if it is."""
        try:
            attempt = self._settled()
        except RecursionError:
            raise
        except synchronous() as error:  # whatever it is, a statement is the cause
            return str(error) or type(error).__name__
        return "" if attempt.comparison.proved else attempt.comparison.reason

    def _settled(self) -> _Attempt:
        """An attempt in which no temporary keeps a value alive for too long, if ``del`` can do that.

        Otherwise the one in which some do: nothing else is known against it. ``del`` in the wrong place is worse.
        """
        self.released: Set[str] = set()
        self.thorough, self.places = False, {}
        first = self._attempt()
        attempt = self._without_overdue(first)
        if not attempt.comparison.proved and first.comparison.overdue:
            self.released, self.thorough = set(), True
            attempt = self._without_overdue(first)
        if not attempt.comparison.proved and first.comparison.overdue:
            attempt = self._settled_in_place(first)
        return attempt if attempt.comparison.proved else first

    def _without_overdue(self, attempt: _Attempt) -> _Attempt:
        """``attempt`` with each temporary deleted behind its last use that is held too long, as far as that goes."""
        while not attempt.comparison.proved:
            overdue = {_in_text(name) for part in attempt.comparison.walk() for name, _ in part.overdue} - self.released
            if not overdue:
                break
            self.released |= overdue
            attempt = self._attempt()
        return attempt

    def _settled_in_place(self, first: _Attempt) -> _Attempt:
        """``first`` with each temporary deleted where the original lets go of its value, if that is a proof."""
        self.released, attempt = set(), first
        for _ in range(_ROUNDS):
            lines = line_of_offset(attempt.candidate)
            overdue = [
                (_in_text(name), lines[offset])
                for name, offset in ((name, byte_offset(offset)) for name, offset in attempt.comparison.overdue)
                if offset in lines
            ]
            places = places_of(overdue, attempt.source.tree, attempt.numbers, self.places)
            if places is None:
                break
            self.places = places
            attempt = self._attempt()
            if attempt.comparison.proved:
                break
        return attempt

    def _attempt(self) -> _Attempt:
        tree = ast.fix_missing_locations(ast.Module(self._body(), []))
        if self.form is not Form.PLAIN:
            tree = simplify(tree)
        if self.form is Form.WRITTEN:
            tree = as_written(tree)
        self._finish(tree)
        numbers = delete_before(tree, self.places)
        source = to_source(ast.fix_missing_locations(tree), mode_of(self._lowered(self.code)))
        compiled = compile_source(source, self.code, self.filename, replaceable=not self._holed)
        return replace(self._compared(source, compiled), numbers=tuple(numbers))

    def _compared(self, source: SourceText, compiled: Compiled) -> _Attempt:
        """What counts is the text alone. What can be proved only of the code that has constants and names put into it
        is kept apart."""
        if not source.constants:
            comparison = self._compare(compiled.alone)
            if comparison.proved or not (source.names or compiled.given):
                return _Attempt(source, compiled.alone, comparison)
        placeholders = placeholders_of(source.constants, source.names, compiled.given)
        return _Attempt(source, compiled.code, self._compare(compiled.code), placeholders)

    def _finish(self, tree: ast.Module) -> None:
        """Name what is left of temporaries, delete them where they would live too long."""
        function = tree.body[-1] if tree.body else None
        if self.written_by_tool and isinstance(function, ast.FunctionDef):
            function.body = name_temporaries(
                function.body,
                _local_names(self._lowered(self.code)),
                frozenset(self.code.co_varnames),
                self.hints.parameters,
                self.hints.tuple_results,
            )
        if self.released:
            for node in ast.walk(tree):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    node.body = release(node.body, self.released, self.thorough)

    def _assumptions(self, candidate: CodeType) -> Tuple[str, ...]:
        """What the proof of ``candidate`` needs of the hints."""
        if not self.written_by_tool:
            return ()
        unhinted = compare(self.code, candidate, assumed=self.assumed, lowered=self._lowered)
        return () if unhinted.proved else self.hints.assumptions()

    def _compare(self, candidate: CodeType) -> Comparison:
        return compare(
            self.code,
            candidate,
            droppable=self.hints.droppable,
            stable_globals=self.hints.stable_globals,
            tuple_results=self.hints.tuple_results,
            check_docstring=not self.written_by_tool,
            assumed=self.assumed,
            lowered=self._lowered,
        )

    def _reserve_stack(self, code: Code, lowered: Dict[int, NormalCode]) -> None:
        """Raise ``RecursionError`` before the work begins, if what is made of some code object will be too deep."""
        try:
            if id(code) not in lowered:
                lowered[id(code)] = lower(code)
        except synchronous():  # refused where it is needed: in a module, one function may be missing
            return
        self._normal_forms[id(code)] = lowered[id(code)]
        reserve_stack(nesting(lowered[id(code)]))
        for constant in code.co_consts:
            if is_code(constant):
                self._reserve_stack(constant, lowered)

    # --- the tree ----------------------------------------------------------------------------------------------------

    def _body(self) -> List[ast.stmt]:
        imports = [] if self.is_module else needed_imports(self.code)
        return [*imports, *self._definition(bool(imported_flags(ast.Module(imports, [])) & ANNOTATIONS))]

    def _definition(self, postponed: bool) -> List[ast.stmt]:
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
        return self.is_module and mode_of(self._lowered(self.code)) is Mode.EVAL

    def _lambda(self, definer: Definer, function: Function) -> ast.stmt:
        """The lambda expression; a ``def`` where a tool has put statements into the code of one."""
        if self.form is not Form.DISPATCH:
            try:
                return ast.Expr(definer.lambda_(function))
            except Unstructured:
                pass
        return definer.definition(function, self.name)

    def _statements(self, code: Code) -> Tuple[NormalCode, List[ast.stmt]]:
        normal = outline(self._lowered(code))
        if code.co_flags & inspect.CO_OPTIMIZED or (code is self.code and self._is_expression()):
            return normal, self._lifted_statements(code, normal)
        failure = Unstructured("a class or module would have to be left from inside of its statements")
        for joined in (False, True):
            try:
                statements = self._lifted_statements(code, normal, joined)
            except Unstructured as error:
                failure = error
                continue
            if returns_inside(statements):
                statements = without_returns(statements)
            if not returns_inside(statements):
                return normal, statements
        raise failure

    def _lifted_statements(self, code: Code, normal: NormalCode, joined: bool = False) -> List[ast.stmt]:
        """``joined``: all ways out of a class or module lead to one place, as no ``return`` can be written there."""
        flow = build(normal)
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

    def _lowered(self, code: Code) -> NormalCode:
        """The normal form of ``code``, made once: each form that is tried needs it, and so does the verifier."""
        known = self._normal_forms.get(id(code))
        if known is None:
            known = self._normal_forms[id(code)] = lower(code)
        return known

    def _structured(self, lifted: LiftedGraph, flow: FlowGraph, hints: Hints) -> List[ast.stmt]:
        try:
            return structure(lifted, flow)
        except Unstructured:
            return dispatch(lift(flow, hints), flow)

    def _hints_for(self, code: Code) -> Hints:
        return self.hints if code is self.code else Hints()

    # --- the answer --------------------------------------------------------------------------------------------------

    def _answer(self, attempt: _Attempt, unproved: Optional[Mapping[int, str]] = None) -> Decompilation:
        source, comparison, candidate = attempt.source, attempt.comparison, attempt.candidate
        verdict, reason = comparison.finding.verdict, comparison.reason
        assert verdict is not None
        if attempt.placeholders:
            source = source.below(head_comment(attempt.placeholders))
            candidate = compile_like(source, self.code, self.filename)
            if verdict.proved:
                reason = "; ".join([f"{verdict.value} with what the text can't say", *map(str, attempt.placeholders)])
                verdict = Verdict.PLACEHOLDERS
        missing: Tuple[str, ...] = ()
        if self.missing is not None and (self.missing.known or unproved or self.holes):
            names, known, unproved = self.missing.names(), self.missing.known, unproved or {}
            left_out = [hole.lines for hole in self.holes]
            verdict, missing = Verdict.UNVERIFIED, (*(names[each] for each in known), *left_out)
            source = shown(source, self.holes)
            told = [f"{names[each]} is missing: {why}" for each, why in known.items()]
            told += [f"{hole.lines}: missing, {hole.reason}" for hole in self.holes]
            reason = "; ".join([*told, *(f"in {names[each]}: {why}" for each, why in unproved.items())])
        assumptions = self._assumptions(attempt.candidate) if verdict.code_proved else ()
        lines = line_map(candidate, comparison.pairs)
        return Decompilation(
            self.code, self.name, source.text, source.tree, verdict, reason, lines, source, missing,
            attempt.placeholders, assumptions,
        )  # fmt: skip


def _in_text(name: str) -> str:
    """The temporary that ``name`` is in the bytecode: inside of classes the compiler mangles what begins with "__"."""
    start = name.find("__temp_")
    return name[start:] if start > 0 and is_temporary(name[start:]) else name


def _local_names(normal: NormalCode) -> Set[str]:
    """The local variables that the bytecode uses (Dynamo leaves the user's names where it does not)."""
    code = normal.code
    return {
        instr.arg[1] for instr in normal.ops if instr.op in (Op.LOAD, Op.STORE, Op.DELETE) and instr.arg[0] == "fast"
    } | {*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount], *code.co_cellvars, *code.co_freevars}


@dataclass(frozen=True)
class _Attempt:
    """One form of the source, recompiled and compared. ``placeholders`` are what was put into the candidate."""

    source: SourceText
    candidate: CodeType
    comparison: Comparison
    placeholders: Tuple[Placeholder, ...] = ()
    numbers: Tuple[Optional[int], ...] = ()
