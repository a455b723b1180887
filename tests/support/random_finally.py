"""Random functions in which ``try`` statements with ``finally`` stand in each other, with a jump out of every slot.

A slot is a body, an ``except`` clause, an ``else`` clause or a ``finally`` clause. Each may hold a ``return``,
``break``, ``continue`` or ``raise``, alone or under a test. The programs run with the oracle of random_programs.py.
"""

from __future__ import annotations

import random
from typing import List


def program_from(rng: random.Random) -> str:
    """Return the source of a function ``program(a, b)`` with a ``try`` that is two or three deep."""
    return _Writer(rng).function()


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self._random = rng
        self._counter = 0

    def function(self) -> str:
        levels = self._random.choice((2, 2, 2, 3))
        lines: List[str] = []
        if self._random.random() < 0.7:
            lines += self._loop(1, levels)
        else:
            lines += self._try(1, False, levels)
        return "def program(a, b):\n" + "".join(lines) + f"    probe({self._number()})\n    return a, b\n"

    def _number(self) -> int:
        self._counter += 1
        return self._counter

    def _loop(self, depth: int, levels: int) -> List[str]:
        pad = "    " * depth
        head = self._random.choice((f"for a in items({self._number()}):\n", f"while probe({self._number()}):\n"))
        lines = [pad + head, *self._try(depth + 1, True, levels)]
        if self._random.random() < 0.5:
            lines.append(f"{pad}    probe({self._number()})\n")
        if self._random.random() < 0.15:
            lines += [f"{pad}else:\n", f"{pad}    probe({self._number()})\n"]
        return lines

    def _try(self, depth: int, in_loop: bool, levels: int) -> List[str]:
        """A ``try`` statement; where another one stands in it is chosen among its slots."""
        pad = "    " * depth
        slots = ["body", "finally"]
        clauses = self._random.choice((0, 0, 1, 1, 2))
        slots += ["except"] * bool(clauses)
        orelse = bool(clauses) and self._random.random() < 0.3
        inner = self._random.choice(["body", "body", *slots])

        def slot(name: str) -> List[str]:
            nested = levels if name == inner else 1
            return self._slot(depth + 1, in_loop, nested - 1)

        lines = [f"{pad}try:\n", *slot("body")]
        for number in range(clauses):
            last = number == clauses - 1
            heads = ["except Alpha:\n", "except Beta as b:\n", "except (Alpha, Beta):\n"] + ["except:\n"] * last
            lines += [pad + self._random.choice(heads), *slot("except")]
        if orelse:
            lines += [f"{pad}else:\n", *slot("else")]
        if not clauses or self._random.random() < 0.8:
            lines += [f"{pad}finally:\n", *slot("finally")]
        return lines

    def _slot(self, depth: int, in_loop: bool, levels: int) -> List[str]:
        pad = "    " * depth
        lines: List[str] = []
        if self._random.random() < 0.7:
            lines.append(f"{pad}probe({self._number()})\n")
        if self._random.random() < 0.25:
            lines += [f"{pad}if probe({self._number()}):\n", f"{pad}    {self._jump(in_loop)}\n"]
        if levels > 0:
            nested = self._loop if self._random.random() < 0.2 else None
            lines += nested(depth, levels) if nested else self._try(depth, in_loop, levels)
        if self._random.random() < 0.35:
            lines.append(f"{pad}{self._jump(in_loop)}\n")
        elif not lines or self._random.random() < 0.3:
            lines.append(f"{pad}probe({self._number()})\n")
        return lines

    def _jump(self, in_loop: bool) -> str:
        kinds = [f"return probe({self._number()})", "return", "return a", f"raise Alpha({self._number()})"]
        if in_loop:
            kinds += ["break", "continue"] * 2
        return self._random.choice(kinds)
