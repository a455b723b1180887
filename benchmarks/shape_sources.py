"""The shapes of code that ``shapes.py`` measures: sources that grow with a number.

A shape is a function from that number to the body of a function, or to a module. Nested expressions and statements have
a bound, which is CPython's own or slightly lower.
"""

from __future__ import annotations

import re
import sys
import textwrap
from dataclasses import dataclass
from typing import Callable, List

from decompile import BRANCHY

SHAPES: List[Shape] = []
HEADER = "def f(a, b, c, d, f, x):\n"
ASYNC_HEADER = "async def f(a, b, c, d, f, x):\n"
STRAIGHT = """\
a = b + c * {n}
b = f(a, c, key={n})
c.attribute_{m} = a[{n}]
d['k{m}'] = [a, b, (c, 'text {n}')]
"""


@dataclass(frozen=True)
class Shape:
    """``make`` returns the source for a number of copies; ``header`` is the ``def`` around it, "" for a module.
    ``folded``: the compiler makes one constant, whose elements are counted as instructions."""

    name: str
    make: Callable[[int], str]
    header: str = HEADER
    most: int = 1_000_000
    folded: bool = False

    def source(self, copies: int) -> str:
        """Return the whole source, indented by four columns. The patterns have one: it is the shorter to write."""
        body = self.make(min(copies, self.most))
        source = self.header + indented(body) if self.header else body
        return re.sub(r"(?m)^ +", lambda indentation: 4 * indentation.group(), source)


def indented(text: str, levels: int = 1) -> str:
    """Return the lines of ``text``, indented."""
    return "".join(" " * levels + line + "\n" for line in text.splitlines())


def in_a_row(pattern: str) -> Callable[[int], str]:
    """Return a function that repeats ``pattern``, with {n} the number of the copy, and {m} one of fifty."""
    return lambda copies: "".join(pattern.replace("{n}", str(n)).replace("{m}", str(n % 50)) for n in range(copies))


def joined(before: str, pattern: str, between: str, after: str) -> Callable[[int], str]:
    """Return a function that repeats ``pattern`` in one line."""
    return lambda copies: (
        before + between.join(pattern.replace("{n}", str(n)).replace("{m}", str(n % 50)) for n in range(copies)) + after
    )


def nested(opening: str, closing: str, inner: str, depth: int) -> Callable[[int], str]:
    """Return a function that repeats ``depth`` levels of ``opening`` ... ``closing`` around ``inner``."""

    def nest(copy: int) -> str:
        lines = indented(inner.replace("{n}", str(copy)), depth)
        for level in reversed(range(depth)):
            lines = indented(opening.replace("{n}", str(copy * depth + level)), level) + lines
            lines += indented(closing.replace("{n}", str(copy * depth + level)), level)
        return lines

    return lambda copies: "".join(nest(copy) for copy in range(max(1, copies // depth)))


def deep(before: str, after: str, inner: str = "a") -> Callable[[int], str]:
    """Return a function for an expression that is nested as deeply as there are copies."""
    return lambda copies: f"return {before * copies}{inner}{after * copies}\n"


def add(
    name: str, make: Callable[[int], str], header: str = HEADER, most: int = 1_000_000, folded: bool = False
) -> None:
    SHAPES.append(Shape(name, make, header, most, folded))


MODULE = ""

# --- statements in a row ---
add("straight-line", in_a_row(STRAIGHT))
add("chained assignment", in_a_row("a = b = c.a{m} = d[{n}] = x\n"))
add("chained assignment, one statement", lambda copies: "".join(f"v{n} = " for n in range(copies)) + "a\n")
add("augmented assignment", in_a_row("a += {n}\nb.a{m} -= a\nc[{n}] *= b\n"))
add("unpacking", in_a_row("a, (b, *c) = d\na, b = b, a\n"))
add("unpacking to many names", lambda copies: ", ".join(f"v{n}" for n in range(copies)) + " = a\n")
add("swaps of many", lambda copies: in_a_row("a, b, c, d = d, c, b, a\n")(copies))
add("many variables", in_a_row("v{n} = a\nf(v{n})\n"))
add(
    "many variables, all used at the end",
    lambda copies: in_a_row("v{n} = f({n})\n")(copies) + joined("f(", "v{n}", ", ", ")\n")(copies),
)
add("many globals", in_a_row("f(g{n}, g{n}.a{n})\n"))
add("global statements", lambda copies: in_a_row("global g{n}\n")(copies) + in_a_row("g{n} = a\n")(copies))
add("del", in_a_row("a = f(b)\ndel a\ndel c[{n}], d.a{m}\n"))
add("assert", in_a_row("assert a > {n}, f(b)\n"))
add("imports in a function", in_a_row("import m{n}.a\nfrom p.q{m} import a as b, c\n"))
add("imports in a module", in_a_row("import m{n}.a\nfrom p.q{m} import a{n} as b, c\n"), MODULE)
add("annotations in a module", in_a_row("v{n}: list[int] = {n}\n"), MODULE)
add("constants in a module", in_a_row("V{n} = {n}\n"), MODULE)
add("return of constants", in_a_row("if a == {n}:\n    return {n}\n"))

# --- branches ---
add(
    "elif chain, returns",
    lambda copies: "if x == -1:\n return f(-1)\n" + in_a_row("elif x == {n}:\n return f({n})\n")(copies),
)
add("elif chain, falls through", lambda copies: "if x == -1:\n f(-1)\n" + in_a_row("elif x == {n}:\n f({n})\n")(copies))
add(
    "elif chain, falls through to code",
    lambda copies: "if x == -1:\n f(-1)\n" + in_a_row("elif x == {n}:\n f({n})\n")(copies) + "f(a)\nf(b)\n",
)
add(
    "elif chain, falls through to a return",
    lambda copies: "if x == -1:\n f(-1)\n" + in_a_row("elif x == {n}:\n f({n})\n")(copies) + "return f(a) + b\n",
)
add(
    "elif chain in a loop",
    lambda copies: "for x in a:\n if x == -1:\n  f(-1)\n" + indented(in_a_row("elif x == {n}:\n f({n})\n")(copies)),
)
add(
    "elif chain in a module",
    lambda copies: "if x == -1:\n f(-1)\n" + in_a_row("elif x == {n}:\n f({n})\n")(copies),
    MODULE,
)
add(
    "elif chain that assigns",
    lambda copies: "if x == -1:\n a = -1\n" + in_a_row("elif x == {n}:\n a = {n}\n")(copies) + "return a\n",
)
add(
    "elif chain with and, or",
    lambda copies: "if x == -1:\n f(-1)\n" + in_a_row("elif x == {n} and (a or b):\n f({n})\n")(copies),
)
add("if in a row", in_a_row("if a == {n}:\n f({n})\nelse:\n f(b)\n"))
add("if in a row that raise", in_a_row("if a == {n}:\n raise b\n"))
add("if nested", nested("if a > {n}:", "", "f(a)", 60))
add("if nested, with else", nested("if a > {n}:", "else:\n f({n})", "f(a)", 60))
add("if nested in else", nested("if a > {n}:\n f({n})\nelse:", " f(b)", "f(a)", 60))
add("and chain in if", joined("if ", "a{m} > {n}", " and ", ":\n f(a)\n"))
add("or chain in if", joined("if ", "a{m} > {n}", " or ", ":\n f(a)\n"))
add("and chain, value", joined("return ", "a{m}", " and ", "\n"))
add("or chain of calls, value", joined("return ", "f({n})", " or ", "\n"))
add("and, or mixed, equal operands, value", joined("return ", "f(a) and b.c", " or ", "\n"))
add("and, or mixed in if", joined("if ", "(a{m} or f({n}) or b)", " and ", ":\n f(a)\n"))
add("comparison chain", joined("return ", "a{m}", " < ", "\n"))
add("comparison chain in if", joined("if ", "a{m}", " < ", ":\n f(a)\n"))
add("conditional expressions in a row", in_a_row("a = b if c > {n} else d\n"))
add("conditional expressions nested", deep("(b if c else ", ")"), most=90)
add("conditional expression, chain", joined("return ", "a{m} if b == {n}", " else ", " else None\n"), most=900)

# --- loops ---
add("for in a row", in_a_row("for a in b:\n f(a, {n})\n"))
add("for nested", nested("for a in f({n}):", "f(b)", "f(a)", 18))
add("while nested", nested("while a > {n}:", " f(b)", "f(a)", 18))
add("while, many breaks", lambda copies: "while a:\n" + indented(in_a_row("if f({n}):\n break\nb += a\n")(copies)))
add(
    "while, many continues", lambda copies: "while a:\n" + indented(in_a_row("if f({n}):\n continue\nb += a\n")(copies))
)
add(
    "while, breaks and continues",
    lambda copies: (
        "while a:\n" + indented(in_a_row("if f({n}):\n b = 1\n break\nelif a:\n c = 2\n continue\nb += a\n")(copies))
    ),
)
add("for with else and break", in_a_row("for a in b:\n if a == {n}:\n  break\nelse:\n f(a)\n"))
add("for, many returns", lambda copies: "for a in b:\n" + indented(in_a_row("if f({n}):\n return a\n")(copies)))
add("while, long and", joined("while ", "a{m} > {n}", " and ", ":\n f(a)\n"))
add("while, long or", joined("while ", "a{m} > {n}", " or ", ":\n f(a)\n"))
add("while in a row", in_a_row("while a > {n}:\n a = f(b)\n"))
add("while True in a row", in_a_row("while True:\n a = f({n})\n if a:\n  break\n f(b)\n"))

# --- exceptions ---
add("try in a row", in_a_row("try:\n f({n})\nexcept E as e:\n f(e)\n"))
add("try in a row, except pass", in_a_row("try:\n f({n})\nexcept E:\n pass\n"))
add("try in a row, else", in_a_row("try:\n f({n})\nexcept E:\n f(a)\nelse:\n f(b)\n"))
add("try with many handlers", lambda copies: "try:\n f(a)\n" + in_a_row("except E{n} as e:\n f(e)\n")(copies))
add("try nested", nested("try:", "except E{n}:\n f(a)", "f(b)", 18))
add("try nested in handlers", nested("try:\n f({n})\nexcept E{n}:", " f(a)", "f(b)", 9))
add("finally in a row", in_a_row("try:\n f({n})\nfinally:\n f(a)\n"))
add(
    "finally with returns",
    lambda copies: "try:\n" + indented(in_a_row("if a == {n}:\n return f({n})\n")(copies)) + "finally:\n f(a)\n",
)
add("finally with returns in a row", in_a_row("try:\n if a == {n}:\n  return f({n})\nfinally:\n f(a)\n"))
add("finally nested", nested("try:", "finally:\n f({n})", "f(b)", 5))
add("with in a row", in_a_row("with f({n}) as a:\n f(a)\n"))
add(
    "with, elif chain that returns",
    lambda copies: "with a:\n if x == -1:\n  f(-1)\n" + in_a_row(" elif x == {n}:\n  f({n})\n  return\n")(copies),
)
add("with nested", nested("with f({n}) as a:", "", "f(a)", 18))
add("with of many", in_a_row("with f({n}) as a, f(a), f(b) as b:\n f(c)\n"))
add("with and returns", in_a_row("with f({n}) as a:\n if a:\n  return f(a)\n"))
add("one try around much", lambda copies: "try:\n" + indented(in_a_row(STRAIGHT)(copies)) + "except E:\n f(a)\n")
add("one with around much", lambda copies: "with a:\n" + indented(in_a_row(STRAIGHT)(copies)))

# --- match ---
if sys.version_info >= (3, 10):
    add("match, constants", lambda copies: "match x:\n" + indented(in_a_row("case {n}:\n f({n})\n")(copies)))
    add(
        "match, constants, returns",
        lambda copies: "match x:\n" + indented(in_a_row("case {n}:\n return f({n})\n")(copies)),
    )
    add("match, sequences", lambda copies: "match x:\n" + indented(in_a_row("case [{n}, y]:\n f(y)\n")(copies)))
    add("match, mappings", lambda copies: "match x:\n" + indented(in_a_row("case {'k{n}': y}:\n f(y)\n")(copies)))
    add("match, classes", lambda copies: "match x:\n" + indented(in_a_row("case C{n}(a=y):\n f(y)\n")(copies)))
    add(
        "match, alternatives",
        lambda copies: "match x:\n" + indented(in_a_row("case {n} | 'k{n}' | None:\n f({n})\n")(copies)),
    )
    add("match, guards", lambda copies: "match x:\n" + indented(in_a_row("case [y, z] if y > {n}:\n f(z)\n")(copies)))
    add(
        "match in a row, alternatives and guards",
        in_a_row("match x:\n case {n} | 'k{n}' | None:\n  f(a)\n case _ if a:\n  f(b)\n case [y]:\n  f(y)\n"),
    )
    add("match in a row", in_a_row("match x:\n case {n}:\n  f(a)\n case [y, z]:\n  f(y)\n case _:\n  f(b)\n"))

# --- expressions ---
add("sum of names", joined("return ", "a{m}", " + ", "\n"), most=3000)
add("sum of products", joined("return ", "a * x[{n}]", " + ", "\n"), most=3000)
add("string concatenation", joined("return ", "'text {n}' + a", " + ", "\n"), most=2000)
add("percent formatting", in_a_row("f('%s and %d of {n}' % (a, b))\n"))
add("attribute chain", deep("", ".a"), most=1500)
add("subscript chain", deep("", "[b]"), most=1500)
add("method chain", deep("", ".m(b)"), most=1000)
add("calls nested", deep("f(b, ", ")"), most=85)
add("calls nested in a row", lambda copies: in_a_row("f(" * 20 + "{n}" + ", a)" * 20 + "\n")(max(1, copies // 20)))
add("parentheses nested", deep("(b + ", ")"), most=90)
add("lists nested", deep("[b, ", "]"), most=90)
add("call, many arguments", joined("return f(", "a{m}", ", ", ")\n"))
add("call, many keywords", joined("return f(", "k{n}=a", ", ", ")\n"))
add("call, many stars", joined("return f(", "*a{m}", ", ", ")\n"))
add("list of names", joined("return [", "a{m}", ", ", "]\n"))
add("list of constants", joined("return [", "{n}", ", ", "]\n"), folded=True)
add("list of stars", joined("return [", "*a{m}, b", ", ", "]\n"))
add("tuple of names", joined("return (", "a{m}", ", ", ")\n"))
add("tuple of constants", joined("return (", "{n}", ", ", ")\n"), folded=True)
add("tuple of tuples of constants", joined("return (", "({n}, 'k{n}')", ", ", ")\n"), folded=True)
add("set of names", joined("return {", "a{m}", ", ", "}\n"))
add("set of constants", joined("return {", "{n}", ", ", "}\n"), folded=True)
add("dict of names", joined("return {", "a{m}: b", ", ", "}\n"))
add("dict of constants", joined("return {", "'k{n}': {n}", ", ", "}\n"))
add("dict of constants and names", joined("return {", "'k{n}': a", ", ", "}\n"))
add("dict of dicts", joined("return {", "'k{n}': {'a': a, 'b': {n}}", ", ", "}\n"))
add("list of conditional expressions", joined("return [", "a if b == {n} else c", ", ", "]\n"))
add("call, many conditional arguments", joined("return f(", "a if b == {n} else c", ", ", ")\n"))
add("call, many named arguments", joined("return f(", "(v{n} := f({n}))", ", ", ")\n"))
add("dict in a module", joined("D = {", "'k{n}': {n}", ", ", "}\n"), MODULE)
add("dict of stars", joined("return {", "**a{m}, 'k': b", ", ", "}\n"))
add("list of tuples in a module", joined("L = [", "('k{n}', a, {n})", ", ", "]\n"), MODULE)
add("f-string, many parts", joined("return f'", "{a} and {b.c!r:>{x}} ", "", "'\n"))
add("f-strings in a row", in_a_row("f(f'{a} of {n}: {b!r}')\n"))
add("slices", in_a_row("a[{n}:b] = c[b:{n}:2]\n"))
add("named expressions", in_a_row("if (a := f({n})) and (b := a):\n f(b)\n"))

# --- definitions ---
add("functions in a module", in_a_row("def f{n}(a, b=1):\n return a + b\n"), MODULE)
add("functions with annotations", in_a_row("def f{n}(a: int, b: str = '') -> int:\n return a\n"), MODULE)
add("functions with decorators", in_a_row("@d\n@e({n})\ndef f{n}(a):\n return a\n"), MODULE)
add("functions with docstrings", in_a_row("def f{n}(a):\n '''Text {n}.'''\n return a\n"), MODULE)
add("functions in a function", in_a_row("def f{n}(a):\n return a + {n}\n"))
add("functions nested", nested("def f{n}(a):", " return f(a)", "return a", 15), MODULE)
add(
    "function, many parameters",
    lambda copies: joined("def g(", "p{n}=a", ", ", "):\n")(copies) + in_a_row(" f(p{n})\n")(copies),
    most=100_000,
)
add("lambdas", in_a_row("a = lambda x, y={n}: x + y\n"))
add("classes in a module", in_a_row("class C{n}(B):\n x = {n}\n def m(self):\n  return self.x\n"), MODULE)
add(
    "class with many methods",
    lambda copies: "class C:\n" + indented(in_a_row("def m{n}(self, a):\n return self.m{n}(a)\n")(copies)),
    MODULE,
)
add("class with many attributes", lambda copies: "class C:\n" + indented(in_a_row("a{n} = f({n})\n")(copies)), MODULE)
add("classes nested", nested("class C{n}:", " x = {n}", "y = 1", 15), MODULE)
add(
    "properties",
    lambda copies: (
        "class C:\n"
        + indented(
            in_a_row(
                "@property\ndef p{n}(self):\n return self._p{n}\n@p{n}.setter\ndef p{n}(self, v):\n self._p{n} = v\n"
            )(copies)
        )
    ),
    MODULE,
)
add("comprehensions in a row", in_a_row("a = [f(x, {n}) for x in b if x]\n"))
add(
    "comprehensions nested",
    lambda copies: in_a_row("a = [[[[f(x) for x in y] for y in z] for z in w] for w in b]\n")(max(1, copies // 4)),
)
add(
    "dict, set comprehensions, generators",
    in_a_row("a = {x: y for x, y in b}\nc = {x for x in d}\nf(x.a for x in d)\n"),
)
add(
    "many cells",
    lambda copies: in_a_row("v{n} = f({n})\n")(copies) + "def g():\n" + in_a_row(" f(v{n})\n")(copies) + "return g\n",
)
add("closures in a row", in_a_row("v{n} = a\ndef g{n}():\n return v{n}\n"))
add("generator, many yields", in_a_row("a = yield f(a, {n})\n"))
add("generator, yield from", in_a_row("a = yield from f({n})\n"))
add("async, many awaits", in_a_row("a = await f(a, {n})\n"), ASYNC_HEADER)
add("async with in a row", in_a_row("async with f({n}) as a:\n await f(a)\n"), ASYNC_HEADER)
add("async for in a row", in_a_row("async for a in f({n}):\n await f(a)\n"), ASYNC_HEADER)

# --- mixtures ---
add(
    "branchy",
    in_a_row(textwrap.dedent(BRANCHY)),
)
add(
    "state machine",
    lambda copies: (
        "while True:\n"
        + indented(
            "if x == -1:\n x = 0\n" + in_a_row("elif x == {n}:\n f({n})\n x = a + {n}\n")(copies) + "else:\n return a\n"
        )
    ),
)
