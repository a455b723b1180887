"""Show what happened in a compiled module of a library (``Sequential``) at the user's line that calls it."""

from __future__ import annotations

from typing import Dict, Optional, Sequence, Tuple, Union

from depyf.quick_dataclass import replace
from depyf.report.analysis.sources import Sources
from depyf.report.model.cuda_graphs import CudaGraphRerecord, CudaGraphSkip
from depyf.report.model.run import FailedGuard, Fallback, GraphBreak, Place, Recompile, Run
from depyf.user_code import innermost


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
        for each in run.compilations:
            if each.function is not None:
                one = run.functions[each.function]
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
        called = self._led_to(each.compile_id, (*each.stack, each.place))
        return replace(each, stack=(*called, *each.stack)) if called else each

    def _recompile(self, each: Recompile) -> Recompile:
        failed = tuple(self._failed(each.compile_id, guard) for guard in each.failed)
        place = self._innermost(each.compile_id, *failed[0].stack, failed[0].place)
        return replace(each, failed=failed, place=place)

    def _failed(self, compile_id: str, guard: FailedGuard) -> FailedGuard:
        called = self._led_to(compile_id, (*guard.stack, guard.place)) if guard.place else ()
        return replace(guard, place=called[-1], stack=(*called, *(guard.stack or (guard.place,)))) if called else guard

    def _led_to(self, compile_id: Optional[str], places: Sequence[Optional[Place]]) -> Tuple[Place, ...]:
        """Return the calls that led to a compilation, if neither its function nor any of ``places`` is the user's."""
        known = [place for place in (self._starts.get(compile_id), *places) if place is not None]
        if not known or not all(map(self._is_of_a_library, known)):
            return ()
        return self._callers.get(compile_id or "") or self._callers.get(_frame_of(compile_id or ""), ())

    def _innermost(self, compile_id: Optional[str], *places: Optional[Place]) -> Optional[Place]:
        """Return the innermost of the user's lines that lead to the last of ``places``, or else that."""
        known = [place for place in (self._starts.get(compile_id), *places) if place is not None]
        return innermost((*self._led_to(compile_id, places), *known), self._is_of_a_library)

    def _is_of_a_library(self, place: Place) -> bool:
        return self._sources.is_library(place[0])


def _frame_of(compile_id: str) -> str:
    """Return the part of a compile id that all compilations of a frame have: ``0`` of ``0/8``."""
    return compile_id.partition("/")[0]
