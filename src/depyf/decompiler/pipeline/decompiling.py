"""A code object in, verified source out.

``decompile_code`` tries the most readable form first. If a form can't be proved, the next one is used, for those code
objects only that need it; the last form is a dispatch loop, which every code object has.
"""

from __future__ import annotations

import os
import traceback
from dataclasses import replace
from typing import Dict, List, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.base.without_collector import without_collector
from depyf.decompiler.bytecode.code import Code, check_facts, is_code, is_of_another_version
from depyf.decompiler.dynamo_code import hints_of, shown_by_columns
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.hints import Hints
from depyf.decompiler.normal.ops import NormalCode
from depyf.decompiler.pipeline.attempts import Attempt, Attempts
from depyf.decompiler.pipeline.compilers import Compiler, with_compilers
from depyf.decompiler.pipeline.forms import forms
from depyf.decompiler.pipeline.own_errors import check_is_refusal
from depyf.decompiler.pipeline.remarks import with_remarks
from depyf.decompiler.pipeline.renamed_code import RenamedCode, may_not_fit, with_fitting_names
from depyf.decompiler.pipeline.salvage import Salvage, has_parts
from depyf.decompiler.pipeline.settling import settled
from depyf.decompiler.result import Decompilation, Verdict
from depyf.decompiler.source.compiling.placeholders import head_comment
from depyf.decompiler.source.compiling.to_code import compile_like
from depyf.decompiler.source.deep_stack import with_deep_stack
from depyf.decompiler.source.definitions.function_objects import FunctionFacts
from depyf.decompiler.source.definitions.holes import shown
from depyf.decompiler.source.line_map import line_map
from depyf.decompiler.structure.unstructured import Unstructured
from depyf.decompiler.verify import Finding, compare


def decompile_code(
    code: Code,
    *,
    name: Optional[str] = None,
    hints: Optional[Hints] = None,
    facts: Optional[FunctionFacts] = None,
    list_assumptions: bool = True,
    unsafe: bool = False,
    python: Optional[str] = None,
) -> Decompilation:
    """Decompile one code object, and verify that the source means the same.

    ``name``: the name of the function in the source (default: the name of the code). ``hints``: facts about code that a
    tool wrote; Dynamo's code is recognised without any. ``facts``: defaults and annotations of a function with this
    code, which are written with it. ``list_assumptions=False``: leave ``Decompilation.assumptions`` empty where
    ``hints`` are given, since a second proof is needed to see whether the first one depends on them. ``verify/``
    describes the proof. ``unsafe``: return source that is known to differ, too, as unverified and with the difference
    beside it, which is always done for code of another Python: there the compiler, not the source, may make it.
    ``python``: the path of the interpreter that compiles the text, or ``none``; default: ``python3.X`` on PATH.

    Raises ``DecompilationError`` when no source could be made, when all source is known to differ, and when ``python``
    is not the Python of the code. Raises ``TypeError`` for what is no code object: ``depyf.decompile`` takes functions,
    too.
    """
    if not is_code(code):
        kind = type(code).__name__
        raise TypeError(f"decompile_code takes a code object, not {kind}; depyf.decompile takes functions")

    def decompiled(compiler: Compiler) -> Decompilation:
        job = _Job(code, name or code.co_name, facts, compiler)
        if unsafe:
            return job.decompiled(hints or hints_of(code), unsafe=True)
        recognised = hints_of(code) if hints is None else None
        if hints is None and recognised is None:
            return job.with_fitting_names()
        if recognised is not None and not shown_by_columns(code):
            return job.by_names_alone(recognised)
        return job.with_or_without(hints or recognised, list_assumptions=list_assumptions or hints is None)

    try:
        check_facts(code)
        return with_compilers(code, python, decompiled)
    except DecompilationError:
        raise
    except synchronous(ValueError, NotImplementedError, Unstructured) as error:
        raise DecompilationError(f"{code.co_name}: {error}") from error
    except synchronous() as error:  # malformed bytecode, or a bug of depyf: callers handle one exception type
        check_is_refusal(error)
        raise DecompilationError(f"{code.co_name}: internal error, {type(error).__name__} {_place(error)}") from error


@dataclass(frozen=True)
class _Job:
    """A code object to decompile, and who compiles its text."""

    code: Code
    name: str
    facts: Optional[FunctionFacts]
    compiler: Compiler

    def decompiled(
        self, hints: Optional[Hints], *, list_assumptions: bool = True, unsafe: bool = False
    ) -> Decompilation:
        """Decompile with these hints."""

        def made() -> _Decompiler:
            return _Decompiler(self, hints, list_assumptions=list_assumptions, unsafe=unsafe)

        lowered: Dict[int, NormalCode] = {}
        with without_collector():
            try:
                return with_deep_stack(lambda: made().run(lowered))
            finally:
                lowered.clear()  # before the collector looks at each of the operations

    def with_or_without(self, hints: Optional[Hints], *, list_assumptions: bool) -> Decompilation:
        """Decompile with the hints; without them, if only that is proved, since their names may be in the way."""
        try:
            hinted = self.decompiled(hints, list_assumptions=list_assumptions)
            if hinted.verdict.code_proved or hints is None:
                return hinted
            failure: Optional[BaseException] = None
        except synchronous(*_FAILURES) as error:
            if hints is None:
                raise
            failure = error
        try:
            unhinted = self.decompiled(None)
            if unhinted.verdict.code_proved:
                return unhinted
        except synchronous(*_FAILURES):
            pass
        if failure is not None:
            raise failure
        return hinted

    def with_fitting_names(self) -> Decompilation:
        """Decompile with the original names, or with others where only these are proved. Names that do not fit at first
        sight are tried last: without a text for them, each form would be tried."""

        def original() -> Decompilation:
            return self.with_or_without(None, list_assumptions=True)

        def fitting() -> Optional[Decompilation]:
            renamed = with_fitting_names(self.code)
            return None if renamed is None else self._renamed(renamed)

        answers: List[Decompilation] = []
        failure: Optional[BaseException] = None
        for attempt in (fitting, original) if may_not_fit(self.code) else (original, fitting):
            try:
                answer = attempt()
            except synchronous(*_FAILURES) as error:
                failure = failure or error
                continue
            if answer is not None and (answer.verdict.code_proved or self.compiler.absent):
                return answer
            answers += [] if answer is None else [answer]
        if not answers:
            assert failure is not None
            raise failure
        return min(answers, key=lambda answer: len(answer.missing))

    def _renamed(self, renamed: RenamedCode) -> Decompilation:
        """Decompile the code with names that fit, and compare it with the original after these were put back."""
        answer = replace(self, code=renamed.code).with_or_without(None, list_assumptions=True)
        placeholders = (*answer.placeholders, *renamed.placeholders)
        text = answer.text.below(head_comment(renamed.placeholders))
        verdict, reason, lines = Verdict.UNVERIFIED, answer.reason, answer.line_map
        if answer.verdict.code_proved:
            again = compile_like(text, renamed.code, f"<decompiled {self.name}>", self.compiler.interpreter)
            comparison = compare(self.code, renamed.undone(again))
            lines = line_map(again, comparison.pairs)
            reason = f"with the names of the text: {comparison.reason}"
            if comparison.proved:
                verdict = Verdict.PLACEHOLDERS
                how = comparison.finding.value
                reason = "; ".join([f"{how} with what the text can't say", *map(str, placeholders)])
        return replace(
            answer, code=self.code, source=text.text, text=text, verdict=verdict, reason=reason, line_map=lines,
            placeholders=placeholders, renamed=renamed,
        )  # fmt: skip

    def by_names_alone(self, hints: Hints) -> Decompilation:
        """Decompile code that only its names attribute to Dynamo: the hints may be used to write it, but not in a
        proof."""
        hinted, failure = None, None
        for each in (hints, None):
            try:
                found = self.decompiled(each)
            except synchronous(*_FAILURES) as error:
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


_FAILURES = (DecompilationError, ValueError, NotImplementedError, Unstructured)


def _place(error: BaseException) -> str:
    """Return where ``error`` was raised, with its text."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"in {os.path.basename(last.filename)}:{last.lineno}: {error}"


class _Decompiler:
    """Returns the most readable attempt that is proved; else the parts of a module or class that are, else the best
    one."""

    def __init__(
        self,
        job: _Job,
        hints: Optional[Hints],
        *,
        list_assumptions: bool,
        unsafe: bool,
    ) -> None:
        self._code = job.code
        self._list_assumptions = list_assumptions
        self._attempts = Attempts(job.code, job.name, hints, job.facts, job.compiler)
        self._attempts.shows_differences = self._shows = unsafe or is_of_another_version(job.code)

    def run(self, lowered: Dict[int, NormalCode]) -> Decompilation:
        """Return the result. ``lowered`` keeps the normal forms when this is retried with a deeper stack."""
        attempts = self._attempts
        # Trees are walked recursively. Fail now if one is too deep, not after the work: the caller retries in a thread
        # with a larger stack.
        attempts.reserve_stack(self._code, lowered)
        best: Optional[Attempt] = None
        failure: Optional[Exception] = None
        # 1. From the most readable form to the dispatch loop. The code objects that one form could not prove
        # (``culprits``) get the next form; the others stay as readable as they are.
        for attempts.form in forms():
            try:
                attempt = settled(attempts)
            except RecursionError:
                raise  # the whole is retried with a deeper stack
            except synchronous() as error:  # the next form may succeed
                check_is_refusal(error)
                failure = failure or error
                continue
            if attempt.comparison.proved or attempts.compiler.absent:
                return self._answer(attempt)
            # Keep the first attempt that is not known to differ: if nothing is proved, the most readable one is
            # returned.
            attempts.culprits |= {part.original_id for part in attempt.comparison.culprits()}
            # Where what differs is shown, the most readable one that does stays.
            better = not self._shows or attempt.comparison.finding is not Finding.DIFFERENT
            if best is None or (best.comparison.finding is Finding.DIFFERENT and better):
                best = attempt
        if best is None or (best.comparison.finding is Finding.DIFFERENT and not self._shows):
            # 2. No form is possible, or every one differs: omit the parts of a module or class that fail.
            salvage = Salvage(attempts)
            partial = salvage.without_what_fails() if has_parts(self._code) else None
            if partial is not None:
                return self._answer(partial, salvage)
        if best is None:
            assert failure is not None
            raise failure
        if best.comparison.finding is Finding.DIFFERENT and not self._shows:
            raise DecompilationError(
                f"{self._code.co_name}: the generated source differs from the original: {best.comparison.reason}"
            )
        return self._answer(best)

    def _answer(self, attempt: Attempt, salvage: Optional[Salvage] = None) -> Decompilation:
        source, comparison, candidate = attempt.source, attempt.comparison, attempt.candidate
        verdict, reason = _VERDICTS[comparison.finding], comparison.reason
        # The text can't contain some constants or names, and has placeholders for them: the code that was compared has
        # the real ones, so the text alone is not proved.
        if attempt.placeholders:
            source = source.below(head_comment(attempt.placeholders))
            compiler = self._attempts.compiler
            if not compiler.absent:
                candidate = compile_like(source, self._code, self._attempts.filename, compiler.interpreter)
            if verdict.proved:
                reason = "; ".join([f"{verdict.value} with what the text can't say", *map(str, attempt.placeholders)])
                verdict = Verdict.PLACEHOLDERS
        # Omitted functions, classes and statements: name each with the reason.
        missing: Tuple[str, ...] = ()
        stubs = self._attempts.missing
        names = stubs.names() if stubs is not None else {}
        if salvage is not None and stubs is not None and (stubs.known or salvage.unproved or salvage.holes):
            known, holes = stubs.known, salvage.holes
            left_out = [hole.lines for hole in holes]
            verdict, missing = Verdict.UNVERIFIED, (*(names[each] for each in known), *left_out)
            source = shown(source, holes)
            reasons = [f"{names[each]} is missing: {why}" for each, why in known.items()]
            reasons += [f"{hole.lines}: missing, {hole.reason}" for hole in holes]
            reason = "; ".join(
                [
                    *reasons,
                    *(f"in {names.get(each, self._code.co_name)}: {why}" for each, why in salvage.unproved.items()),
                ]
            )
        if self._shows and verdict is Verdict.UNVERIFIED:
            unproved = {part.original_name: part.reason for part in comparison.culprits()}
            unproved.update(
                {names.get(each, self._code.co_name): why for each, why in salvage.unproved.items()}
                if salvage is not None
                else {}
            )
            source = with_remarks(source, comparison.original_name, unproved)
        listed = self._list_assumptions and verdict.code_proved
        assumptions = self._attempts.assumptions(attempt) if listed else ()
        lines = line_map(candidate, comparison.pairs)
        return Decompilation(
            self._code, self._attempts.name, source.text, verdict, reason, lines, source, missing, attempt.placeholders,
            assumptions, tuple(sorted(frozenset().union(*(part.changes for part in comparison.walk())))),
        )  # fmt: skip


_VERDICTS = {
    Finding.EXACT: Verdict.EXACT,
    Finding.EQUIVALENT: Verdict.EQUIVALENT,
    Finding.UNVERIFIED: Verdict.UNVERIFIED,
    Finding.DIFFERENT: Verdict.UNVERIFIED,
}
"""The verdict for a finding. Text that is known to differ is shown only where the caller wants it."""
