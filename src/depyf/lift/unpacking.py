"""Unpacking: one statement whose targets are stored one after the other."""

from __future__ import annotations

import ast
from typing import Callable, List, Optional

from depyf.lift.items import Target, Value
from depyf.lift.simulator import Simulator


class Unpacking:
    """``a, b.c, d[0] = value``: the statement is complete once every part has its target, in order."""

    def __init__(self, simulator: Simulator, count: int, star: Optional[int], done: Callable[[ast.expr], None]) -> None:
        self.simulator, self.star, self.done = simulator, star, done
        self.targets: List[Optional[ast.expr]] = [None] * count

    def parts(self) -> List[Target]:
        def filler(index: int) -> Callable[[ast.expr], None]:
            return lambda target: self.fill(index, target)

        return [Target(filler(index), self, index) for index in range(len(self.targets))]

    def fill(self, index: int, target: ast.expr) -> None:
        for earlier in range(index):
            if self.targets[earlier] is None:  # stored out of order: the earlier parts wait in temporaries
                self._temporary(earlier)
        self.targets[index] = ast.Starred(target, ast.Store()) if index == self.star else target
        if all(part is not None for part in self.targets):
            self._finish()

    def give_up(self, simulator: Simulator) -> None:
        """Something else happens before all parts are stored: the rest goes into temporaries now."""
        self.simulator = simulator
        missing = [index for index, part in enumerate(self.targets) if part is None]
        if not missing:
            return
        for index in missing:
            self._temporary(index)
        self._finish()

    def _temporary(self, index: int) -> None:
        name = self.simulator.context.temporary()
        target: ast.expr = ast.Name(name, ast.Store())
        self.targets[index] = ast.Starred(target, ast.Store()) if index == self.star else target
        stack = self.simulator.stack
        for place, item in enumerate(stack):
            if isinstance(item, Target) and item.group is self and item.index == index:
                stack[place] = Value(ast.Name(name, ast.Load()), stable=True)

    def _finish(self) -> None:
        elements = [part for part in self.targets if part is not None]
        self.done(ast.Tuple(elements, ast.Store()))
