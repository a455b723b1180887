"""No mutant is taken for the original: one change that matters, and the comparison must not call it the same.

Functions of the standard library are changed in one place in a way that every run of that place would show; random
programs are changed in any way, and if the comparison says that nothing changed, then running both must agree.
"""

from __future__ import annotations

import ast
import copy
import random
import signal
import warnings
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Callable, Iterator, List, Optional, Tuple

import pytest
from random_programs import program, run

from depyf.verify import compare

MODULES = (
    "argparse", "ast", "bdb", "cgi", "cmd", "codecs", "configparser", "contextlib", "copy", "csv", "difflib", "doctest",
    "ftplib", "functools", "gzip", "heapq", "imaplib", "inspect", "mailbox", "ntpath", "optparse", "pickle", "queue",
    "random", "shutil", "smtplib", "socketserver", "subprocess", "tarfile", "tempfile", "textwrap", "threading",
    "tokenize", "trace", "typing", "urllib.request", "uuid", "zipfile",
)  # fmt: skip
MUTANTS_A_MODULE = 40
RANDOM_PROGRAMS = 250
RUNS = 12

Change = Callable[[ast.AST], bool]
"""Changes a node in place; says whether it did."""

STATEMENTS = (ast.Expr, ast.AugAssign, ast.Assign, ast.Raise, ast.Delete, ast.Assert, ast.Import, ast.ImportFrom)


def _swap_operands(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp) and ast.dump(node.left) != ast.dump(node.right):
        node.left, node.right = node.right, node.left
        return True
    return False


def _other_operator(node: ast.AST) -> bool:
    if isinstance(node, (ast.BinOp, ast.AugAssign)):
        node.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        return True
    return False


def _other_comparison(node: ast.AST) -> bool:
    others = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
              ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In}  # fmt: skip
    if isinstance(node, ast.Compare):
        node.ops[-1] = others[type(node.ops[-1])]()
        return True
    return False


def _flip_test(node: ast.AST) -> bool:
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return True
    return False


def _and_or(node: ast.AST) -> bool:
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return True
    return False


def _other_constant(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant) and type(node.value) in (int, str, float):
        node.value = node.value + ("x" if isinstance(node.value, str) else 1)
        return True
    return False


def _other_attribute(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        node.attr += "_other"
        return True
    return False


def _other_handler_type(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        node.type = ast.Name("AnotherError", ast.Load()) if node.name or node.type is None else None
        return True
    return False


def _drop_handler(node: ast.AST) -> bool:
    if isinstance(node, ast.Try) and len(node.handlers) > 1:
        del node.handlers[0]
        return True
    return False


def _drop_finally(node: ast.AST) -> bool:
    if isinstance(node, ast.Try) and node.handlers and node.finalbody:
        node.finalbody = []
        return True
    return False


def _drop_loop_else(node: ast.AST) -> bool:
    if isinstance(node, (ast.For, ast.While)) and node.orelse:
        node.body, node.orelse = node.body + node.orelse, []
        return True
    return False


def _swap_arguments(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and len(node.args) > 1 and ast.dump(node.args[0]) != ast.dump(node.args[1]):
        node.args[0], node.args[1] = node.args[1], node.args[0]
        return True
    return False


def _drop_argument(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and node.args:
        node.args.pop()
        return True
    return False


def _other_keyword(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword) and node.arg is not None:
        node.arg += "_other"
        return True
    return False


def _no_longer_in_place(node: ast.AST) -> bool:
    for index, statement in enumerate(getattr(node, "body", None) or [] if isinstance(node, ast.stmt) else []):
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            value = ast.BinOp(ast.Name(statement.target.id, ast.Load()), statement.op, statement.value)
            node.body[index] = ast.Assign([statement.target], value)  # type: ignore[attr-defined]
            return True
    return False


def _calls(statement: ast.stmt) -> bool:
    """Whether it is a simple statement with a call, so that it can't be missing or moved unnoticed."""
    return isinstance(statement, STATEMENTS) and any(isinstance(inner, ast.Call) for inner in ast.walk(statement))


def _drop_statement(node: ast.AST) -> bool:
    body = getattr(node, "body", None)
    if not isinstance(node, ast.stmt) or not isinstance(body, list):
        return False
    for index, statement in enumerate(body):
        if _calls(statement):
            body[index] = ast.Pass()
            return True
    return False


def _swap_statements(node: ast.AST) -> bool:
    body = getattr(node, "body", None)
    if not isinstance(node, ast.stmt) or not isinstance(body, list):
        return False
    for index in range(len(body) - 1):
        pair = body[index : index + 2]
        if all(_calls(item) for item in pair) and ast.dump(pair[0]) != ast.dump(pair[1]):
            body[index], body[index + 1] = pair[1], pair[0]
            return True
    return False


def _break_continue(node: ast.AST) -> bool:
    body = getattr(node, "body", None)
    if not isinstance(body, list):
        return False
    for index, statement in enumerate(body):
        if isinstance(statement, (ast.Break, ast.Continue)):
            body[index] = ast.Continue() if isinstance(statement, ast.Break) else ast.Break()
            return True
    return False


def _return_nothing(node: ast.AST) -> bool:
    if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Constant):
        node.value = None
        return True
    return False


CHANGES: Tuple[Change, ...] = (
    _swap_operands, _other_operator, _other_comparison, _flip_test, _and_or, _other_constant, _other_attribute,
    _other_handler_type, _drop_handler, _drop_finally, _drop_loop_else, _swap_arguments, _drop_argument,
    _other_keyword, _no_longer_in_place, _drop_statement, _swap_statements, _break_continue, _return_nothing,
)  # fmt: skip


def functions_of(source: str) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            yield node


def compiled(function: ast.FunctionDef) -> Optional[CodeType]:
    """The code object of ``function`` alone; ``None`` if it does not compile."""
    lonely = copy.deepcopy(function)
    lonely.decorator_list = []
    module = ast.fix_missing_locations(ast.Module([lonely], []))
    try:
        code = compile(module, "<mutant>", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    return next(const for const in code.co_consts if isinstance(const, CodeType) and const.co_name == function.name)


def mutate(function: ast.FunctionDef, change: Change, chooser: random.Random) -> Optional[ast.FunctionDef]:
    """A copy of ``function`` in which ``change`` was applied to one place; ``None`` if there is none."""
    mutant = copy.deepcopy(function)
    nodes: List[ast.AST] = [node for statement in mutant.body for node in ast.walk(statement)]
    chooser.shuffle(nodes)
    return mutant if any(change(node) for node in nodes) else None


def has_dead_code(function: ast.FunctionDef) -> bool:
    """Whether there is a test with a constant in it, as in ``if 0 and debugging``."""
    return any(
        isinstance(node, ast.BoolOp) and any(isinstance(value, ast.Constant) for value in node.values)
        for node in ast.walk(function)
    )


def unchanged(original: CodeType, mutant: CodeType) -> bool:
    """Whether the change was compiled away, in code that is never reached."""
    return (
        original.co_code == mutant.co_code
        and original.co_names == mutant.co_names
        and original.co_varnames == mutant.co_varnames
        and len(original.co_consts) == len(mutant.co_consts)
        and all(
            unchanged(one, other)
            if isinstance(one, CodeType) and isinstance(other, CodeType)
            else repr(one) == repr(other)
            for one, other in zip(original.co_consts, mutant.co_consts)
        )
    )


@pytest.mark.parametrize("module", MODULES)
def test_a_change_that_matters_is_noticed(module: str) -> None:
    path = pytest.importorskip(module).__file__
    functions = [each for each in functions_of(Path(path).read_text(encoding="utf-8")) if not has_dead_code(each)]
    chooser = random.Random(module)
    tried = 0
    for _ in range(10 * MUTANTS_A_MODULE):
        function, change = chooser.choice(functions), chooser.choice(CHANGES)
        mutant = mutate(function, change, chooser)
        original_code, mutant_code = compiled(function), None if mutant is None else compiled(mutant)
        if original_code is None or mutant_code is None or unchanged(original_code, mutant_code):
            continue
        comparison = compare(original_code, mutant_code)
        assert not comparison.proved, f"{change.__name__} in {module}.{function.name}, line {function.lineno}"
        tried += 1
        if tried == MUTANTS_A_MODULE:
            break
    assert tried > MUTANTS_A_MODULE // 2


# --- random programs, changed in any way


def shuffled(function: ast.FunctionDef, chooser: random.Random) -> ast.FunctionDef:
    """A copy in which one statement is dropped, doubled, exchanged with another one or moved elsewhere."""
    mutant = copy.deepcopy(function)
    bodies: List[List[ast.stmt]] = [
        body
        for node in ast.walk(mutant)
        for body in (getattr(node, field, None) for field in ("body", "orelse", "finalbody"))
        if isinstance(body, list) and body
    ]
    body, kind = chooser.choice(bodies), chooser.randrange(4)
    index = chooser.randrange(len(body))
    if kind == 0:
        body[index] = ast.Pass()
    elif kind == 1:
        other = chooser.randrange(len(body))
        body[index], body[other] = body[other], body[index]
    elif kind == 2:
        body.insert(index, copy.deepcopy(body[index]))
    else:
        statement, target = body[index], chooser.choice(bodies)
        body[index] = ast.Pass()
        target.insert(chooser.randrange(len(target) + 1), statement)
    return mutant


class TooLongError(BaseException):
    """The program runs for ever without asking the oracle anything."""


def behaviour(code: CodeType, seed: int) -> str:
    """The log of a run, or that it does not end."""

    def stop(number: int, frame: Optional[FrameType]) -> Any:
        raise TooLongError

    previous = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    try:
        return repr(run(code, seed))
    except TooLongError:
        return "does not end"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@pytest.mark.parametrize("number", range(RANDOM_PROGRAMS))
def test_what_is_proved_the_same_runs_the_same(number: int) -> None:
    chooser = random.Random(number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        function = next(functions_of(program(10_000 + number)))
        original = compiled(function)
        assert original is not None
        for _ in range(4):
            mutant = compiled(shuffled(function, chooser))
            if mutant is None or not compare(original, mutant, always_prove=True).proved:
                continue
            for seed in range(RUNS):
                assert behaviour(original, seed) == behaviour(mutant, seed)
