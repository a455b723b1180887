"""Where the time of a start goes: tracing, look-ups in PyTorch's caches, loading from them, compiling what missed."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.base.quick_dataclass import replace
from depyf.diagnosis.break_advice import called
from depyf.report.model.cache_lookup import CacheLookup
from depyf.report.model.phases import own_seconds
from depyf.report.model.run import Phase, Run

TRACE, LOOK_UP, LOAD, GUARDS, COMPILE, REST = "trace", "look up", "load", "guards", "compile", "rest"

PARTS = {
    TRACE: "tracing the program (Dynamo)",
    LOOK_UP: "keys and look-ups",
    LOAD: "loading code from the caches",
    GUARDS: "making guards (Dynamo)",
    COMPILE: "compiling what was in no cache",
    REST: "the rest",
}
"""The parts of ``Compilation.time_parts``, in words."""

_OF_WORDS = {
    "tracing the program (Dynamo)": TRACE,
    "checks of sizes at run time (Dynamo)": TRACE,
    "looking in caches": LOOK_UP,
    "profiles of earlier runs (PGO)": LOOK_UP,
    "making guards (Dynamo)": GUARDS,
    "tracing forward and backward (AOTAutograd)": COMPILE,
    "passes over graphs (Inductor)": COMPILE,
    "making kernels (Inductor)": COMPILE,
    "the C++ compiler": COMPILE,
    "the compilers of kernels": COMPILE,
    "the Triton compiler": COMPILE,
    "measuring candidates for kernels (autotuning)": COMPILE,
    "loading modules of generated kernels": LOAD,
}
"""The part of each kind of phase, by ``called``; other kinds are the rest."""

_CODEGEN = ("code_gen", "GraphLowering.run", "GraphLowering.codegen", "GraphLowering.compile_to_fn")
_INDUCTOR = "fx_codegen_and_compile"
"""Around a look-up of Inductor's cache, whatever comes of it: with a hit, none of the phases above is inside."""

_WHOLE = {
    **dict.fromkeys(_CODEGEN, COMPILE),
    "AOTAutogradCache.inductor_load": LOAD,
    "PyCodeCache.load_by_key_path": LOAD,
    "TritonBundler.read_and_emit": LOAD,
}
"""Phases whose inner phases are of the same part: Inductor loads the modules that it has just compiled, too, and
compilers may run while code is loaded, as for a header that is compiled once."""


def with_time_parts(run: Run) -> Run:
    """Return the run with the parts of each compilation's time."""
    found: Dict[str, Dict[str, float]] = {}
    inside: List[Optional[str]] = []
    compiled = _around_codegen(run.phases)
    for number, (phase, seconds) in enumerate(zip(run.phases, own_seconds(run))):
        # Parents come before their children.
        around = None if phase.parent is None else inside[phase.parent]
        inside.append(around or _WHOLE.get(phase.name))
        # Workers compile for no compilation in particular, while one waits for them: that wait is counted.
        if phase.compile_id is not None:
            part = inside[-1] or _OF_WORDS.get(called(phase.name), REST)
            if phase.name == _INDUCTOR and number not in compiled:
                part = LOOK_UP
            parts = found.setdefault(phase.compile_id, {})
            parts[part] = parts.get(part, 0.0) + seconds
    compilations = tuple(
        replace(each, time_parts={part: found[each.compile_id].get(part, 0.0) for part in PARTS})
        if each.compile_id in found
        else each
        for each in run.compilations
    )
    return replace(run, compilations=compilations)


def _around_codegen(phases: Sequence[Phase]) -> Set[int]:
    """Return the indices of the phases in which Inductor has generated code, and of those around them."""
    found: Set[int] = set()
    for phase in phases:
        at = phase.parent if phase.name in _CODEGEN else None
        while at is not None and at not in found:
            found.add(at)
            at = phases[at].parent
    return found


def total_parts(run: Run) -> Dict[str, float]:
    """Return the seconds of each part in all compilations; empty where PyTorch reports no phases."""
    known = [each.time_parts for each in run.compilations if each.time_parts]
    return {part: sum(each.get(part, 0.0) for each in known) for part in PARTS} if known else {}


def saved_seconds(lookups: Sequence[CacheLookup]) -> Optional[float]:
    """Return the seconds that hits report as saved; None where none reports any. What AOTAutograd's cache has saved
    contains what Inductor's cache has saved in the same compilation."""
    by_cache: Dict[Optional[str], Dict[str, float]] = {}
    for each in lookups:
        if each.saved is not None:
            caches = by_cache.setdefault(each.compile_id, {})
            caches[each.cache] = caches.get(each.cache, 0.0) + each.saved
    return sum(max(caches.values()) for caches in by_cache.values()) if by_cache else None


def states_of(lookups: Sequence[CacheLookup]) -> Mapping[Tuple[str, str], int]:
    """Return how often each cache gave each answer."""
    found: Dict[Tuple[str, str], int] = {}
    for each in lookups:
        found[each.cache, each.state] = found.get((each.cache, each.state), 0) + 1
    return found
