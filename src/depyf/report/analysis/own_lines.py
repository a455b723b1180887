"""Show what happened in a compiled module of a library (``Sequential``) at the user's line that calls it."""

from __future__ import annotations

from typing import Dict, Optional, Sequence, Tuple, Union

from depyf.base.quick_dataclass import replace
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import (
    CudaGraphRerecord,
    CudaGraphSkip,
    FailedEntryGuard,
    Fallback,
    Function,
    GraphBreak,
    Place,
    Recompile,
    Run,
)
from depyf.torch_trace.user_code import innermost


def at_own_lines(run: Run, sources: Sources) -> Run:
    """Return the run with its fallbacks, graph breaks, failed guards and recompilations at the user's own lines, as far
    as these are known. Where neither a line of theirs nor the function that is compiled is the user's, the calls that
    led to the compilation are: they stand before their stacks then."""
    return _AtOwnLines(run, sources).all()


class _AtOwnLines:
    def __init__(self, run: Run, sources: Sources) -> None:
        self._run = run
        self._sources = sources
        self._callers: Dict[str, Tuple[Place, ...]] = {}
        """By compile id, and by frame for those that PyTorch gave up at a limit: it reports no calls of these."""
        self._starts: Dict[Optional[str], Place] = {}
        """The first lines of the functions that are compiled, by compile id."""
        self._functions: Dict[str, Function] = {}
        for each in run.compilations:
            if each.function is not None:
                one = self._functions[each.compile_id] = run.functions[each.function]
                self._starts[each.compile_id] = one.source, one.first_line
            if each.callers:
                self._callers[each.compile_id] = self._callers[_frame_of(each.compile_id)] = each.callers

    def all(self) -> Run:
        run = self._run
        skips = (replace(each, place=self._user_line(each)) for each in run.cudagraph_skips)
        again = (replace(each, place=self._user_line(each)) for each in run.cudagraph_rerecords)
        return replace(
            run,
            breaks=tuple(map(self._break, run.breaks)),
            recompiles=tuple(map(self._recompile, run.recompiles)),
            fallbacks=tuple(map(self._fallback, run.fallbacks)),
            cudagraph_skips=tuple(skips),
            cudagraph_rerecords=tuple(again),
        )

    def _user_line(self, each: Union[CudaGraphSkip, CudaGraphRerecord]) -> Optional[Place]:
        return each.place and self._innermost(each.compile_id, each.place)

    def _fallback(self, each: Fallback) -> Fallback:
        called = self._led_to(each.compile_id, (*each.stack, each.place))
        return replace(each, place=called[-1], stack=(*called, *each.stack)) if called else each

    def _break(self, each: GraphBreak) -> GraphBreak:
        stack = self._with_function(each.compile_id, self._with_callers(each.compile_id, each.stack))
        called = self._led_to(each.compile_id, (*stack, each.place))
        stack = (*called, *stack)
        # Dynamo traces its own Python code for some functions of C (``functools.reduce``, ``obj.__init__``), and names
        # a line of that code. It is in no file of the program: the call that leads there is the place.
        return replace(each, place=each.place or (stack[-1] if stack else None), stack=stack)

    def _with_callers(self, compile_id: Optional[str], stack: Tuple[Place, ...]) -> Tuple[Place, ...]:
        """Return the stack with all calls that led to the compilation.

        From PyTorch 2.9 on a stack begins with them. Callers in transformed code are missing, because their lines are
        those of a file of the dump.
        """
        callers = self._callers.get(compile_id or "", ())
        first = next((place for place in stack if not self._sources.in_library(place)), None)
        if not callers or first != callers[0] or all(place in stack for place in callers):
            return stack
        # The stack from the compiled function on follows the last caller.
        known, inside = 0, 0
        for number, place in enumerate(stack):
            if place in callers[known:]:
                known, inside = callers.index(place, known) + 1, number + 1
            elif not self._sources.in_library(place):
                break
        return (*callers, *stack[inside:])

    def _with_function(self, compile_id: Optional[str], stack: Tuple[Place, ...]) -> Tuple[Place, ...]:
        """Return the stack with the first line of the compiled function, if it is the user's and has no line there.

        PyTorch leaves out a function with the name of the function that Dynamo traces for it: of ``def reduce(x):
        return functools.reduce(f, x)`` only the callers and Dynamo's own ``reduce`` are in the stack.
        """
        function = self._functions.get(compile_id or "")
        callers = self._callers.get(compile_id or "", ())
        if function is None or self._sources.is_library(function.source) or (stack and stack[-1:] != callers[-1:]):
            return stack
        if any(
            source == function.source and function.first_line <= line <= function.last_line for source, line in stack
        ):
            return stack
        return (*stack, (function.source, function.first_line))

    def _recompile(self, each: Recompile) -> Recompile:
        # The recompilation is at the line of its first guard.
        failed = tuple(self._failed(each.compile_id, guard) for guard in each.failed)
        place = self._innermost(each.compile_id, *failed[0].stack, failed[0].place)
        return replace(each, failed=failed, place=place)

    def _failed(self, compile_id: str, guard: FailedEntryGuard) -> FailedEntryGuard:
        called = self._led_to(compile_id, (*guard.stack, guard.place)) if guard.place else ()
        return replace(guard, place=called[-1], stack=(*called, *(guard.stack or (guard.place,)))) if called else guard

    def _led_to(self, compile_id: Optional[str], places: Sequence[Optional[Place]]) -> Tuple[Place, ...]:
        """Return the calls that led to a compilation, if neither its function nor any of ``places`` is the user's."""
        known = [place for place in (self._starts.get(compile_id), *places) if place is not None]
        if not known or not all(map(self._sources.in_library, known)):
            return ()
        return self._callers.get(compile_id or "") or self._callers.get(_frame_of(compile_id or ""), ())

    def _innermost(self, compile_id: Optional[str], *places: Optional[Place]) -> Optional[Place]:
        """Return the innermost of the user's lines that lead to the last of ``places``, or else that."""
        known = [place for place in (self._starts.get(compile_id), *places) if place is not None]
        return innermost((*self._led_to(compile_id, places), *known), self._sources.in_library)


def _frame_of(compile_id: str) -> str:
    """Return the part of a compile id that all compilations of a frame have: ``0`` of ``0/8``."""
    return compile_id.partition("/")[0]
