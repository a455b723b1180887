"""Map lines that come from a compiler cache to the files of this run. A cache keeps the graphs and kernels of the run
that filled it, with its lines and paths. The file may have been edited or moved since. The graph that Dynamo captured
is always of this run: it has the same nodes with the current lines, so a cached place is searched there by its function
and by the text of its line.
"""

from __future__ import annotations

import os
from dataclasses import field
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.answers.watch import counted
from depyf.base.quick_dataclass import dataclass, replace
from depyf.report.analysis.facts import LineOrigins, LineStack
from depyf.report.analysis.graph_links import comments
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Artifact
from depyf.torch_trace.events import CACHE_HITS, Event
from depyf.torch_trace.provenance import CAPTURED
from depyf.torch_trace.tracebacks import Frame

Function = Tuple[str, str]
"""File and name."""

Lines = Dict[int, Optional[str]]
"""The known text of some lines of a function."""

Said = Dict[Frame, Optional[str]]
"""Frames with the text of their lines, None if unknown."""

Moves = Mapping[Frame, Optional[Frame]]
"""The current positions of frames; None if unknown."""


@dataclass
class Anchored:
    """The provenance of artifacts, with frames of this run: ``moves`` maps frames in comments of texts."""

    provenance: Dict[str, LineOrigins]
    moves: Dict[str, Moves] = field(default_factory=dict)
    notes: List[str] = field(default_factory=list)


def from_cache(events: Sequence[Event]) -> Set[Optional[str]]:
    """Return the compile ids with a cache hit, even for only one graph of several."""
    return {event.compile_id for event in events if event.name in CACHE_HITS}


def anchored(
    artifacts: Sequence[Artifact], known: Mapping[str, LineOrigins], hits: Set[Optional[str]], sources: Sources
) -> Anchored:
    """Return ``known`` and the comments of all graphs with current lines; without a cache hit nothing changes."""
    found = Anchored(dict(known))
    unknown, moved = 0, 0
    by_compile_id: Dict[Optional[str], List[Artifact]] = {}
    for each in artifacts:
        if each.kind in ("graph", "kernels"):
            by_compile_id.setdefault(each.compile_id, []).append(each)
    for compile_id in hits:
        ours = by_compile_id.get(compile_id, [])
        # What the captured graph of this run says: the text of lines, by function.
        fresh: Dict[Function, Lines] = {}
        for each in ours:
            if each.stage == CAPTURED:
                for said in _said(each, known.get(each.id)):
                    for function, lines in _lines(said, sources).items():
                        _merge(fresh.setdefault(function, {}), lines)
        for each in ours:
            if each.stage == CAPTURED:
                continue
            # Every other text may come out of the cache: its frames are searched there.
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
            f"Of {counted(unknown, 'text')} out of a compiler cache (graphs, kernels), some lines of the program could "
            "not be determined: other code may have an equal graph, or the files have changed since. "
            "force_recompile=True finds them."
        )
    return found


def _said(artifact: Artifact, known: Optional[LineOrigins]) -> Tuple[Said, Said, Said]:
    """Return the frames of an artifact in comments, of noted nodes and of kernels, with the text of their lines if
    known. They may be of different runs: a text is out of the cache, while the nodes were noted of the graph that this
    run gave to Inductor."""
    of_comments = dict(comments(artifact.content or "")) if artifact.kind == "graph" else {}
    if known is None:
        return of_comments, {}, {}
    of_kernels = [entry.stack for entry in known.lines] + [stack for each in known.kernels for stack in each.stacks]
    return of_comments, _with_code(known.nodes.values(), known), _with_code(of_kernels, known)


def _with_code(stacks: Iterable[Sequence[Frame]], known: LineOrigins) -> Said:
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
        # The file may have moved: then any file of the same base name.
        same = {path} if path in paths else {each for each in paths if _base(each) == _base(path)}
        candidates = {each: fresh[each, name] for each in sorted(same) if (each, name) in fresh}
        # Case 1: the whole function has moved by one offset. Case 2: all lines are there, in the same order.
        # Case 3: some lines have a text that is unique.
        offsets = list(_offsets(lines, candidates))
        in_order = {} if len(offsets) == 1 else _in_order(lines, candidates)
        for line, code in lines.items():
            if len(offsets) == 1:
                now: List[Tuple[str, int]] = [(offsets[0][0], line + offsets[0][1])]
            elif in_order:
                now = [in_order[line]]
            else:  # some lines of an edited function, or of several of one name: those with a unique text
                now = [(each, n) for each, texts in candidates.items() for n in texts if code and texts[n] == code]
            found[path, line, name] = (*now[0], name) if len(now) == 1 else None
    where = {frame: (sources.full(frame[0]), frame[1], frame[2]) for frame in said}  # torch may name the end of a path
    return {frame: frame if found[whole] == whole else found[whole] for frame, whole in where.items()}


def _offsets(lines: Lines, candidates: Mapping[str, Lines]) -> Iterator[Tuple[str, int]]:
    """Return the offsets, with files, by which all these lines may have moved, so that each has the same text there. A
    single line proves nothing: if a line is inserted above, most line numbers of a function still belong to it.
    """
    first = next(iter(lines))
    for path, texts in candidates.items():
        for line in texts:
            offset = line - first
            if all(each + offset in texts and _alike(code, texts[each + offset]) for each, code in lines.items()):
                yield path, offset


def _in_order(lines: Lines, candidates: Mapping[str, Lines]) -> Dict[int, Tuple[str, int]]:
    """Map the lines one by one if these are all captured lines, with equal texts in equal order; else return none. That
    is so after something was written between them, or between two functions of one name."""
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


def _now(known: LineOrigins, nodes: Moves, kernels: Moves) -> LineOrigins:
    def stack(frames: Iterable[Frame], moves: Moves = kernels) -> Tuple[Frame, ...]:
        return tuple(now for now in map(moves.get, frames) if now is not None)

    return replace(
        known,
        nodes={name: stack(frames, nodes) for name, frames in known.nodes.items()},
        lines=[LineStack(entry.line, stack(entry.stack)) for entry in known.lines],
        kernels=[replace(each, stacks=tuple(map(stack, each.stacks))) for each in known.kernels],
    )
