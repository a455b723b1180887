"""The ends of regions, as nodes of their own."""

from __future__ import annotations

import ast
from typing import Dict

from depyf.lift.nodes import Goto, Node, PopException, Return, WithExit


def split_at_marks(nodes: Dict[int, Node]) -> None:
    """Split nodes at the ends of regions: the code after WithExit or PopException becomes a separate node."""
    fresh = max(map(abs, nodes), default=0) + 1
    for node in [each for each in nodes.values() if each.marks]:
        current = node
        index = 0
        while index < len(current.statements):
            if isinstance(current.statements[index], (WithExit, PopException)):
                mark = current.statements[index]
                assert isinstance(mark, (WithExit, PopException))
                rest = Node(
                    fresh,
                    current.region,
                    current.statements[index + 1 :],
                    current.terminator,
                    current.silent,
                    (),
                    current.handling,
                    current.offset,
                    current.extent,
                )
                if not rest.statements and isinstance(rest.terminator, Return):
                    value = rest.terminator.value
                    rest.silent = isinstance(value, ast.Constant) or any(value is expr for expr in mark.pending)
                if isinstance(mark, PopException):
                    gone = mark.handler
                    rest.handling = tuple(handler for handler in current.handling if handler != gone)
                if not rest.statements and isinstance(rest.terminator, Goto):
                    current.statements = current.statements[: index + 1]
                    break
                current.statements, current.terminator = current.statements[: index + 1], Goto(fresh)
                nodes[fresh] = rest
                current, index = rest, 0
                fresh += 1
                continue
            index += 1
