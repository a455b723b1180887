"""Transformed code that differs from earlier code only in numbered names is not decompiled again."""

from __future__ import annotations

import re
from pathlib import Path
from types import CodeType
from typing import Dict, List, Optional

import pytest
import torch

import depyf
from depyf.decompiler import decompile_code
from depyf.decompiler.hints import Hints
from depyf.decompiler.result import Decompilation
from depyf.decompiler.source.compiling.to_code import compile_like
from depyf.decompiler.source.source_text import SourceText
from depyf.dynamo.capture import rendering
from depyf.dynamo.capture.equal_code import EqualCode


def code_of(body: str, name: str = "transformed_0", **scope: object) -> CodeType:
    made: Dict[str, object] = dict(scope)
    exec(f"def {name}(x):\n    {body}\n", made)
    code: CodeType = made[name].__code__  # type: ignore[attr-defined]
    return code


def hints(*graphs: str) -> Hints:
    return Hints(stable_globals=frozenset(graphs), tuple_results=dict.fromkeys(graphs, 1))


def recalled(first: CodeType, second: CodeType, *graphs: List[str]) -> Optional[str]:
    """The source that is reused for ``second`` after ``first``; None if it is to be decompiled."""
    known, (before, now) = EqualCode(), [hints(*each) for each in graphs or ([], [])]
    found = decompile_code(first, hints=before)
    known.keep(first.co_name, before, found, found.compile_like(first, "first.py"))
    again = known.recall(second, second.co_name, now, "second.py")
    if again is None:
        return None
    text = SourceText(again.source)
    alone = compile_like(text, second, "second.py", all_locals=True)
    assert fields(again.code) == fields(alone)
    return again.source


def fields(code: CodeType) -> Dict[str, object]:
    """All of a code object, its lines and columns too."""
    names = [name for name in dir(code) if name.startswith("co_") and name != "co_lnotab"]
    found = {name: getattr(code, name) for name in names}
    return {name: value for name, value in found.items() if not callable(value)}


def test_only_the_names_differ() -> None:
    first = code_of("return __compiled_fn_1(x, y)[0] + __compiled_fn_2(x)[0]", "transformed_0")
    second = code_of("return __compiled_fn_7(x, y)[0] + __compiled_fn_5(x)[0]", "transformed_1")
    graphs = [["__compiled_fn_1", "__compiled_fn_2"], ["__compiled_fn_7", "__compiled_fn_5"]]
    source = recalled(first, second, *graphs)
    assert source == decompile_code(second, hints=hints(*graphs[1])).source
    assert (source or "").startswith("def transformed_1(x):")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("return __compiled_fn_1(x, 1)", "return __compiled_fn_2(x, 2)"),
        ("return __compiled_fn_1(x, 1)", "return __compiled_fn_2(x, True)"),
        ("return __compiled_fn_1(x, 0.0)", "return __compiled_fn_2(x, -0.0)"),
        ("return __compiled_fn_1(x, y)", "return __compiled_fn_2(x, z)"),
        ("return __compiled_fn_1(x).a", "return __compiled_fn_2(x).b"),
        ("return __compiled_fn_1(x) + __compiled_fn_1(x)", "return __compiled_fn_1(x) + __compiled_fn_2(x)"),
        ("return __compiled_fn_1(x) + __compiled_fn_2(x)", "return __compiled_fn_1(x) + __compiled_fn_1(x)"),
        ("return __compiled_fn_1(x, '__compiled_fn_1')", "return __compiled_fn_2(x, '__compiled_fn_1')"),
        ("return __compiled_fn_1(x, 'transformed_0')", "return __compiled_fn_2(x, 'transformed_0')"),
        ("return f'{__compiled_fn_1(x)} __compiled_fn_1'", "return f'{__compiled_fn_2(x)} __compiled_fn_1'"),
        ("return x(__compiled_fn_1=__compiled_fn_1)", "return x(__compiled_fn_1=__compiled_fn_2)"),
        ("return __compiled_fn_1(x)", "return __compiled_fn_10(x)"),  # long lines are broken by their length
        ("return __compiled_fn_1(x, lambda: 1)", "return __compiled_fn_2(x, lambda: 2)"),
        ("__compiled_fn_3 = x; return __compiled_fn_1(x)", "__compiled_fn_3 = x; return __compiled_fn_2(x)"),
        ("return __compiled_fn_1(transformed_0)", "return __compiled_fn_2(transformed_0)"),
    ],
)
def test_what_else_differs_is_decompiled(first: str, second: str) -> None:
    assert recalled(code_of(first), code_of(second)) is None


def test_other_hints_are_another_proof() -> None:
    first, second = code_of("return __compiled_fn_1(x)[0]"), code_of("return __compiled_fn_2(x)[0]")
    assert recalled(first, second, ["__compiled_fn_1"], []) is None
    assert recalled(first, second, ["__compiled_fn_1"], ["__compiled_fn_2"]) is not None


def test_constants_that_nothing_loads_may_differ() -> None:
    """Dynamo leaves the constants of the user's function in the code that it writes."""
    first, second = code_of("return __compiled_fn_1(x)[0]"), code_of("return __compiled_fn_2(x)[0]")
    first, second = (code.replace(co_consts=(*code.co_consts, at)) for at, code in enumerate((first, second)))
    assert recalled(first, second) is not None


def test_a_recompiled_function_is_decompiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: List[str] = []
    compiled_texts: List[str] = []
    original, compiling = rendering.decompile_code, rendering._compile

    def noted(decompilation: Decompilation, reference: CodeType, path: str) -> object:
        compiled_texts.append(path)
        return compiling(decompilation, reference, path)

    def counted(code: CodeType, **others: object) -> object:
        calls.append(code.co_name)
        return original(code, **others)  # type: ignore[arg-type]

    monkeypatch.setattr(rendering, "decompile_code", counted)
    monkeypatch.setattr(rendering, "_compile", noted)

    def scaled(x: torch.Tensor, factor: str) -> torch.Tensor:
        return x * float(factor)

    texts: Dict[str, str] = {}
    for folder in ("shared", "alone"):
        torch._dynamo.reset()
        with depyf.prepare_debug(tmp_path / folder):
            compiled = torch.compile(scaled, backend="eager")
            for number in range(4):
                if folder == "alone":
                    rendering._equal.clear()
                assert torch.equal(compiled(torch.ones(2), str(number)), torch.ones(2) * number)
        files = sorted((tmp_path / folder).glob("__transformed_code_*.py"))
        texts[folder] = "".join(file.read_text() for file in files)
        if folder == "shared":
            assert len(files) == 4
            assert len(compiled_texts) == len(calls)
            assert len(calls) <= 2, calls  # one more where the number of a graph has one more digit
    unnumbered = [re.sub(r"(__compiled_fn_)\d+|compile id \d+", r"\1", text) for text in texts.values()]
    assert unnumbered[0] == unnumbered[1]
