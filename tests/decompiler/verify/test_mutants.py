"""No mutant is proved equal to the original: one change of meaning, and the comparison must fail.

Functions of the standard library are changed in one place (``mutators``) as they were written; what is done to
decompiled sources is in ``test_mutated_decompilations.py``. Random programs are changed in any way, and if the
comparison says that nothing changed, then running both must agree.
"""

from __future__ import annotations

import ast
import copy
import random
import signal
import sys
import warnings
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Iterator, List, Optional

import pytest
from mutators import MUTATORS, mutated, sites
from random_programs import program, run
from same_bytecode import same_bytecode

from depyf.decompiler.verify import compare

pytestmark = pytest.mark.shared

MODULES = (
    "argparse", "ast", "bdb", "cgi", "cmd", "codecs", "configparser", "contextlib", "copy", "csv", "difflib", "doctest",
    "ftplib", "functools", "gzip", "heapq", "imaplib", "inspect", "mailbox", "ntpath", "optparse", "pickle", "queue",
    "random", "shutil", "smtplib", "socketserver", "subprocess", "tarfile", "tempfile", "textwrap", "threading",
    "tokenize", "trace", "typing", "urllib.request", "uuid", "zipfile",
)  # fmt: skip
MUTANTS_A_MODULE = 40
RANDOM_PROGRAMS = 250
RUNS = 12


def functions_of(source: str) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            yield node


def alone(function: ast.FunctionDef) -> ast.Module:
    """A module that defines ``function`` and nothing else, without what decorates it."""
    lonely = copy.deepcopy(function)
    lonely.decorator_list = []
    return ast.fix_missing_locations(ast.Module([lonely], []))


def compiled(module: ast.Module) -> Optional[CodeType]:
    """``None`` if it does not compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            return compile(module, "<mutant>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return None
        except TypeError:
            if sys.version_info >= (3, 9):
                raise
            return None  # no mutator knows of the node that 3.8 has around a subscript


def code_of(function: ast.FunctionDef) -> Optional[CodeType]:
    module = compiled(alone(function))
    if module is None:
        return None
    return next(const for const in module.co_consts if isinstance(const, CodeType) and const.co_name == function.name)


def has_dead_code(function: ast.FunctionDef) -> bool:
    """Whether there is a test with a constant in it, as in ``if 0 and debugging``."""
    return any(
        isinstance(node, ast.BoolOp) and any(isinstance(value, ast.Constant) for value in node.values)
        for node in ast.walk(function)
    )


@pytest.mark.parametrize("module", MODULES)
def test_a_change_that_matters_is_noticed(module: str) -> None:
    path = pytest.importorskip(module).__file__
    functions = [each for each in functions_of(Path(path).read_text(encoding="utf-8")) if not has_dead_code(each)]
    chooser = random.Random(module)
    tried = 0
    for _ in range(10 * MUTANTS_A_MODULE):
        function, name = chooser.choice(functions), chooser.choice(list(MUTATORS))
        tree = alone(function)
        count = len(sites(tree, MUTATORS[name]))
        if not count:
            continue
        number = chooser.randrange(count)
        original, mutant = compiled(tree), compiled(mutated(tree, MUTATORS[name], number))
        if original is None or mutant is None or same_bytecode(original, mutant):
            continue
        comparison = compare(original, mutant)
        assert not comparison.proved, f"{name} {number} in {module}.{function.name}, line {function.lineno}"
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
        original = code_of(function)
        assert original is not None
        for _ in range(4):
            mutant = code_of(shuffled(function, chooser))
            if mutant is None or not compare(original, mutant, always_prove=True).proved:
                continue
            for seed in range(RUNS):
                assert behaviour(original, seed) == behaviour(mutant, seed)
