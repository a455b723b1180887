"""Settings of PyTorch that remove a finding, set after the imports of the program's main file."""

from __future__ import annotations

import ast
from typing import Callable, List

from depyf.decompiler.syntax import parse
from depyf.fixing.edits import Change, Edit, NoEdit, Project, tree_of
from depyf.fixing.problems import Problem


def setting(statement: str) -> Callable[[Problem, Project], Edit]:
    """Return a remedy that sets a setting by an assignment with a dotted name."""

    def make(problem: Problem, project: Project) -> Edit:
        return edit_with_statement(project, statement.partition(" =")[0].rpartition(".")[2], statement)

    return make


def edit_with_statement(project: Project, name: str, statement: str, *, touches_text: bool = False) -> Edit:
    """Return the edit that runs a statement, written with ``torch``, after the imports of the main file. Raises
    ``NoEdit`` where the program uses the setting ``name`` itself."""
    for file in {project.main_file, *project.files}:
        if name.encode() in project.source(file):
            raise NoEdit(f"the program uses {name} itself, in {file}")
    main = project.main_file
    inserted(project.source(main), main, statement)
    change = Change(main, 0, lambda source: inserted(source, main, statement))
    return Edit(("setting", statement), statement, (change,), touches_text=touches_text)


def inserted(source: bytes, file: str, statement: str) -> bytes:
    """Return the source with a statement after the imports at its top; ``import torch`` is added if it is missing."""
    import libcst

    _check_name(tree_of(source, file), file)
    module = libcst.parse_module(source)
    at, bound = _end_of_imports(module.body)
    texts = ([] if bound else ["import torch"]) + [statement]
    added = [libcst.parse_statement(f"{each}\n", config=module.config_for_parsing) for each in texts]
    header = module.header
    if at == 0 and module.body and not module.header:
        # A blank line or a comment above the first statement stays above it.
        header = []
    body = [*module.body[:at], *added, *module.body[at:]]
    after: bytes = module.with_changes(body=body, header=header).bytes
    expected = tree_of(source, file)
    expected.body[at:at] = parse("\n".join(texts)).body
    if ast.dump(expected) != ast.dump(tree_of(after, file)):
        raise NoEdit("the edited source is not what it should be")
    return after


def _end_of_imports(body: object) -> tuple[int, bool]:
    """Return the index after the block of imports that has ``import torch``, and True; without one, after the first
    block of imports (after the docstring, if there are none), and False."""
    import libcst

    statements: List[libcst.BaseStatement] = list(body)  # type: ignore[call-overload]
    kinds = [_kind(each) for each in statements]
    for at, kind in enumerate(kinds):
        if kind == "torch":
            end = at
            while end < len(kinds) and kinds[end] in ("torch", "import"):
                end += 1
            return end, True
    start = next((at for at, kind in enumerate(kinds) if kind != "docstring"), len(kinds))
    while start < len(kinds) and kinds[start] == "import":
        start += 1
    return start, False


def _kind(node: object) -> str:
    """Return whether a statement is a docstring or an import, and whether that binds ``torch``."""
    import libcst

    if not isinstance(node, libcst.SimpleStatementLine):
        return ""
    first = node.body[0]
    if isinstance(first, libcst.Expr) and isinstance(first.value, (libcst.SimpleString, libcst.ConcatenatedString)):
        return "docstring"
    if not all(isinstance(each, (libcst.Import, libcst.ImportFrom)) for each in node.body):
        return ""
    for each in node.body:
        for alias in each.names if isinstance(each, libcst.Import) else ():
            root = alias.evaluated_name.partition(".")[0]
            if (
                root == "torch"
                and alias.evaluated_alias in (None, "torch")
                and (alias.evaluated_alias is None or alias.evaluated_name == "torch")
            ):
                return "torch"
    return "import"


def _check_name(tree: ast.Module, file: str) -> None:
    """Raise ``NoEdit`` where ``torch`` is a variable of the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "torch" and not isinstance(node.ctx, ast.Load):
            raise NoEdit(f"torch is a variable in {file}")
