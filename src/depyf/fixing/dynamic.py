"""``dynamic=True`` in the call of ``torch.compile``: sizes and numbers that vary are no constants then."""

from __future__ import annotations

import ast
import re
from typing import Iterator, List, Sequence, Union

from depyf.decompiler.syntax import parse
from depyf.fixing.captured import check_dynamic, check_floats
from depyf.fixing.edits import FUNCTIONS, Change, Edit, NoEdit, Project, column_of, dotted, name_of_torch, tree_of
from depyf.fixing.problems import Problem
from depyf.fixing.settings import edit_with_statement
from depyf.report.model.run import EntryGuard

_Compile = Union[ast.Call, ast.Attribute, ast.Name]


def dynamic_compile(problem: Problem, project: Project) -> Edit:
    """Return the edit of the ``torch.compile`` whose function was recompiled. Raises ``NoEdit``."""
    if problem.compiled_at is None:
        raise NoEdit("where torch.compile is called for this function is not known, or outside of the program's folder")
    check_floats(project)
    check_dynamic(project)
    file, line = problem.compiled_at
    with_dynamic(project.source(file), file, line)
    change = Change(file, line, lambda source: with_dynamic(source, file, line))
    return Edit(("dynamic", file, str(line)), f"line {line}: torch.compile(dynamic=True)", (change,))


def dynamic_source(problem: Problem, project: Project) -> Edit:
    """Return the edit that makes one size of one variable dynamic, wherever a compiled function has a variable of this
    name. Raises ``NoEdit``."""
    return _of_sources(_sources(problem.checked), project)


def dynamic_sources(problem: Problem, project: Project) -> Edit:
    """Return the edit that makes each size dynamic that varied in the run, and each size that was equal to such a size
    in the same function: where ``x`` and ``y`` have one size, neither is dynamic alone. Raises ``NoEdit``."""
    varied = {*_sources(problem.checked)}
    own = frozenset(varied)
    entries = {each.compile_id: each for each in project.run.compilations}
    for one in (each for recompile in project.run.recompiles for each in recompile.failed):
        if _SIZE.fullmatch(one.checked):
            varied.update(_sources(one.checked))
            entry = entries.get(one.entry or "")
            varied.update(_of_the_size(entry.guards if entry is not None else (), one.before or ""))
    if varied == own:
        raise NoEdit("no other size varied in the run")
    return _of_sources(sorted(varied), project)


def _of_the_size(guards: Sequence[EntryGuard], before: str) -> Iterator[str]:
    """Yield the sources of dimensions, of local variables, that an entry was compiled for as that size."""
    # check_tensor(L['x'], Tensor, ..., size=[9, 3], stride=[3, 1])
    for each in guards:
        name, sizes = _LOCAL.fullmatch(each.source), _SIZES.search(each.text)
        if each.kind == "TENSOR_MATCH" and name is not None and sizes is not None:
            for dimension, size in enumerate(sizes[1].split(", ")):
                if size in re.findall(r"\d+", before):
                    yield f"{name[0]}:{dimension}"


def _sources(checked: str) -> List[str]:
    """Return the names that ``dynamic_sources`` has for what a guard has checked; an empty list for none."""
    found = _SIZE.fullmatch(checked)
    if found is not None:
        return [f"L['{found[1]}']:{dimension}" for dimension in re.findall(r"\d+", found[2])]
    return [f"L['{checked}']"] if checked.isidentifier() else []


def _of_sources(sources: List[str], project: Project) -> Edit:
    if not sources:
        raise NoEdit("what varies is not the size or the number of a variable")
    for file in project.imported():
        if any(each in project.source(file) for each in _DECIDES):
            raise NoEdit(f"{file} decides itself which sizes are dynamic")
    check_dynamic(project)
    named = ",".join(sources)
    return edit_with_statement(project, "dynamic_sources", f'torch.compiler.config.dynamic_sources += ",{named}"')


_SIZE = re.compile(r"size of (\w+) in dimensions? (\d+(?:(?:, | and )\d+)*)")
_LOCAL = re.compile(r"L\['\w+'\]")
_SIZES = re.compile(r"\bsize=\[([^]]*)\]")
_DECIDES = (
    b"dynamic=",
    b"mark_static",
    b"mark_dynamic",
    b"mark_unbacked",
    b"automatic_dynamic_shapes",
    b"dynamic_shapes",
)


def with_dynamic(source: bytes, file: str, line: int) -> bytes:
    """Return the source with ``dynamic=True`` in the one ``torch.compile`` at a line. Raises ``NoEdit``."""
    import libcst
    from libcst.metadata import MetadataWrapper, PositionProvider

    node = _compile_at(tree_of(source, file), line)
    wrapper = MetadataWrapper(libcst.parse_module(source), unsafe_skip_copy=True)
    kind = libcst.Call if isinstance(node, ast.Call) else (libcst.Attribute, libcst.Name)
    column = column_of(source, node)
    module, name = wrapper.module, dotted(node.func if isinstance(node, ast.Call) else node)
    found = [
        each
        for each, place in wrapper.resolve(PositionProvider).items()
        if isinstance(each, kind)
        and (place.start.line, place.start.column) == (node.lineno, column)
        and module.code_for_node(each.func if isinstance(each, libcst.Call) else each) == name
    ]
    if len(found) != 1:
        raise NoEdit("the call of torch.compile was not found")
    old = found[0]
    argument = libcst.Arg(
        libcst.Name("True"),
        keyword=libcst.Name("dynamic"),
        equal=libcst.AssignEqual(libcst.SimpleWhitespace(""), libcst.SimpleWhitespace("")),
    )
    new: libcst.BaseExpression
    if isinstance(old, libcst.Call):
        new = old.with_changes(args=[*_separated(old.args), argument])
    else:
        new = libcst.Call(libcst.ensure_type(old, libcst.BaseExpression), [argument])
    after: bytes = libcst.ensure_type(module.deep_replace(old, new), libcst.Module).bytes
    _check_result(source, after, file, line)
    return after


def _check_result(source: bytes, after: bytes, file: str, line: int) -> None:
    """Raise ``NoEdit`` unless the edited source is the old one with that argument alone."""
    before, tree = tree_of(source, file), tree_of(after, file)
    (expected,) = parse("f(dynamic=True)", mode="eval").body.keywords  # type: ignore[attr-defined]
    node = _compile_at(before, line)
    if isinstance(node, ast.Call):
        node.keywords.append(expected)
    else:
        call = ast.Call(node, [], [expected])
        for each in ast.walk(before):
            decorators = getattr(each, "decorator_list", None) or ()
            if any(known is node for known in decorators):
                each.decorator_list = [call if known is node else known for known in decorators]  # type: ignore[attr-defined]
    if ast.dump(before) != ast.dump(tree):
        raise NoEdit("the edited source is not what it should be")


def _separated(args: object) -> List[object]:
    """Return arguments with a comma after the last one."""
    import libcst

    found: List[libcst.Arg] = list(args)  # type: ignore[call-overload]
    if found and isinstance(found[-1].comma, libcst.MaybeSentinel):
        found[-1] = found[-1].with_changes(comma=libcst.Comma(whitespace_after=libcst.SimpleWhitespace(" ")))
    return found


def _compile_at(tree: ast.Module, line: int) -> _Compile:
    """Return the call of ``torch.compile`` at a line, or the decorator that names it without calling it."""
    names = _names_of_compile(tree)
    around = [
        each
        for each in ast.walk(tree)
        if isinstance(each, ast.Call) and each.lineno <= line <= (each.end_lineno or 0) and dotted(each.func)
    ]
    # model.compile() of a module calls torch.compile.
    calls = [each for each in around if dotted(each.func) in names] or [
        each for each in around if dotted(each.func).rpartition(".")[2] == "compile" and "." in dotted(each.func)
    ]
    decorators = [
        each
        for node in ast.walk(tree)
        if isinstance(node, (*FUNCTIONS, ast.ClassDef))
        # A decorated function begins with its decorators for some Pythons, and with def for others.
        and any(each.lineno <= line <= node.lineno for each in node.decorator_list)
        for each in node.decorator_list
        if (isinstance(each, (ast.Attribute, ast.Name)) and dotted(each) in names)
        or (isinstance(each, ast.Call) and dotted(each.func) in names)
    ]
    found: List[Union[ast.Call, ast.Attribute, ast.Name]] = [
        *calls,
        *(each for each in decorators if each not in calls),
    ]
    if len(found) != 1:
        raise NoEdit(f"there is no single {names[0]} at line {line}")
    for keyword in found[0].keywords if isinstance(found[0], ast.Call) else ():
        if keyword.arg in (None, "dynamic"):
            raise NoEdit("torch.compile is given dynamic, or arguments with **")
    return found[0]


def _names_of_compile(tree: ast.Module) -> List[str]:
    """Return the names that ``torch.compile`` has in a file. Raises ``NoEdit`` where it has none."""
    found = [
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "torch" and not node.level
        for alias in node.names
        if alias.name == "compile"
    ]
    try:
        return [f"{name_of_torch(tree)}.compile", *found]
    except NoEdit:
        if not found:
            raise
        return found
