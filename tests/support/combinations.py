"""Every construct of one kind in every place where it may stand: what a decompiler gets wrong is mostly a pair.

Each function here yields modules of many small functions. They are proved, not run: the corpus has specimens that run.
"""

from __future__ import annotations

import sys
from itertools import product
from textwrap import indent
from typing import Dict, Iterator, Tuple

Named = Tuple[str, str]
"""What a module is called, and its source."""

OPERANDS = {
    "lambda": "(lambda z: x)",
    "comprehension": "[q for q in x]",
    "generator": "(q for q in x)",
    "walrus": "(w := (v := x()))",
    "choice": "(x if y else z)",
    "and": "(x and y())",
    "or": "(x() or y)",
    "chain": "(x < (lambda: 1) < z)",
    "choice_of_lambdas": "((lambda: x) if y else (lambda: z))",
    "or_lambda": "(x or (lambda: y))",
    "tuple": "(x, *y)",
    "call": "x(*y, **z)",
}

CHAINS = {
    "first": "{operand} == t in y",
    "middle": "t < {operand} < y",
    "last": "t is y == {operand}",
    "twice": "t < {operand} >= {operand} != z",
}

PLACES = {
    "elif": "if y: return 1\nelif {E}: return 2\nreturn 3",
    "return": "return {E}",
    "statement": "for t in x:\n    {E}\nclass A:\n    {E}\n{E}",
    "while": "while {E}: t = x()",
    "assert": "assert {E}, x\nreturn t",
    "and": "if t and {E} or x: return 2\nx()",
    "choice": "return t if {E} else y",
    "condition": "return [t for t in y if {E}]",
    "guard": (
        "match t:\n    case [1, a] | [a, 2] if {E}: return a\n    case 1 | 2: return {E}\n"
        "    case {{'k': v}} if not {E}: return v"
    ),
    "augmented": "t.a[{E}] += {E}",
    "argument": "return t(y(), {E}, k={E})",
    "class": "class A:\n    if t: 1\n    elif {E}: x()\n    u = {E}",
    "dropped": "{E}\nx(); t.y = z()\nreturn t",
    "dropped_in_class": "class A:\n    {E}\n    x(); t.y = z()",
    "try": ("try:\n    if y: return {E}\n    elif {E}: t()\nexcept ({E}):\n    return 4\nfinally:\n    z({E})"),
    "statements": ("for t[{E}] in y:\n    if {E}: continue\n    with {E} as r: break\nelse:\n    del t[{E}]"),
}


def chained_comparisons() -> Iterator[Named]:
    """``t < (lambda: x) < y`` and the like, in every place that takes an expression; a module a place."""
    for place, statements in PLACES.items():
        bodies = {
            f"{position}_{kind}": statements.format(E=chain.format(operand=operand))
            for position, chain in CHAINS.items()
            for kind, operand in OPERANDS.items()
        }
        yield place, functions(bodies)


BLOCKS = {
    "with": "with x:\n{inside}",
    "finally": "try:\n{inside}\nfinally:\n    y() if t else z()",
    "except": "try:\n{inside}\nexcept y:\n    t()",
    "both": "try:\n{inside}\nexcept y:\n    t()\nfinally:\n    z()",
    "loop": "for t in y:\n{inside}",
}


def returns_out_of_blocks() -> Iterator[Named]:
    """``return x or y`` and the like inside of two blocks, one in the other; a module a pair of blocks."""
    for outer, around in BLOCKS.items():
        for inner, block in BLOCKS.items():
            bodies = {}
            for kind, operand in OPERANDS.items():
                inside = indent(block.format(inside=f"    return {operand}"), "    ")
                bodies[kind] = around.format(inside=inside)
            yield f"{outer}_{inner}", functions(bodies)


FINALLY = {
    "finally": "try:\n    x(); {0}\nfinally:\n    y(); {1}\nz()",
    "except_finally": "try:\n    {0}\nexcept E:\n    {1}\nfinally:\n    {2}",
    "except_as_finally": "try:\n    x(); {0}\nexcept E as e:\n    {1}\nfinally:\n    {2}\nz()",
    "finally_in_finally": "try:\n    try: {0}\n    finally: t()\nfinally:\n    {1}",
    "finally_in_handler": "try: t()\nexcept E as e:\n    try: {0}\n    finally: {1}\nz()",
    "handlers_in_finally_in_finally": (
        "try: t()\nfinally:\n    try: x()\n    finally:\n        try: {0}\n        except F: raise\n"
        "        except E as e: {1}"
    ),
    "with_in_handler": "try: z()\nexcept E as e:\n    with x(): {0}\n    t()\nfinally:\n    {1}",
}

WAYS_OUT = {"end": "t()", "call": "return t()", "name": "return y", "number": "return 3"}
WAYS_OUT_OF_LOOPS = {"end": "t()", "break": "break", "continue": "continue", "call": "return x()"}


def ways_out_of_finally() -> Iterator[Named]:
    """Each clause of ``try``-``finally`` left in every way, in functions and in loops; a module a form."""
    for form, body in FINALLY.items():
        clauses = sum(f"{{{number}}}" in body for number in range(3))
        in_loop = "for y in z():\n    " + body.replace("\n", "\n    ") + "\nreturn y"
        for place, text, ways in (("function", body, WAYS_OUT), ("loop", in_loop, WAYS_OUT_OF_LOOPS)):
            kinds = product(ways, repeat=clauses)
            bodies = {"_".join(chosen): text.format(*[ways[kind] for kind in chosen]) for chosen in kinds}
            yield f"{form}_in_{place}", functions(bodies, "def way_{name}(x, y, z, t):")


CLAUSES = ("pass", "t(e)", "raise T", "t(e) if e else z()", "x = [e for e in e]")
ELSES = ("", "\nelse: t()", "\nelse: raise T", "\nelse: (t or z)()")
SCOPES = {
    "module": "{0}",
    "loop": "for x in y:\n    {1}",
    "class": "class A:\n    {1}",
    "loop_in_class": "class A:\n    for x in y:\n        {2}",
    "function": "def f(x, y):\n    {1}",
    "loop_in_function": "def f(x, y):\n    for x in y:\n        {2}",
}


def clauses_that_bind() -> Iterator[Named]:
    """``except E as e`` and ``else`` in scopes where every store of a name can be observed, and in functions."""
    for scope, around in SCOPES.items():
        statements = []
        jumps = ["continue", "break"] if "loop" in scope else []
        for clause, otherwise in product([*CLAUSES, *jumps], ELSES):
            if sys.version_info < (3, 9) and (clause, otherwise) == ("continue", ""):
                continue  # where a jump is no different from the end, the name is forgotten in another order: not seen
            text = f"try: x()\nexcept E as e: {clause}\nexcept F: pass{otherwise}"
            statements.append(around.format(*[text.replace("\n", "\n" + 4 * depth * " ") for depth in range(3)]))
        yield scope, "\n".join(statements)


TESTS = {
    "truth": "{E}",
    "not": "not {E}",
    "none": "{E} is not None",
    "right": "t() < {E}",
    "call": "x({E}, {E})",
    "and": "t and {E} != 2",
    "or": "{E} is None or {E} == 3",
}

EMPTY_LOOPS = {
    "first": "while {E}: pass",
    "behind": "x()\nt = 1\nwhile {E}: pass\nreturn t",
    "lines": "t()\nwhile (\n    {E}\n):\n    pass\nz()",
    "else": "while {E}: continue\nelse: t()\nreturn z",
    "try": "try:\n    while {E}: pass\nexcept y: t()",
    "handler": "try: t()\nexcept y:\n    t()\n    while {E}: pass\nreturn x",
    "finally": "try: x()\nfinally:\n    y()\n    while {E}: pass",
    "loop": "for t in y:\n    while {E}: pass",
    "with": "with x:\n    t()\n    while {E}: pass\nreturn x",
    "class": "class A:\n    t()\n    while {E}: pass",
}


def empty_loops() -> Iterator[Named]:
    """``while (x or y) is None: pass``: the copy of the test follows the test itself; a module a place."""
    for place, statements in EMPTY_LOOPS.items():
        bodies = {
            f"{kind}_{name}": statements.format(E=test.format(E=operand))
            for kind, test in TESTS.items()
            for name, operand in OPERANDS.items()
        }
        yield place, functions(bodies)


STATEMENTS = {
    "if": "if y: {0}",
    "else": "if t:\n    x()\nelse:\n    {1}",
    "while": "while (z := x()) < y() < t:\n    {1}",
    "endless": "while True:\n    {1}",
    "endless_try": "while True:\n    try:\n        {2}\n    except E: z()",
    "endless_finally": "while True:\n    try:\n        {2}\n    finally: z()",
    "for": "for t, *y in x:\n    {1}",
    "for_else": "for t in x: z()\nelse:\n    {1}",
    "with": "with x() as (t, y), z:\n    {1}",
    "try": "try:\n    {1}\nexcept E as e: t()",
    "except": "try: t()\nexcept E:\n    {1}",
    "except_as": "try: t()\nexcept E as e:\n    {1}\nexcept (F, G): z()",
    "try_else": "try: t()\nexcept E: z()\nelse:\n    {1}",
    "try_finally": "try:\n    {1}\nfinally:\n    if y: z()\n    else: t()",
    "finally": "try: t()\nfinally:\n    {1}",
    "finally_in_finally": "try: t()\nfinally:\n    try:\n        {2}\n    finally: t()",
    "finally_in_finally_in_finally": (
        "try: t()\nfinally:\n    try:\n        try:\n            {3}\n        except E: y()\n        finally: z()\n"
        "    finally: t()"
    ),
    "with_in_finally": "try: t()\nfinally:\n    with z as w:\n        {2}",
    "case": "match x:\n    case 1 | 2:\n        {2}\n    case [t, *_] if y(): z()",
    "guarded": "match x:\n    case {{'k': t}} if y:\n        {2}\n    case _: z()",
    "wildcard": "match x:\n    case C(y=1): z()\n    case _:\n        {2}",
}

IN_STATEMENTS = {
    "call": "x(y)",
    "return": "return",
    "return_call": "return x()",
    "return_choice": "return x() if y else z",
    "return_and": "return x and y()",
    "return_starred": "return *y, x",
    "branch": "if y: return z",
    "break": "if y: break",
    "continue": "if y: continue\nx()",
    "raise": "raise E(x) from y",
    "assert": "assert x and y, z",
    "delete": "del t",
    "walrus": "while (y := x()) or z(): pass",
    "or": "while x(y or t): z(x)",
    "not": "while not (x and y): z()\nelse: t()",
    "else": "for q in x:\n    if q: break\nelse:\n    return y",
    "yield": "yield x",
    "comprehension": "y = {p: [q for q in p if q] for p in x if (t := p)}",
    "function": "def h(p, *, q=x): return y or p",
}


def statements_in_statements() -> Iterator[Named]:
    """Each of the simple statements and loops in each compound one, at the end of it and of the function or not."""
    for outer, around in STATEMENTS.items():
        bodies = {}
        for kind, inner in IN_STATEMENTS.items():
            inside = [inner.replace("\n", "\n" + 4 * depth * " ") for depth in range(4)]
            bodies[kind] = around.format(*inside)
            bodies[f"{kind}_behind"] = f"{bodies[kind]}\nt()"
        yield outer, functions(bodies)


def functions(bodies: Dict[str, str], head: str = "def {name}(x, y, z, t):") -> str:
    """A module with a function for each of ``bodies`` that this Python can compile."""
    parts = []
    for name, body in bodies.items():
        text = "\n    ".join([head.format(name=name), *body.split("\n")])
        try:
            compile(text, "<combination>", "exec", dont_inherit=True)
        except SyntaxError:
            continue
        parts.append(text)
    return "\n".join(parts)
