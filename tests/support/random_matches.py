"""Random ``match`` statements: every kind of pattern, nested, with captures, guards and bodies that leave or go on."""

from __future__ import annotations

import random
from typing import List

_VALUES = ["0", "1", "-2", "'a'", "b'b'", "1.5", "2 + 3j", "None", "True", "Kind.A", "mod.sub.B"]
_GUARDS = ["g()", "g() and h()", "g() or h()", "not g()", "(w := g()) > 1", "g() < h() < 3", "g() if h() else k()"]
_LEAVES = ["return {}", "raise Error({})", "pass", "f({})", "f({})", "x = {}"]
_LOOP_LEAVES = [*_LEAVES, "continue", "break"]


class Matches:
    """A source of statements that always gives the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def function(self, name: str) -> str:
        """A function with one or two statements, perhaps in a loop, a ``try`` or a ``with``."""
        kind = self.random.choice(["plain", "plain", "plain", "loop", "while", "try", "with", "finally"])
        body = self.statement(kind in ("loop", "while"), 2)
        if self.random.random() < 0.3:
            body += self.statement(kind in ("loop", "while"), 1)
        heads = {"loop": "for s in t:", "while": "while s:", "try": "try:", "with": "with c:", "finally": "try:"}
        lines = [f"def {name}(s, t):"]
        if kind == "plain":
            lines += _indented(body)
        else:
            lines += _indented([heads[kind], *_indented(body)])
        if kind == "try":
            lines += _indented(["except Error:", "    f(8)"])
        elif kind == "finally":
            lines += _indented(["finally:", "    f(8)"])
        if self.random.random() < 0.6:
            lines.append("    return 9")
        return "\n".join(lines) + "\n"

    def statement(self, in_loop: bool, depth: int) -> List[str]:
        lines = ["match " + self.random.choice(["s", "s", "f(s)", "s, t", "s.a[t]"]) + ":"]
        count = self.random.randrange(1, 5)
        for index in range(count):
            last = index == count - 1
            guard = " if " + self.random.choice(_GUARDS) if self.random.random() < 0.25 else ""
            names = [f"n{index}" for index in range(self.random.choice([0, 0, 1, 1, 2, 3]))]
            pattern = self.pattern(3, names, may_always_match=bool(guard) or last)
            lines.append(f"    case {pattern}{guard}:")
            lines += _indented(_indented(self.body(in_loop, depth, names)))
        return lines

    def body(self, in_loop: bool, depth: int, names: List[str]) -> List[str]:
        if depth > 1 and self.random.random() < 0.15:
            return self.statement(in_loop, depth - 1)
        self.count += 1
        values = ", ".join([str(self.count), *names])
        leave = self.random.choice(_LOOP_LEAVES if in_loop else _LEAVES).format(values)
        if self.random.random() < 0.2:
            return [f"if g({self.count}):", f"    {leave}"]
        return [leave]

    # --- patterns ----------------------------------------------------------------------------------------------------

    def pattern(self, depth: int, names: List[str], may_always_match: bool = False) -> str:
        """A pattern that binds exactly ``names``."""
        simple = depth == 0 or self.random.random() < 0.2
        if simple and not names:
            return "_" if may_always_match and self.random.random() < 0.4 else self.random.choice(_VALUES)
        if simple and len(names) == 1 and may_always_match:
            return names[0]
        if depth == 0 and names:
            return f"[{', '.join(names)}]"
        make = self.random.choice([self._sequence, self._sequence, self._mapping, self._class, self._either, self._as])
        return make(depth - 1, names)

    def _shared_out(self, names: List[str], count: int) -> List[List[str]]:
        shares: List[List[str]] = [[] for _ in range(count)]
        for name in names:
            self.random.choice(shares).append(name)
        return shares

    def _sequence(self, depth: int, names: List[str]) -> str:
        names = list(names)
        star = None
        if self.random.random() < 0.4:
            star = f"*{names.pop()}" if names and self.random.random() < 0.5 else "*_"
        count = self.random.randrange(1 if names else 0, 4)
        parts = [self.pattern(depth, share, True) for share in self._shared_out(names, count)]
        if star is not None:
            parts.insert(self.random.randrange(len(parts) + 1), star)
        return f"[{', '.join(parts)}]"

    def _mapping(self, depth: int, names: List[str]) -> str:
        names = list(names)
        rest = f"**{names.pop()}" if names and self.random.random() < 0.4 else None
        count = self.random.randrange(1 if names else 0, 3)
        keys = self.random.sample(["'k'", "1", "Kind.A", "None", "-3"], count)
        shares = self._shared_out(names, count)
        parts = [f"{key}: {self.pattern(depth, share, True)}" for key, share in zip(keys, shares)]
        return "{" + ", ".join([*parts, *([rest] if rest else [])]) + "}"

    def _class(self, depth: int, names: List[str]) -> str:
        count = self.random.randrange(1 if names else 0, 4)
        positional = self.random.randrange(count + 1)
        parts = [self.pattern(depth, share, True) for share in self._shared_out(names, count)]
        written = [part if at < positional else f"a{at}={part}" for at, part in enumerate(parts)]
        return f"{self.random.choice(['C', 'mod.D'])}({', '.join(written)})"

    def _either(self, depth: int, names: List[str]) -> str:
        alternatives = []
        for _ in range(self.random.randrange(2, 4)):
            order = self.random.sample(names, len(names))
            pattern = self.pattern(depth, order)
            alternatives.append(f"({pattern})" if " as " in pattern or "|" in pattern else pattern)
        return "(" + " | ".join(alternatives) + ")"

    def _as(self, depth: int, names: List[str]) -> str:
        if not names:
            return self.pattern(depth, names)
        return f"({self.pattern(depth, names[1:])} as {names[0]})"


def _indented(lines: List[str]) -> List[str]:
    return ["    " + line for line in lines]
