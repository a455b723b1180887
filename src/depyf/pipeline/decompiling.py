"""A code object in, verified source out.

``decompile_code`` tries the most readable form first. If a form can't be proved, the next one is used, for those code
objects only that need it; the last form is a dispatch loop, which every code object has.
"""

from __future__ import annotations

import os
import traceback
from dataclasses import replace
from typing import Dict, Optional, Tuple

from depyf.asynchronous import synchronous
from depyf.bytecode.code import Code, check_facts, version_of
from depyf.bytecode.opcode_table import running_version
from depyf.dynamo_code import hints_of, shown_by_columns
from depyf.errors import DecompilationError
from depyf.hints import Hints
from depyf.normal.ops import NormalCode
from depyf.pipeline.attempts import Attempt, Attempts
from depyf.pipeline.forms import forms
from depyf.pipeline.own_errors import check_is_refusal
from depyf.pipeline.salvage import Salvage, has_parts
from depyf.pipeline.settling import settled
from depyf.result import Decompilation, Verdict
from depyf.source.compiling.placeholders import head_comment
from depyf.source.compiling.to_code import compile_like
from depyf.source.deep_stack import with_deep_stack, without_collector
from depyf.source.definitions.function_objects import FunctionFacts
from depyf.source.definitions.holes import shown
from depyf.source.line_map import line_map
from depyf.structure.unstructured import Unstructured
from depyf.verify import Finding


def decompile_code(
    code: Code,
    *,
    name: Optional[str] = None,
    hints: Optional[Hints] = None,
    facts: Optional[FunctionFacts] = None,
    list_assumptions: bool = True,
) -> Decompilation:
    """Decompile one code object, and verify that the source means the same.

    ``name``: the name of the function in the source (default: the name of the code). ``hints``: facts about code that a
    tool wrote; Dynamo's code is recognised without any. ``facts``: defaults and annotations of a function with this
    code, which are written with it. ``list_assumptions=False``: leave ``Decompilation.assumptions`` empty where
    ``hints`` are given, since a second proof is needed to see whether the first one depends on them. ``depyf.verify``
    describes the proof.

    Raises ``DecompilationError`` when no source could be made, when all source is known to differ, and for code of a
    newer Python than the running one.
    """
    if version_of(code) > running_version():
        theirs, ours = (".".join(map(str, version)) for version in (version_of(code), running_version()))
        raise DecompilationError(
            f"{code.co_name}: compiled by CPython {theirs}, but this is {ours}, whose compiler can't check the "
            f"source: run depyf with CPython {theirs} or newer"
        )
    try:
        check_facts(code)
        recognised = hints_of(code) if hints is None else None
        if recognised is not None and not shown_by_columns(code):
            return _by_names_alone(code, name or code.co_name, recognised, facts)
        listed = list_assumptions or hints is None
        return _with_or_without(code, name or code.co_name, hints or recognised, facts, list_assumptions=listed)
    except DecompilationError:
        raise
    except synchronous(ValueError, NotImplementedError, Unstructured) as error:
        raise DecompilationError(f"{code.co_name}: {error}") from error
    except synchronous() as error:  # malformed bytecode, or a bug of depyf: callers handle one exception type
        check_is_refusal(error)
        raise DecompilationError(f"{code.co_name}: internal error, {type(error).__name__} {_place(error)}") from error


def _decompiled(
    code: Code, name: str, hints: Optional[Hints], facts: Optional[FunctionFacts], *, list_assumptions: bool = True
) -> Decompilation:
    lowered: Dict[int, NormalCode] = {}
    with without_collector():
        try:
            return with_deep_stack(
                lambda: _Decompiler(code, name, hints, facts, list_assumptions=list_assumptions).run(lowered)
            )
        finally:
            lowered.clear()  # before the collector looks at each of the operations


def _with_or_without(
    code: Code, name: str, hints: Optional[Hints], facts: Optional[FunctionFacts], *, list_assumptions: bool
) -> Decompilation:
    """Decompile with the hints; without them, if only that is proved, since their names may be in the way."""
    try:
        hinted = _decompiled(code, name, hints, facts, list_assumptions=list_assumptions)
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
    """Decompile code that only its names attribute to Dynamo: the hints may be used to write it, but not in a proof."""
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
    """Return where ``error`` was raised, with its text."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"in {os.path.basename(last.filename)}:{last.lineno}: {error}"


class _Decompiler:
    """Returns the most readable attempt that is proved; else the parts of a module or class that are, else the best
    one."""

    def __init__(
        self, code: Code, name: str, hints: Optional[Hints], facts: Optional[FunctionFacts], *, list_assumptions: bool
    ) -> None:
        self._code = code
        self._list_assumptions = list_assumptions
        self._attempts = Attempts(code, name, hints, facts)

    def run(self, lowered: Dict[int, NormalCode]) -> Decompilation:
        """Return the result. ``lowered`` keeps the normal forms when this is retried with a deeper stack."""
        attempts = self._attempts
        attempts.reserve_stack(self._code, lowered)
        best: Optional[Attempt] = None
        failure: Optional[Exception] = None
        for attempts.form in forms():
            try:
                attempt = settled(attempts)
            except RecursionError:
                raise  # the whole is retried with a deeper stack
            except synchronous() as error:  # the next form may succeed
                check_is_refusal(error)
                failure = failure or error
                continue
            if attempt.comparison.proved:
                return self._answer(attempt)
            attempts.culprits |= {part.original_id for part in attempt.comparison.culprits()}
            if best is None or best.comparison.finding is Finding.DIFFERENT:
                best = attempt
        if best is None or best.comparison.finding is Finding.DIFFERENT:
            salvage = Salvage(attempts)
            partial = salvage.without_what_fails() if has_parts(self._code) else None
            if partial is not None:
                return self._answer(partial, salvage)
        if best is None:
            assert failure is not None
            raise failure
        if best.comparison.finding is Finding.DIFFERENT:
            raise DecompilationError(
                f"{self._code.co_name}: the generated source differs from the original: {best.comparison.reason}"
            )
        return self._answer(best)

    def _answer(self, attempt: Attempt, salvage: Optional[Salvage] = None) -> Decompilation:
        source, comparison, candidate = attempt.source, attempt.comparison, attempt.candidate
        verdict, reason = Verdict(comparison.finding.value), comparison.reason  # what differs is never shown
        if attempt.placeholders:
            source = source.below(head_comment(attempt.placeholders))
            candidate = compile_like(source, self._code, self._attempts.filename)
            if verdict.proved:
                reason = "; ".join([f"{verdict.value} with what the text can't say", *map(str, attempt.placeholders)])
                verdict = Verdict.PLACEHOLDERS
        missing: Tuple[str, ...] = ()
        stubs = self._attempts.missing
        if salvage is not None and stubs is not None and (stubs.known or salvage.unproved or salvage.holes):
            names, known, holes = stubs.names(), stubs.known, salvage.holes
            left_out = [hole.lines for hole in holes]
            verdict, missing = Verdict.UNVERIFIED, (*(names[each] for each in known), *left_out)
            source = shown(source, holes)
            reasons = [f"{names[each]} is missing: {why}" for each, why in known.items()]
            reasons += [f"{hole.lines}: missing, {hole.reason}" for hole in holes]
            reason = "; ".join([*reasons, *(f"in {names[each]}: {why}" for each, why in salvage.unproved.items())])
        listed = self._list_assumptions and verdict.code_proved
        assumptions = self._attempts.assumptions(attempt) if listed else ()
        lines = line_map(candidate, comparison.pairs)
        return Decompilation(
            self._code, self._attempts.name, source.text, verdict, reason, lines, source, missing, attempt.placeholders,
            assumptions,
        )  # fmt: skip
