"""Modules that read input run none of it: they call no function that evaluates or unpickles."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator, Set, Tuple

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "depyf"
SCRIPT_TEMPLATE = PACKAGE / "dynamo" / "scripts" / "template.py"

_STAGES = tuple(f"decompiler/{each}" for each in ("bytecode", "normal", "flow", "lift", "structure"))

READERS = ("report", "torch_trace", "diagnosis", "sweep", *_STAGES)
"""Parts of the package that are given dumps, logs and bytecode of strangers."""

RUNNING = {"eval", "exec", "__import__", "import_module", "exec_module", "run_path", "run_module", "FunctionType"}
UNPICKLING = {"pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "jsonpickle"}


OWN_TABLES = {
    ("decompiler/bytecode/opcode_table.py", "import_module"),
    ("decompiler/normal/lowering.py", "import_module"),
}
"""These import modules of depyf, named by the version of the running Python."""

WRITES = ("decompiler/bytecode/other_pythons.py", "marshal")
"""It writes what another interpreter reads, and reads the answer with depyf's own reader."""


def called(tree: ast.AST) -> Iterator[Tuple[str, str]]:
    """Each function that is called: what it is an attribute of, and its name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            owner = node.func.value if isinstance(node.func, ast.Attribute) else None
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            yield (owner.id if isinstance(owner, ast.Name) else ""), name


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


def test_readers_run_nothing() -> None:
    found: Set[Tuple[str, str]] = set()
    for part in READERS:
        for path in sorted((PACKAGE / part).rglob("*.py")):
            tree = ast.parse(path.read_text())
            where = str(path.relative_to(PACKAGE))
            found |= {(where, name) for _, name in called(tree) if name in RUNNING}
            found |= {(where, name) for name in imported(tree) if name in UNPICKLING}
    assert found == {*OWN_TABLES, WRITES}
    tree = ast.parse((PACKAGE / WRITES[0]).read_text())
    assert {name for owner, name in called(tree) if owner == "marshal"} == {"dumps"}


def test_nothing_is_unpickled_anywhere() -> None:
    """Scripts that depyf writes load tensors (``SCRIPT_TEMPLATE``), and the inputs of a replay; depyf loads none."""
    loads = {"load", "loads", "Unpickler"}
    owners = {*UNPICKLING, "torch", "numpy", "np"}
    for path in sorted(PACKAGE.rglob("*.py")):
        for owner, name in called(ast.parse(path.read_text())):
            if name in loads and (owner in owners or name == "Unpickler"):
                assert path == SCRIPT_TEMPLATE, (path, owner, name)


def test_tensors_of_a_script_are_loaded_without_code() -> None:
    text = SCRIPT_TEMPLATE.read_text()
    assert "torch.load(path, weights_only=True)" in text
