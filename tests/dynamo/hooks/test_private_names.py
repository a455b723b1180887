"""The private names of PyTorch that depyf uses are one table, and the installed PyTorch has what the table says."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Iterator, List, Set, Tuple

import pytest

torch = pytest.importorskip("torch")

from depyf.dynamo.hooks import private_names, torch_names  # noqa: E402
from depyf.dynamo.hooks.private_names import table  # noqa: E402
from depyf.dynamo.hooks.torch_names import PrivateName  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
DYNAMO = ROOT / "src" / "depyf" / "dynamo"
OWNERS = ("hooks/private_names.py", "hooks/torch_names.py")
"""The table, and what looks names up (it imports ``torch._dynamo`` to say that PyTorch is not there)."""


def tool(name: str) -> ModuleType:
    (path,) = (ROOT / "tools").rglob(f"{name}.py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def asked_for(path: Path) -> List[str]:
    """The constants of the table that a module asks for."""
    return re.findall(r"\bprivate_names\.([A-Z_]+)\b", path.read_text(encoding="utf-8"))


def test_modules_of_c_that_cannot_be_imported_are_found() -> None:
    """Up to PyTorch 2.6 those of Dynamo are attributes of ``torch._C._dynamo``, which is no package."""
    pytest.importorskip("torch._dynamo")
    assert torch_names.find("torch._C._dynamo.eval_frame", "set_eval_frame") is not None
    assert torch_names.find("torch._C._dynamo.eval_frame", "no_such_name") is None
    assert torch_names.find("torch._C._dynamo.no_such_module", "set_eval_frame") is None


def test_this_pytorch_has_what_the_table_says() -> None:
    show = tool("show_private_names")
    version = torch_names.torch_version()
    states = [(row.whole, show.state_of(row, version), row.lost) for _, row in table()]
    wrong = [each for each in states if each[1] in ("MISSING", "early", "late")]
    for name, state, lost in wrong:
        print(f"PyTorch {version}: {name} is {state}; without it: {lost}")
    newest = max(torch_names.release_of(pair.partition("+")[2]) for pair in tool("run_matrix").PAIRS)
    if torch_names.release_of(version) > newest:  # somebody has to look what became of them
        names = [each[:2] for each in wrong]
        pytest.skip(
            f"PyTorch {version} is newer than PAIRS in tools/check/run_matrix.py; not as the table says: {names}"
        )
    assert not wrong, "see the recipe of a private name that was renamed (docs/recipes.md)"
    assert len(states) > 150


def test_every_row_is_used_says_what_is_lost_and_stands_once() -> None:
    rows = list(table())
    used = tool("show_private_names").users()
    without_row = [
        name for path in DYNAMO.rglob("*.py") for name in asked_for(path) if not hasattr(private_names, name)
    ]
    assert not without_row, "dynamo/hooks/private_names.py has no row of that name"
    unused = [constant for constant, _ in rows if not used[constant]]
    assert not unused, "no module under dynamo/ asks for these rows"
    assert [row.whole for _, row in rows if len(row.lost.split()) < 3] == []
    names = [row.whole for _, row in rows]
    assert sorted({name for name in names if names.count(name) > 1}) == []


def test_a_row_knows_for_which_releases_it_is() -> None:
    row = PrivateName("torch", "x", "nothing is lost", since="2.4", until="2.10")
    assert [row.is_expected(each) for each in ("2.3.1", "2.4.0", "2.9.1+cpu", "2.10.2", "2.11.0")] == [
        False,
        True,
        True,
        True,
        False,
    ]


# Nothing else spells them

OF_PYTHON = {"_value2member_map_", "_getframe", "_current_frames", "_DummyThread", "_initializing"}
"""Private names of the standard library, which have no other name."""


def own_names(trees: List[ast.Module]) -> Set[str]:
    """What depyf itself defines or sets: functions, classes, variables, attributes."""
    found: Set[str] = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.alias):
                found.add(node.asname or node.name)
    return found


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def spelled(tree: ast.Module, own: Set[str]) -> Iterator[Tuple[int, str]]:
    """Private attributes of what is not depyf's own, spelled as attributes or as the name that ``getattr`` takes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name = node.attr
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
            given = node.args[1]
            is_name = isinstance(given, ast.Constant) and isinstance(given.value, str)
            name = given.value if is_name and node.func.id in ("getattr", "hasattr", "setattr") else ""
        else:
            continue
        if private(name) and name not in own | OF_PYTHON:
            yield node.lineno, name


def test_nothing_else_spells_a_private_name_of_pytorch() -> None:
    """Whole dotted names, private attributes, and texts that are the last part of a row's name."""
    paths = [path for path in sorted(DYNAMO.rglob("*.py")) if path.relative_to(DYNAMO).as_posix() not in OWNERS]
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    own = own_names(list(trees.values()))
    of_rows = {row.name for _, row in table() if private(row.name)}
    whole = tool("measure_house").private_torch_names
    found = []
    for path, tree in trees.items():
        texts = (each for each in ast.walk(tree) if isinstance(each, ast.Constant) and each.value in of_rows)
        places = [*spelled(tree, own), *((each.lineno, each.value) for each in texts)]
        places += whole(tree) if hasattr(ast, "unparse") else []
        found += [f"{path.relative_to(DYNAMO).as_posix()}:{line} spells {name}" for line, name in places]
    assert found == [], "give it a row in dynamo/hooks/private_names.py"
    assert len(paths) > 100


@pytest.mark.parametrize(
    "source",
    [
        "found = target._orig_mod",
        "found = getattr(target, '_some_thing', None)",
        "import torch\nprint(torch._C._some_thing)",
    ],
)
def test_a_planted_name_is_found(source: str) -> None:
    assert list(spelled(ast.parse(source), set()))


def test_what_is_depyfs_own_may_be_private() -> None:
    tree = ast.parse("class A:\n    def f(self):\n        self._mine = 1\n        return self._mine, sys._getframe(0)")
    assert not list(spelled(tree, own_names([tree])))


def test_no_row_of_the_table_hides_another() -> None:
    tree = ast.parse((DYNAMO / OWNERS[0]).read_text())
    names = [each.targets[0].id for each in tree.body if isinstance(each, ast.Assign)]  # type: ignore[attr-defined]
    assert sorted(names) == sorted(set(names))
