"""Code whose line table says nothing is proved as well: there is none, or a tool gave all of its tree one location, as
``ast.fix_missing_locations`` does. Lines only show which form was written, and which equal blocks are copies."""

from __future__ import annotations

import ast
import random
import sys
from types import CodeType
from typing import Callable, List

import pytest
import random_finally
import random_programs

from depyf.decompiler import decompile_code

FUNCTIONS = """
def values_around_a_choice(n):
    return [n] + (values_around_a_choice(n // 2 if n % 2 < 1 else 3 * n + 1) if n > 1 else [])

def argument_is_a_choice(self, item):
    if item == "lamp" and self.has(item):
        self.say("lamp", "on" if self.lit else "off")
        return True
    self.say("can't")

def text_that_ends_in_a_choice(node, n):
    if not n:
        raise TypeError(f"{node!r} takes {len(n)} argument{'s' if len(n) != 1 else ''}")
    return f"{n!r} argument{'s' if n else ''}"

def equal_operands(node, env):
    if node in env:
        if node == 1:
            return f(node[0]) and f(node[1])
        if node == 2:
            return f(node[0]) or f(node[1])
        return env[node]
    return f(node)

def drops_of_iterator_and_result(self):
    for each in self.waiters:
        if not each.done():
            each.set_result(None)
            break
    else:
        self.log.append("nobody waits")

def exits_at_other_depths(f, x, tol):
    for k in range(50):
        fx = f(x)
        if abs(fx) < tol:
            return x, k
        while abs(f(x)) > 2 * abs(fx):
            x /= 2
            if abs(x) < tol:
                break
        else:
            if tol:
                print(x)
        x -= 1
    raise ArithmeticError(x)

def clauses(self, accounts):
    saved = [list(a) for a in accounts]
    try:
        yield self
    except KeyError as e:
        for account, entries in saved:
            account[:] = entries
        self.write(e)
        raise
    except BaseException:
        self.write("panic")
        raise
    else:
        self.write("commit")
    finally:
        self.depth -= 1

def jumps_out_of_with(self, operations):
    done = failed = 0
    for name, *args in operations:
        try:
            with self.journal() as journal:
                if name == "stop":
                    break
                if name == "skip":
                    journal.write("skipped")
                    continue
                if self.method(*args) is False:
                    failed += 1
                    continue
        except KeyError as error:
            failed += 1
            self.write(error)
        except (ValueError, AttributeError) as error:
            failed += 1
        else:
            done += 1
    else:
        self.write("ran all")
    return done, failed
"""


def without_lines(source: str) -> CodeType:
    return _without_lines(compile(source, "<program>", "exec", dont_inherit=True))


def _without_lines(code: CodeType) -> CodeType:
    constants = tuple(_without_lines(each) if isinstance(each, CodeType) else each for each in code.co_consts)
    table = "co_linetable" if sys.version_info >= (3, 10) else "co_lnotab"
    return code.replace(co_consts=constants, **{table: b""})


def at_one_location(source: str) -> CodeType:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for name, value in (("lineno", 1), ("end_lineno", 1), ("col_offset", 0), ("end_col_offset", 0)):
            if name in node._attributes:
                setattr(node, name, value)
    return compile(tree, "<program>", "exec", dont_inherit=True)


def functions(module: CodeType) -> List[CodeType]:
    return [each for each in module.co_consts if isinstance(each, CodeType)]


ways = pytest.mark.parametrize("compiled", [without_lines, at_one_location])


@ways
@pytest.mark.parametrize("name", [each.co_name for each in functions(without_lines(FUNCTIONS))])
def test_a_function_is_proved(name: str, compiled: Callable[[str], CodeType]) -> None:
    (code,) = [each for each in functions(compiled(FUNCTIONS)) if each.co_name == name]
    assert decompile_code(code).verdict.proved


@ways
@pytest.mark.parametrize("number", range(25))
def test_a_random_program_is_proved(number: int, compiled: Callable[[str], CodeType]) -> None:
    for text in (random_programs.program(number), random_finally.program_from(random.Random(number))):
        assert decompile_code(functions(compiled(text))[0]).verdict.proved
