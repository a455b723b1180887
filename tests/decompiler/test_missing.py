"""A module with a function that can't be decompiled: everything else is there, and what is missing says so."""

from __future__ import annotations

import ast
from types import CodeType
from typing import Any, Dict, List

import pytest

from depyf import pipeline
from depyf.decompiler import decompile_code
from depyf.result import DecompilationError, Verdict

SOURCE = '''
def before(a):
    return [b for b in a if b]

class Holder:
    def bad(self, x, *y, z=3, **w):
        """What it does."""
        return super().bad(x)

    def good(self):
        return self.bad(1)

def outer(seen):
    def bad(q):
        yield seen, q
    return bad

def after():
    return Holder().good()
'''


def module() -> CodeType:
    return compile(SOURCE, "<module>", "exec", dont_inherit=True)


def with_broken(code: CodeType, name: str) -> CodeType:
    """``code`` in which functions of that name run off their end: nothing a compiler writes."""
    constants = tuple(with_broken(each, name) if isinstance(each, CodeType) else each for each in code.co_consts)
    code = code.replace(co_consts=constants)
    return code.replace(co_code=code.co_code[:2]) if code.co_name == name else code


def check(answer: Any) -> Dict[str, Any]:
    """Both functions called ``bad`` are missing, and all that runs without them runs."""
    assert answer.verdict is Verdict.UNVERIFIED
    assert [name.rpartition(".")[2] for name in answer.missing] == ["bad", "bad"]
    assert all(f"{name} is missing: " in answer.reason for name in answer.missing)
    namespace: Dict[str, Any] = {"__name__": "module"}
    exec(compile(answer.source, "<source>", "exec"), namespace)
    assert namespace["before"]([0, 1]) == [1]
    bad = namespace["Holder"].bad
    assert bad.__code__.co_varnames[:5] == ("self", "x", "z", "y", "w")
    assert bad.__doc__ == "What it does."
    generator = namespace["outer"](1)(2)
    for call in (namespace["after"], lambda: next(generator)):
        with pytest.raises(NotImplementedError, match="bad could not be decompiled: "):
            call()
    return namespace


def test_functions_that_cannot_be_decompiled_are_left_out_of_their_module() -> None:
    check(decompile_code(with_broken(module(), "bad")))


def test_functions_whose_source_would_differ_are_left_out_of_their_module(monkeypatch: pytest.MonkeyPatch) -> None:
    true = pipeline._Decompiler._statements

    def wrong(self: Any, code: CodeType) -> Any:
        normal, statements = true(self, code)
        return normal, [*ast.parse("print()").body, *statements] if code.co_name == "bad" else statements

    monkeypatch.setattr(pipeline._Decompiler, "_statements", wrong)
    check(decompile_code(module()))


def test_what_is_left_is_still_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that is left out must not hide that another one, behind it, is wrong: that one is left out, too."""
    true = pipeline._Decompiler._statements

    def wrong(self: Any, code: CodeType) -> Any:
        normal, statements = true(self, code)
        return normal, [] if code.co_name == "after" else statements

    monkeypatch.setattr(pipeline._Decompiler, "_statements", wrong)
    answer = decompile_code(with_broken(module(), "bad"))
    assert sorted(name.rpartition(".")[2] for name in answer.missing) == ["after", "bad", "bad"]


def test_the_code_object_that_is_asked_for_is_never_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = with_broken(module(), "<module>")
    holder: List[CodeType] = [each for each in module().co_consts if getattr(each, "co_name", "") == "Holder"]
    for code in (broken, with_broken(holder[0], "Holder")):
        with pytest.raises(DecompilationError):
            decompile_code(code)


def test_a_class_body_that_cannot_be_decompiled_fails_the_module() -> None:
    with pytest.raises(DecompilationError):
        decompile_code(with_broken(module(), "Holder"))
