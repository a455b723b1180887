"""Random functions made of conditions: and, or, not, if-else, chains of comparisons, ``is None``, ``in`` and ``:=``.

Compilers write a condition in another way wherever it stands: as jumps in a test, as a value in an argument, as both
where the value of an ``or`` is tested. So each program puts a few random conditions in random places. The programs run
on the objects of random_syntax.py, which log that they were tested, compared or searched.
"""

from __future__ import annotations

import random
import sys
from typing import Any, Callable, List, Sequence


def program_from(rng: random.Random) -> str:
    """Return the source of a function ``program(a, b, *c, d, **e)`` with one to three conditions in places."""
    return _Writer(rng).program()


class _Writer:
    def __init__(self, rng: random.Random) -> None:
        self._random = rng
        self._number = 0
        self._names = ["a", "b", "d"]
        self._awaits = self._async = rng.random() < 0.15
        self._yields = rng.random() < 0.15
        self._assigns = True
        self._results = not (self._async and self._yields)  # asynchronous generators return none
        self._budget = rng.choice((1, 2, 2, 3))

    def program(self) -> str:
        body: List[str] = []
        while self._budget > 0:
            body += self._statement(False)
        ending = ["yield a"] * self._yields + ["return (a, b, d)"] * self._results
        head = "async def" if self._async else "def"
        return f"{head} program(a, b, *c, d, **e):\n" + "".join(f"    {line}\n" for line in body + ending)

    def _one(self, options: Sequence[Any]) -> Any:
        return self._random.choice(options)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    # --- conditions --------------------------------------------------------------------------------------------------

    def _condition(self, depth: int = 0) -> str:
        kind = self._random.random()
        if depth > 3 or kind < 0.12 + 0.13 * depth:
            return self._atom()

        def part() -> str:
            return self._condition(depth + 1)

        if kind < 0.65:
            word = self._one(("and", "or"))
            return "(" + f" {word} ".join(part() for _ in range(self._one((2, 2, 3)))) + ")"
        if kind < 0.75:
            return f"(not {part()})"
        if kind < 0.83:
            return f"({part()} if {part()} else {part()})"
        if kind < 0.9:
            return f"({part()} is {self._one(('', 'not '))}None)"
        if kind < 0.95 and self._assigns:
            return f"({self._one('abd')} := {part()})"
        text = part()
        for _ in range(self._one((1, 1, 2, 3))):
            text += f" {self._one(('<', '==', 'in', 'not in', 'is', 'is not', '>='))} {part()}"
        return f"({text})"

    def _atom(self) -> str:
        kind = self._random.random()
        if kind < 0.5:
            return str(self._one(self._names))
        if kind < 0.75:
            return self._call()
        if kind < 0.85:
            return str(self._one(("None", "0", "1", "True", "()")))
        name = self._one(self._names)
        if self._awaits and kind < 0.93:
            return f"(await {name})"
        return str(self._one((f"{name}.p", f"{name}[0]", f"(-{name})", f"[{name}]", f"(lambda: {name})")))

    def _call(self) -> str:
        self._number += 1
        return f"f({self._number})"

    def _inner(self, name: str, make: Callable[[], str], awaits: bool = False) -> str:
        """Return what ``make`` writes in a scope of its own that has the variable ``name``."""
        around = self._names, self._awaits
        self._names, self._awaits = [*self._names, name], self._awaits and awaits
        text = make()
        self._names, self._awaits = around
        return text

    def _iterable(self) -> str:
        """Return a condition for a comprehension to iterate over, where ``:=`` can't stand."""
        self._assigns = False
        text = self._condition(1)
        self._assigns = True
        return text

    # --- the places of conditions ------------------------------------------------------------------------------------

    def _block(self, in_loop: bool) -> List[str]:
        lines: List[str] = [self._call()] if self._chance(0.6) else []
        if self._budget > 0 and self._chance(0.4):
            lines += self._statement(in_loop)
        if self._chance(0.35):
            jumps = ["return", f"raise Alpha({self._number})"] + ["break", "continue"] * 2 * in_loop
            lines.append(self._one(jumps + ["return a"] * self._results))
        lines = lines or ["pass"]
        return ["    " + line for line in lines]

    def _statement(self, in_loop: bool) -> List[str]:
        self._budget -= 1
        if self._chance(0.55):
            kinds = [self._if, self._if_else, self._elif, self._while, self._while, self._while_else, self._for]
            kinds += [self._try, self._with, self._nested_ifs, self._function, self._class]
            if sys.version_info >= (3, 10):
                kinds.append(self._match)
            lines: List[str] = self._one(kinds)(in_loop)
            return lines
        return [self._simple()]

    def _simple(self) -> str:
        condition = self._condition
        kinds: List[Callable[[], str]] = [
            lambda: f"assert {condition()}",
            lambda: f"assert {condition()}, {condition(1)}",
            lambda: f"a = {condition()}",
            lambda: f"a, b = {condition()}, {condition(1)}",
            lambda: condition(),
            lambda: f"a = {self._call()} if {condition()} else {self._call()}",
            lambda: f"b = f({condition()}, {condition(1)}, p={condition(1)})",
            lambda: f"a[{condition()}] = {condition(1)}",
            lambda: f"b.p = a[{condition()}:{condition(1)}]",
            lambda: f"del a[{condition()}]",
            lambda: f"d += {condition()}",
            lambda: f"a[{condition()}] -= {condition(1)}",
            lambda: f"raise {condition()}",
            lambda: f"b = f'{{{condition()}}}{{{condition(1)}:>{{d}}}}'",
            lambda: f"d = [{condition()}, *a, {condition(1)}]",
            lambda: f"d = {{{condition()}: {condition(1)}}}",
            lambda: f"d = {self._inner('x', lambda: f'lambda x=1: {condition()}')}",
            lambda: f"d = ({self._inner('x', lambda: f'lambda x: {condition()}')})(b)",
            lambda: f"d = {self._inner('i', lambda: f'[{condition()} for i in a if {condition()}]', True)}",
            lambda: f"d = {self._inner('i', lambda: f'list(i for i in a if {condition()} if {condition(1)})')}",
            lambda: f"d = {{i: {self._inner('i', condition, True)} for i in {self._iterable()}}}",
        ]
        if self._results:
            kinds += [lambda: f"return {condition()}", lambda: f"return not {condition()}"] * 2
        if self._yields:
            kinds += [lambda: f"a = yield {condition()}", lambda: f"f((yield), {condition()})"] * 3
        if self._async:
            kinds += [lambda: f"a = await {condition()}", lambda: f"await f({condition()})"] * 3
        return str(self._one(kinds)())

    def _if(self, in_loop: bool) -> List[str]:
        return [f"if {self._condition()}:", *self._block(in_loop)]

    def _if_else(self, in_loop: bool) -> List[str]:
        return [*self._if(in_loop), "else:", *self._block(in_loop)]

    def _elif(self, in_loop: bool) -> List[str]:
        lines = [*self._if(in_loop), f"elif {self._condition()}:", *self._block(in_loop)]
        return lines + (["else:", *self._block(in_loop)] if self._chance(0.5) else [])

    def _nested_ifs(self, in_loop: bool) -> List[str]:
        inner = self._one((self._if, self._if_else, self._nested_ifs))(in_loop)
        lines = [f"if {self._condition()}:", *("    " + line for line in inner)]
        return lines + (["else:", *self._block(in_loop)] if self._chance(0.4) else [])

    def _while(self, _in_loop: bool) -> List[str]:
        """Every turn of a loop logs something, so that the run ends."""
        if self._chance(0.2):
            return [f"while {self._call()} and {self._condition()}:", "    pass"]
        return [f"while {self._condition()}:", f"    {self._call()}", *self._block(True)]

    def _while_else(self, in_loop: bool) -> List[str]:
        return [*self._while(in_loop), "else:", *self._block(in_loop)]

    def _for(self, _in_loop: bool) -> List[str]:
        return [f"for b in {self._condition()}:", *self._block(True)]

    def _try(self, in_loop: bool) -> List[str]:
        lines = ["try:", *self._block(in_loop)]
        lines += self._one((["except Alpha:"], ["except Alpha as b:"], ["finally:"], [f"except {self._condition()}:"]))
        return lines + self._block(in_loop)

    def _with(self, in_loop: bool) -> List[str]:
        return [f"with {self._condition()}{self._one(('', ' as d'))}:", *self._block(in_loop)]

    def _match(self, in_loop: bool) -> List[str]:
        lines = [f"match {self._condition()}:"]
        for pattern in self._random.sample(("0", "[x, *_]", "None", "int()", "(1 | 'text')"), self._one((1, 2))):
            guard = f" if {self._condition()}" if self._chance(0.7) else ""
            lines += [f"    case {pattern}{guard}:", *("    " + line for line in self._block(in_loop))]
        return lines

    def _function(self, _in_loop: bool) -> List[str]:
        default, decorators = self._condition(1), [f"@f({self._condition(1)})"] * self._chance(0.3)
        test, result = (self._inner("x", self._condition) for _ in range(2))
        body = [f"    if {test}:", "        return x", f"    return {result}"]
        return [*decorators, f"def inner(x={default}):", *body, "d = inner()"]

    def _class(self, _in_loop: bool) -> List[str]:
        test = self._inner("x", self._condition)
        body = [f"    if {test}:", "        y = 1"] if self._chance(0.5) else [f"    x = {test}"]
        return [self._one(("class Inner:", f"class Inner(Alpha, p={self._condition(1)}):")), *body]
