"""``depyf.utils`` keeps the behaviour that other projects rely on."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Any

import pytest

from depyf import utils
from depyf.decompiler.errors import DecompilationError


def several(a: Any, b: int = 2, *args: Any, c: Any, d: int = 3, **kw: Any) -> Any:
    def nested() -> Any:
        return [lambda: a for _ in ()]

    return nested


class Callable:
    def method(self) -> None:
        pass

    def __call__(self, x: int) -> int:
        return x


def test_the_signature_names_every_kind_of_parameter() -> None:
    assert utils.get_function_signature(several.__code__) == "def several(a, b, *args, c, d, **kw):\n"
    assert utils.get_function_signature(several.__code__, "other") == "def other(a, b, *args, c, d, **kw):\n"
    only = compile("def f(a, /, b, *, c): pass", "", "exec").co_consts[0]
    assert utils.get_function_signature(only) == "def f(a, /, b, *, c):\n"


def test_the_signature_of_a_lambda_or_a_comprehension_is_python() -> None:
    for code in (*utils.collect_all_code_objects(several.__code__), (lambda x: x).__code__):
        ast.parse(utils.get_function_signature(code) + "    pass")


def test_all_nested_code_objects_are_collected() -> None:
    names = [code.co_name for code in utils.collect_all_code_objects(several.__code__)]
    names = [name for name in names if name != "__annotate__"]  # since 3.14 a function makes the annotations
    assert names[:2] == ["several", "nested"]
    assert "<lambda>" in names


def test_the_owner_of_the_code_is_found_through_wrappers() -> None:
    instance = Callable()
    assert utils.get_code_owner(several) is several
    assert utils.get_code_owner(instance.method) is Callable.method
    assert utils.get_code_owner(instance) is Callable.__call__
    assert utils.get_code_owner(functools.partial(functools.partial(several, 1), 2)) is several
    assert utils.get_code_owner(functools.wraps(several)(lambda: 1)) is several
    assert utils.get_code_owner(len) is len


def test_a_directory_is_made_once_and_a_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b"
    utils.safe_create_directory(path)
    utils.safe_create_directory(str(path))
    assert path.is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        utils.safe_create_directory(tmp_path / "file")


def test_decompiling_never_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (DecompilationError("at offset 3\nin f"), RuntimeError("a bug")):

        def refuse(*args: Any, error: Exception = error, **kwargs: Any) -> Any:
            raise error

        monkeypatch.setattr(utils, "decompile_code", refuse)
        source = utils.decompile_ensure(several.__code__, "renamed")
        (function,) = ast.parse(source).body
        assert isinstance(function, ast.FunctionDef)
        assert function.name == "renamed"
        assert [argument.arg for argument in function.args.kwonlyargs] == ["c", "d"]
        with pytest.raises(NotImplementedError, match=r"at offset 3 in f|a bug"):
            _run(source, "renamed")(1, 2, c=2, d=3)


def test_decompiling_gives_source_that_runs() -> None:
    def add(a: int, b: int) -> int:
        return a + b

    assert _run(utils.decompile_ensure(add.__code__), "add")(1, 2) == 3
    assert _run(utils.decompile_ensure(add.__code__, "plus"), "plus")(1, 2) == 3


def _run(source: str, name: str) -> Any:
    names: Any = {}
    exec(source, names)
    return names[name]
