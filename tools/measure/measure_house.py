"""Count what the house rules bound: ``Any``, long functions and files, private names of PyTorch.

    python tools/measure/measure_house.py               # the counts, one a line
    python tools/measure/measure_house.py --list any    # every place that one of them counts, with its file and line
    python tools/measure/measure_house.py --folders any # the same, summed up a folder

``tests/test_house.py`` holds the counts as upper bounds. Parameters and positional booleans are bounded by ``ruff``.
Only the standard library is needed.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Tuple, Union

SOURCE = Path(__file__).resolve().parents[2] / "src"
HOOKS = "depyf/dynamo/hooks/"
"""The only room that may name private parts of PyTorch."""

MOST_LINES_OF_FUNCTION = 50
MOST_LINES_OF_FILE = 350

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


class Place(NamedTuple):
    """One occurrence of something that is counted."""

    path: str
    line: int
    what: str


KINDS: Dict[str, str] = {
    "any": "annotations with Any",
    "functions": f"functions of more than {MOST_LINES_OF_FUNCTION} lines",
    "files": f"files of more than {MOST_LINES_OF_FILE} lines",
    "private": "private names of PyTorch outside of dynamo/hooks/",
    "lines": "lines in src/",
}


def functions_of(tree: ast.Module) -> Iterator[Function]:
    """Yield every function and method, nested ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


def annotations_of(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield every annotation, and the values of type aliases at the top level of the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None:
            yield node.returns
        elif isinstance(node, ast.AnnAssign):
            yield node.annotation
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Subscript):
            yield statement.value


def names_any(annotation: ast.expr) -> bool:
    """Return whether ``Any`` occurs in an annotation, also in a quoted one."""
    for node in ast.walk(annotation):
        if isinstance(node, ast.Name) and node.id == "Any":
            return True
        if isinstance(node, ast.Attribute) and node.attr == "Any":
            return True
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "Any" in node.value.split("["):
            return True
    return False


def any_annotations(tree: ast.Module) -> Iterator[Tuple[int, str]]:
    for annotation in annotations_of(tree):
        if names_any(annotation):
            yield annotation.lineno, ast.unparse(annotation)


def long_functions(tree: ast.Module) -> Iterator[Tuple[int, str]]:
    for function in functions_of(tree):
        length = (function.end_lineno or function.lineno) - function.lineno + 1
        if length > MOST_LINES_OF_FUNCTION:
            yield function.lineno, f"{function.name} has {length} lines"


def private_torch_names(tree: ast.Module) -> Iterator[Tuple[int, str]]:
    """Yield imports of, attributes of and texts with private parts of PyTorch: ``torch._dynamo``, ``torch.fx._x``."""
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and id(node) not in inner:
            names = [ast.unparse(node)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            names = [node.value]
        else:
            continue
        for name in names:
            if is_private_torch_name(name):
                yield node.lineno, name


def is_private_torch_name(name: str) -> bool:
    parts = name.split(".")
    return (
        parts[0] == "torch"
        and all(part.isidentifier() for part in parts)
        and any(part.startswith("_") and not part.startswith("__") for part in parts)
    )


COUNTED_IN_TREES = {
    "any": any_annotations,
    "functions": long_functions,
}


def measure(source: Path = SOURCE) -> Dict[str, List[Place]]:
    """Return every counted place, by kind; for the kind ``lines`` a place is a file, and ``line`` its length."""
    found: Dict[str, List[Place]] = {kind: [] for kind in KINDS}
    for path in sorted(source.rglob("*.py")):
        text = path.read_text()
        name = path.relative_to(source).as_posix()
        tree = ast.parse(text)
        for kind, places in COUNTED_IN_TREES.items():
            found[kind].extend(Place(name, line, what) for line, what in places(tree))
        if not name.startswith(HOOKS):
            found["private"].extend(Place(name, line, what) for line, what in private_torch_names(tree))
        length = len(text.splitlines())
        if length > MOST_LINES_OF_FILE:
            found["files"].append(Place(name, 1, f"{length} lines"))
        found["lines"].append(Place(name, length, ""))
    return found


def counts(found: Dict[str, List[Place]]) -> Dict[str, int]:
    """Return the number for each kind."""
    return {
        kind: sum(place.line for place in places) if kind == "lines" else len(places) for kind, places in found.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", choices=list(KINDS), metavar="KIND", help=f"list the places: {', '.join(KINDS)}")
    parser.add_argument("--folders", choices=list(KINDS), metavar="KIND", help="sum the places up a folder")
    options = parser.parse_args()
    found = measure()
    if options.list:
        for place in found[options.list]:
            print(f"{place.path}:{place.line}: {place.what}")
    elif options.folders:
        folders = Counter(place.path.rpartition("/")[0] for place in found[options.folders])
        for folder, count in folders.most_common():
            print(f"{count:5} {folder}")
    else:
        for kind, count in counts(found).items():
            print(f"{count:6} {KINDS[kind]}")


if __name__ == "__main__":
    main()
