"""Random functions by the grammar: expressions and statements of every kind, run on objects that log what happens.

Where random_programs.py is after control flow, this is after everything else: operators, calls, unpacking, slices,
comprehensions, f-strings, closures, classes, generators, coroutines. Any syntax can be run, because every name is bound
to a ``Thing``: it answers every operation there is, from a seeded stream, with another thing, a plain value or an
exception, and logs it. Two functions with the same log do the same things in the same order.
"""

from __future__ import annotations

import random
import re
import sys
import types
import warnings
from types import CodeType, FunctionType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

# --- what programs run on ----------------------------------------------------------------------------------------


class Alpha(Exception):
    pass


class Beta(Exception):
    pass


class OutOfFuel(BaseException):
    """Ends programs that would not; no ``except Exception`` stops it."""


class World:
    """The log of one run, and the stream that things answer from."""

    def __init__(self, seed: int, fuel: int = 300) -> None:
        self.random = random.Random(seed)
        self.log: List[Any] = []
        self._fuel = fuel
        self._things = 0

    def number(self) -> int:
        self._things += 1
        return self._things

    def happens(self, *entry: Any) -> None:
        """Log an operation; it may raise."""
        self.log.append(tuple(described(part) for part in entry))
        self._fuel -= 1
        if self._fuel < 0:
            raise OutOfFuel
        answer = self.random.random()
        if answer < 0.03:
            raise (Alpha if answer < 0.02 else Beta)(self._things)

    def value(self) -> Any:
        answer = self.random.random()
        if answer < 0.88:
            return Thing(self)
        return self.random.choice([0, 1, 2, True, False, None, "text", [Thing(self), 1], (Thing(self), Thing(self))])


def described(value: Any) -> Any:
    """A value as it can be compared with that of another run."""
    if isinstance(value, Thing):
        return f"thing {object.__getattribute__(value, '_number')}"
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)) or value is Ellipsis:
        return (type(value).__name__, re.sub(r"0x[0-9a-f]+>", "address>", repr(value)))  # messages quote objects
    if isinstance(value, (tuple, list)):
        return (type(value).__name__, *map(described, value))
    if isinstance(value, (set, frozenset)):
        return (type(value).__name__, *sorted(map(repr, map(described, value))))
    if isinstance(value, dict):
        return ("dict", *((described(key), described(item)) for key, item in value.items()))
    if isinstance(value, slice):
        return ("slice", described(value.start), described(value.stop), described(value.step))
    if isinstance(value, types.FunctionType):
        facts = (value.__defaults__, value.__kwdefaults__, value.__annotations__, value.__doc__)
        return ("function", value.__name__, value.__qualname__, *map(described, facts))
    if isinstance(value, type):
        return ("class", value.__qualname__)
    if isinstance(value, BaseException):
        return described_error(value)
    return type(value).__name__


def described_error(error: Optional[BaseException]) -> Tuple[Any, ...]:
    if error is None:
        return ()
    facts = (type(error).__name__, tuple(map(described, error.args)), error.__suppress_context__)
    return (*facts, described_error(error.__cause__), described_error(error.__context__))


class Thing:
    """Answers every operation. Its own state is out of the way of the attributes that programs set."""

    def __init__(self, world: World) -> None:
        object.__setattr__(self, "_world", world)
        object.__setattr__(self, "_number", world.number())

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            return object.__getattribute__(self, name)
        _happens(self, "get", name)
        return object.__getattribute__(self, "_world").value()

    def __setattr__(self, name: str, value: Any) -> None:
        _happens(self, "set", name, value)

    def __delattr__(self, name: str) -> None:
        _happens(self, "del", name)

    def __bool__(self) -> bool:
        _happens(self, "bool")
        return _world(self).random.random() < 0.5

    def __hash__(self) -> int:
        return int(object.__getattribute__(self, "_number"))

    def __contains__(self, item: Any) -> bool:
        _happens(self, "contains", item)
        return _world(self).random.random() < 0.5

    def __setitem__(self, key: Any, value: Any) -> None:
        _happens(self, "setitem", key, value)

    def __delitem__(self, key: Any) -> None:
        _happens(self, "delitem", key)

    def __format__(self, spec: str) -> str:
        _happens(self, "format", spec)
        return f"<{object.__getattribute__(self, '_number')}:{spec}>"

    def __str__(self) -> str:
        _happens(self, "str")
        return f"<{object.__getattribute__(self, '_number')}>"

    def __repr__(self) -> str:
        _happens(self, "repr")
        return f"<<{object.__getattribute__(self, '_number')}>>"

    def __iter__(self) -> Iterator[Any]:
        _happens(self, "iter")
        return self._items()

    def _items(self) -> Iterator[Any]:
        world = _world(self)
        for _ in range(world.random.choice((0, 1, 2, 2, 3))):
            _happens(self, "next")
            yield world.value()

    def keys(self) -> List[str]:
        _happens(self, "keys")
        return [_world(self).random.choice("pqr")]

    def __enter__(self) -> Any:
        _happens(self, "enter")
        return _world(self).value()

    def __exit__(self, kind: Any, error: Any, _trace: Any) -> bool:
        _happens(self, "exit", kind and kind.__name__)
        return kind is not None and issubclass(kind, Exception) and _world(self).random.random() < 0.4

    def __await__(self) -> Iterator[Any]:
        _happens(self, "await")
        if _world(self).random.random() < 0.5:
            yield "awaited"
        return _world(self).value()

    async def __aenter__(self) -> Any:
        return self.__enter__()

    async def __aexit__(self, *error: Any) -> bool:
        return self.__exit__(*error)

    async def __aiter_items(self) -> Any:
        for item in object.__getattribute__(self, "_items")():
            yield item

    def __aiter__(self) -> Any:
        _happens(self, "aiter")
        return object.__getattribute__(self, "_Thing__aiter_items")()


def _world(thing: Thing) -> World:
    world: World = object.__getattribute__(thing, "_world")
    return world


def _happens(thing: Thing, *entry: Any) -> None:
    _world(thing).happens(thing, *entry)


def _answering(name: str) -> Callable[..., Any]:
    def method(self: Thing, *values: Any, **named: Any) -> Any:
        _happens(self, name, *values, *named.items())
        return _world(self).value()

    return method


_OPERATORS = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
]
for _name in [
    *(prefix + name for name in _OPERATORS for prefix in ("", "r", "i")),
    *["eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "invert", "getitem", "call"],
]:
    setattr(Thing, f"__{_name}__", _answering(_name))
Thing.__iter__ = lambda self: (_happens(self, "iter"), object.__getattribute__(self, "_items")())[1]  # type: ignore


NAMES = ("f", "g", "h", "k")
"""Globals that programs may use besides ``Alpha`` and ``Beta``."""


def run(code: CodeType, seed: int) -> List[Any]:
    """Run ``program(a, b, *c, d, **e)``; the log, which ends with how it ended."""
    world = World(seed)
    names: Dict[str, Any] = {name: Thing(world) for name in NAMES}
    names.update(Alpha=Alpha, Beta=Beta, __name__="programs")
    function = FunctionType(code, names, "program", None, ())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = function(Thing(world), Thing(world), Thing(world), d=Thing(world), x=Thing(world))
            world.log.append(("returned", described(_driven(result, world))))
        except OutOfFuel:
            world.log.append("out of fuel")
        except Exception as error:
            world.log.append(("raised", described(error)))
    world.log.append(("globals", *(described(names.get(name)) for name in (*NAMES, "n"))))
    return world.log


def _driven(result: Any, world: World) -> Any:
    """Generators and coroutines run to their end, with messages sent to them."""
    if isinstance(result, types.AsyncGeneratorType):
        return _driven(_collected(result), world)
    if not isinstance(result, (types.GeneratorType, types.CoroutineType)):
        return result
    seen: List[Any] = []
    message: Any = None
    try:
        while len(seen) < 20:
            if seen and world.random.random() < 0.1:
                seen.append(described(result.throw(Alpha("thrown"))))
            else:
                seen.append(described(result.send(message)))
            message = world.value()
    except StopIteration as stop:
        return seen, stop.value
    result.close()
    return seen


async def _collected(generator: Any) -> List[Any]:
    return [item async for item in generator]


# --- programs ----------------------------------------------------------------------------------------------------


def program(rng: random.Random, size: int = 5) -> str:
    """The source of a function ``program(a, b, *c, d, **e)`` with about ``size`` compound statements."""
    return _Writer(rng, size).program()


class _Scope:
    """What can stand in the code that is being written."""

    def __init__(self, kind: str, names: Sequence[str], asynchronous: bool = False, generator: bool = False) -> None:
        self.kind = kind  # "function", "class", "lambda"
        self.names = list(names)
        self.asynchronous, self.generator = asynchronous, generator
        self.loop = False
        self.comprehension = False


class _Writer:
    def __init__(self, rng: random.Random, budget: int) -> None:
        self._random = rng
        self._budget = budget
        self._scope = _Scope("function", ["a", "b", "d"])

    def program(self) -> str:
        scope = self._scope
        kind = self._random.random()
        scope.generator = kind < 0.15 or 0.25 < kind < 0.3
        scope.asynchronous = 0.15 <= kind < 0.3
        guarded = self._chance(0.6)
        body: List[str] = []
        while self._budget > 0 or not body:
            body += self._guarded() if guarded else self._statement(1)
        if scope.generator:
            body.append("    yield a\n")
        elif self._chance(0.5):
            body.append("    return (a, b, c, d, e)\n")
        head = "async def" if scope.asynchronous else "def"
        return f"{head} program(a, b, *c, d, **e):\n" + "".join(body)

    # --- helpers -----------------------------------------------------------------------------------------------------

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _one(self, options: Sequence[Any]) -> Any:
        return self._random.choice(options)

    def _several(self, make: Callable[[], str], low: int, high: int) -> List[str]:
        return [make() for _ in range(self._random.randint(low, high))]

    def _name(self) -> str:
        return str(self._one([*self._scope.names, *self._scope.names, *NAMES]))

    def _target_name(self) -> str:
        name = str(self._one("abdnxyz"))
        if name not in self._scope.names and name != "n":
            self._scope.names.append(name)
        return name

    def _guarded(self) -> List[str]:
        """A statement whose error does not end the program: what comes behind it runs, too."""
        inner = self._statement(2)
        return ["    try:\n", *inner, "    except Exception as error:\n", "        h(error)\n"]

    # --- statements --------------------------------------------------------------------------------------------------

    def _block(self, depth: int, most: int = 2) -> List[str]:
        lines: List[str] = []
        for _ in range(self._random.randint(1, most)):
            lines += self._statement(depth)
            if lines[-1].split()[0] in ("return", "raise", "break", "continue"):
                break
        return lines

    def _statement(self, depth: int) -> List[str]:
        if self._budget > 0 and depth < 6 and self._chance(0.5):
            self._budget -= 1
            kinds = [self._if, self._for, self._while, self._try, self._with, self._function, self._class]
            if sys.version_info >= (3, 10):
                kinds.append(self._match)
            lines: List[str] = self._one(kinds)(depth)
            return lines
        return ["    " * depth + self._simple() + "\n"]

    def _simple(self) -> str:
        choice = self._random.random()
        value = self._expression
        if choice < 0.35:
            targets = "".join(f"{self._target()} = " for _ in range(self._one((1, 1, 1, 2))))
            return targets + (self._yield() if self._scope.generator and self._chance(0.2) else value())
        if choice < 0.45:
            operator = self._one(("+", "-", "*", "/", "//", "%", "@", "&", "|", "^", "<<", ">>", "**"))
            return f"{self._place()} {operator}= {value()}"
        if choice < 0.7:
            return value()
        if choice < 0.75:
            place = self._target_name() if self._scope.kind == "class" else f"{self._name()}.p"
            return f"{place}: {value(2)}" + (f" = {value()}" if self._chance(0.7) else "")
        if choice < 0.8:
            return "del " + ", ".join(self._several(self._place, 1, 2))
        if choice < 0.84:
            return f"assert {value()}" + (f", {value()}" if self._chance(0.5) else "")
        if choice < 0.88:
            cause = f" from {self._one(('None', 'Alpha()', value()))}" if self._chance(0.3) else ""
            return f"raise {self._one(('Alpha', 'Beta(1)', value()))}{cause}"
        if choice < 0.92 and self._scope.kind == "function":
            plain = self._scope.asynchronous and self._scope.generator
            return "return" if plain else f"return {value()}"
        if choice < 0.97 and self._scope.loop:
            return str(self._one(("break", "continue")))
        return "pass"

    def _yield(self) -> str:
        if not self._scope.asynchronous and self._chance(0.3):
            return f"yield from {self._expression()}"
        return f"yield {self._expression()}" if self._chance(0.8) else "yield"

    def _place(self) -> str:
        kind = self._random.random()
        if kind < 0.4:
            return self._target_name()
        return self._attribute() if kind < 0.7 else self._item()

    def _attribute(self) -> str:
        return f"({self._expression(2)}).{self._one(('p', 'q', '_r'))}"

    def _item(self) -> str:
        return f"({self._expression(2)})[{self._index()}]"

    def _target(self, depth: int = 0) -> str:
        if depth > 1 or self._chance(0.75):
            return self._place()
        parts = [self._target(depth + 1) for _ in range(self._random.randint(1, 3))]
        if self._chance(0.7):
            index = self._random.randrange(len(parts))
            parts[index] = "*" + self._place()
        text = ", ".join(parts)
        return f"[{text}]" if self._chance(0.3) else f"({text},)"

    def _if(self, depth: int) -> List[str]:
        pad = "    " * depth
        lines = [f"{pad}if {self._expression()}:\n", *self._block(depth + 1)]
        while self._chance(0.2):
            lines += [f"{pad}elif {self._expression()}:\n", *self._block(depth + 1)]
        if self._chance(0.4):
            lines += [f"{pad}else:\n", *self._block(depth + 1)]
        return lines

    def _loop(self, depth: int, head: str) -> List[str]:
        pad = "    " * depth
        around, self._scope.loop = self._scope.loop, True
        lines = [f"{pad}{head}:\n", *self._block(depth + 1)]
        self._scope.loop = around
        if self._chance(0.25):
            lines += [f"{pad}else:\n", *self._block(depth + 1)]
        return lines

    def _for(self, depth: int) -> List[str]:
        prefix = "async " if self._scope.asynchronous and self._chance(0.5) else ""
        return self._loop(depth, f"{prefix}for {self._target()} in {self._expression()}")

    def _while(self, depth: int) -> List[str]:
        return self._loop(depth, f"while f({self._expression(2)})")

    def _try(self, depth: int) -> List[str]:
        pad = "    " * depth
        lines = [f"{pad}try:\n", *self._block(depth + 1)]
        handlers = self._random.sample(["Alpha", "Beta", "(Alpha, Beta)", "Exception"], self._one((0, 1, 1, 2)))
        for handler in handlers:
            name = f" as {self._target_name()}" if self._chance(0.4) else ""
            lines += [f"{pad}except {handler}{name}:\n", *self._block(depth + 1)]
            if self._chance(0.15):
                lines.append(f"{pad}    raise\n")
        if handlers and self._chance(0.3):
            lines += [f"{pad}else:\n", *self._block(depth + 1)]
        if not handlers or self._chance(0.25):
            around, self._scope.loop = self._scope.loop, self._scope.loop and sys.version_info >= (3, 8)
            lines += [f"{pad}finally:\n", *self._block(depth + 1)]
            self._scope.loop = around
        return lines

    def _with(self, depth: int) -> List[str]:
        prefix = "async " if self._scope.asynchronous and self._chance(0.5) else ""

        def manager() -> str:
            return f"{self._expression()}" + (f" as {self._target()}" if self._chance(0.5) else "")

        return [f"{'    ' * depth}{prefix}with {', '.join(self._several(manager, 1, 2))}:\n", *self._block(depth + 1)]

    def _parameters(self) -> Tuple[str, List[str]]:
        names = self._random.sample(["p", "q", "r", "s", "t"], self._random.randint(0, 4))
        text, default = [], False
        for name in names[:2]:
            default = default or self._chance(0.3)
            note = f": {self._expression(2)}" if self._chance(0.2) else ""
            text.append(name + note + (f" = {self._expression(2)}" if default else ""))
        if text and self._chance(0.2):
            text.append("/")
        if len(names) > 2:
            text.append(self._one(("*", "*rest")))
            names += ["rest"] if text[-1] == "*rest" else []
            text += [
                name + (f"={self._expression(2)}" if self._chance(0.5) else "") for name in names[2:4] if name != "rest"
            ]
        if self._chance(0.15):
            text.append("**more")
            names.append("more")
        return ", ".join(text), names

    def _function(self, depth: int) -> List[str]:
        pad = "    " * depth
        decorators = [f"{pad}@{self._one(NAMES)}({self._expression(2)})\n" for _ in range(self._one((0, 0, 0, 1)))]
        parameters, names = self._parameters()
        returns = f" -> {self._expression(2)}" if self._chance(0.15) else ""
        outer = self._scope
        inner = _Scope("function", [*outer.names, *names])
        inner.asynchronous, inner.generator = self._chance(0.15), self._chance(0.2)
        self._scope = inner
        head: List[str] = []
        if self._chance(0.2):
            head.append(f'{pad}    """Text."""\n')
        if self._chance(0.2):
            head.append(f"{pad}    global n\n")
        outside = [name for name in outer.names if name not in names]
        if outer.kind == "function" and outside and self._chance(0.3):
            head.append(f"{pad}    nonlocal {self._one(outside)}\n")
        body = self._block(depth + 1)
        if inner.generator:
            body.append(f"{pad}    {self._yield()}\n")
        self._scope = outer
        name = self._one(("inner", "other"))
        prefix = "async " if inner.asynchronous else ""
        call = f"{pad}{self._target_name()} = {name}({', '.join(self._several(self._expression, 0, 2))})\n"
        lines = [*decorators, f"{pad}{prefix}def {name}({parameters}){returns}:\n", *head, *body]
        return lines + ([call] if self._chance(0.7) else [])

    def _class(self, depth: int) -> List[str]:
        pad = "    " * depth
        outer = self._scope
        self._scope = _Scope("class", outer.names)
        body = self._block(depth + 1, 3)
        self._scope = outer
        bases = self._one(("", "", "(Alpha)", "(object, metaclass=type)"))
        name = self._one(("Inner", "Other"))
        return [f"{pad}class {name}{bases}:\n", *body]

    def _match(self, depth: int) -> List[str]:
        pad = "    " * depth
        lines = [f"{pad}match {self._expression()}:\n"]
        for _ in range(self._random.randint(1, 3)):
            guard = f" if {self._expression()}" if self._chance(0.3) else ""
            lines += [f"{pad}    case {self._pattern()}{guard}:\n", *self._block(depth + 2)]
        return lines

    def _pattern(self, depth: int = 0) -> str:
        kind = self._random.random()
        if depth > 2 or kind < 0.35:
            return str(self._one(("0", "1", "'text'", "None", "True", "-1", "k.p", *(["_", "x", "y"] * (depth > 0)))))
        if kind < 0.6:
            parts = [self._pattern(depth + 1) for _ in range(self._random.randint(0, 3))]
            if self._chance(0.3):
                parts.append(self._one(("*_", "*z")))
            return "[" + ", ".join(parts) + "]"
        if kind < 0.7:
            return f"{{'p': {self._pattern(depth + 1)}}}" if self._chance(0.6) else "{'q': _, **z}"
        if kind < 0.85:
            return f"{self._one(('int', 'str', 'list', 'Alpha'))}({self._pattern(3) if self._chance(0.3) else ''})"
        if kind < 0.93:
            return f"({self._one(('0', '1', '[]', 'None'))} | {self._one(('2', 'False', '[_]', 'int()'))})"
        return f"({self._one(('int()', '[_, _]', '[*_]'))} as y)"

    # --- expressions -------------------------------------------------------------------------------------------------

    def _expression(self, depth: int = 0) -> str:
        if depth > 2 or self._chance(0.35):
            return self._atom()
        kinds: List[Callable[[int], str]] = [
            self._binary, self._boolean, self._comparison, self._call, self._call, self._access, self._access,
            self._display, self._comprehension, self._fstring, self._conditional, self._lambda, self._unary,
            self._walrus,
        ]  # fmt: skip
        if self._scope.asynchronous and self._scope.kind == "function":
            kinds += [self._await, self._await]
        text: str = self._one(kinds)(depth + 1)
        return text

    def _atom(self) -> str:
        if self._chance(0.88):
            return self._name()
        constants = ("0", "1", "-1", "2.5", "1j", "'text'", "'it\\'s\\n'", "b'\\x00'", "None", "True", "False", "...",
                     "()", "(1, 'a')", "10 ** 20", "''", "-0.0")  # fmt: skip
        return str(self._one(constants))

    def _binary(self, depth: int) -> str:
        operator = self._one(("+", "-", "*", "/", "//", "%", "@", "&", "|", "^", "<<", ">>"))
        return f"({self._expression(depth)} {operator} {self._expression(depth)})"

    def _boolean(self, depth: int) -> str:
        parts = [self._expression(depth) for _ in range(self._one((2, 2, 3)))]
        return "(" + f" {self._one(('and', 'or'))} ".join(parts) + ")"

    def _comparison(self, depth: int) -> str:
        text = self._expression(depth)
        for _ in range(self._one((1, 1, 1, 2, 3))):
            text += f" {self._one(('<', '<=', '==', '!=', '>', '>=', 'in', 'not in', 'is', 'is not'))} "
            text += self._expression(depth)
        return f"({text})"

    def _call(self, depth: int) -> str:
        arguments = [
            self._one(("", "", "", "", "*")) + self._expression(depth) for _ in range(self._one((0, 1, 1, 2, 3)))
        ]
        arguments += [
            f"{name}={self._expression(depth)}" for name in self._random.sample("pqr", self._one((0, 0, 1, 2)))
        ]
        if self._chance(0.1):
            arguments.append(f"**{self._one(('e', 'e', self._name()))}")
        function = self._name() if self._chance(0.6) else f"({self._expression(depth)}).{self._one('pq')}"
        return f"{function}({', '.join(arguments)})"

    def _index(self) -> str:
        kind = self._random.random()
        if kind < 0.5:
            return self._expression(2)
        parts = [self._expression(2) if self._chance(0.6) else "" for _ in range(self._one((2, 2, 3)))]
        text = ":".join(parts)
        return text if kind < 0.85 else f"{text}, {self._expression(2)}"

    def _access(self, depth: int) -> str:
        base = self._expression(depth)
        return f"({base}).{self._one(('p', 'q', '_r'))}" if self._chance(0.5) else f"({base})[{self._index()}]"

    def _display(self, depth: int) -> str:
        kind = self._one(("tuple", "list", "set", "dict"))
        if kind == "dict":

            def pair() -> str:
                return f"**{self._name()}" if self._chance(0.1) else f"{self._atom()}: {self._expression(depth)}"

            return "{" + ", ".join(self._several(pair, 0, 3)) + "}"
        parts = self._several(lambda: self._one(("", "", "", "*")) + self._expression(depth), 0, 3)
        if kind == "set":
            return "{" + ", ".join(parts or ["1"]) + "}"
        return "[" + ", ".join(parts) + "]" if kind == "list" else "(" + "".join(part + ", " for part in parts) + ")"

    def _comprehension(self, depth: int) -> str:
        scope = self._scope
        around, scope.comprehension = scope.comprehension, True  # no := in what is iterated over
        first = self._expression(depth)
        names, scope.names = scope.names, [*scope.names, "i", "j"]
        generator, scope.generator = scope.generator, False
        clauses = ""
        for number in range(self._one((1, 1, 1, 2))):
            asynchronous = "async " if scope.asynchronous and scope.kind == "function" and self._chance(0.2) else ""
            target = self._one(("i", "j", "(i, j)", "(i, *j)"))
            clauses += f" {asynchronous}for {target} in {first if number == 0 else self._expression(depth)}"
            clauses += "".join(f" if {self._expression(depth)}" for _ in range(self._one((0, 0, 1, 2))))
        element = self._expression(depth)
        kind = self._one(("[]", "{}", "()", "dict"))
        key = f"{self._atom()}: " if kind == "dict" else ""
        scope.names, scope.generator, scope.comprehension = names, generator, around
        if kind == "()":
            return f"list({element}{clauses})" if "async " not in clauses else f"[{element}{clauses}]"
        return f"{{{key}{element}{clauses}}}" if kind in ("{}", "dict") else f"[{element}{clauses}]"

    def _fstring(self, depth: int) -> str:
        parts = ""
        for _ in range(self._random.randint(1, 3)):
            parts += self._one(("", "text", "{{", " % "))
            value = self._one((self._name(), f"{self._name()}.p", f"({self._name()} + 1)", f"{self._name()}[1:]"))
            spec = self._one(("", "", "", ":>10", ":{" + self._name() + "}", ":.{" + self._name() + "}f"))
            parts += "{" + str(value) + str(self._one(("", "", "!r", "!s", "!a"))) + str(spec) + "}"
        return f'f"{parts}"'

    def _conditional(self, depth: int) -> str:
        return f"({self._expression(depth)} if {self._expression(depth)} else {self._expression(depth)})"

    def _lambda(self, depth: int) -> str:
        outer = self._scope
        self._scope = _Scope("lambda", [*outer.names, "p", "q"])
        parameters = self._one(("", "p", "p, q=1", "*p, q", "p, /, *q", "**p"))
        text = f"(lambda {parameters}: {self._expression(depth)})"
        self._scope = outer
        return text if self._chance(0.5) else f"{text}({', '.join(self._several(self._atom, 0, 2))})"

    def _unary(self, depth: int) -> str:
        return f"({self._one(('-', '+', '~', 'not '))}{self._expression(depth)})"

    def _walrus(self, depth: int) -> str:
        if self._scope.kind == "class" or self._scope.comprehension:
            return self._atom()
        return f"({self._one('abn')} := {self._expression(depth)})"

    def _await(self, depth: int) -> str:
        return f"(await {self._expression(depth)})"
