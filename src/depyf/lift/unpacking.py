"""Unpacking: one statement whose targets are stored one after the other."""

from __future__ import annotations

import ast
from typing import Callable, Dict, List, Optional

from depyf.lift.items import Retry, Target, Value
from depyf.lift.simulator import Simulator


class Unpacking:
    """``a, b.c, d[0] = value``: the statement is complete once every part has its target, in order."""

    def __init__(
        self, simulator: Simulator, count: int, star: Optional[int], done: Callable[[Simulator, ast.expr], None]
    ) -> None:
        self.simulator, self.star, self.done = simulator, star, done
        self.node = simulator.node
        self.targets: List[Optional[ast.expr]] = [None] * count
        self.stored = 0  # how many parts have their target, from the first on without a gap
        self.temporaries: Dict[int, str] = {}  # the parts that were stored in them, also where others hold the parts

    def parts(self) -> List[Target]:
        def filler(index: int) -> Callable[[ast.expr], None]:
            return lambda target: self.fill(index, target)

        return [Target(filler(index), self, index) for index in range(len(self.targets))]

    def fill(self, index: int, target: ast.expr) -> None:
        # Stored out of order: the earlier parts wait in temporaries.
        self._take_temporaries(self._missing(self.stored, index))
        self.targets[index] = ast.Starred(target, ast.Store()) if index == self.star else target
        while self.stored < len(self.targets) and self.targets[self.stored] is not None:
            self.stored += 1
        if self.stored == len(self.targets):
            self._finish()

    def continue_in(self, simulator: Simulator) -> None:
        """The next part is stored by ``simulator``. That may run another block: ``a[b or c], d = value`` has several.

        Raises ``Retry`` when a test in between became a statement: all parts are stored before it then.
        """
        if simulator.node is not self.node:
            raise Retry("spill_end", self.node.last_block)
        self.simulator = simulator

    def give_up(self, simulator: Simulator) -> None:
        """Something else happens before all parts are stored: the rest goes into temporaries now."""
        self.continue_in(simulator)
        missing = self._missing(self.stored, len(self.targets))
        if missing:
            self._take_temporaries(missing)
            self._finish()

    def _missing(self, start: int, end: int) -> List[int]:
        """The parts among these that have no target yet."""
        return [index for index in range(start, end) if self.targets[index] is None]

    def _take_temporaries(self, indexes: List[int]) -> None:
        """Store these parts in temporaries, which lie on the stack in their place from now on."""
        if not indexes:
            return
        names = {index: self.simulator.context.temporary() for index in indexes}
        self.temporaries.update(names)
        for index, name in names.items():
            target: ast.expr = ast.Name(name, ast.Store())
            self.targets[index] = ast.Starred(target, ast.Store()) if index == self.star else target
        stack = self.simulator.stack
        for place, item in enumerate(stack):
            if isinstance(item, Target) and item.group is self and item.index in names:
                stack[place] = Value(ast.Name(names[item.index], ast.Load()), stable=True)

    def _finish(self) -> None:
        elements = [part for part in self.targets if part is not None]
        self.done(self.simulator, ast.Tuple(elements, ast.Store()))
