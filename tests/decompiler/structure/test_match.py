"""``match`` statements come back as they were written."""

from __future__ import annotations

import ast
import sys
from dataclasses import replace
from types import CodeType
from typing import Any, Dict, List

import pytest
from random_matches import Matches

from depyf.decompiler import decompile_code
from depyf.decompiler.flow.graph import build
from depyf.decompiler.flow.match.patterns import PatternBranch, recover_matches
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import NormalCode, Op

pytestmark = pytest.mark.skipif(sys.version_info < (3, 10), reason="match needs 3.10")


def code_of(source: str) -> CodeType:
    module = compile(source, "<test>", "exec", dont_inherit=True)
    return next(constant for constant in module.co_consts if isinstance(constant, CodeType))


def decompiled(source: str) -> str:
    answer = decompile_code(code_of(source))
    assert answer.verdict.proved, answer.reason
    return answer.source


def assert_comes_back(source: str) -> None:
    assert ast.dump(ast.parse(decompiled(source))) == ast.dump(ast.parse(source))


PATTERNS = [
    "1", "-1", "2.5", "'a'", "b'a'", "3j", "1.0 + 3j", "-1.0 - 3j", "None", "True", "False", "Kind.RED", "a.b.c",
    "1 | 2 | 'x'", "1 as x", "(1 | 2) as x", "[]", "[_]", "[_, _]", "[*_]", "[_, *_]", "[x]", "[x, y]", "[x, *rest]",
    "[*rest, x]", "[x, *rest, y]", "[*_, x]", "[x, *_]", "[x, *_, y]", "[1, *_, 2]", "[_, x, *_, y, _]",
    "[1, [x, [y]]]", "[x as y, *z]", "{}", "{'k': 1}", "{'k': x, 2: _}", "{**rest}", "{'k': 1, Kind.RED: x, **rest}",
    "{-1: None}", "C()", "C(1)", "C(x, y)", "C(x=1, y=2)", "C(_, y=x)", "mod.C([x], z={'k': y})", "C(D(E(x)))",
    "[x, 1] | [1, x]", "[x, y] | [y, x]", "{'k': x} | C(x)", "[1 | 2 as x, [y, *z] as w] as v",
    "(1 | 2) | (3 | 4)", "int(x) | str(x) | [x]", "[[x] | [x, _], *_]", "[1 | 2, 3 | 4]",
]  # fmt: skip
GUARDS = ["", " if g", " if g and h", " if g or h", " if not g", " if (w := g()) > 1", " if g < h < k"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_among_other_cases(pattern: str) -> None:
    assert_comes_back(f"""
def f(s):
    match s:
        case {pattern}:
            first()
        case ['other', *_]:
            second()
    behind()
""")


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("guard", ["", " if g and h"])
def test_a_pattern_as_the_last_case(pattern: str, guard: str) -> None:
    assert_comes_back(f"""
def f(s):
    match s.subject():
        case ['other', *_]:
            first()
        case {pattern}{guard}:
            second()
        case _:
            third()
""")


@pytest.mark.parametrize("guard", GUARDS)
@pytest.mark.parametrize("pattern", ["x", "_", "1", "[x, 1]", "1 | 2", "[x] | C(x)"])
def test_guards(pattern: str, guard: str) -> None:
    if pattern in ("x", "_") and not guard:
        pytest.skip("not allowed")
    source = f"""
def f(s):
    match s:
        case {pattern}{guard}:
            first()
        case 3{guard}:
            second()
        case 4:
            third()
"""
    if pattern == "_" and sys.version_info >= (3, 12):
        decompiled(source)  # proved; nothing in the bytecode tells such a case from an ``if`` around the statement
    else:
        assert_comes_back(source)


STATEMENTS = {
    "an impure subject": """
def f(s):
    match s.pop():
        case 1:
            return 'one'
        case 2:
            return 'two'
        case _:
            return 'more'
""",
    "a subject that is a tuple": """
def f(a, b):
    match (a, b):
        case [1, x] if x:
            print(x)
        case [_, 2]:
            print(2)
""",
    "capture as the last case": """
def f(s):
    match s:
        case 1:
            print(1)
        case x:
            print(x)
""",
    "one case in another": """
def f(a, b):
    match a:
        case 1:
            match b:
                case 2:
                    x = 12
                case [y]:
                    x = y
                case _:
                    x = 0
        case C():
            x = 1
        case _:
            x = 2
    return x
""",
    "in a loop": """
def f(xs):
    for x in xs:
        match x:
            case None:
                pass
            case [1, *rest] if rest:
                break
            case {'stop': True}:
                return x
            case _:
                print(x)
    behind(x)
""",
    "in an endless loop": """
def f(xs):
    for x in xs:
        while True:
            match x.next():
                case 1:
                    break
                case 2:
                    pass
                case 3:
                    print(x)
""",
    "in with": """
def f(a):
    with a as b:
        match b:
            case [5]:
                return 'five'
            case C(x):
                print(x)
    return 'none'
""",
    "in try": """
def f(s):
    try:
        match s:
            case 1:
                raise ValueError
            case [y]:
                print(y)
    except ValueError as e:
        match e.args:
            case [str(m)]:
                print(m)
            case []:
                print(0)
""",
    "in a generator": """
def f(s):
    match (yield 1):
        case 'a':
            yield 2
        case [x]:
            yield from x
""",
    "in a coroutine": """
async def f(s):
    match await s:
        case 1:
            async with s:
                pass
        case [x]:
            await x
""",
    "guards that are false when they are compiled": """
def f(d):
    match d.p:
        case list() if False:
            pass
        case [1, x] if False:
            pass
        case {'k': _}:
            print(1)
""",
    "guards of patterns that always match": """
def f(s):
    match s.x:
        case _ if g():
            print(1)
        case _ if g() < h() < 3 or s:
            print(2)
        case [1]:
            print(3)
        case _ if h() and s:
            print(4)
        case x if x.y:
            print(x)
        case 5:
            print(5)
""",
    "a guard of a pattern that always matches, then one that names": """
def f(s):
    for x in s:
        match g(x):
            case _ if x and s:
                return 1
            case y if y.z:
                print(y)
            case [y]:
                print(4)
""",
    "names that are no locals": """
def f(s):
    n = 1

    def inner():
        global G
        nonlocal n
        match s:
            case [n, 1]:
                return n
            case {'k': G}:
                return G

    return inner
""",
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements(name: str) -> None:
    assert_comes_back(STATEMENTS[name].lstrip())


@pytest.mark.parametrize("seed", range(120))
def test_random_statements_are_proved(seed: int) -> None:
    decompiled(Matches(seed).function("f"))


CLASSIFY = """
def f(s, log):
    match log.append(s) or s:
        case 0 | 1 | 2 as small if log:
            return 'small', small
        case [x, y] | {'x': x, 'y': y}:
            return 'pair', x, y
        case [[a, *_], *_, b] if a == b:
            return 'ends', a
        case str() | bytes():
            return 'text'
        case {'k': None, **rest}:
            return 'rest', rest
        case _:
            return 'other'
"""


def test_the_source_does_what_the_original_does() -> None:
    inputs: List[Any] = [0, 2, 3, [1, 2], {"x": 1, "y": 2}, [[3, 0], 5, 3], [[3], 1, 4], "ab", b"", {"k": None, "j": 1}]
    results = []
    for source in (CLASSIFY, decompiled(CLASSIFY)):
        namespace: Dict[str, Any] = {}
        exec(compile(source, "<test>", "exec"), namespace)
        log: List[Any] = []
        results.append(([namespace["f"](value, log) for value in inputs], log))
    assert results[0] == results[1]
    assert results[0][1] == inputs


@pytest.mark.parametrize(
    "body",
    [
        "if (x := s()) == 1:\n        return x\n    return 2",
        "while (x := s()) is not None:\n        print(x)",
        "x = y = s()\n    return x == y == 1",
        "return (x := s()) and x == 1",
        "s.a += 1",
        "if s == 1:\n        return 'one'\n    return 'other'",
        "x, y = s",
    ],
)
def test_other_copies_of_values_are_no_match_statements(body: str) -> None:
    assert "match" not in decompiled(f"def f(s):\n    {body}\n")


@pytest.mark.parametrize("pattern", ["C(x)", "None", "{'k': x}", "[None, C(a=1)]"])
def test_jumps_for_none_that_dynamo_replaces_by_comparisons(pattern: str) -> None:
    source = f"""
def f(s):
    match s:
        case {pattern}:
            first()
        case ['other', *_]:
            second()
"""
    normal = lower(code_of(source))
    changed, places = [], {}
    for index, instr in enumerate(normal.ops):
        places[index] = len(changed)
        if instr.op is Op.BRANCH and instr.arg in ("none", "not none"):
            none, is_ = instr.changed(op=Op.CONST, arg=None, target=None), instr.arg == "not none"
            changed += [none, none.changed(op=Op.IS, arg=is_), instr.changed(arg="true")]
        else:
            changed.append(instr)
    as_dynamo = replace(normal, ops=tuple(instr.retargeted(places) for instr in changed))

    def patterns(made: NormalCode) -> List[str]:
        graph = build(made)
        recover_matches(graph)
        terms = [block.term for block in graph.blocks.values()]
        return [ast.unparse(term.pattern) for term in terms if isinstance(term, PatternBranch) and term.pattern]

    assert patterns(as_dynamo) == patterns(normal)
    assert len(patterns(normal)) == 2
