"""The layers of docs/architecture.md hold: imports go downwards, torch and version checks stay where they belong."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Set, Tuple

import pytest
from graphlib import CycleError, TopologicalSorter

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "src" / "depyf"

# From top to bottom; what stands on one line may import each other.
LAYERS: List[Tuple[str, ...]] = [
    ("__main__",),
    ("cli",),
    ("fixing",),
    ("running",),
    ("integrations",),
    # The names that users and other projects already import.
    ("__init__", "explain", "optimization", "utils", "result", "hints", "errors"),
    ("dynamo",),
    ("report",),
    ("answers",),  # of the public questions
    ("diagnosis",),
    ("torch_trace",),
    ("sweep",),
    ("decompiler",),
    ("base",),
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

# The rooms of the larger packages, from top to bottom: folders, and modules beside them. "" stands for the modules that
# are in none of them: a package without "" has all its modules in rooms.
ROOMS: Dict[str, Tuple[str, ...]] = {
    "decompiler": (
        "syntax", "api", "pipeline", "code_facts", "result", "dynamo_code", "verify", "certificates", "source",
        "structure", "lift", "flow", "normal", "bytecode", "hints", "errors",
    ),
    "decompiler.source": ("definitions", "author_form", "passes", "compiling", "printing", ""),
    "dynamo": ("questions", "scripts", "observe", "dump", "capture", "store", "entries", "guards", "hooks"),
    "report": ("render", "read", "diff", "analysis", "model"),
}  # fmt: skip

DOORS = ("depyf.decompiler", "depyf.decompiler.syntax")
"""What the rest of depyf may import of the decompiler: no module behind them."""

# What handles guards and graph breaks has them as typed values; their text is read by patterns in these modules alone.
WITHOUT_PATTERNS = ("depyf.diagnosis.", "depyf.dynamo.guards.")
PATTERNS_IN = tuple(
    f"depyf.diagnosis.{name}"
    for name in (
        "break_advice",
        "breaks_of_wrappers",
        "compile_errors",
        "constraints",
        "guard_sources",
        "guard_text",
        "plain_guards",
    )
)

# Rooms without a folder of tests: single modules and pipeline/ are tested in tests/decompiler/ itself, and
# source/author_form/ from bytecode, by tests/decompiler/test_author_text.py.
WITHOUT_TESTS: Dict[str, Set[str]] = {
    "decompiler": {"syntax", "api", "pipeline", "code_facts", "result", "dynamo_code", "hints", "errors"},
    "decompiler.source": {"author_form"},
}

VERSION_CHECKS_IN = ("depyf.decompiler.bytecode", "depyf.decompiler.normal")
TORCH_IN = ("dynamo",)


def part_of(module: str) -> str:
    """``depyf.decompiler.normal.cp311`` -> ``normal``; the package itself -> ``__init__``."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def rooms_of(module: str) -> Dict[str, str]:
    """The room of a module in each package that has rooms: ``depyf.base.locks`` -> ``{"dynamo": "hooks"}``."""
    found = {}
    for package, rooms in ROOMS.items():
        if module.startswith(f"depyf.{package}."):
            room = module[len(f"depyf.{package}.") :].split(".")[0]
            found[package] = room if room in rooms else ""
    return found


def is_behind_a_door(name: str, module: str) -> bool:
    """Whether ``name`` is inside the decompiler, and the module that imports it is not and should use a door."""
    return name.startswith("depyf.decompiler.") and name not in DOORS and part_of(module) != "decompiler"


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
                # ``from depyf import dynamo`` names a layer by the alias, and not by the module; so do rooms.
                is_place = origin == "depyf" and alias.name in RANK
                is_place |= alias.name in ROOMS.get(origin[len("depyf.") :], ())
                yield node.lineno, f"{origin}.{alias.name}" if is_place else origin
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
    if here not in RANK:
        found.append(f"{module}: stands in no layer; give it a place in LAYERS")
    own_rooms = rooms_of(module)
    for package, room in list(own_rooms.items()):
        if room not in ROOMS[package]:
            found.append(f"{module}: stands in no room; put it into one of {', '.join(ROOMS[package])}")
            del own_rooms[package]
    for line, name in imported_modules(tree, module, is_package):
        if name.split(".")[0] in ("torch", "torchvision", "triton") and here not in TORCH_IN:
            found.append(f"{module}:{line} imports {name}")
        if (
            name in ("re", "depyf.base.late_regex")
            and module.startswith(WITHOUT_PATTERNS)
            and module not in PATTERNS_IN
        ):
            found.append(f"{module}:{line} reads text by patterns; that is for {', '.join(PATTERNS_IN)}")
        if name.split(".")[0] != "depyf":
            continue
        there = part_of(name)
        if there not in RANK:
            continue
        if RANK[there] < RANK.get(here, 0):
            found.append(f"{module}:{line} imports {name}, which stands above it")
        if is_behind_a_door(name, module):
            found.append(f"{module}:{line} imports {name}; the doors of the decompiler are {' and '.join(DOORS)}")
        others = rooms_of(name)
        for package, room in own_rooms.items():
            order = ROOMS[package]
            if others.get(package, room) in order and order.index(others.get(package, room)) < order.index(room):
                found.append(f"{module}:{line} imports {name}, which stands in a room above it")
    if not module.startswith(VERSION_CHECKS_IN):
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
        ("depyf.decompiler.bytecode.instructions", "from depyf.decompiler.normal.ops import Op"),
        ("depyf.decompiler.bytecode.instructions", "from depyf.decompiler import normal"),
        ("depyf.decompiler.bytecode.instructions", "from ..normal import ops"),
        ("depyf.decompiler.flow.graph", "def f():\n    import depyf.decompiler.structure.loops"),
        ("depyf.decompiler.lift.stack", "import importlib\nimportlib.import_module('depyf.decompiler.structure')"),
        ("depyf.decompiler", "from depyf.dynamo.capture.session import Session"),
        ("depyf.decompiler.normal.ops", "import depyf.cli"),
        ("depyf.decompiler.lift.context", "from depyf.decompiler.result import Verdict"),
        ("depyf.decompiler.verify.prove", "import torch"),
        ("depyf.cli", "from torch._dynamo import config"),
        ("depyf.report.render.page", "import sys\nif sys.version_info >= (3, 12):\n    pass"),
        ("depyf.decompiler.structure.loops", "from sys import version_info"),
        ("depyf.decompiler.source.names", "import dis\nnumber = dis.opmap['CALL']"),
        ("depyf.dynamo.guards.failing", "import re"),
        ("depyf.diagnosis.guard_explanations", "from re import compile"),
        ("depyf.novelty", "x = 1"),
        ("depyf.decompiler.novelty", "x = 1"),
        ("depyf.decompiler.hints", "from depyf.base import messages\nfrom depyf import torch_trace"),
        ("depyf.base.messages", "from depyf.decompiler import DecompilationError"),
        ("depyf.dynamo.dump.manifest", "from depyf.decompiler.verify.compare import compare"),
        ("depyf.report.model.run", "from depyf.decompiler import bytecode"),
        ("depyf.sweep.targets", "def f():\n    import depyf.decompiler.bytecode.pyc"),
        ("depyf.dynamo.novelty", "x = 1"),
        ("depyf.dynamo.hooks.torch_names", "from depyf.dynamo.capture.session import Session"),
        ("depyf.dynamo.guards.tree", "from depyf.dynamo import entries"),
        ("depyf.report.model.run", "def f():\n    from depyf.report.render.page import page"),
        ("depyf.decompiler.source.names", "from depyf.decompiler.source.printing.literals import literal"),
    ],
)
def test_a_planted_violation_is_found(module: str, source: str) -> None:
    assert len(violations(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "depyf.decompiler.structure.loops",
            "from depyf.decompiler.flow.graph import Graph\nfrom depyf.decompiler.normal.ops import Op",
        ),
        (
            "depyf.decompiler.flow.graph",
            "from . import dominators\nfrom depyf.decompiler.errors import DecompilationError",
        ),
        ("depyf.dynamo.capture.hub", "import torch\nfrom depyf.decompiler import decompile_code"),
        ("depyf.decompiler.bytecode.opcode_table", "import sys\nversion = sys.version_info"),
        ("depyf.decompiler.result", "def f():\n    from depyf.decompiler.source.compiling.to_code import compile_like"),
        ("depyf.optimization", "from depyf.dynamo.dispatch import Dispatcher"),
        ("depyf.report.model.run", "from depyf.decompiler.syntax import parse\nfrom depyf.decompiler import Verdict"),
        ("depyf.cli", "import dis\ndis.dis(main)"),
        ("depyf.diagnosis.guard_text", "import re"),
        ("depyf.dynamo.questions.why", "import re"),
    ],
)
def test_what_is_allowed_is_not_reported(module: str, source: str) -> None:
    assert violations(source, module) == []


def test_tests_stand_in_the_folders_of_the_rooms() -> None:
    """``tests/dynamo/hooks/`` tests ``dynamo/hooks/``; tests of several rooms stand in ``tests/dynamo/`` itself."""
    for package, rooms in ROOMS.items():
        folders = {path.parent.name for path in (TESTS / package.replace(".", "/")).glob("*/test_*.py")}
        assert folders <= set(rooms), f"tests/{package} has folders that are no rooms of {package}/"
        assert folders >= set(rooms) - WITHOUT_TESTS.get(package, set()) - {""}


def test_each_test_file_has_a_name_of_its_own() -> None:
    """docs/compatibility.md names them without their folders."""
    for folder in ("dynamo", "report", "decompiler/source"):
        names = [path.name for path in (TESTS / folder).rglob("test_*.py")]
        assert len(names) == len(set(names))


def test_there_are_files_to_check() -> None:
    assert len(source_files()) > 10


MAY_CATCH_ALL = ("cli", "sweep")
"""Programs of depyf's own, where no signal handler of the user's is at work."""

HAND_ON = ("base/asynchronous.py", "decompiler/source/deep_stack.py", "running/injected.py", "running/program.py")
"""The first recognises exceptions from outside; the others raise again what a thread, a handler or the program has
raised."""

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


# Circles


def imported_anywhere(tree: ast.Module) -> Iterator[str]:
    """The modules that a module imports, and what is taken out of them: also in functions, and for annotations only."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def circle_in(imports: Dict[str, Set[str]]) -> List[str]:
    """Modules of which each is imported by the next, and the last one is the first; empty where there are none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_over_others() -> None:
    names = {path: ".".join(["depyf", *path.relative_to(PACKAGE).with_suffix("").parts]) for path in source_files()}
    names = {path: name[: -len(".__init__")] if name.endswith(".__init__") else name for path, name in names.items()}
    known = set(names.values())
    imports = {
        name: {each for each in imported_anywhere(ast.parse(path.read_text())) if each in known and each != name}
        for path, name in names.items()
    }
    for name in known:  # a package is imported before its modules, which says nothing about what needs what
        imports[name] = {each for each in imports[name] if not name.startswith(f"{each}.")}
    assert circle_in(imports) == []
    assert sum(map(len, imports.values())) > 500


LOADED_OTHERWISE = (
    "depyf.__main__",  # python -m depyf
    "depyf.running.by_environment",  # the start hook
    "depyf.running.at_start.sitecustomize",  # Python, in the processes that are followed
    "depyf.running.pytest_plugin",  # the entry point pytest11
    "depyf.decompiler.bytecode.tables.",  # by the number of the version
    "depyf.decompiler.normal.v3",  # likewise
    "depyf.integrations.",
    "depyf.explain.",  # imported by other projects
    "depyf.optimization",
    "depyf.utils",
    "depyf.result",
    "depyf.hints",
    "depyf.errors",
)


def test_every_module_is_used() -> None:
    """One that nothing imports is forgotten in a table, as a new readability pass, or only tests use it."""
    used: Set[str] = set()
    known = {}
    for path in source_files():
        parts = ("depyf", *path.relative_to(PACKAGE).with_suffix("").parts)
        known[".".join(parts)] = path
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                used |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Import):
                used |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Constant) and str(node.value).startswith("depyf."):
                used.add(str(node.value))  # the public names and where they are
    packages = {name for name in known if name.endswith(".__init__")}
    unused = {name for name in known if not name.startswith(LOADED_OTHERWISE)} - packages - used
    assert not unused, f"no table and no module has these: {sorted(unused)} (docs/recipes.md says which table)"


USED_OTHERWISE = {
    "depyf:load_ipython_extension": "%load_ext calls it",
    "depyf.diagnosis.guard_explanations:WITHOUT_EXPLANATION": "tests compare it with the kinds that there are",
    "depyf.dynamo.hooks.private_names:table": "tools/show/show_private_names.py",
    "depyf.dynamo.questions.magics:load": "by load_ipython_extension, which imports no PyTorch",
    "depyf.decompiler.bytecode.pyc:read_pyc": "tests of the reader alone",
    "depyf.base.own_bugs:as_for_users": "tests of what users see of a bug",
    "depyf.running.outer_calls:main": "fixing/trials.py calls it in another process",
    "depyf.running.injected:injected_by_depyf": "dynamo/questions/attached/phase.py finds it in the globals of frames",
    "depyf.torch_trace.log_file:log_lines": "tools/check/compare_with_tlparse.py",
}


def defined_in(tree: ast.Module) -> Iterator[Tuple[str, Set[int]]]:
    """The functions, classes and variables of a module, with the ids of the nodes in their own definition."""
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, set(map(id, ast.walk(node)))
        for target in getattr(node, "targets", [getattr(node, "target", None)]):
            if isinstance(target, ast.Name):
                yield target.id, set()


def unused_names(trees: Dict[str, ast.Module]) -> List[str]:
    """The names (``module:name``) that neither their own module nor another one uses."""
    used: Set[Tuple[str, str]] = set()
    for tree in trees.values():
        modules: Dict[str, str] = {}
        for node in ast.walk(tree):
            for alias in getattr(node, "names", []) if isinstance(node, (ast.Import, ast.ImportFrom)) else []:
                origin = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                modules[alias.asname or alias.name] = f"{origin}{alias.name}"
                used.add((origin[:-1], alias.name))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                first, _, rest = dotted(node.value).partition(".")
                used.add((f"{modules.get(first, first)}.{rest}".rstrip("."), node.attr))
    unused = []
    for module, tree in trees.items():
        reads: Dict[str, Set[int]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                reads.setdefault(node.id, set()).add(id(node))
        for name, own in defined_in(tree):
            if not (reads.get(name, set()) - own or (module, name) in used or name.startswith("__")):
                unused.append(f"{module}:{name}")
    return unused


def test_every_name_is_used() -> None:
    """One that nothing uses is forgotten in a table, or only tests use it."""
    trees = {}
    for path in source_files():
        parts = ("depyf", *path.relative_to(PACKAGE).with_suffix("").parts)
        trees[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text())
    unused = {name for name in unused_names(trees) if not name.startswith(LOADED_OTHERWISE)}
    assert not unused - set(USED_OTHERWISE), "nothing in src/ uses these: a table lacks them, or they can go"
    assert not set(USED_OTHERWISE) - unused, "these are used now"


def test_a_planted_name_is_unused() -> None:
    trees = {
        "a": ast.parse("X = 1\ndef f(): return f()\ndef g(): return X\nclass H: pass"),
        "b": ast.parse("from a import g\nimport a as c\nc.H"),
    }
    assert unused_names(trees) == ["a:f"]


@pytest.mark.parametrize(
    ("imports", "length"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}}, 4),
        ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, 0),
        ({"z": {"a"}, "a": {"b"}, "b": {"a"}}, 3),
        ({"a": {"b"}, "b": {"d"}, "c": {"d"}, "d": {"c"}}, 3),
    ],
)
def test_circles_are_found(imports: Dict[str, Set[str]], length: int) -> None:
    assert len(circle_in(imports)) == length
