"""Unpacking: one statement whose targets are stored one after the other."""

from __future__ import annotations

import ast
from typing import Callable, Dict, List, Optional

from depyf.decompiler.lift.items import Emitter, Retry, Target, Value
from depyf.decompiler.lift.simulator import Simulator


class Unpacking:
    """``a, b.c, d[0] = value``: the statement is complete once every part has its target, in order.

    UNPACK_SEQUENCE 3; STORE a; LOAD b; STORE_ATTR c; LOAD d; LOAD 0; STORE_SUBSCR
    """

    def __init__(
        self, simulator: Simulator, count: int, star: Optional[int], done: Callable[[Emitter, ast.expr], None]
    ) -> None:
        self.emitter: Emitter = simulator
        self.star, self.done = star, done
        self.context, self.node = simulator.context, simulator.node
        self.targets: List[Optional[ast.expr]] = [None] * count
        self.stored = 0  # the number of leading parts that have their target
        self.temporaries: Dict[int, str] = {}  # the names of the parts that were stored in temporaries, by index

    def parts(self) -> List[Target]:
        def filler(index: int) -> Callable[[ast.expr], None]:
            return lambda target: self.fill(index, target)

        return [Target(filler(index), self, index) for index in range(len(self.targets))]

    def fill(self, index: int, target: ast.expr) -> None:
        """Set the target of part ``index``; emit the statement once every part has a target."""
        # UNPACK_SEQUENCE 2; SWAP 2; STORE b; STORE a     no compiler writes this: the statement becomes
        #                                                 ``temporary, b = value; a = temporary``
        self._take_temporaries(self._missing(self.stored, index))
        self.targets[index] = ast.Starred(target, ast.Store()) if index == self.star else target
        while self.stored < len(self.targets) and self.targets[self.stored] is not None:
            self.stored += 1
        if self.stored == len(self.targets):
            self._finish()

    def continue_in(self, emitter: Emitter) -> None:
        """Let ``emitter`` store the next part. It may run another block: ``a[b or c], d = value`` has several. Raises
        ``Retry`` when a test in between became a statement: all parts are then stored before it."""
        if emitter.node is not self.node:
            raise Retry("spill_end", self.node.last_block)
        self.emitter = emitter

    def give_up(self, emitter: Emitter) -> None:
        """Store the remaining parts in temporaries, because another effect happens first."""
        self.continue_in(emitter)
        missing = self._missing(self.stored, len(self.targets))
        if missing:
            self._take_temporaries(missing)
            self._finish()

    def _missing(self, start: int, end: int) -> List[int]:
        """Return the parts in this range that have no target yet."""
        return [index for index in range(start, end) if self.targets[index] is None]

    def _take_temporaries(self, indexes: List[int]) -> None:
        """Store these parts in temporaries, which replace them on the stack."""
        if not indexes:
            return
        names = {index: self.context.temporary() for index in indexes}
        self.temporaries.update(names)
        for index, name in names.items():
            target: ast.expr = ast.Name(name, ast.Store())
            self.targets[index] = ast.Starred(target, ast.Store()) if index == self.star else target
        stack = self.emitter.stack
        for slot, item in enumerate(stack):
            if isinstance(item, Target) and item.group is self and item.index in names:
                stack[slot] = Value(ast.Name(names[item.index], ast.Load()), stable=True)

    def _finish(self) -> None:
        elements = [part for part in self.targets if part is not None]
        self.done(self.emitter, ast.Tuple(elements, ast.Store()))
