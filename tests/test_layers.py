"""The layers of docs/architecture.md hold: imports go downwards, torch and version checks stay where they belong."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Iterator, List, Optional, Tuple

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "depyf"

# From top to bottom; what stands on one line may import each other.
LAYERS: List[Tuple[str, ...]] = [
    ("__main__",),
    ("cli",),
    ("sweep", "running"),
    ("__init__", "explain", "optimization", "utils"),  # the drop-in surface: names that users already import
    ("dynamo",),
    ("report",),
    ("diagnosis",),
    ("torch_trace",),
    ("decompiler",),
    ("pipeline",),
    ("dynamo_code",),
    ("verify",),
    ("source",),
    ("structure",),
    ("lift",),
    ("flow",),
    ("normal",),
    ("bytecode",),
    ("own_package", "regular_files", "visible", "without_warnings"),
    ("messages",),
    ("asynchronous",),
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# The result type may be imported from everywhere; it names what it holds, and reaches up when asked to compile itself.
SHARED = "result"
UPWARDS_ALLOWED = {
    ("result", "depyf.bytecode.code"),
    ("result", "depyf.source.compiling"),
    ("result", "depyf.source.placeholders"),
    ("result", "depyf.source.source_text"),
}

VERSION_CHECKS_IN = ("bytecode", "normal")
TORCH_IN = ("dynamo",)


def part_of(module: str) -> str:
    """``depyf.normal.cp311`` -> ``normal``; the package itself -> ``__init__``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def dotted(node: ast.AST) -> str:
    """``a.b.c`` for such an expression, as far as it consists of names."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imported_modules(tree: ast.Module, module: str, is_package: bool) -> Iterator[Tuple[int, str]]:
    """Line and absolute name of everything that is imported, wherever the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            origin = absolute(node.module, node.level, module, is_package)
            for alias in node.names:
                # ``from depyf import normal`` names a layer by the alias, and not by the module.
                yield node.lineno, f"{origin}.{alias.name}" if origin == "depyf" and alias.name in RANK else origin
        elif isinstance(node, ast.Call) and dotted(node.func).endswith(("import_module", "__import__")):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield node.lineno, argument.value


def absolute(name: Optional[str], level: int, module: str, is_package: bool) -> str:
    if not level:
        return name or ""
    parents = module.split(".")
    parents = parents[: len(parents) - level + is_package]
    return ".".join(parents + ([name] if name else []))


def version_checks(tree: ast.Module) -> Iterator[Tuple[int, str]]:
    forbidden = ("sys.version_info", "sys.hexversion", "dis.opmap", "dis.opname", "opcode.opmap", "opcode.opname")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and dotted(node) in forbidden:
            yield node.lineno, dotted(node)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if f"{node.module}.{alias.name}" in forbidden:
                    yield node.lineno, f"{node.module}.{alias.name}"


def violations(source: str, module: str, *, is_package: bool = False) -> List[str]:
    """What ``source``, standing as ``module``, does that its layer may not do."""
    tree = ast.parse(source)
    here = part_of(module)
    found = []
    if here not in RANK and here != SHARED:
        found.append(f"{module}: stands in no layer; give it a place in LAYERS")
    for line, name in imported_modules(tree, module, is_package):
        if name.split(".")[0] in ("torch", "torchvision", "triton") and here not in TORCH_IN:
            found.append(f"{module}:{line} imports {name}")
        if name.split(".")[0] != "depyf" or (here, name) in UPWARDS_ALLOWED:
            continue
        there = part_of(name)
        if there == SHARED or there not in RANK:
            continue
        if here == SHARED or RANK[there] < RANK.get(here, 0):
            found.append(f"{module}:{line} imports {name}, which stands above it")
    if here not in VERSION_CHECKS_IN:
        found.extend(f"{module}:{line} checks {what}" for line, what in version_checks(tree))
    return found


def source_files() -> List[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", source_files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_file_keeps_to_its_layer(path: Path) -> None:
    parts = ["depyf", *path.relative_to(PACKAGE).with_suffix("").parts]
    is_package = parts[-1] == "__init__"
    module = ".".join(parts[:-1] if is_package else parts)
    assert violations(path.read_text(), module, is_package=is_package) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("depyf.bytecode.instructions", "from depyf.normal.ops import Op"),
        ("depyf.bytecode.instructions", "from depyf import normal"),
        ("depyf.bytecode.instructions", "from ..normal import ops"),
        ("depyf.flow.graph", "def f():\n    import depyf.structure.loops"),
        ("depyf.lift.stack", "import importlib\nimportlib.import_module('depyf.structure')"),
        ("depyf.decompiler", "from depyf.dynamo.session import Session"),
        ("depyf.normal.ops", "import depyf.cli"),
        ("depyf.result", "from depyf.verify import prove"),
        ("depyf.verify.prove", "import torch"),
        ("depyf.cli", "from torch._dynamo import config"),
        ("depyf.report.page", "import sys\nif sys.version_info >= (3, 12):\n    pass"),
        ("depyf.structure.loops", "from sys import version_info"),
        ("depyf.source.names", "import dis\nnumber = dis.opmap['CALL']"),
        ("depyf.novelty", "x = 1"),
    ],
)
def test_a_planted_violation_is_found(module: str, source: str) -> None:
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("depyf.structure.loops", "from depyf.flow.graph import Graph\nfrom depyf.normal.ops import Op"),
        ("depyf.flow.graph", "from . import dominators\nfrom depyf.result import Verdict"),
        ("depyf.dynamo.capture", "import torch\nfrom depyf.decompiler import decompile_code"),
        ("depyf.bytecode.opcode_table", "import sys\nversion = sys.version_info"),
        ("depyf.result", "def f():\n    from depyf.source.compiling import compile_like"),
        ("depyf.optimization", "from depyf.dynamo.dispatch import Dispatcher"),
        ("depyf.cli", "import dis\ndis.dis(main)"),
    ],
)
def test_what_is_allowed_is_not_reported(module: str, source: str) -> None:
    assert violations(source, module) == []


def test_there_are_files_to_check() -> None:
    assert len(source_files()) > 10


MAY_CATCH_ALL = ("cli", "sweep", "asynchronous")
"""Programs of depyf's own, where no signal handler of the user's is at work, and the module that tells them apart."""

HAND_ON = ("source/deep_stack.py", "running/program.py")
"""They do with what a thread or the program has raised what Python does."""

BROAD = {"BaseException", "Exception", "OSError", "RuntimeError", "ValueError"}
"""What handlers of signals raise."""


def test_no_clause_catches_what_comes_from_outside() -> None:
    """``except synchronous():`` lets an exception pass that a signal handler has raised; so does ``suppressed``."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if part_of("depyf." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts)) in MAY_CATCH_ALL:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler):
                types = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
                names = {dotted(each) for each in types if each is not None}
                reraises = any(isinstance(each, ast.Raise) and each.exc is None for each in ast.walk(node))
                caught = (node.type is None or names & BROAD) and not reraises
            elif isinstance(node, ast.Call) and dotted(node.func) == "contextlib.suppress":
                caught = bool({dotted(each) for each in node.args} & BROAD)
            else:
                continue
            if caught and path.relative_to(PACKAGE).as_posix() not in HAND_ON:
                found.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert found == []
