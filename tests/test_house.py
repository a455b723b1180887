"""The counts of ``tools/measure/measure_house.py`` only decrease: each has the last number as its upper bound here.

A change that lowers a count lowers its bound. One that raises a count has another way, which the messages name.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Dict, Iterator, Tuple

import pytest

ROOT = Path(__file__).resolve().parent.parent

BOUNDS: Dict[str, int] = {
    "any": 231,
    "functions": 0,
    "files": 0,
    "crumbs": 0,
    "helpers": 253,
    "private": 2,
}

INSTEAD: Dict[str, str] = {
    "any": "the type, imported if TYPE_CHECKING, or object",
    "functions": "functions with a name for each step",
    "files": "a module for each idea",
    "crumbs": "its code in the module that uses it, or the reason in its docstring, after 'A module of its own'",
    "helpers": "its lines where it is called",
    "private": "an entry in dynamo/hooks/",
}


def house() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measure_house", ROOT / "tools" / "measure" / "measure_house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


HOUSE = house()
pytestmark = pytest.mark.skipif(not hasattr(ast, "unparse"), reason="annotations are read by ast.unparse")


@pytest.fixture(scope="module")
def counts() -> Dict[str, int]:
    return dict(HOUSE.counts(HOUSE.measure()))


@pytest.mark.parametrize("kind", list(BOUNDS))
def test_a_count_does_not_rise(kind: str, counts: Dict[str, int]) -> None:
    count = counts[kind]
    assert count <= BOUNDS[kind], f"{HOUSE.KINDS[kind]}: {count}, at most {BOUNDS[kind]}. Instead: {INSTEAD[kind]}"


def test_every_count_but_the_lines_has_a_bound() -> None:
    assert set(BOUNDS) == set(INSTEAD) == set(HOUSE.KINDS) - {"lines"}


@pytest.mark.parametrize(
    ("kind", "source", "count"),
    [
        ("any", "def f(x: Any, *y: List[Any], z: int) -> Optional[Any]: ...", 3),
        ("any", "x: typing.Any\nclass A:\n    y: Dict[str, Any]\nAlias = Mapping[str, Any]", 3),
        ("any", "def f(x: object, many: str = 'Any'): ...\nAny = 1", 0),
        ("functions", "def f():\n" + "    x = 1\n" * 49 + "def g():\n" + "    x = 1\n" * 50, 1),
        ("helpers", "def _f():\n    'x'\n    y = 1\n    return y\ndef g(): return _f()", 1),
        ("helpers", "def _f():\n    y = 1\n    z = 2\n    return y\ndef g(): return _f()", 0),
        ("helpers", "def _f(): return 1\ndef f(): return 1\n@a\ndef _h(): return 1\ng = _f() + _f(), f(), _h()", 0),
        ("private", "import torch._dynamo\nfrom torch.fx import _pytree\ntorch._C._x.y\nname = 'torch._inductor'", 4),
        ("private", "import torch.fx\ntorch.nn.Module.__call__\n_x = 'text of torch._dynamo'\n'torch._x'", 0),
    ],
)
def test_what_is_counted(kind: str, source: str, count: int) -> None:
    find = {**HOUSE.COUNTED_IN_TREES, "private": HOUSE.private_torch_names}[kind]
    assert len(list(find(ast.parse(source)))) == count


def test_what_is_a_crumb() -> None:
    long = "x = 1\n" * 80
    modules = {
        "a/long.py": long,
        "a/once.py": "x = 1",
        "a/twice.py": "from a import once",
        "a/never.py": "from a import twice",
        "a/why.py": "'A module of its own: a table.'\nfrom a.twice import once",
        "a/__init__.py": "",
    }
    assert [path for path, _ in HOUSE.crumbs(modules)] == ["a/once.py", "a/never.py"]


KINDS: Dict[str, Tuple[str, ...]] = {
    "decompiler/lift/items.py:Mark": ("decompiler/lift", "decompiler/structure"),
    "decompiler/structure/dispatch/contexts.py:Kind": ("decompiler/structure",),
    "decompiler/flow/graph.py:Test": ("decompiler/flow", "decompiler/lift", "decompiler/structure"),
}
"""Enumerations, and the packages that use them: nothing there compares ``.kind`` or ``.test`` with their values."""


def compared_texts(tree: ast.Module) -> Iterator[Tuple[str, int]]:
    """The texts that attributes called ``kind`` or ``test`` are compared with, and the lines."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Compare)
            and isinstance(node.left, ast.Attribute)
            and node.left.attr in ("kind", "test")
        ):
            for inner in (each for side in node.comparators for each in ast.walk(side)):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield inner.value, inner.lineno


def values_of(path: Path, name: str) -> Tuple[str, ...]:
    """The values of an enumeration."""
    (definition,) = (each for each in ast.parse(path.read_text()).body if getattr(each, "name", "") == name)
    values = (each.value for each in ast.walk(definition) if isinstance(each, ast.Assign))
    return tuple(each.value for each in values if isinstance(each, ast.Constant) and isinstance(each.value, str))


@pytest.mark.parametrize("kind", list(KINDS))
def test_kinds_are_compared_as_members_of_their_enumeration(kind: str) -> None:
    file, _, name = kind.partition(":")
    source = ROOT / "src" / "depyf"
    values = values_of(source / file, name)
    assert values
    paths = [path for package in KINDS[kind] for path in sorted((source / package).rglob("*.py"))]
    assert len(paths) > 10
    found = [
        f"{path.relative_to(source)}:{line}: {text}"
        for path in paths
        for text, line in compared_texts(ast.parse(path.read_text()))
        if text in values
    ]
    assert not found, f"compare with a member of {name}: {found}"


def test_texts_that_kinds_are_compared_with() -> None:
    source = "x.kind == 'for'\nx.test in ('truth', 'none')\nx.name == 'for'\ny.kind is Kind.FOR"
    assert [text for text, _ in compared_texts(ast.parse(source))] == ["for", "truth", "none"]
