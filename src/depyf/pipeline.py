"""The pipeline: a code object in, verified source out.

``decompile_code`` tries the most readable form first. A form that can't be proved gives way to a plainer one, for
those code objects alone that need it; the last form is a dispatch loop, which every code object has.
"""

from __future__ import annotations

import ast
import contextlib
import enum
import gc
import inspect
import os
import traceback
from dataclasses import dataclass
from types import CodeType
from typing import Dict, Iterator, List, Mapping, Optional, Set, Tuple

from depyf.bytecode.code import Code, check_facts, is_code, version_of
from depyf.bytecode.opcode_table import running_version
from depyf.flow.comprehensions import outline
from depyf.flow.copies import undo_copies
from depyf.flow.graph import FlowGraph, build
from depyf.lift.items import COMPREHENSIONS, Function
from depyf.lift.lifter import lift
from depyf.lift.nodes import LiftedGraph
from depyf.normal.inlined import InlinedCode
from depyf.normal.lowering import lower
from depyf.normal.ops import NormalCode, Op
from depyf.result import Decompilation, DecompilationError, Hints, Verdict
from depyf.source.compiling import compile_like
from depyf.source.deep_stack import with_deep_stack
from depyf.source.definitions import Definer
from depyf.source.function_objects import FunctionFacts
from depyf.source.line_map import line_map
from depyf.source.missing import Missing
from depyf.source.passes import simplify
from depyf.source.passes.counting import is_temporary
from depyf.source.passes.naming import name_temporaries
from depyf.source.passes.plumbing import drop_plumbing
from depyf.source.passes.release import release
from depyf.source.restoring import needs_postponing
from depyf.source.source_text import SourceText
from depyf.source.text import to_source
from depyf.structure.dispatch import dispatch
from depyf.structure.structurer import Unstructured, structure
from depyf.verify import Comparison, Finding, compare

_ROUNDS = 20
"""How often the whole is written again when functions in it fall short; each round finds one of them at least."""


class Form(enum.Enum):
    """How the statements are written, most readable first."""

    READABLE = "readable"
    PLAIN = "plain"
    """Without the readability passes."""
    DISPATCH = "dispatch"
    """All jumps through a state variable, where no statement stands for them."""


def decompile_code(
    code: Code, *, name: Optional[str] = None, hints: Optional[Hints] = None, facts: Optional[FunctionFacts] = None
) -> Decompilation:
    """Decompile and verify one code object; ``name`` is what the function is called in the source.

    ``hints`` are for code that a tool wrote (``dynamo`` has them for Dynamo's); ``facts`` are defaults and annotations
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
        with _without_collector():
            return with_deep_stack(lambda: _Decompiler(code, name or code.co_name, hints, facts).run())
    except DecompilationError:
        raise
    except (ValueError, NotImplementedError, Unstructured) as error:
        raise DecompilationError(f"{code.co_name}: {error}") from error
    except Exception as error:  # malformed bytecode, or a bug of ours: callers know one kind of failure
        raise DecompilationError(f"{code.co_name}: internal error, {type(error).__name__} {_place(error)}") from error


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    """Pauses the cyclic garbage collector: hundreds of thousands of small objects that are all alive make its passes
    cost more than the work, and more with every instruction."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _place(error: BaseException) -> str:
    """Where ``error`` was raised, with its text."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"in {os.path.basename(last.filename)}:{last.lineno}: {error}"


class _Decompiler:
    def __init__(self, code: Code, name: str, hints: Optional[Hints], facts: Optional[FunctionFacts]) -> None:
        self.code, self.name, self.facts = code, name, facts or FunctionFacts()
        self.written_by_tool, self.hints = hints is not None, hints or Hints()
        self.culprits: Set[int] = set()  # the ids of what no other form could prove
        self._normal_forms: Dict[int, NormalCode] = {}  # by the id of a code object, which they hold
        self.missing: Optional[Missing] = None
        self.assumed: Set[int] = set()  # the ids of functions that are not proved, and count as if they were

    def run(self) -> Decompilation:
        best: Optional[_Attempt] = None
        failure: Optional[Exception] = None
        for self.form in Form:
            try:
                attempt = self._settled()
            except RecursionError:
                raise  # the whole of it once more, with a deeper stack
            except Exception as error:  # whatever went wrong with this form, the next one may do
                failure = failure or error
                continue
            if attempt.comparison.proved:
                return self._answer(attempt)
            self.culprits |= {part.original_id for part in _culprits(attempt.comparison)}
            if best is None or best.comparison.finding is Finding.DIFFERENT:
                best = attempt
        if best is None or best.comparison.finding is Finding.DIFFERENT:
            partial = self._without_what_fails() if any(map(is_code, self.code.co_consts)) else None
            if partial is not None:
                return partial
        if best is None:
            assert failure is not None
            raise failure
        if best.comparison.finding is Finding.DIFFERENT:
            raise DecompilationError(f"{self.code.co_name}: the source that was made differs: {best.comparison.reason}")
        return self._answer(best)

    def _without_what_fails(self) -> Optional[Decompilation]:
        """The source without those functions in this module or class that can't be had; ``None`` if more fails.

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
            except Exception:  # it is not one of the functions that fails: the caller raises what it was told first
                return None
            if attempt.comparison.proved and not self.missing.found:
                return self._answer(attempt, unproved)
            short = dict(self.missing.found)
            for name in self.culprits & set(short):
                self.missing.known[name] = short[name]
            for part in _culprits(attempt.comparison):
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

    def _settled(self) -> _Attempt:
        """An attempt in which no temporary keeps a value alive for too long, if ``del`` can do that.

        Otherwise the one in which some do: nothing else is known against it. ``del`` in the wrong place is worse.
        """
        self.released: Set[str] = set()
        first = attempt = self._attempt()
        while not attempt.comparison.proved:
            overdue = {_in_text(name) for part in attempt.comparison.walk() for name, _ in part.overdue} - self.released
            if not overdue:
                return first
            self.released |= overdue
            attempt = self._attempt()
        return attempt

    def _attempt(self) -> _Attempt:
        tree = ast.fix_missing_locations(ast.Module(self._body(), []))
        if self.form is not Form.PLAIN:
            tree = simplify(tree)
        self._finish(tree)
        source = to_source(ast.fix_missing_locations(tree))
        candidate = compile_like(source, self.code, f"<decompiled {self.name}>")
        return _Attempt(source, candidate, self._compare(candidate))

    def _finish(self, tree: ast.Module) -> None:
        """Name what is left of temporaries, delete them where they would live too long."""
        if self.written_by_tool and isinstance(tree.body[0], ast.FunctionDef):
            function = tree.body[0]
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
                    node.body = release(node.body, self.released)

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

    # --- the tree ----------------------------------------------------------------------------------------------------

    def _body(self) -> List[ast.stmt]:
        definer = Definer(self._statements, postponed=needs_postponing(self.code), missing=self.missing)
        code, function = self.code, Function(self.code)
        function.defaults, function.kw_defaults = list(self.facts.defaults), dict(self.facts.kw_defaults)
        function.annotations = dict(self.facts.annotations)
        if code.co_name == "<module>" and not code.co_flags & inspect.CO_OPTIMIZED:
            return definer.function_body(code)
        if code.co_name == "<lambda>":
            return [ast.Expr(definer.lambda_(function))]
        if code.co_name in COMPREHENSIONS and code.co_argcount == 1:  # its first iterable is an argument: ".0"
            return [ast.Expr(definer.comprehension(code, ast.Name(code.co_varnames[0], ast.Load())))]
        if not code.co_flags & inspect.CO_OPTIMIZED:
            function.class_arguments = ([], [])
        return [definer.definition(function, self.name)]

    def _statements(self, code: Code) -> Tuple[NormalCode, List[ast.stmt]]:
        normal = outline(self._lowered(code))
        flow = build(normal)
        undo_copies(flow)
        hints = self._hints_for(code)
        lifted = lift(flow, hints)
        culprit = id(code) in self.culprits or not (self.culprits or self.missing)
        if self.form is Form.DISPATCH and culprit and not isinstance(code, InlinedCode):
            statements = dispatch(lifted, flow)
        else:
            statements = self._structured(lifted, flow, hints)
        return normal, drop_plumbing(statements, hints.droppable, lifted.temporaries)

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
        source, comparison = attempt.source, attempt.comparison
        verdict, reason = comparison.finding.verdict, comparison.reason
        assert verdict is not None
        missing: Tuple[str, ...] = ()
        if self.missing is not None and (self.missing.known or unproved):
            names, known, unproved = self.missing.names(), self.missing.known, unproved or {}
            verdict, missing = Verdict.UNVERIFIED, tuple(names[each] for each in known)
            told = [f"{names[each]} is missing: {why}" for each, why in known.items()]
            reason = "; ".join([*told, *(f"in {names[each]}: {why}" for each, why in unproved.items())])
        lines = line_map(attempt.candidate, comparison.pairs)
        return Decompilation(self.code, self.name, source.text, source.tree, verdict, reason, lines, source, missing)


def _culprits(comparison: Comparison) -> Iterator[Comparison]:
    """The innermost code objects that are not proved: those around them fail because of them."""
    for part in comparison.walk():
        if not part.proved and all(child.proved for child in part.children):
            yield part


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
    """One form of the source, recompiled and compared."""

    source: SourceText
    candidate: CodeType
    comparison: Comparison
