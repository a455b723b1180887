"""Small lifted graphs as text: a line a node, its label in front, where control goes at its end last.

    top:                          a(); if b -> yes, no      ``yes`` where ``b`` holds
    body in handler:              work(); -> top            guarded by ``handler``
    handler under handler:        except E -> match, other  runs while the exception of ``handler`` is handled
    match under handler:          BIND handler e; POP handler; -> top

Nodes stand in the order of the bytecode. Marks: ``BIND handler name``, ``POP handler``, ``ENTER manager as x`` of a
``with`` and the ``EXIT label`` of the one that node ``label`` enters. Ends: ``-> label``, ``if test -> yes, no``,
``for x in y -> body, exhausted``, ``except E -> match, other``, ``swallowed -> yes, no`` (of a ``with`` handler),
``return value``, ``raise value``, ``reraise handler``, ``overridden``.
"""

from __future__ import annotations

import ast
import copy
import textwrap
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from small_graphs import FUNCTION, flow, lines_of, regions_of

from depyf.decompiler.flow.graph import Block, End, FlowGraph
from depyf.decompiler.hints import Hints
from depyf.decompiler.lift.lifter import lift
from depyf.decompiler.lift.nodes import (
    BindException,
    Condition,
    ExceptionTest,
    Goto,
    LiftedGraph,
    Loop,
    Node,
    Overridden,
    PopException,
    Raise,
    Reraise,
    Return,
    Statement,
    Terminator,
    WithDecision,
    WithEnter,
    WithExit,
)
from depyf.decompiler.normal.ops import NormalCode
from depyf.decompiler.source.printing.statements import unparse

_MARKS = (BindException, PopException)


def lifted(
    text: str, finally_: Iterable[str] = (), code: Any = FUNCTION, **facts: Any
) -> Tuple[LiftedGraph, FlowGraph]:
    """The graph that ``text`` shows, and one of empty blocks with its regions; ``finally_``: those of ``finally``;
    ``facts`` are those of ``NormalCode``."""
    lines = lines_of(text)
    ids, region = {line.label: id for id, line in enumerate(lines)}, regions_of(lines)
    graph, blocks = LiftedGraph({}, 0), FlowGraph(NormalCode(code, (), **facts), {}, 0, len(lines))
    for id, (_, words, items, how, labels) in enumerate(lines):
        end = items.pop() if how is None else how
        handling = tuple(ids[name] for name in words.get("under", "").split(",") if name)
        term = _terminator(end, [ids[label] for label in labels], ids, handling)
        statements = [_statement(item, ids, id) for item in items]
        node = Node(id, region(words.get("in", "")), statements, term, handling=handling)
        node.offset, node.extent = 10 * id, 10 * id + 9
        node.silent = isinstance(term, (Goto, Return, Reraise)) and all(isinstance(each, _MARKS) for each in statements)
        node.leaves = tuple(filter(None, map(region, words.get("leaves", "").split(","))))
        graph.nodes[id] = node
        blocks.blocks[id] = Block(id, [], End(), node.region)
    blocks.finally_regions = {found for found in map(region, finally_) if found is not None}
    return graph, blocks


def _expr(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _statement(text: str, ids: Dict[str, int], id: int) -> Statement:
    kind, _, rest = text.partition(" ")
    label, _, name = rest.partition(" ")
    if kind == "BIND":
        return BindException(ids[label], ast.Name(name, ast.Store()) if name else None)
    if kind == "POP":
        return PopException(ids[label])
    if kind == "ENTER":
        manager, bound, target = rest.partition(" as ")
        return WithEnter(id, _expr(manager), False, ast.Name(target, ast.Store()) if bound else None)
    return WithExit(ids[label]) if kind == "EXIT" else ast.parse(text).body[0]


def _terminator(text: str, to: List[int], ids: Dict[str, int], under: Sequence[int]) -> Terminator:
    kind, _, rest = text.strip().partition(" ")
    target, _, iterable = rest.partition(" in ")
    make: Dict[str, Callable[[], Terminator]] = {
        "": lambda: Goto(to[0]),
        "if": lambda: Condition(_expr(rest), False, to[1], to[0]),
        "for": lambda: Loop(False, to[0], to[1], _expr(iterable), ast.Name(target, ast.Store())),
        "except": lambda: ExceptionTest(under[-1], _expr(rest), to[0], to[1]),
        "swallowed": lambda: WithDecision(to[0], to[1]),
        "return": lambda: Return(_expr(rest)),
        "raise": lambda: Raise(ast.Raise(_expr(rest), None)),
        "reraise": lambda: Reraise(ids[rest]),
        "overridden": Overridden,
    }
    return make[kind]()


def shown(graph: LiftedGraph) -> List[str]:
    """A line for each node that can be reached, numbered as they are: the same for graphs that are the same but for the
    numbers of nodes, and their places in the bytecode."""
    numbers: Dict[int, int] = {}
    todo = [graph.entry]
    while todo:
        node = graph.nodes[todo.pop()]
        if node.id not in numbers:
            numbers[node.id] = len(numbers)
            around = [] if node.region is None else [node.region.entry]
            todo.extend(reversed([*node.successors(), *around]))
    origins = {each.origin: id for id in numbers for each in graph.nodes[id].statements if isinstance(each, WithEnter)}

    def of(name: str, value: Any) -> str:
        """A field of a mark or terminator: an expression, a flag, or the number of a node."""
        if isinstance(value, ast.AST):
            return _text(value)
        return str(
            value if isinstance(value, bool) else numbers.get(origins[value] if name == "origin" else value, value)
        )

    lines = []
    for id, number in numbers.items():
        node = graph.nodes[id]
        region = "" if node.region is None else f" in {numbers[node.region.entry]}/{node.region.depth}"
        left = "".join(f" leaves {numbers[region.entry]}" for region in node.leaves)
        under = "".join(f" under {numbers[handler]}" for handler in node.handling if handler in numbers)
        parts: List[Any] = [*node.statements, node.terminator]
        texts = [_text(part) if isinstance(part, ast.AST) else _fields(part, of) for part in parts]
        lines.append(f"{number}{region}{left}{under}: {'; '.join(texts)}")
    return lines


class _Plain(ast.NodeTransformer):
    """Nodes of the classes of ``ast`` in place of our own subclasses, which no printer knows."""

    def visit(self, node: ast.AST) -> ast.AST:
        self.generic_visit(node)
        known = next((each for each in type(node).__mro__ if each.__module__ in ("ast", "_ast")), type(node))
        return node if known is type(node) else known(**dict(ast.iter_fields(node)))


def _text(tree: ast.AST) -> str:
    return unparse(ast.fix_missing_locations(_Plain().visit(copy.deepcopy(tree))))


_LEFT_OUT = ("span", "offset", "pending", "copied_at")


def _fields(part: Any, of: Callable[[str, Any], str]) -> str:
    fields = [f"{name}={of(name, value)}" for name, value in vars(part).items() if name not in _LEFT_OUT]
    return f"{type(part).__name__}({', '.join(fields)})"


def lifts(text: str, hints: Optional[Hints] = None) -> List[str]:
    """What the flow graph that ``text`` shows is lifted to, for comparison with ``nodes``."""
    return shown(lift(flow(text), hints))


def nodes(text: str) -> List[str]:
    """The lifted graph that ``text`` shows, for comparison."""
    return shown(lifted(text)[0])


def source(statements: List[Any]) -> str:
    """The text of structured statements; the attributes that the tree has no places for do not matter."""
    return _text(ast.Module(statements, []))


def dedented(text: str) -> str:
    return textwrap.dedent(text).strip()
