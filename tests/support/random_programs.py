"""Random functions full of control flow, and an oracle that runs them and records which way they went.

Every decision of a program is a call of ``probe(n)`` with a number of its own; the oracle logs the number and answers
from a seeded stream: a small integer, or an exception. So two functions with the same log for many seeds took the same
path every time, evaluated everything in the same order, and ran the same handlers.
"""

from __future__ import annotations

import random
import sys
from types import CodeType, FunctionType, TracebackType
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple, Type


class Alpha(Exception):
    pass


class Beta(Exception):
    pass


class OutOfFuel(BaseException):
    """Ends programs that would not; no ``except Exception`` stops it."""


class Oracle:
    """Answers and logs the probes of one run."""

    def __init__(self, seed: int, fuel: int = 400) -> None:
        self._random = random.Random(seed)
        self._fuel = fuel
        self.log: List[Any] = []

    def probe(self, number: int) -> int:
        self._spend(number)
        answer = self._random.random()
        if answer < 0.03:
            raise Alpha(number)
        if answer < 0.05:
            raise Beta(number)
        return self._random.choice((0, 0, 1, 2, 3))

    def manager(self, number: int) -> Manager:
        self._spend(("manager", number))
        return Manager(self, number)

    def items(self, number: int) -> Iterator[int]:
        self._spend(("items", number))
        for item in range(self._random.randrange(4)):
            self.log.append(("item", number, item))
            yield item

    def suppresses(self) -> bool:
        return self._random.random() < 0.3

    def _spend(self, entry: Any) -> None:
        self.log.append(entry)
        self._fuel -= 1
        if self._fuel < 0:
            raise OutOfFuel


class Manager:
    """A context manager that logs, and sometimes suppresses."""

    def __init__(self, oracle: Oracle, number: int) -> None:
        self._oracle = oracle
        self._number = number

    def __enter__(self) -> int:
        self._oracle.log.append(("enter", self._number))
        return self._number

    def __exit__(
        self, kind: Optional[Type[BaseException]], value: Optional[BaseException], trace: Optional[TracebackType]
    ) -> bool:
        self._oracle.log.append(("exit", self._number, kind and kind.__name__))
        return kind is not None and issubclass(kind, Exception) and self._oracle.suppresses()


def run(code: CodeType, seed: int) -> List[Any]:
    """Run a program's code with the oracle of ``seed``; returns its log, which ends with how the program did."""
    oracle = Oracle(seed)
    names: Dict[str, Any] = {
        "probe": oracle.probe,
        "manager": oracle.manager,
        "items": oracle.items,
        "Alpha": Alpha,
        "Beta": Beta,
    }
    try:
        result = FunctionType(code, names)(1, 2)
        if hasattr(result, "send"):
            result = list(result)
        oracle.log.append(("returned", result))
    except OutOfFuel:
        oracle.log.append("out of fuel")
    except Exception as error:
        oracle.log.append(("raised", *_chain(error)))
    return oracle.log


def _chain(error: Optional[BaseException]) -> Tuple[Any, ...]:
    if error is None:
        return ()
    return (type(error).__name__, str(error), _chain(error.__cause__), _chain(error.__context__))


def program(seed: int, size: int = 6) -> str:
    """The source of a function ``program(a, b)`` with about ``size`` compound statements."""
    return program_from(random.Random(seed), size)


def program_from(rng: random.Random, size: int = 6) -> str:
    """The same, from any source of randomness."""
    return _Writer(rng, size).function()


class _Writer:
    def __init__(self, rng: random.Random, budget: int) -> None:
        self._random = rng
        self._budget = budget
        self._counter = 0
        self._generator = self._random.random() < 0.15

    def function(self) -> str:
        body = self._block(1, in_loop=False)
        while self._budget > 0:
            body += self._statement(1, in_loop=False)
        ending = ["    yield a\n"] if self._generator else []
        return "def program(a, b):\n" + "".join(body + ending) + "    return a, b\n"

    def _number(self) -> int:
        self._counter += 1
        return self._counter

    def _block(self, depth: int, in_loop: bool) -> List[str]:
        lines: List[str] = []
        for _ in range(self._random.choice((1, 1, 2, 2, 3))):
            lines += self._statement(depth, in_loop)
            if lines[-1].split()[0] in ("return", "raise", "break", "continue"):
                break
        return lines

    def _statement(self, depth: int, in_loop: bool) -> List[str]:
        compound = [self._if, self._if, self._while, self._for, self._try, self._try, self._with]
        if sys.version_info >= (3, 10):
            compound.append(self._match)
        if self._budget > 0 and depth < 7 and self._random.random() < 0.7:
            self._budget -= 1
            return self._random.choice(compound)(depth, in_loop)
        return [self._pad(depth) + self._simple(in_loop) + "\n"]

    def _pad(self, depth: int) -> str:
        return "    " * depth

    def _simple(self, in_loop: bool) -> str:
        kinds: List[Callable[[], str]] = [
            lambda: f"a = {self._expression()}",
            lambda: f"b = {self._expression()}",
            lambda: f"a += {self._expression()}",
            lambda: f"probe({self._number()})",
            lambda: self._expression(),
            lambda: f"a, b = b, {self._expression()}",
            lambda: f"assert {self._expression()}, {self._number()}",
            lambda: f"raise {self._random.choice(('Alpha', 'Beta'))}({self._number()})",
            lambda: f"return {self._expression()}",
            lambda: "pass",
        ]
        weights = [6, 6, 3, 6, 2, 2, 1, 1, 1, 1]
        if in_loop:
            kinds += [lambda: "break", lambda: "continue"]
            weights += [3, 3]
        if self._generator:
            kinds.append(lambda: f"a = yield {self._number()}")
            weights.append(3)
        return self._random.choices(kinds, weights)[0]()

    def _expression(self, depth: int = 0) -> str:
        if depth > 2 or self._random.random() < 0.6:
            return self._random.choice([f"probe({self._number()})"] * 4 + ["a", "b", self._random.choice("01")])
        left, right = self._expression(depth + 1), self._expression(depth + 1)
        third = self._expression(depth + 1)
        return self._random.choice(
            (
                f"({left} and {right})",
                f"({left} or {right})",
                f"(not {left})",
                f"({left} == {right})",
                f"({left} == {right} != {third})",
                f"({left} if {right} else {third})",
                f"[{left}, {right}]",
                f"[x for x in items({self._number()}) if {left}]",
                f"(b := {left})",
                f"({left} is not None)",
            )
        )

    def _if(self, depth: int, in_loop: bool) -> List[str]:
        pad = self._pad(depth)
        lines = [f"{pad}if {self._expression()}:\n", *self._block(depth + 1, in_loop)]
        while self._random.random() < 0.25:
            lines += [f"{pad}elif {self._expression()}:\n", *self._block(depth + 1, in_loop)]
        if self._random.random() < 0.5:
            lines += [f"{pad}else:\n", *self._block(depth + 1, in_loop)]
        return lines

    def _while(self, depth: int, in_loop: bool) -> List[str]:
        pad = self._pad(depth)
        if self._random.random() < 0.3:
            # Every turn spends fuel, so that the run ends.
            return [f"{pad}while True:\n", f"{pad}    probe({self._number()})\n", *self._block(depth + 1, True)]
        test = f"probe({self._number()})"
        if self._random.random() < 0.4:
            test = f"({test}) {self._random.choice(('and', 'or'))} {self._expression(1)}"
        return [f"{pad}while {test}:\n", *self._block(depth + 1, True), *self._loop_else(depth, in_loop)]

    def _for(self, depth: int, in_loop: bool) -> List[str]:
        head = f"{self._pad(depth)}for {self._random.choice(('a', 'b', 'i'))} in items({self._number()}):\n"
        return [head, *self._block(depth + 1, True), *self._loop_else(depth, in_loop)]

    def _loop_else(self, depth: int, in_loop: bool) -> List[str]:
        if self._random.random() < 0.3:
            return [f"{self._pad(depth)}else:\n", *self._block(depth + 1, in_loop)]
        return []

    def _try(self, depth: int, in_loop: bool) -> List[str]:
        pad = self._pad(depth)
        lines = [f"{pad}try:\n", *self._block(depth + 1, in_loop)]
        handlers = self._random.sample(
            ("Alpha", "Beta", "Exception as e", "(Alpha, Beta) as e"), self._random.randrange(3)
        )
        for handler in handlers:
            lines += [f"{pad}except {handler}:\n", *self._block(depth + 1, in_loop)]
            if self._random.random() < 0.2:
                lines.append(f"{pad}    raise{self._random.choice(('', ' Beta(0)', ' Alpha(0) from None'))}\n")
        if handlers and self._random.random() < 0.3:
            lines += [f"{pad}else:\n", *self._block(depth + 1, in_loop)]
        if not handlers or self._random.random() < 0.3:
            lines += [f"{pad}finally:\n", *self._block(depth + 1, in_loop)]
        return lines

    def _with(self, depth: int, in_loop: bool) -> List[str]:
        managers = [f"manager({self._number()})" for _ in range(self._random.choice((1, 1, 2)))]
        if self._random.random() < 0.5:
            managers[0] += " as a"
        return [f"{self._pad(depth)}with {', '.join(managers)}:\n", *self._block(depth + 1, in_loop)]

    def _match(self, depth: int, in_loop: bool) -> List[str]:
        pad = self._pad(depth)
        lines = [f"{pad}match {self._expression()}:\n"]
        patterns = ["0", "1 | 2", "[]", "[a]", "[a, *_]", "int() if probe(0)", "None", "True"]
        for pattern in self._random.sample(patterns, self._random.choice((1, 2, 3))):
            lines += [f"{pad}    case {pattern}:\n", *self._block(depth + 2, in_loop)]
        if self._random.random() < 0.5:
            lines += [f"{pad}    case _:\n", *self._block(depth + 2, in_loop)]
        return lines
