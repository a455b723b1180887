"""Omit the functions, classes and statements of a module or class that can't be decompiled."""

from __future__ import annotations

import inspect
from typing import Dict, List, Optional, Sequence

from depyf.base.asynchronous import synchronous
from depyf.decompiler.bytecode.code import Code, is_code
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.spine import Segment, with_one_end
from depyf.decompiler.pipeline.attempts import Attempt, Attempts
from depyf.decompiler.pipeline.forms import Form
from depyf.decompiler.pipeline.own_errors import check_is_refusal
from depyf.decompiler.pipeline.settling import settled
from depyf.decompiler.source.definitions.holes import Candidates, Hole, failing, finest, without
from depyf.decompiler.source.definitions.missing import Missing
from depyf.decompiler.verify import Finding

_ROUNDS = 20
"""The limit on attempts for the whole; each one finds at least one function that fails."""


def has_parts(code: Code) -> bool:
    """Return whether ``code`` has parts that can be omitted."""
    return not code.co_flags & inspect.CO_OPTIMIZED or any(map(is_code, code.co_consts))


class Salvage:
    """Finds the largest part that can be decompiled. ``holes``: the omitted statements. ``unproved``: the reasons by
    the ids of functions that remain without a proof."""

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        self.holes: List[Hole] = []
        self.unproved: Dict[int, str] = {}

    def without_what_fails(self) -> Optional[Attempt]:
        """Return the source without the functions and classes in it that can't be decompiled; ``None`` if more fails. A
        function that fails is first written as dispatch loop, and then omitted; one that is only not proved stays."""
        attempts = self._attempts
        attempts.form = Form.DISPATCH
        missing = attempts.missing = Missing(attempts.code)
        for _ in range(_ROUNDS):
            # Each round finds a function, class or statement that fails, writes it as a dispatch loop or omits it, and
            # repeats.
            missing.found.clear()
            try:
                attempt = settled(attempts)
            except RecursionError:
                raise
            except synchronous() as error:  # no single function fails: the caller raises its first error
                check_is_refusal(error)
                if self._leaves_out_statements(attempts.code):
                    continue
                return None
            if attempt.comparison.proved and not missing.found:
                return attempt
            # The code itself differs, not one of its functions: try to omit some of its statements.
            if attempt.comparison in attempt.comparison.culprits():
                if attempts.shows_differences and not missing.found:
                    return self._with_differences(attempt)
                if self._leaves_out_statements(attempts.code):
                    continue
            short = dict(missing.found)
            failed = [*short, *(part.original_id for part in attempt.comparison.culprits())]
            # A class that fails may be kept without the statements that fail in it.
            classes = [missing.stubs[each] for each in failed if each in missing.stubs]
            if [each for each in classes if self._leaves_out_statements(each)]:
                continue
            # It failed as a dispatch loop, too: it will be a stub from now on.
            for name in attempts.culprits & set(short):
                missing.known[name] = short[name]
            for part in attempt.comparison.culprits():
                short.setdefault(part.original_id, part.reason)
                # Only functions and classes can have stubs; without one, the code around it fails as well.
                if not missing.may_be(part.original_id):
                    return self._with_differences(attempt) if attempts.shows_differences else None
                known = part.finding is Finding.DIFFERENT and not attempts.shows_differences
                if part.original_id in attempts.culprits and known:
                    missing.known.setdefault(part.original_id, part.reason)
                elif part.original_id in attempts.culprits:
                    self.unproved[part.original_id] = part.reason
            attempts.culprits |= set(short)
            attempts.assumed = {*missing.known, *self.unproved}
        return None

    def _with_differences(self, attempt: Attempt) -> Attempt:
        """Return ``attempt``, and record what of it is not proved."""
        self.unproved.update((part.original_id, part.reason) for part in attempt.comparison.culprits())
        return attempt

    def _leaves_out_statements(self, code: Code) -> bool:
        """Return whether statements of the class or module ``code`` can be omitted so that its rest is proved. Computed
        once for each; all functions and classes in it are stubs meanwhile."""
        attempts = self._attempts
        if id(code) in attempts.holed or code.co_flags & inspect.CO_OPTIMIZED:
            return False
        attempts.holed.add(id(code))
        try:
            # Split the top level into segments between which the stack is empty: candidates for omission.
            normal = with_one_end(lower(code))
            candidates = Candidates(normal)
            parts = candidates.at_top()
        except synchronous(ValueError):
            return False
        # Judge the statements alone: with stubs for all functions and classes, whose faults are not theirs.
        alone = Attempts(code, code.co_name, None, None, attempts.compiler)
        alone.holed.add(id(code))
        alone.shows_differences = attempts.shows_differences
        alone.form, alone.missing = Form.READABLE, Missing(code, stubs_only=True)
        alone.assumed = alone.missing.stubs.keys()
        first = len(self.holes)

        def objection(left_out: Sequence[Segment]) -> str:
            holes = candidates.holes(dict.fromkeys(left_out, ""), first)
            alone.normal_forms[id(code)] = without(normal, holes)
            return _objection(alone)

        def others(visible: Sequence[Segment]) -> List[Segment]:
            return [part for part in parts if part not in visible]

        # Bisect the segments for those that fail, then search inside of each for the smallest part that fails.
        bad: Dict[Segment, str] = {}
        for part, why in failing(parts, lambda visible: objection(others(visible))).items():
            bad.update(finest(part, why, others([part]), candidates.within, objection))
        # Nothing fails alone, everything fails, or the rest still fails: omitting statements does not help.
        if not bad or bad.keys() >= set(parts) or objection(list(bad)):
            return False
        holes = candidates.holes(bad, first)
        self.holes.extend({hole.number: hole for hole in holes}.values())
        attempts.normal_forms[id(code)] = without(normal, holes)
        return True


def _objection(attempts: Attempts) -> str:
    """Return why the attempt is not proved; "" if it is."""
    try:
        attempt = settled(attempts)
    except RecursionError:
        raise
    except synchronous() as error:  # any error is caused by a statement
        check_is_refusal(error)
        return str(error) or type(error).__name__
    return "" if attempt.comparison.proved or attempts.shows_differences else attempt.comparison.reason
