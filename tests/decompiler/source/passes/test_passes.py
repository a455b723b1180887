"""Each readability pass alone: the shapes it rewrites, and similar shapes that it must not change."""

from __future__ import annotations

import ast
from typing import Any, Callable

import pytest
from cost import grows_like

from depyf.decompiler.source import passes
from depyf.decompiler.source.passes import PASSES, simplify
from depyf.decompiler.source.passes.branches import flatten_branches, merge_withs, remove_passes
from depyf.decompiler.source.passes.copies import propagate_copies
from depyf.decompiler.source.passes.endings import tidy_returns
from depyf.decompiler.source.passes.loops import find_conditions, move_exits_out, remove_continues
from depyf.decompiler.source.passes.percent import restore_percent
from depyf.decompiler.source.passes.release import release
from depyf.decompiler.source.passes.temporaries import fold_temporaries
from depyf.decompiler.source.printing.statements import unparse
from depyf.decompiler.source.rewriting import replaced


class _WithoutIndex(ast.NodeTransformer):
    """Subscripts as the upper layers make them: the parser of 3.8 has a node around each."""

    def visit_Index(self, node: Any) -> Any:
        return self.visit(node.value)


def rewritten(rewrite: Callable[[Any], Any], body: str, parameters: str = "x, y") -> str:
    """``body`` as that of a function, rewritten; ``t0`` stands for ``__temp_0``."""
    source = f"def f({parameters}):\n" + "\n".join("    " + line for line in body.split("\n"))
    for number in range(10):
        source = source.replace(f"t{number}", f"__temp_{number}")
    tree = _WithoutIndex().visit(ast.parse(source))
    before = ast.dump(tree)
    result = unparse(ast.fix_missing_locations(rewrite(tree)))
    assert ast.dump(tree) == before, "the tree that was given has changed"
    for number in range(10):
        result = result.replace(f"__temp_{number}", f"t{number}")
    return "\n".join(line[4:] for line in result.split("\n")[1:])


def compiled_alike(left: str, right: str) -> bool:
    codes = [compile(text, "<compared>", "eval") for text in (left, right)]
    return codes[0].co_code == codes[1].co_code and codes[0].co_consts == codes[1].co_consts


FOLDED = [
    ("t0 = f(x)\nreturn t0", "return f(x)"),
    ("t0 = g\nt1 = a()\nt2 = b()\nt0(t1, t2)", "g(a(), b())"),
    ("t0 = f(x)\nx = t0\ndel t0", "x = f(x)"),
    ("t0 = a()\nreturn x, 1, t0", "return x, 1, a()"),
    ("t0 = a()\nt0.b = 1", "a().b = 1"),
    ("t0 = a()\nt1 = b()\nt0[t1] = x", "a()[b()] = x"),
    ("t0 = a()\nx[t0] += 1", "x[a()] += 1"),
    ("t0 = a()\nfor i in t0:\n    pass", "for i in a():\n    pass"),
    ("t0 = a()\nwith t0 as i:\n    pass", "with a() as i:\n    pass"),
    ("t0 = a()\nif t0:\n    pass", "if a():\n    pass"),
    ("t0 = a()\nraise t0", "raise a()"),
    ("t0 = a()\n@t0\ndef g():\n    pass", "@a()\ndef g():\n    pass"),
    ("if c:\n    t0 = a()\nelse:\n    t0 = b()\nreturn t0", "return a() if c else b()"),
    ("if c:\n    t1 = a\n    t0 = t1()\nelse:\n    t0 = b()\nt2 = t0\nreturn t2", "return a() if c else b()"),
    ("t0 = a()\nif t0:\n    t0 = b()\nreturn t0", "return a() and b()"),
    ("t0 = a()\nif not t0:\n    t0 = b()\nreturn t0", "return a() or b()"),
    ("t0 = a()\nif t0:\n    pass\nelse:\n    t0 = b()\nreturn t0", "return a() or b()"),
    ("t0 = a()\nif t0:\n    t0 = b()\n    if not t0:\n        t0 = c()\nreturn t0", "return a() and (b() or c())"),
    ("t0 = a()\nif t0:\n    t0 = b()\n    if t0:\n        t0 = c()\nreturn t0", "return a() and b() and c()"),
    ("t0 = a()\nt1 = b()\nt2 = t0 < t1\nif t2:\n    t2 = t1 < c()\nreturn t2", "return a() < b() < c()"),
    ("t0 = a()", "a()"),
    ("t0 = 1\nb()", "b()"),
    ("t0 = x\nb()", "b()"),
    ("def g():\n    t0 = a()\n    return t0\nt0 = b()\nreturn t0", "def g():\n    return a()\nreturn b()"),
]


@pytest.mark.parametrize(("before", "after"), FOLDED)
def test_temporaries_are_folded_into_their_use(before: str, after: str) -> None:
    result = rewritten(fold_temporaries, before)
    assert "\n".join(line for line in result.split("\n") if line) == after


KEPT = [
    "t0 = a()\nt1 = b()\ng(t0, t1)",  # g would be looked up before a() is called
    "t0 = a()\nb()\nreturn t0",  # b() comes between
    "t0 = a()\nreturn z, t0",  # z might be set by a()
    "t0 = a()\nreturn x.b + t0",  # x.b might be set by a()
    "t0 = a()\nreturn t0 + t0",  # used twice
    "t0 = a()\nreturn c() and t0",  # c() would come first, and t0 not always
    "t0 = a()\nreturn 1 if x else t0",  # would be evaluated only sometimes
    "t0 = a()\nwhile t0:\n    b()",  # would be evaluated again and again
    "t0 = a()\nreturn lambda: t0",  # would be evaluated later
    "t0 = a()\nreturn [t0 for i in x]",  # would be evaluated again and again
    "t0 = a()\ntry:\n    b(t0)\nexcept E:\n    pass",  # its exceptions would be caught
    "t0 = (x := a())\nreturn x, t0",  # x is loaded after it was stored
    "t0 = a()\nx = t0\nb()\ndel t0",  # lives until after b()
    "t0 = b()\nt1 = a()\nreturn c(t1, t0)",  # in the wrong order
    "t0 = a()\nif t0:\n    t0 = g(t0)\nreturn t0",  # t0 in g(t0) is that of the test
    "x = a()\nreturn x",  # a variable of the user's
    "if c:\n    x = a()\nelse:\n    x = b()\nreturn x",
    "t0 = a()\nif t0:\n    t1 = b()\nreturn t0, t1",
    "t0 = a()\nx[0] = t0\nx = 1\nt0 = b()\nreturn x, t0",  # stored twice
]


@pytest.mark.parametrize("body", KEPT)
def test_temporaries_stay_where_folding_would_change_the_order_or_the_lifetime(body: str) -> None:
    assert rewritten(fold_temporaries, body) == body


def test_a_local_that_may_be_unbound_is_not_moved_in_front_of_a_call() -> None:
    body = "if x:\n    z = 1\nt0 = a()\nreturn z, t0"
    assert rewritten(fold_temporaries, body) == body
    assert rewritten(fold_temporaries, "z = 1\nt0 = a()\nreturn z, t0") == "z = 1\nreturn z, a()"


def test_a_variable_that_a_nested_function_can_change_is_not_stable() -> None:
    body = "def g():\n    nonlocal x\n    x = 1\nt0 = g()\nreturn x, t0"
    result = rewritten(fold_temporaries, body)
    assert "\n".join(line for line in result.split("\n") if line) == body


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("t0 = x\na.b = x\nc.d = t0", "a.b = x\nc.d = x"),
        ("t0 = x\nx = f(t0)", "x = f(x)"),
        ("t0 = x\nt1 = x\nf(t0, t1)\ng(t1)", "f(x, x)\ng(x)"),
        ("t0 = x\nx = 1\nreturn t0", "t0 = x\nx = 1\nreturn t0"),
        ("t0 = x\nx, y[t0] = z", "t0 = x\nx, y[t0] = z"),
        ("t0 = x\nif y:\n    x = 1\nreturn t0", "t0 = x\nif y:\n    x = 1\nreturn t0"),
        ("t0 = x\nf(lambda: t0)", "t0 = x\nf(lambda: t0)"),
        ("t0 = z\nf(t0)", "t0 = z\nf(t0)"),
        ("t0 = x\ndel x\nreturn t0", "t0 = x\ndel x\nreturn t0"),
    ],
)
def test_copies_of_locals_are_replaced_as_long_as_the_local_keeps_its_value(before: str, after: str) -> None:
    assert rewritten(propagate_copies, before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if x:\n    return 1\nelse:\n    b()", "if x:\n    return 1\nb()"),
        (
            "if x:\n    return 1\nelif y:\n    return 2\nelse:\n    return 3",
            "if x:\n    return 1\nif y:\n    return 2\nreturn 3",
        ),
        ("if x:\n    a()\nelse:\n    return 1\nb()", "if x:\n    a()\nelse:\n    return 1\nb()"),
        (
            "if x:\n    a()\nelif y:\n    b()\nelse:\n    raise E",
            "if x:\n    a()\nelif y:\n    b()\nelse:\n    raise E",
        ),
        (
            "if x:\n    a()\nelif y:\n    return 1\nelse:\n    b()",
            "if x:\n    a()\nelif y:\n    return 1\nelse:\n    b()",
        ),
        ("if x:\n    pass\nelse:\n    b()", "if x:\n    pass\nelse:\n    b()"),
        ("if x:\n    if y:\n        b()", "if x and y:\n    b()"),
        ("if x or z:\n    if y:\n        b()", "if (x or z) and y:\n    b()"),
        (
            "if x:\n    if y:\n        b()\n    else:\n        c()",
            "if x:\n    if y:\n        b()\n    else:\n        c()",
        ),
        ("if x:\n    if y:\n        b()\nelse:\n    c()", "if x:\n    if y:\n        b()\nelse:\n    c()"),
        (
            "if x:\n    if y:\n        return 1\n    else:\n        raise E\nelse:\n    c()",
            "if x:\n    if y:\n        return 1\n    raise E\nc()",
        ),
    ],
)
def test_nothing_stands_in_an_else_that_need_not(before: str, after: str) -> None:
    assert rewritten(flatten_branches, before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("while True:\n    if x:\n        break\n    b()", "while not x:\n    b()"),
        ("while True:\n    if not x:\n        break\n    b()", "while x:\n    b()"),
        ("while True:\n    if not x:\n        break", "while x:\n    pass"),
        ("while True:\n    b()\n    if x:\n        break", "while True:\n    b()\n    if x:\n        break"),
        ("while y:\n    if x:\n        break\n    b()", "while y:\n    if x:\n        break\n    b()"),
        ("while True:\n    if x:\n        a()\n        break", "while True:\n    if x:\n        a()\n        break"),
    ],
)
def test_a_test_at_the_start_of_an_endless_loop_is_its_condition(before: str, after: str) -> None:
    assert rewritten(find_conditions, before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "while True:\n    if x:\n        a()\n        break\n    b()",
            "while True:\n    if x:\n        break\n    b()\na()",
        ),
        (
            "while True:\n    if x:\n        try:\n            a()\n            break\n"
            "        except E:\n            break\n"
            "    b()",
            "while True:\n    if x:\n        break\n    b()\ntry:\n    a()\nexcept E:\n    pass",
        ),
        (
            "while True:\n    if x:\n        if y:\n            return 1\n        a()\n        break\n    b()",
            "while True:\n    if x:\n        break\n    b()\nif y:\n    return 1\na()",
        ),
    ],
)
def test_what_is_done_on_the_only_way_out_is_written_behind_the_loop(before: str, after: str) -> None:
    assert rewritten(move_exits_out, before) == after


@pytest.mark.parametrize(
    "body",
    [
        "while True:\n    if x:\n        a()\n        break\n    if y:\n        break",  # two ways out
        "while y:\n    if x:\n        a()\n        break",  # the condition is another
        "while True:\n    if x:\n        if y:\n            continue\n        a()\n        break",  # goes on sometimes
        "while True:\n    if x:\n        a()\n        if y:\n            break",  # goes on sometimes
        "while True:\n    with x:\n        a()\n        break",  # inside of a with
        "for i in x:\n    if i:\n        a()\n        break",
        "while True:\n    if x:\n        a()\n        break\nelse:\n    b()",
    ],
)
def test_other_ways_out_stay_in_the_loop(body: str) -> None:
    assert rewritten(move_exits_out, body) == body


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for i in x:\n    a()\n    continue", "for i in x:\n    a()"),
        ("for i in x:\n    continue", "for i in x:\n    pass"),
        (
            "for i in x:\n    if i:\n        a()\n        continue\n    else:\n        b()",
            "for i in x:\n    if i:\n        a()\n    else:\n        b()",
        ),
        ("for i in x:\n    if i:\n        continue\n    else:\n        b()", "for i in x:\n    if not i:\n        b()"),
        ("for i in x:\n    if i:\n        continue\n    b()", "for i in x:\n    if i:\n        continue\n    b()"),
        (
            "for i in x:\n    try:\n        a()\n    except E:\n        continue",
            "for i in x:\n    try:\n        a()\n    except E:\n        pass",
        ),
        (
            "for i in x:\n    try:\n        a()\n        continue\n    except E:\n        b()\n    else:\n        c()",
            "for i in x:\n    try:\n        a()\n        continue\n    except E:\n        b()\n    else:\n        c()",
        ),
        (
            "for i in x:\n    try:\n        a()\n    finally:\n        continue",
            "for i in x:\n    try:\n        a()\n    finally:\n        continue",
        ),
        (
            "for i in x:\n    for j in i:\n        break\n    else:\n        continue\n    b()",
            "for i in x:\n    for j in i:\n        break\n    else:\n        continue\n    b()",
        ),
    ],
)
def test_no_continue_stands_at_the_end_of_a_loop(before: str, after: str) -> None:
    assert rewritten(remove_continues, before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a()\nreturn None", "a()"),
        ("return", "pass"),
        ("if x:\n    a()\n    return None\nelse:\n    b()\n    return None", "if x:\n    a()\nelse:\n    b()"),
        ("if x:\n    return None\na()", "if x:\n    return\na()"),
        ("if x:\n    return None\nreturn 1", "if x:\n    return None\nreturn 1"),
        ("if x:\n    return 1\na()\nreturn None", "if x:\n    return 1\na()"),
        ("for i in x:\n    return None", "for i in x:\n    return"),
        ("with x:\n    a()\n    return None", "with x:\n    a()"),
        ("try:\n    a()\n    return None\nexcept E:\n    return None", "try:\n    a()\nexcept E:\n    pass"),
        ("try:\n    a()\nfinally:\n    return None", "try:\n    a()\nfinally:\n    return"),
        (
            "try:\n    a()\n    return None\nfinally:\n    return 1",
            "try:\n    a()\n    return None\nfinally:\n    return 1",
        ),
        ("if x:\n    return None\nb = lambda: 1", "if x:\n    return\nb = lambda: 1"),
    ],
)
def test_returns_are_as_one_writes_them(before: str, after: str) -> None:
    assert rewritten(tidy_returns, before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("with x as a:\n    with y:\n        b()", "with x as a, y:\n    b()"),
        ("with x:\n    with y:\n        b()\n    c()", "with x:\n    with y:\n        b()\n    c()"),
        ("with x:\n    async with y:\n        b()", "with x:\n    async with y:\n        b()"),
    ],
)
def test_managers_that_are_entered_together_stand_in_one_with(before: str, after: str) -> None:
    assert rewritten(merge_withs, before.replace("def", "async def")) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "t0 = a()\nreturn b() if t0 else c()",
            "t0 = a()\nif t0:\n    del t0\n    return b()\nelse:\n    del t0\n    return c()",
        ),
        (
            "t0 = a()\nreturn (g if t0 else h).b(x)",
            "t0 = a()\nif t0:\n    del t0\n    return g.b(x)\nelse:\n    del t0\n    return h.b(x)",
        ),
        ("t0 = a()\nreturn g(t0(x), y)", "t0 = a()\n__temp_result_0 = t0(x)\ndel t0\nreturn g(__temp_result_0, y)"),
        ("t0 = a()\nreturn g(t0(x), t0)", "t0 = a()\nreturn g(t0(x), t0)"),
        ("t0 = a()\nreturn x + (g if t0 else h)", "t0 = a()\nreturn x + (g if t0 else h)"),
        ("t0 = a()\nreturn g if x else h(t0)", "t0 = a()\nreturn g if x else h(t0)"),
    ],
)
def test_what_is_only_tested_is_deleted_before_anything_else_happens(before: str, after: str) -> None:
    def released(tree: Any) -> Any:
        (function,) = tree.body
        return ast.Module([replaced(function, body=release(function.body, {"__temp_0"}))], [])

    assert rewritten(released, before) == after


def test_no_pass_stands_beside_other_statements() -> None:
    assert rewritten(remove_passes, "pass\na()\npass\nif x:\n    pass\n    pass") == "a()\nif x:\n    pass"


@pytest.mark.skipif(not compiled_alike("'%s' % (a,)", "f'{a!s}'"), reason="the compiler keeps the two apart")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f'{x!s}: {y!r} 100 %'", "'%s: %r 100 %%' % (x, y)"),
        ("f'{x!s:>10}|{y!s:10}|{x!a:.3}|{x!s:>4.1}'", "'%10s|%-10s|%.3a|%4.1s' % (x, y, x, x)"),
        ("f'{f(f\"{x!s}\")}'", "f\"{f('%s' % (x,))}\""),
        ("f'{x!r}'", "f'{x!r}'"),
        ("f'{1!s}{-2!s}'", "f'{1!s}{-2!s}'"),
        ("f'{x!s}{y}'", "f'{x!s}{y}'"),
        ("f'{x!s:{y}}'", "f'{x!s:{y}}'"),
        ("f'{x!s:^10}'", "f'{x!s:^10}'"),
        ("f'{x!s:010}'", "f'{x!s:010}'"),
        ("f'{x!s:>}'", "f'{x!s:>}'"),
    ],
)
def test_what_percent_was_compiled_to_is_percent_again(before: str, after: str) -> None:
    assert ast.dump(ast.parse(rewritten(restore_percent, before))) == ast.dump(ast.parse(after))
    assert compiled_alike(before, after)


def test_augmented_assignment_and_comparisons_are_not_guessed() -> None:
    body = "x = x + 1\nif not x == y:\n    a()"
    assert rewritten(simplify, body) == body


@pytest.mark.parametrize("shape", ["fold", "keep", "nest", "chain", "copy"])
def test_the_work_grows_with_the_size_and_not_with_its_square(shape: str) -> None:
    def simplifying(count: int) -> Callable[[], object]:
        tree = ast.parse("def f(x, y):\n" + "".join(_statements(shape, count)))
        return lambda: simplify(tree)

    assert grows_like(simplifying, 200, 4) < 1.05


def _statements(shape: str, count: int) -> Any:
    for number in range(count):
        name = f"__temp_{number}"
        if shape == "fold":
            yield f"    {name} = g(x)\n    y = {name}\n"
        elif shape == "keep":
            yield f"    {name} = g(x)\n"
        elif shape == "nest":
            yield f"    if x:\n        while y:\n            {name} = g(x)\n"
            yield f"            h({name})\n            continue\n"
        elif shape == "chain":
            yield f"    {name} = g(__temp_{number - 1})\n" if number % 50 else f"    {name} = x\n"
        else:
            yield f"    {name} = x\n    g({name}, {name})\n"
    if shape == "keep":
        yield "    return [" + ", ".join(f"__temp_{number}" for number in reversed(range(count))) + "]\n"


def test_every_pass_has_its_shapes_here() -> None:
    missing = [each.__name__ for each, _ in PASSES if each.__name__ not in globals()]
    assert not missing, f"test here what these rewrite, and similar shapes that must stay: {missing}"


def test_what_is_in_the_table_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "PASSES", (*PASSES, (lambda tree, contents: [tree], -1)))
    tree = ast.parse("x = 1")
    assert simplify(tree) == [tree]
