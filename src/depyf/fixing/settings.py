"""Settings of PyTorch that remove a finding, set after the imports of the program's main file."""

from __future__ import annotations

import ast
from functools import partial
from typing import Callable, List, Optional, Set, Tuple

from depyf.decompiler.syntax import parse
from depyf.diagnosis.break_advice import BreakCause
from depyf.fixing.captured import check_dynamic, check_numbers, check_shapes, may_compare
from depyf.fixing.edits import (
    Change,
    Edit,
    Function,
    NoEdit,
    Project,
    binds,
    dotted,
    names_of_layers,
    reachable,
    tree_of,
)
from depyf.fixing.expressions import is_fact
from depyf.fixing.problems import Problem


def setting(
    statement: str, *, captures: bool = False, is_dynamic: bool = False, never: str = "", why: str = ""
) -> Callable[[Problem, Project], Edit]:
    """Return a remedy that sets a setting by an assignment with a dotted name. ``captures``: operations whose result
    depends on data become a part of graphs, so that no ``try`` or ``assert`` around the operations sees the result.
    ``is_dynamic``: ints of Python become a part of graphs. A program with the text ``never`` does not get the setting,
    and ``why`` says why not."""

    def make(problem: Problem, project: Project) -> Edit:
        if never and any(never.encode() in project.source(file) for file in project.imported()):
            raise NoEdit(why)
        if is_dynamic:
            check_dynamic(project)
        if captures:
            _check_all_captured(problem, project)
        return edit_with_statement(project, statement.partition(" =")[0].rpartition(".")[2], statement)

    return make


def _check_all_captured(problem: Problem, project: Project) -> None:
    """Raise ``NoEdit`` where a function that may be compiled uses what is captured in a way that is not known."""
    is_shape = problem.cause == BreakCause.DYNAMIC_SHAPE.value
    causes = _MAKES_SHAPES if is_shape else _READS_NUMBERS
    all_found = project.found | {(problem.file, problem.line, problem.cause)}
    found = frozenset((file, line) for file, line, cause in all_found if cause in causes)
    left, layers = set(found), names_of_layers(project)
    check = check_shapes if is_shape else partial(check_numbers, may_compare=may_compare(project))
    for file, function, is_called in reachable(project):
        _check_captured(file, function)
        for node in check(file, function, found, layers, is_called=is_called):
            left -= {(file, line) for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}
    for file, line in sorted(left):
        what = "the shape is made" if is_shape else "the number is read"
        raise NoEdit(f"how {what} at {f'{file}:{line}' if file else 'a line of a library'} is not known")


def edit_with_statement(project: Project, name: str, statement: str, *, touches_text: bool = False) -> Edit:
    """Return the edit that runs a statement, written with ``torch``, after the imports of the main file. Raises
    ``NoEdit`` where the program uses the setting ``name`` itself."""
    for file in project.imported():
        if name.encode() in project.source(file):
            raise NoEdit(f"the program uses {name} itself, in {file}")
    main = project.main_file
    _check_environment(project.tree(main), main)
    inserted(project.source(main), main, statement)
    change = Change(main, 0, lambda source: inserted(source, main, statement))
    return Edit(("setting", statement), statement, (change,), touches_text=touches_text)


def inserted(source: bytes, file: str, statement: str) -> bytes:
    """Return the source with a statement after the imports at its top; ``import torch`` is added if it is missing."""
    import libcst

    if binds(tree_of(source, file), "torch"):
        raise NoEdit(f"torch is a variable in {file}")
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


def _end_of_imports(body: object) -> Tuple[int, bool]:
    """Return the index after the block of imports that has ``import torch``, and True; without one, after the block
    that has another import of torch, else after the first block (after the docstring, if there are none), and False.
    ``import torch`` stands after the first import of torch in any case, as the program may prepare that one."""
    import libcst

    statements: List[libcst.BaseStatement] = list(body)  # type: ignore[call-overload]
    kinds = [_kind(each) for each in statements]
    for wanted in ("torch", "of torch"):
        if wanted in kinds:
            end = kinds.index(wanted)
            while end < len(kinds) and kinds[end] in _IMPORTS:
                end += 1
            return end, "torch" in kinds[:end]
    start = next((at for at, kind in enumerate(kinds) if kind != "docstring"), len(kinds))
    while start < len(kinds) and kinds[start] in _IMPORTS:
        start += 1
    if any(kinds[start:]):
        raise NoEdit("the main file does not import torch at its top, and not all of its imports stand together")
    return start, False


def _kind(node: object) -> str:
    """Return ``docstring``, or ``import`` for an import, ``of torch`` for one of torch, ``torch`` if it binds that."""
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
    return "of torch" if any(_is_of_torch(each) for each in node.body) else "import"


def _is_of_torch(node: object) -> bool:
    import libcst

    if isinstance(node, libcst.Import):
        return any(each.evaluated_name.partition(".")[0] == "torch" for each in node.names)
    module = node.module if isinstance(node, libcst.ImportFrom) and not node.relative else None
    while isinstance(module, libcst.Attribute):
        module = module.value
    return isinstance(module, libcst.Name) and module.value == "torch"


def _check_environment(tree: ast.Module, file: str) -> None:
    """Raise ``NoEdit`` where a file sets environment variables after it imports torch: the statement imports torch's
    compiler, which reads such variables when it is imported."""
    first = len(tree.body)
    for at, statement in enumerate(tree.body):
        names = [each.name for each in statement.names] if isinstance(statement, ast.Import) else []
        names += [statement.module or ""] if isinstance(statement, ast.ImportFrom) else []
        if any(each.partition(".")[0] == "torch" for each in names):
            first = min(first, at)
    for node in (node for statement in tree.body[first:] for node in ast.walk(statement)):
        written = ""
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            written = dotted(node.value)
        elif isinstance(node, ast.Call):
            known, _, last = dotted(node.func).rpartition(".")
            written = known if last in ("setdefault", "update", "pop", "clear") else last
        if written.rpartition(".")[2] in ("environ", "environb", "putenv", "unsetenv"):
            raise NoEdit(f"{file} sets environment variables, which torch's compiler reads when it is imported")


def _check_captured(file: str, function: Function) -> None:
    """Raise ``NoEdit`` where a function may see that an operation raises, or asserts what Dynamo does not check."""
    for node in ast.walk(function):
        place = f"{file}:{getattr(node, 'lineno', 0)}"
        if getattr(node, "handlers", None):
            raise NoEdit(f"the try at {place} would not see what an operation of a graph raises")
        if isinstance(node, (ast.With, ast.AsyncWith)) and any(
            isinstance(each.context_expr, ast.Call) and dotted(each.context_expr.func).rpartition(".")[2] in _CATCHING
            for each in node.items
        ):
            raise NoEdit(f"the with at {place} would not see what an operation of a graph raises")
        if isinstance(node, ast.Assert) and not is_fact(node.test):
            raise NoEdit(f"the assert at {place} may be about a value that is known when the graph runs only")


def allow_rnn(problem: Problem, project: Project) -> Edit:
    """Return the edit that lets Dynamo trace recurrent networks, where none draws random numbers in training mode."""
    edit = _ALLOW_RNN(problem, project)
    trees = {file: project.tree(file) for file in project.imported()}
    # Programs have classes named RNN, too, whose calls say nothing of PyTorch's.
    own = {node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    is_made = False
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if _may_drop_out(node):
                raise NoEdit(f"at {file}:{getattr(node, 'lineno', 0)}, {_DROPS_OUT}")
            is_made |= isinstance(node, ast.Call) and _is_recurrent(node.func) and dotted(node.func) not in own
        if _mentions(tree) - _harmless(tree):
            raise NoEdit(f"{file} uses GRU or RNN in another way than in a call, so that {_DROPS_OUT}")
    if not is_made:
        raise NoEdit(f"where the recurrent network is made is not known, so that {_DROPS_OUT}")
    return edit


def _may_drop_out(node: ast.AST) -> bool:
    """Return whether a node may give a recurrent network a ``dropout`` that is not zero, whatever its mode is now."""
    if isinstance(node, ast.Attribute):
        return node.attr == "dropout" and not isinstance(node.ctx, ast.Load) and dotted(node.value) != "self"
    if not isinstance(node, ast.Call):
        return False
    name = dotted(node.func).rpartition(".")[2]
    if name in ("getattr", "setattr"):
        of_nn = name == "getattr" and dotted(node.args[0] if node.args else None).rpartition(".")[2] == "nn"
        given = node.args[1] if len(node.args) > 1 else None
        known = given.value if isinstance(given, ast.Constant) else None
        return (known is None and (of_nn or name == "setattr")) or (known == "dropout" and name == "setattr")
    if any(each.arg == "weights_only" and not _is_constant(each.value, True) for each in node.keywords):
        return True  # a whole module may be loaded
    if not _is_recurrent(node.func):
        return False
    # The sixth argument of GRU is dropout, and what a star stands for is not known.
    unknown = len(node.args) > 5 or any(isinstance(each, ast.Starred) for each in node.args)
    return unknown or any(
        each.arg is None or (each.arg == "dropout" and not _is_constant(each.value, 0)) for each in node.keywords
    )


def _is_constant(node: ast.expr, value: float) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and node.value == value


def _is_recurrent(node: ast.AST) -> bool:
    last = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return last in _RECURRENT


def _mentions(tree: ast.Module) -> Set[int]:
    """Return the ids of all nodes that name a class of recurrent networks, also as a text or by another name."""
    found = set()
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and node.value in _RECURRENT
        is_renamed = isinstance(node, ast.alias) and node.name in _RECURRENT and node.asname not in (None, node.name)
        if is_text or is_renamed or _is_recurrent(node):
            found.add(id(node))
    return found


def _harmless(tree: ast.Module) -> Set[int]:
    """Return the ids of nodes that are called, or only tell what something is: annotations, isinstance()."""
    found = set()
    for node in ast.walk(tree):
        parts: List[Optional[ast.AST]] = [getattr(node, "annotation", None), getattr(node, "returns", None)]
        if isinstance(node, ast.Call):
            found.add(id(node.func))
            parts += node.args if dotted(node.func) in ("isinstance", "super") else ()
        found |= {id(each) for part in parts if part is not None for each in ast.walk(part)}
    return found


_RECURRENT = ("GRU", "RNN")
_DROPS_OUT = (
    "it may have a dropout: a compiled recurrent network draws other random numbers in training mode, also where this "
    "run is in evaluation mode alone"
)
_ALLOW_RNN = setting(
    "torch._dynamo.config.allow_rnn = True",
    never="LSTM",
    why="with allow_rnn, PyTorch 2.13 raises where a backend with AOTAutograd compiles an LSTM for gradients, "
    "which calls that the run does not make may want",
)
_CATCHING = ("suppress", "raises")
_READS_NUMBERS = frozenset(each.value for each in (BreakCause.ITEM, BreakCause.ITEM_IN_CALL, BreakCause.TOLIST))
_MAKES_SHAPES = frozenset((BreakCause.DYNAMIC_SHAPE.value,))
_IMPORTS = ("torch", "of torch", "import")
