"""The state that the blocks of one code object share while they are lifted."""

from __future__ import annotations

from typing import Dict, Set, Tuple

from depyf.decompiler.bytecode.code import COMPREHENSIONS
from depyf.decompiler.hints import Hints
from depyf.decompiler.lift.items import Retry, Value
from depyf.decompiler.lift.nodes import Node
from depyf.decompiler.normal.ops import NormalCode, Op


class Decisions:
    """The results of earlier attempts: where values need temporaries. Each retry adds one decision."""

    def __init__(self) -> None:
        self.spill: Set[int] = set()  # operation offsets before which all pending values are stored
        self.spill_end: Set[int] = set()  # blocks at whose end all pending values are stored
        self.spill_locals: Set[int] = set()  # and those at whose end pending loads of variables are stored as well
        self.containers: Set[bool] = set()  # whether lists that only move values are tracked
        self.kept_results: Set[int] = set()  # calls whose tuple is not unpacked at once
        self.plain_swap: Set[int] = set()  # SWAPs that are not a tuple assignment
        self.iterators: Set[int] = set()  # ITERs whose result is a plain value
        self.phi: Set[Tuple[int, int]] = set()  # (block, slot) that needs a temporary although its value is stable

    def learn(self, retry: Retry) -> None:
        known: Set[object] = getattr(self, retry.kind)
        if retry.key in known:
            raise ValueError(f"lifting makes no progress: {retry}")
        known.add(retry.key)


class LiftContext:
    """The shared state of one code object: counters, decisions."""

    def __init__(self, normal: NormalCode, decisions: Decisions, hints: Hints, *, spans: bool) -> None:
        # Code that Dynamo made of a comprehension keeps its name, and is none any more.
        written = normal.code.co_name in COMPREHENSIONS and not hints.droppable
        self.is_comprehension = written and Op.FOR in normal.kinds
        self.decisions, self.hints = decisions, hints
        self.records_spans = spans
        """Whether nodes record their source span."""
        self.nodes: Dict[int, Node] = {}
        self.order = 0
        self.temporaries = 0
        self.follows_containers = bool(decisions.containers)

    def next_order(self) -> int:
        self.order += 1
        return self.order

    def waits_no_longer(self, item: Value) -> Retry:
        """Return the ``Retry`` that stores ``item`` at the end of the node in which it was evaluated."""
        home = self.nodes.get(item.born)
        return Retry("spill_end", home.last_block if home is not None else item.born)

    def temporary(self) -> str:
        name = f"__temp_{self.temporaries}"
        self.temporaries += 1
        return name
