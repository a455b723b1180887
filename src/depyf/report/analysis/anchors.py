"""Which lines of this run's files those are that a compiler cache brought along.

A cache keeps the graphs and kernels of the run that filled it, with the lines and the paths that were right then. The
file may have been edited since, or lie elsewhere. What Dynamo captured is of this run in any case: it has the same
nodes, with the lines of now, so a place out of a cache is looked for there by its function and by what the line says.
"""

from __future__ import annotations

import os
from dataclasses import field, replace
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.quick_dataclass import dataclass
from depyf.report.analysis.facts import LineStack, Provenance
from depyf.report.analysis.graph_links import comments
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Artifact
from depyf.torch_trace.breaks import Frame
from depyf.torch_trace.events import CACHE_HITS, Event
from depyf.torch_trace.provenance import CAPTURED

Function = Tuple[str, str]
"""File and name."""

Lines = Dict[int, Optional[str]]
"""What is known of the text of some lines of a function."""

Said = Dict[Frame, Optional[str]]
"""Frames with the text of their lines, None where that is not known."""

Moves = Mapping[Frame, Optional[Frame]]
"""Where frames are now; None where that is not known."""


@dataclass
class Anchored:
    """What is known of artifacts, with frames that are right in this run: ``moves`` are those of comments in texts."""

    provenance: Dict[str, Provenance]
    moves: Dict[str, Moves] = field(default_factory=dict)
    notes: List[str] = field(default_factory=list)


def from_cache(events: Sequence[Event]) -> Set[Optional[str]]:
    """The compile ids for which a cache was hit, be it for one graph of several."""
    return {event.compile_id for event in events if event.name in CACHE_HITS}


def anchored(
    artifacts: Sequence[Artifact], known: Mapping[str, Provenance], hits: Set[Optional[str]], sources: Sources
) -> Anchored:
    """``known`` and the comments of all graphs with the lines of now; where no cache was hit all stays as it is."""
    found = Anchored(dict(known))
    unknown, moved = 0, 0
    by_compile_id: Dict[Optional[str], List[Artifact]] = {}
    for each in artifacts:
        if each.kind in ("graph", "kernels"):
            by_compile_id.setdefault(each.compile_id, []).append(each)
    for compile_id in hits:
        ours = by_compile_id.get(compile_id, [])
        fresh: Dict[Function, Lines] = {}
        for each in ours:
            if each.stage == CAPTURED:
                for said in _said(each, known.get(each.id)):
                    for function, lines in _lines(said, sources).items():
                        _merge(fresh.setdefault(function, {}), lines)
        for each in ours:
            if each.stage == CAPTURED:
                continue
            of_comments, of_nodes, of_kernels = every = [
                _moves(said, fresh, sources) for said in _said(each, known.get(each.id))
            ]
            found.moves[each.id] = of_comments
            if each.id in known:
                found.provenance[each.id] = _now(known[each.id], of_nodes, of_kernels)
            asked = [of_nodes or of_comments, of_kernels]  # comments name less than nodes that were noted
            unknown += any(now is None for moves in asked for now in moves.values())
            moved += any(now not in (None, then) for moves in every for then, now in moves.items())
    if moved:
        found.notes.append(
            f"A compiler cache was filled when the program's files were other ones: the texts of {moved} graphs and "
            "kernel files name lines of then, their links are to the lines of now."
        )
    if unknown:
        found.notes.append(
            f"Which lines all parts of {unknown} graphs and kernel files out of a compiler cache come from could not "
            "be determined: the program's files may have changed since it was filled. force_recompile=True finds them."
        )
    return found


def _said(artifact: Artifact, known: Optional[Provenance]) -> Tuple[Said, Said, Said]:
    """The frames that say where an artifact comes from, with the text of their lines where it is known: those in
    comments, of noted nodes, of kernels. They may be of different runs: a text is out of the cache, while the nodes
    were noted of the graph that this run gave to Inductor."""
    of_comments = dict(comments(artifact.text or "")) if artifact.kind == "graph" else {}
    if known is None:
        return of_comments, {}, {}
    of_kernels = [entry.stack for entry in known.lines] + [stack for each in known.kernels for stack in each.stacks]
    return of_comments, _with_code(known.nodes.values(), known), _with_code(of_kernels, known)


def _with_code(stacks: Iterable[Sequence[Frame]], known: Provenance) -> Said:
    return {frame: known.code.get(frame) for stack in stacks for frame in stack}


def _lines(said: Said, sources: Sources) -> Dict[Function, Lines]:
    found: Dict[Function, Lines] = {}
    for (path, line, name), code in said.items():
        _merge(found.setdefault((sources.full(path), name), {}), {line: code})
    return found


def _merge(into: Lines, lines: Lines) -> None:
    for line, code in lines.items():
        into[line] = into.get(line) or code


def _moves(said: Said, fresh: Mapping[Function, Lines], sources: Sources) -> Moves:
    paths = {path for path, _ in fresh}
    found: Dict[Frame, Optional[Frame]] = {}
    for (path, name), lines in _lines(said, sources).items():
        same = {path} if path in paths else {each for each in paths if _base(each) == _base(path)}
        candidates = {each: fresh[each, name] for each in sorted(same) if (each, name) in fresh}
        offsets = list(_offsets(lines, candidates))
        in_order = {} if len(offsets) == 1 else _in_order(lines, candidates)
        for line, code in lines.items():
            if len(offsets) == 1:
                now: List[Tuple[str, int]] = [(offsets[0][0], line + offsets[0][1])]
            elif in_order:
                now = [in_order[line]]
            else:  # some lines of an edited function, or of several of one name: those that say what no other says
                now = [(each, n) for each, texts in candidates.items() for n in texts if code and texts[n] == code]
            found[path, line, name] = (*now[0], name) if len(now) == 1 else None
    where = {frame: (sources.full(frame[0]), frame[1], frame[2]) for frame in said}  # torch may name the end of a path
    return {frame: frame if found[whole] == whole else found[whole] for frame, whole in where.items()}


def _offsets(lines: Lines, candidates: Mapping[str, Lines]) -> Iterator[Tuple[str, int]]:
    """By how much all these lines may have moved, and into which file, so that each is one that says the same.

    A line alone proves nothing: after one line more above it, most lines of a function are still lines of it.
    """
    first = next(iter(lines))
    for path, texts in candidates.items():
        for line in texts:
            offset = line - first
            if all(each + offset in texts and _alike(code, texts[each + offset]) for each, code in lines.items()):
                yield path, offset


def _in_order(lines: Lines, candidates: Mapping[str, Lines]) -> Dict[int, Tuple[str, int]]:
    """One by one where these are all the lines that were captured, and say the same in the same order.

    So it is after something was written between them, or between two functions of one name.
    """
    if len(candidates) != 1 or None in lines.values():
        return {}
    ((path, texts),) = candidates.items()
    then, now = sorted(lines), sorted(texts)
    if [lines[line] for line in then] != [texts[line] for line in now]:
        return {}
    return {line: (path, to) for line, to in zip(then, now)}


def _alike(one: Optional[str], other: Optional[str]) -> bool:
    return one == other or not one or not other


def _base(path: str) -> str:
    return os.path.basename(path)


def _now(known: Provenance, nodes: Moves, kernels: Moves) -> Provenance:
    def stack(frames: Iterable[Frame], moves: Moves = kernels) -> Tuple[Frame, ...]:
        return tuple(now for now in map(moves.get, frames) if now is not None)

    return replace(
        known,
        nodes={name: stack(frames, nodes) for name, frames in known.nodes.items()},
        lines=[LineStack(entry.line, stack(entry.stack)) for entry in known.lines],
        kernels=[replace(each, stacks=tuple(map(stack, each.stacks))) for each in known.kernels],
    )
