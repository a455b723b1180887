"""A module with a function that can't be decompiled: everything else is there, and the stub names what is missing."""

from __future__ import annotations

import ast
import sys
from types import CodeType
from typing import Any, Dict, List, Optional

import pytest

from depyf.decompiler import decompile_code
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.pipeline import attempts
from depyf.decompiler.pipeline.remarks import with_remarks
from depyf.decompiler.result import Verdict
from depyf.decompiler.source.source_text import SourceText
from depyf.decompiler.structure.unstructured import Unstructured

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
    true = attempts.Attempts._statements

    def wrong(self: Any, code: CodeType) -> Any:
        normal, statements = true(self, code)
        return normal, [*ast.parse("print()").body, *statements] if code.co_name == "bad" else statements

    monkeypatch.setattr(attempts.Attempts, "_statements", wrong)
    check(decompile_code(module()))


def test_what_is_left_is_still_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function that is left out must not hide that another one, behind it, is wrong: that one is left out, too."""
    true = attempts.Attempts._statements

    def wrong(self: Any, code: CodeType) -> Any:
        normal, statements = true(self, code)
        return normal, [] if code.co_name == "after" else statements

    monkeypatch.setattr(attempts.Attempts, "_statements", wrong)
    answer = decompile_code(with_broken(module(), "bad"))
    assert sorted(name.rpartition(".")[2] for name in answer.missing) == ["after", "bad", "bad"]


def test_the_code_object_that_is_asked_for_is_never_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = with_broken(module(), "<module>")
    holder: List[CodeType] = [each for each in module().co_consts if getattr(each, "co_name", "") == "Holder"]
    for code in (broken, with_broken(holder[0], "Holder")):
        with pytest.raises(DecompilationError):
            decompile_code(code)


@pytest.mark.parametrize("source", [SOURCE, SOURCE.replace("class Holder", "class Holder(*bases, key=before)")])
def test_a_class_whose_body_cannot_be_decompiled_is_a_stub(source: str) -> None:
    code = compile(source, "<module>", "exec", dont_inherit=True)
    answer = decompile_code(with_broken(code, "Holder"))
    assert answer.verdict is Verdict.UNVERIFIED
    assert answer.missing == ("Holder",)
    assert "Holder is missing: " in answer.reason
    names = [getattr(statement, "name", "") for statement in answer.tree.body]
    assert names == ["before", "Holder", "outer", "after"]
    with pytest.raises(NotImplementedError, match="Holder could not be decompiled: "):
        exec(compile(answer.source, "<source>", "exec"), {"bases": (), "__name__": "module"})


@pytest.mark.skipif(sys.version_info < (3, 11), reason="where a class stands is known from its body alone")
def test_a_class_inside_of_a_function_is_a_stub_that_closes_over_the_same() -> None:
    source = "def f(a):\n    class C:\n        def g(self):\n            return a, __class__\n    return C\n"
    answer = decompile_code(with_broken(compile(source, "<module>", "exec", dont_inherit=True), "C"))
    assert answer.missing == ("f.<locals>.C",)
    namespace: Dict[str, Any] = {"__name__": "module"}
    exec(compile(answer.source, "<source>", "exec"), namespace)
    with pytest.raises(NotImplementedError):
        namespace["f"](1)


STATEMENTS = '''"""Doc."""
from __future__ import annotations
import os
x: int = 1
if BAD:
    y = 2
    try:
        z = 3
    except E:
        z = 4
def f(a): return [a for b in a]
try:
    g = 1
except E:
    g = 2
class C:
    """Class doc."""
    a = 1
    for q in BAD:
        h = q
    def m(self): return __class__
    b: int = 2
after = f([x])
'''


def refuse_bad_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    true = attempts.Attempts._lifted_statements

    def refusing(self: Any, code: CodeType, normal: Any, *, joined: bool = False) -> Any:
        statements = true(self, code, normal, joined=joined)
        compound = (ast.If, ast.For, ast.Assign)
        if any("BAD" in ast.dump(each) for each in statements if isinstance(each, compound)):
            raise Unstructured("no syntax")
        return statements

    monkeypatch.setattr(attempts.Attempts, "_lifted_statements", refusing)


def test_statements_that_cannot_be_decompiled_are_left_out_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_bad_statements(monkeypatch)
    answer = decompile_code(compile(STATEMENTS, "<module>", "exec", dont_inherit=True))
    assert answer.verdict is Verdict.UNVERIFIED
    first, second = answer.missing
    assert first.startswith("lines 5 to ")
    assert second == "lines 19 to 20 of C"
    kept = [line for line in answer.source.splitlines() if "raise" not in line]
    expected = ast.unparse(ast.parse(STATEMENTS)) if sys.version_info >= (3, 9) else ""
    for part in ("x: int = 1", "g = 1", "g = 2", "    a = 1", "        return __class__", "    b: int = 2"):
        assert part.strip() in "\n".join(kept)
        assert not expected or part.strip() in expected
    raised = [node for node in ast.walk(answer.tree) if isinstance(node, ast.Raise)]
    assert len(raised) == 2
    text = answer.source.replace("raise NotImplementedError", "print")
    namespace: Dict[str, Any] = {"__name__": "module", "E": ValueError}
    exec(compile(text, "<source>", "exec"), namespace)
    assert (namespace["after"], namespace["g"], namespace["C"]().m()) == ([[1]], 1, namespace["C"])


COMPOUND = """
a = 1
try:
    b = 1
    c = BAD
    d = [e for e in b if e]
except ImportError as e:
    BAD.x
    f = e
else:
    g = 1
if a:
    h = 2
    for i in BADLY:
        if i:
            continue
        j = BAD(i)
        k = i
    l = 3
with m(a) as n:
    o = n
    p = BAD
try:
    q = 1
    r = BAD
finally:
    s = 1
class C:
    for t in a:
        def u(self): return __class__
        v = BAD
    w = 1
"""


def refuse_bad_names(monkeypatch: pytest.MonkeyPatch) -> None:
    true = attempts.Attempts._lifted_statements

    def refusing(self: Any, code: CodeType, normal: Any, *, joined: bool = False) -> Any:
        statements = true(self, code, normal, joined=joined)
        if any("'BAD'" in ast.dump(each) for each in statements):
            raise Unstructured("no syntax")
        return statements

    monkeypatch.setattr(attempts.Attempts, "_lifted_statements", refusing)


def test_a_bad_line_in_a_compound_statement_costs_that_line(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_bad_names(monkeypatch)
    answer = decompile_code(compile(COMPOUND, "<module>", "exec", dont_inherit=True))
    assert answer.verdict is Verdict.UNVERIFIED
    lines = [line.strip().replace("BADLY", "x") for line in COMPOUND.splitlines()]
    bad = [number for number, line in enumerate(lines, 1) if "BAD" in line]
    assert answer.missing == tuple(f"line {number} of {'C' if number == bad[-1] else '<module>'}" for number in bad)
    text = answer.source.replace("BADLY", "x")
    for line in lines:
        assert "BAD" in line or line in ("if i:", "continue") or line.partition(": ")[0] in text
    kept = [node for node in ast.walk(answer.tree) if isinstance(node, ast.Raise)]
    assert len(kept) == len(bad)


def test_a_bad_line_in_the_last_statement_costs_that_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way out of it has a ``return`` of its own, and the module has no other statement."""
    refuse_bad_names(monkeypatch)
    source = "if a:\n    b = 1\n    for c in b:\n        d = BAD\n        e = c\nelse:\n    f = 2\n"
    answer = decompile_code(compile(source, "<module>", "exec", dont_inherit=True))
    assert answer.missing == ("line 4 of <module>",)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        pytest.param("b = 1\n except E as e:\n  c = BAD\n  continue\n f = 1", 5, id="clause that continues"),
        pytest.param("b = BAD\n  break\n except E as e:\n  c = 1\n  continue\n f = 1", 3, id="break and continue"),
        pytest.param("b = 1\n except E as e:\n  if c: break\n  c = BAD\n f = 1", 6, id="clause with a break"),
        pytest.param("b = 1\n except E as e:\n  c = BAD\n  d = e\n f = 1", 5, id="first in a clause"),
    ],
)
def test_a_bad_line_beside_a_named_exception_costs_that_line(
    body: str, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What forgets the name of the exception belongs to the clause, not to a statement in it."""
    refuse_bad_names(monkeypatch)
    source = f"for i in a:\n try:\n  {body}\ng = f(1)\nh = g(2, 3)\nk = h(g)\n"
    answer = decompile_code(compile(source, "<module>", "exec", dont_inherit=True))
    assert answer.missing == (f"line {line} of <module>",)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("try:\n  b = 1\nfinally:\n  c = 1\n  d = BAD\n  e = 2\n", 5),
        ("try:\n  b = 1\nfinally:\n  if c:\n    d = BAD\n    e = f\n  g = 2\n", 5),
        ("for i in a:\n try:\n  b = 1\n  if b: break\n  c = BAD\n finally:\n  d = 1\n", 5),
        ("for i in a:\n try:\n  b = 1\n  if b: break\n  c = 1\n finally:\n  d = BAD\n  e = 1\n", 7),
        ("for i in a:\n try:\n  b = 1\n  if b: continue\n except E as e:\n  b = 2\n finally:\n  d = BAD\n", 8),
        ("try:\n  b = 1\nfinally:\n  try:\n   c = 1\n  finally:\n   d = BAD\n   e = 2\n", 7),
    ],
    ids=["finally", "if in finally", "body and break", "break", "clause and continue", "finally in finally"],
)
def test_a_bad_line_in_finally_costs_that_line_in_all_copies(
    source: str, line: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_bad_names(monkeypatch)
    source += "g = f(1)\nh = g(2, 3)\n"
    answer = decompile_code(compile(source, "<module>", "exec", dont_inherit=True))
    assert answer.missing == (f"line {line} of <module>",)
    assert answer.source.count("raise NotImplementedError") == 1


def test_a_compound_statement_that_fails_as_a_whole_is_left_out_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """With none of the statements inside of it there, it still can't be had."""
    true = attempts.Attempts._lifted_statements

    def refusing(self: Any, code: CodeType, normal: Any, *, joined: bool = False) -> Any:
        statements = true(self, code, normal, joined=joined)
        if any(isinstance(each, ast.If) for each in statements):
            raise Unstructured("no syntax")
        return statements

    monkeypatch.setattr(attempts.Attempts, "_lifted_statements", refusing)
    source = "a = 1\nif a:\n    b = 1\n    c = 2\nd = 3\n"
    answer = decompile_code(compile(source, "<module>", "exec", dont_inherit=True))
    assert answer.missing == ("lines 2 to 4 of <module>",)


def test_a_module_whose_statements_all_fail_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_bad_statements(monkeypatch)
    with pytest.raises(DecompilationError):
        decompile_code(compile("x = BAD\n", "<module>", "exec", dont_inherit=True))


DIFFERENT = """
class Outer:
    def first(self, x):
        return x + 1

    def second(self, x):
        def inner(y):
            return y + 2
        return inner
"""


def wrong(monkeypatch: pytest.MonkeyPatch, right: str, instead: str) -> None:
    """Make the printer write ``instead`` for ``right``."""
    made = attempts.to_source

    def to_source(*arguments: Any) -> SourceText:
        source = made(*arguments)
        return SourceText(source.text.replace(right, instead), source.constants, source.names, source.mode)

    monkeypatch.setattr(attempts, "to_source", to_source)


@pytest.mark.parametrize(
    ("right", "instead", "line"),
    [("x + 1", "x - 1", "def first"), ("y + 2", "y - 2", "def inner"), ("class Outer", "class Other", None)],
)
def test_text_that_differs_is_shown_where_that_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, right: str, instead: str, line: Optional[str]
) -> None:
    code = compile(DIFFERENT, "<module>", "exec", dont_inherit=True)
    lines = decompile_code(code).source.splitlines()
    wrong(monkeypatch, right, instead)
    answer = decompile_code(code, unsafe=True)
    assert answer.verdict is Verdict.UNVERIFIED
    assert not answer.missing
    assert instead in answer.source
    # All lines keep their numbers; the remark is beside the function, or the last line.
    shown = answer.source.splitlines()
    remarks = [number for number, each in enumerate(shown) if "# depyf: not proved: " in each]
    assert [each.partition("  # depyf")[0].replace(instead, right) for each in shown[: len(lines)]] == lines
    (number,) = remarks
    assert shown[number].strip().startswith(line) if line else number == len(shown) - 1


def test_a_remark_changes_no_string() -> None:
    source = SourceText('def f(x="""a\nb"""):\n    return x\n')
    shown = with_remarks(source, "f", {"f": "another default"})
    assert shown.text == f"{source.text.rstrip()}\n\n# depyf: not proved: another default\n"
    assert ast.dump(shown.tree) == ast.dump(source.tree)


def test_a_function_that_differs_is_shown_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong(monkeypatch, "x + 1", "x - 1")
    code = next(each for each in compile("def f(x): return x + 1", "", "exec").co_consts if isinstance(each, CodeType))
    with pytest.raises(DecompilationError, match="differs from the original"):
        decompile_code(code)
    answer = decompile_code(code, unsafe=True)
    assert answer.verdict is Verdict.UNVERIFIED
    assert answer.source.startswith("def f(x):  # depyf: not proved: at offset ")
    assert "return x - 1" in answer.source
