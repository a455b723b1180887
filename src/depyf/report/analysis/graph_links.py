"""Link the lines of a graph to the user's lines: from torch's comments, and from stacks."""

from __future__ import annotations

import re
import sys
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.base.late_regex import regex
from depyf.base.stored_text import identity_of
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Artifact, Link, Place
from depyf.torch_trace.provenance import node_in
from depyf.torch_trace.tracebacks import Frame

_COMMENT = regex(r"^\s*# File: (.+?):(\d{1,9}) in (.*?)(?:, code: (.*))?$")
_DEFINITION = regex(r"^\s*(?:class|def)\b")

_MOST_SHARED = 1 << 15
"""Share at most this many equal links; then the table is emptied, and links of earlier graphs are made again."""

Stacks = Mapping[str, Tuple[Frame, ...]]

Equal = Dict[Tuple[int, int, Tuple[Place, ...], str], Link]


class LinkedGraphs:
    """The links of all graphs of a run. An equal text gets the links that were made for it before: layers that are
    compiled one by one have equal graphs."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._equal: Equal = {}
        self._of_texts: Dict[str, Tuple[int, Tuple[Link, ...]]] = {}

    def links_of(
        self,
        graph: Artifact,
        stacks: Stacks,
        outer: Mapping[Tuple[str, int], Tuple[Frame, ...]],
        moves: Optional[Mapping[Frame, Optional[Frame]]],
    ) -> Tuple[Link, ...]:
        """Return the links of a graph; see ``graph_links`` for the other arguments."""
        text = None if stacks or outer or moves is not None else identity_of(graph.text)
        learned, known = self._of_texts.get(text, (-1, ())) if text is not None else (-1, ())
        if learned == self._sources.learned:
            return known
        learned = self._sources.learned
        found = tuple(graph_links(graph.content or "", stacks, outer, self._sources, moves, self._equal))
        if text is not None and learned == self._sources.learned:  # else the rest of a path has come to be known
            self._of_texts[text] = learned, found
        return found


def graph_links(
    text: str,
    stacks: Stacks,
    outer: Mapping[Tuple[str, int], Tuple[Frame, ...]],
    sources: Sources,
    moves: Optional[Mapping[Frame, Optional[Frame]]],
    equal: Equal,
) -> List[Link]:
    """Return the links of the text of a graph, one for each node (with the comment above it, where there is one).

    ``stacks`` are the whole stacks of nodes, by name. Where a node has none the comment counts, which names only the
    innermost frame: ``outer`` has the whole stack of such a frame where it is the only one. ``moves`` has the present
    position of a frame in a comment (None: unknown), for a text that is out of a cache. Links that are in ``equal`` are
    not made again: graphs of one function have many in common.
    """
    if len(equal) > _MOST_SHARED:
        equal.clear()
    found: List[Link] = []
    known: Dict[Tuple[Frame, ...], Tuple[Place, ...]] = {}  # many nodes have one stack
    comment, first = None, 0
    for number, line in enumerate(text.splitlines(), 1):
        code = line.lstrip()
        if code.startswith("#"):
            # ``# File: model.py:12 in forward, code: h = self.up(x)`` is about the node below it.
            match = _COMMENT.match(line)
            if match is not None:
                then = _frame(match)
                now = then if moves is None else moves.get(then)
                comment = None if now is None else outer.get((sources.full(now[0]), now[1]), (now,))
                first = number
            continue
        # An empty line, or another graph (a subgraph of control flow), ends what the comment is about.
        if not code or (code.startswith(("class", "def")) and _DEFINITION.match(line)):
            comment, first = None, 0
            continue
        node = node_in(line)
        if node is None:
            continue
        # ``add: "f32[4]" = torch.ops.aten.add.Tensor(x, y)``: a noted stack counts more than the comment.
        frames = stacks.get(node) or comment
        places = known.get(frames, ()) if frames else ()
        if frames and not places:
            places = sources.places(frames)
            if len(places) == len(frames):  # else the rest of a path may come to be known
                known[frames] = places
        if places:
            link = first or number, number, places, node
            found.append(equal.get(link) or equal.setdefault(link, Link(*link[:3], (sys.intern(node),))))
        first = 0
    return found


def comments(text: str) -> Iterator[Tuple[Frame, Optional[str]]]:
    """Yield the frames in the comments in the text of a graph, with the text of their lines."""
    for match in filter(None, map(_COMMENT.match, text.splitlines())):
        yield _frame(match), match.group(4)


def _frame(comment: re.Match[str]) -> Frame:
    return comment.group(1), int(comment.group(2)), comment.group(3)


def whole_stacks(all_stacks: Iterator[Stacks], sources: Sources) -> Dict[Tuple[str, int], Tuple[Frame, ...]]:
    """Return the stack of each innermost frame (by file and line) that has only one."""
    found: Dict[Tuple[str, int], Optional[Tuple[Frame, ...]]] = {}
    for stacks in all_stacks:
        for frames in {id(frames): frames for frames in stacks.values()}.values():  # many nodes have one stack
            if frames:
                innermost = (sources.full(frames[-1][0]), frames[-1][1])
                known = found.setdefault(innermost, frames)
                if known is not None and [each[:2] for each in known] != [each[:2] for each in frames]:
                    found[innermost] = None
    return {innermost: frames for innermost, frames in found.items() if frames is not None}


def places_of_names(links: Sequence[Link]) -> Dict[str, Tuple[Place, ...]]:
    """Return the places of each name that the links of a graph have."""
    found: Dict[str, Tuple[Place, ...]] = {}
    for link in links:
        for name in link.names:
            found.setdefault(name, link.places)
    return found


def union(many: Sequence[Sequence[Place]]) -> Tuple[Place, ...]:
    """Return all places, each once, in their order."""
    return tuple(dict.fromkeys(place for places in many for place in places))
