"""``decompile`` and ``Decompiler`` called as the users of the first depyf call them."""

from __future__ import annotations

import ast
import dis
import functools
import importlib.util
import os
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import depyf
from depyf.decompiler import Decompiler, decompile
from depyf.decompiler.source.printing.statements import unparse


def add(a: Any, b: Any = 2) -> Any:
    return a + b


@functools.wraps(len)
def around_a_builtin(values: Any) -> Any:
    return len(values)


def decorated(function: Any) -> Any:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Example:
    def method(self, x: Any) -> Any:
        return x * 2

    def __call__(self, y: Any) -> Any:
        return y - 1

    @decorated
    def wrapped_method(self, z: Any) -> Any:
        return z

    @staticmethod
    def static(x: Any) -> Any:
        return x


@pytest.mark.parametrize(
    ("target", "name", "body"),
    [
        (add, "add", "a + b"),
        (add.__code__, "add", "a + b"),
        (Example().method, "method", "x * 2"),
        (Example.method, "method", "x * 2"),
        (Example.static, "static", "x"),
        (Example.__dict__["static"], "static", "x"),
        (Example(), "__call__", "y - 1"),
        (functools.partial(functools.partial(add, 1), 2), "add", "a + b"),
        (functools.partial(Example().method, 1), "method", "x * 2"),
        (decorated(add), "add", "a + b"),
        (decorated(decorated(Example())), "__call__", "y - 1"),
        (Example().wrapped_method, "wrapped_method", "z"),
        (functools.lru_cache(add), "add", "a + b"),
        (around_a_builtin, "around_a_builtin", "len(values)"),
        (functools.singledispatch(add), "add", "a + b"),
    ],
)
def test_anything_callable_leads_to_its_code(target: Any, name: str, body: str) -> None:
    for source in (decompile(target), Decompiler(target).decompile()):
        (function,) = ast.parse(source).body
        assert isinstance(function, ast.FunctionDef)
        assert function.name == name
        assert unparse(function.body[-1]).strip() == f"return {body}"


@pytest.mark.parametrize(
    "target",
    [len, [].append, int, Example, 3, "text", None, property(add), object().__str__],
    ids=lambda target: type(target).__name__,
)
def test_what_holds_no_python_code_is_a_type_error_in_words(target: Any) -> None:
    for call in (decompile, Decompiler):
        with pytest.raises(TypeError, match=r"holds no Python code|is a class") as raised:
            call(target)
        assert not isinstance(raised.value, depyf.DecompilationError)


@pytest.mark.torch
def test_what_torch_compile_returns_leads_to_what_was_compiled() -> None:
    torch = pytest.importorskip("torch")

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return x.relu()

    for target in (Model(), torch.compile(Model())):
        assert "return x.relu()" in decompile(target)
    assert decompile(torch.compile(add)) == decompile(add)


def test_the_options_of_the_decompiler() -> None:
    def nested(rows: Any) -> Any:
        for row in rows:
            if row:
                return row
        return None

    plain = Decompiler(nested).decompile()
    narrow = Decompiler(nested).decompile(indentation=2, temp_prefix="__t_", overwite_fn_name="other")
    assert unparse(ast.parse(narrow)).replace("def other", "def nested") == unparse(ast.parse(plain))
    assert narrow.splitlines()[1].startswith("  for")


def test_every_opcode_of_this_python_is_supported() -> None:
    names = Decompiler.supported_opnames()
    instructions = dis.get_instructions(decompile.__code__)
    assert {instruction.opname for instruction in instructions} <= set(names)
    assert all(isinstance(name, str) for name in names)


def test_decompiled_and_compiled_again_it_stands_in_for_the_original_from_its_own_file(tmp_path: Path) -> None:
    template = str(tmp_path / "code_%s.py")
    for number in range(2):
        code = Decompiler.decompile_and_compile_like(add.__code__, add.__code__, filepath_template=template)
        assert code.co_filename == str(tmp_path / f"code_{number}.py")
        assert FunctionType(code, {}, "add", add.__defaults__)(1) == 3
    spec = importlib.util.spec_from_file_location("code_0", tmp_path / "code_0.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.add(1, 2) == 3
    without = Decompiler.decompile_and_compile_like(code_to_decompile=add.__code__, reference_code=add.__code__)
    assert FunctionType(without, {}, "add", add.__defaults__)(1) == 3
    assert sorted(set(os.listdir(tmp_path)) - {"__pycache__"}) == ["code_0.py", "code_1.py"]


def test_the_readability_passes_are_left_out_where_the_environment_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def both(a: Any, b: Any) -> None:
        with a as one, b as other:
            print(one, other)

    monkeypatch.setenv("DEPYF_REMOVE_TEMP", "0")
    raw = depyf.decompile_code(both.__code__)
    assert raw.source.count("with ") == 2
    assert raw.verdict.value == "exact"
    monkeypatch.setenv("DEPYF_REMOVE_TEMP", "1")
    assert depyf.decompile(both).count("with ") == 1
