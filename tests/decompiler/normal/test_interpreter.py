"""The normal form means what CPython does: programs run in the interpreter of the normal form do the same.

``tools/fuzz/interpret_programs.py`` runs many more, CPython's own tests among them.
"""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from types import CodeType
from typing import Any, Dict

import pytest
from corpus import compile_corpus, corpus_files, specimens
from interpreted import KINDS, differs, observations
from interpreter import RULES, SUSPENDING, Unsupported
from random_checks import code_of_program
from stand_in import stand_in

from depyf.decompiler.bytecode.code import Code
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import NormalCode, Op, reachable
from depyf.decompiler.verify import compare

ALL = list(specimens())
PROGRAMS = 30
NEW = {"typing_312": 3, "typing_313": 4, "lazy_315": 10}
"""How many specimens of a file at most use what the interpreter has no rule for."""


@pytest.mark.parametrize("file", corpus_files())
def test_the_functions_of_the_corpus_do_the_same_in_normal_form(file: str) -> None:
    module = compile_corpus(file)
    interpreted, unsupported = stand_in(module), 0
    for specimen in [each for each in ALL if each.file == file]:
        try:
            found = observations(specimen, interpreted)
        except Unsupported:
            unsupported += 1
        else:
            assert found == observations(specimen, module), specimen.label
    assert unsupported <= NEW.get(file, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_random_programs_do_the_same_in_normal_form(kind: str) -> None:
    make, run = KINDS[kind]
    ran = 0
    for number in range(PROGRAMS):
        try:
            code = code_of_program(make(random.Random(number)))
        except (SyntaxError, ValueError):
            continue
        assert not differs(run, code, stand_in(code), range(2)), number
        ran += 1
    assert ran > PROGRAMS // 2


def test_every_operation_that_lowering_makes_has_a_rule() -> None:
    assert {*Op} - {*RULES} - {*SUSPENDING} == {Op.RETURN, Op.COMPREHENSION}


def test_a_wrong_operation_is_noticed() -> None:
    """With ``-`` lowered as ``+``, in a function that is nested."""

    def wrong(code: Code) -> NormalCode:
        normal = lower(code)
        ops = [each.changed(arg="+") if each.op is Op.BINARY and each.arg == "-" else each for each in normal.ops]
        return replace(normal, ops=tuple(ops))

    module = compile("def f(a):\n def g(): return a - 1\n return g()", "<f>", "exec")
    assert [result_of(code) for code in (module, stand_in(module), stand_in(module, wrong))] == [2, 2, 4]


CLASS_BODY = """def f(a):
    class B:
        locals()["a"] = 5
        b = a
    class C:
        a = 7
        def g(self): return a
        b = [a, (lambda: a)()]
    return B.b, C.b, C().g()
"""


def test_a_class_body_looks_into_its_namespace_first() -> None:
    """Neither the corpus nor random programs do this: LOAD_CLASSDEREF lowered as LOAD_DEREF passed all of them."""
    module = compile(CLASS_BODY, "<f>", "exec")
    assert [result_of(module), result_of(stand_in(module))] == [(5, [7, 3], 3)] * 2


GROUP = "def f(g):\n try: g()\n except* ValueError: raise\n"


@pytest.mark.skipif(sys.version_info < (3, 11), reason="except* needs 3.11")
def test_except_star_handles_the_part_that_it_matches() -> None:
    """``raise`` raises that part again, and not the group that came. The interpreter found that the normal form did not
    say so, and the verifier that it believed the opposite: bytecode made by hand can raise the group."""
    original, candidate = (function_in(compile(GROUP, "<f>", "exec")) for _ in range(2))

    def by_hand(code: Code) -> NormalCode:
        normal = lower(code)
        groups = [
            (at, [each.changed(op=Op.COPY, arg=3), each.changed(op=Op.RERAISE, arg=None)])
            if code is original and each.op is Op.RAISE
            else (at, [each])
            for at, each in enumerate(normal.ops)
        ]
        return replace(normal, ops=reachable(groups))

    assert compare(original, candidate, always_prove=True).proved
    assert not compare(original, candidate, lowered=by_hand, always_prove=True).proved


def result_of(module: CodeType) -> Any:
    names: Dict[str, Any] = {}
    exec(module, names)
    return names["f"](3)


def function_in(module: CodeType) -> CodeType:
    return next(each for each in module.co_consts if isinstance(each, CodeType))
