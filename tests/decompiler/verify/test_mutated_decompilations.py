"""A sample of ``tools/fuzz/mutate_decompiled.py``: one change in a decompiled source, and the proof must fail."""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
from pathlib import Path
from types import CodeType

import pytest
from mutation import Fate, Subject, plan
from mutators import MUTATORS, mutated, sites
from mutators.settled import unsettled
from same_bytecode import same_bytecode

from depyf.sweep.targets import find_files, read_module, targets_of

pytestmark = pytest.mark.shared

MODULES = (
    "asyncio.queues", "asyncio.staggered", "configparser", "contextlib", "dataclasses", "difflib", "json.decoder",
    "pprint", "shlex", "tarfile", "textwrap", "traceback",
)  # fmt: skip
SOURCE = Path(__file__).resolve().parents[3] / "src"
OBJECTS = 12
MUTANTS = 26


DEAD = pytest.mark.xfail(
    sys.version_info < (3, 10), strict=True, reason="`if 0 and ...` in it: before 3.10, bytecode has the dead branch"
)


@pytest.mark.parametrize(
    "module", [pytest.param(module, marks=[DEAD] if module == "textwrap" else []) for module in MODULES]
)
def test_no_mutant_of_a_decompiled_source_is_called_the_same(module: str) -> None:
    path = find_files([module])[0]
    small = [target for target in targets_of(read_module(path), path) if target.size <= 300]
    chosen = random.Random(module).sample(small, min(OBJECTS, len(small)))
    prepared = [Subject.prepare(target.label, target.code) for target in chosen]
    subjects = [subject for subject in prepared if subject is not None]
    assert len(subjects) > len(chosen) // 2
    wanted = plan({number: subject.sites() for number, subject in enumerate(subjects)}, MUTANTS, seed=1)
    mutants = [subjects[number].mutant(*each) for number, some in wanted.items() for each in some]
    assert sum(mutant.fate.is_mutant for mutant in mutants) > MUTANTS // 2
    survivors = [mutant for mutant in mutants if mutant.fate is Fate.SURVIVED]
    assert not survivors, "\n".join(f"{one.mutator} in {one.label}\n" + "\n".join(one.difference) for one in survivors)


# --- the test is worth what its parts are: mutators that change something, and an eye for what changes nothing


_NEWER = {
    "Match": "match f():\n case [1, x, *y] | [2, x, *y] | [3, x, *y] if g(): h()\n case {'a': 1, 'b': z, **w}: i()\n"
    " case C(1, 2, d=None): j()\n case _: k()",
    "TryStar": "try: f()\nexcept* E: g()",
    "TypeVar": "def f[T: int, *Ts, **P](): pass",
}
"""Syntax that not every Python has, by the class of ``ast`` that it needs."""


def _needs(mutator: str) -> str:
    if MUTATORS[mutator].__module__.endswith("patterns"):
        return "Match"
    return {"group_or_plain": "TryStar", "change_type_parameters": "TypeVar"}.get(mutator, "Module")


@pytest.mark.parametrize("mutator", sorted(MUTATORS))
def test_every_mutator_changes_the_tree_and_nothing_but_its_copy(mutator: str) -> None:
    if not hasattr(ast, _needs(mutator)):
        pytest.skip("this Python does not have what it changes")
    tree = ast.parse(Path(__file__).with_name("mutable.py").read_text())
    for kind, source in _NEWER.items():
        if hasattr(ast, kind):
            tree.body.extend(ast.parse(source).body)
    before = ast.dump(tree)
    found = len(sites(tree, MUTATORS[mutator]))
    assert found
    for number in {0, found // 2, found - 1}:
        assert ast.dump(mutated(tree, MUTATORS[mutator], number)) != before
    assert ast.dump(tree) == before


def code_of(source: str) -> CodeType:
    return next(const for const in compile(source, "<pair>", "exec").co_consts if isinstance(const, CodeType))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("def f(): return g(1)", "def f():\n\n return g(1)", True),
        ("def f(): return g(1)", "def f(): return g(1.0)", False),
        ("def f(): return g(0.0)", "def f(): return g(-0.0)", False),
        ("def f(): return (1, 2)", "def f(): return (2, 1)", False),
        ("def f():\n return g()\n h(1)", "def f():\n return g()\n h(2)", True),
        ("def f():\n try: g()\n finally: h()", "def f():\n g()\n h()", False),
        ("def f(a, b): return b", "def f(b, a): return a", False),
        ("def f(a, *, b): return b", "def f(a, b): return b", False),
        ("def f():\n 'doc'\n return g", "def f():\n 'cod'\n return g", False),
        ("def f():\n def g(): return 1", "def f():\n def g(): return 2", False),
        ("def f(x): return x in {8, 0}", "def f(x): return x in {0, 8}", False),
    ],
)
def test_what_counts_as_the_same_bytecode(one: str, other: str, expected: bool) -> None:
    assert same_bytecode(code_of(one), code_of(other)) is expected


def test_a_variable_that_holds_one_constant_is_hidden() -> None:
    hidden = unsettled(ast.parse("def f(a):\n x = 0\n y = 1\n y = a\n if x: g(y)"))
    assert hidden is not None
    assert ast.dump(hidden) == ast.dump(ast.parse("def f(a):\n x = opaque_value(0)\n y = 1\n y = a\n if x: g(y)"))
    assert unsettled(ast.parse("def f(a):\n x = a\n global y\n y = 0")) is None


def test_the_plan_is_fair_and_always_the_same() -> None:
    names = list(MUTATORS)[:3]
    found = {"one": {names[0]: [7], names[1]: range(50)}, "other": {names[1]: range(50), names[2]: range(50)}}
    first, again = (plan(found, 41, seed=3) for _ in range(2))
    assert first == again
    made = [each.mutator for wanted in first.values() for each in wanted]
    assert sorted(made.count(name) for name in names) == [1, 20, 20]


def test_the_tool_runs_with_and_without_the_lines_that_tests_reach() -> None:
    tool = Path(__file__).resolve().parents[3] / "tools" / "fuzz" / "mutate_decompiled.py"
    pytest.importorskip("test.test_bisect", reason="this Python has no tests of the standard library")
    for more in ([], ["--reached"]):
        command = [sys.executable, str(tool), "bisect", "-n", "20", "-j", "1", *more]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)})
        assert done.returncode == 0, done.stderr
        assert " 0 survivors" in done.stdout
