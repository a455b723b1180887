"""What several modules need of code objects, containers and contexts is written once, in ``dynamo/hooks/``."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator

import pytest

import depyf
from depyf.dynamo.hooks import nested_code

DYNAMO = Path(depyf.__file__).parent / "dynamo"


def outer(x):
    class Inner:
        def method(self):
            return lambda: x

    return Inner


def test_names_of_nested_code() -> None:
    names = [nested_code.qualified_name(code) for code in nested_code.nested_codes(outer.__code__)]
    whole = [
        "outer",
        "outer.<locals>.Inner",
        "outer.<locals>.Inner.method",
        "outer.<locals>.Inner.method.<locals>.<lambda>",
    ]
    assert names == (whole if nested_code.is_qualified(outer.__code__) else ["outer", "Inner", "method", "<lambda>"])
    assert outer.__code__.replace(**nested_code.name_fields(test_names_of_nested_code.__code__)).co_name == (
        "test_names_of_nested_code"
    )


def spelled(tree: ast.Module) -> Iterator[str]:
    """What a module does itself that a module of ``dynamo/hooks/`` does for all."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value == "co_qualname":
            yield "nested_code.py: qualified names"
        elif isinstance(node, ast.Attribute) and node.attr == "co_qualname":
            yield "nested_code.py: qualified names"
        elif isinstance(node, ast.Attribute) and node.attr in ("TREE_MAP", "tree_map", "tree_leaves"):
            yield "pytree.py: values in containers"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("find", "require") and ast.unparse(node.func.value).endswith("TREE_FLATTEN"):
                yield "pytree.py: values in containers"
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name in ("__enter__", "__exit__"):
                yield "hooked_context.py: contexts"
            if any(isinstance(each, ast.Attribute) and each.attr == "co_consts" for each in ast.walk(node)):
                calls = (each.value for each in ast.walk(node) if isinstance(each, ast.YieldFrom))
                if any(isinstance(each, ast.Call) and ast.unparse(each.func) == node.name for each in calls):
                    yield "nested_code.py: nested code objects"


OWNERS = {
    "hooks/nested_code.py",
    "hooks/pytree.py",
    "hooks/hooked_context.py",
    "base/locks.py",  # a lock is a context, and no hook
    "dump/full_code/constants.py",  # yields positions of constants, tuples among them
}
pytestmark = pytest.mark.skipif(not hasattr(ast, "unparse"), reason="names are read by ast.unparse")


def test_nothing_else_spells_them() -> None:
    paths = [path for path in sorted(DYNAMO.rglob("*.py")) if path.relative_to(DYNAMO).as_posix() not in OWNERS]
    assert len(paths) > 100
    found = [
        (path.relative_to(DYNAMO).as_posix(), what) for path in paths for what in spelled(ast.parse(path.read_text()))
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "getattr(code, 'co_qualname', code.co_name)",
        "code.co_qualname",
        "flat = private_names.TREE_FLATTEN.find()",
        "private_names.TREE_MAP.require()",
        "class A:\n    def __enter__(self): ...",
        "def walk(code):\n    yield code\n    for each in code.co_consts:\n        yield from walk(each)",
    ],
)
def test_a_planted_copy_is_found(source: str) -> None:
    assert list(spelled(ast.parse(source)))


def test_what_is_no_copy_is_not_found() -> None:
    source = "qualified_name(code)\nprivate_names.TREE_FLATTEN.module\ndef f(code):\n    yield from g(code.co_consts)"
    assert not list(spelled(ast.parse(source)))
