"""Link the lines of a graph to the user's lines: from torch's comments, and from stacks."""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.lazy_pattern import re_compile
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Link, Place
from depyf.torch_trace.breaks import Frame
from depyf.torch_trace.provenance import node_in

_COMMENT = re_compile(r"^\s*# File: (.+?):(\d{1,9}) in (.*?)(?:, code: (.*))?$")
_DEFINITION = re_compile(r"^\s*(?:class|def)\b")

Stacks = Mapping[str, Tuple[Frame, ...]]


def graph_links(
    text: str,
    stacks: Stacks,
    outer: Mapping[Tuple[str, int], Tuple[Frame, ...]],
    sources: Sources,
    moves: Optional[Mapping[Frame, Optional[Frame]]] = None,
) -> List[Link]:
    """The links of the text of a graph, one for each node (with the comment above it, where there is one).

    ``stacks`` are the whole stacks of nodes, by name. Where a node has none the comment counts, which names only the
    innermost frame: ``outer`` has the whole stack of such a frame where it is the only one.
    ``moves`` says where a frame in a comment is now (None: nobody knows), for a text that is out of a cache.
    """
    found: List[Link] = []
    known: Dict[Tuple[Frame, ...], Tuple[Place, ...]] = {}  # many nodes have one stack
    comment: Optional[Tuple[Frame, ...]] = None
    first = 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            comment, first = None, 0
            continue
        match = _COMMENT.match(line)
        if match is not None:
            then = _frame(match)
            now = then if moves is None else moves.get(then)
            comment = None if now is None else outer.get((sources.full(now[0]), now[1]), (now,))
            first = number
            continue
        if _DEFINITION.match(line):
            comment, first = None, 0
            continue
        node = node_in(line)
        if node is None:
            continue
        frames = stacks.get(node) or comment
        places = known.get(frames, ()) if frames else ()
        if frames and not places:
            places = sources.places(frames)
            if len(places) == len(frames):  # else the rest of a path may come to be known
                known[frames] = places
        if places:
            found.append(Link(first or number, number, places, (node,)))
        first = 0
    return found


def comments(text: str) -> Iterator[Tuple[Frame, Optional[str]]]:
    """The frames that the comments in the text of a graph name, with what their lines say."""
    for match in filter(None, map(_COMMENT.match, text.splitlines())):
        yield _frame(match), match.group(4)


def _frame(comment: re.Match[str]) -> Frame:
    return comment.group(1), int(comment.group(2)), comment.group(3)


def whole_stacks(all_stacks: Iterator[Stacks], sources: Sources) -> Dict[Tuple[str, int], Tuple[Frame, ...]]:
    """The stack of each innermost frame (by file and line) that has one stack only."""
    found: Dict[Tuple[str, int], Optional[Tuple[Frame, ...]]] = {}
    for stacks in all_stacks:
        for frames in stacks.values():
            if frames:
                innermost = (sources.full(frames[-1][0]), frames[-1][1])
                known = found.setdefault(innermost, frames)
                if known is not None and [each[:2] for each in known] != [each[:2] for each in frames]:
                    found[innermost] = None
    return {innermost: frames for innermost, frames in found.items() if frames is not None}


def places_of_names(links: Sequence[Link]) -> Dict[str, Tuple[Place, ...]]:
    """The places of each name that the links of a graph have."""
    found: Dict[str, Tuple[Place, ...]] = {}
    for link in links:
        for name in link.names:
            found.setdefault(name, link.places)
    return found


def union(many: Sequence[Sequence[Place]]) -> Tuple[Place, ...]:
    """All places, each once, in their order."""
    return tuple(dict.fromkeys(place for places in many for place in places))
