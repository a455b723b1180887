"""Imports: the counts and the picture of ``tools/measure/measure_imports.py``, and what tools import of the package."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, List, Tuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not hasattr(ast, "unparse"), reason="the tool reads imports by ast.unparse")


def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("measure_imports", ROOT / "tools" / "measure" / "measure_imports.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TOOL: Any = tool()


def test_the_picture_of_the_rooms_is_todays() -> None:
    """``python tools/measure/measure_imports.py dynamo --picture`` prints it."""
    assert TOOL.picture("dynamo") in (ROOT / "docs" / "architecture.md").read_text()


@pytest.mark.parametrize("package", TOOL.PACKAGES)
def test_no_arrow_goes_up(package: str) -> None:
    imports = TOOL.read(package)
    assert len(imports.arrows) > 5
    assert TOOL.upwards(list(imports.arrows), TOOL.order_of(package)) == []
    assert TOOL.circles(list(imports.arrows)) == []


def test_imports_become_arrows_between_rooms(tmp_path: Path) -> None:
    files = {
        "top/__init__.py": "",
        "top/a.py": "from depyf.house.low import b\ndef f():\n    import depyf.house.alone",
        "low/__init__.py": "",
        "low/b.py": "import ast",
        "alone.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from depyf.house.low.b import z",
        "__init__.py": "from depyf.house.top import a",
    }
    for name, text in files.items():
        path = tmp_path / "house" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    imports = TOOL.read("house", tmp_path)
    assert imports.rooms == ("alone", "low", "top")
    assert imports.arrows == {("top", "low"): 1, ("top", "alone"): 1, ("alone", "low"): 1}
    assert TOOL.floors(imports.rooms, list(imports.arrows)) == {"low": 0, "alone": 1, "top": 2}
    assert TOOL.picture("house", tmp_path) == "2  top        -> alone, low\n1  alone      -> low\n0  low"


CHAIN = [("a", "b"), ("b", "c"), ("a", "c")]
CIRCLE = [("a", "b"), ("b", "a"), ("b", "c")]


@pytest.mark.parametrize(
    ("arrows", "floors", "up", "circles"),
    [
        (CHAIN, {"a": 2, "b": 1, "c": 0}, [], []),
        (CIRCLE, {"a": 1, "b": 1, "c": 0}, [("b", "a")], [{"a", "b"}]),
    ],
)
def test_floors_and_circles(
    arrows: List[Tuple[str, str]], floors: Dict[str, int], up: List[Tuple[str, str]], circles: List[Any]
) -> None:
    assert TOOL.floors("abc", arrows) == floors
    assert TOOL.upwards(arrows, "abc") == up
    assert len(TOOL.upwards(arrows, "")) == 2 * len(circles)
    assert TOOL.circles(arrows) == circles


@pytest.mark.parametrize(
    "path",
    [path for folder in ("benchmarks", "examples", "tools") for path in sorted((ROOT / folder).rglob("*.py"))],
    ids=lambda path: path.name,
)
def test_what_a_tool_imports_of_the_package_exists(path: Path) -> None:
    """Few tests run the tools, so that nothing else notices a function that was renamed."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("depyf"):
            module = importlib.import_module(node.module or "")
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")
