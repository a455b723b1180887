"""The work of decompiling is linear in the size of the code, whatever its shape.

Times say nothing on a busy machine. What is counted is how many lines of the decompiler run, which is the same in every
run. What each shape costs in seconds is printed by ``benchmarks/shapes.py``. Steps that a shape does not need do not
run for each of its statements or blocks: their calls are counted.
"""

from __future__ import annotations

import argparse
import ast
import gc
import sys
from functools import lru_cache
from pathlib import Path
from types import CodeType
from typing import Any, Callable, Dict, List

import pytest

from depyf.decompiler import decompile_code, instruction_count
from depyf.decompiler.flow import copies, equal_blocks, exit_copies
from depyf.decompiler.flow.arms import Arms
from depyf.decompiler.flow.graph import Chains, FlowGraph, build
from depyf.decompiler.normal.lowering import lower
from depyf.decompiler.normal.ops import NormalCode
from depyf.decompiler.result import Verdict
from depyf.decompiler.source.author_form.conditions import _Conditions
from depyf.decompiler.source.compiling.restoring import Restoration
from depyf.decompiler.source.passes.endings import tidy_returns
from depyf.decompiler.structure import leaving
from depyf.decompiler.structure.dominators import DepthFirstTree
from depyf.decompiler.structure.restore_jumps import _Restorer
from depyf.decompiler.structure.shape import Shape

ROOT = Path(__file__).resolve().parent.parent.parent

# The shape, and how many copies are few: four times as many must not cost much more than four times as much.
SHAPES = [
    ("chained assignment, one statement", 60),
    ("unpacking to many names", 120),
    ("elif chain, falls through to a return", 12),
    ("while, breaks and continues", 90),
    ("conditional expression, chain", 60),  # from fifty copies on, operands recur
    ("while, long and", 12),
    ("and chain, value", 120),
    ("and, or mixed, equal operands, value", 60),
    ("finally with returns", 50),
    ("finally nested", 10),
    ("match, constants", 12),
    ("match, sequences", 8),
    ("match, classes", 12),
    ("match in a row, alternatives and guards", 12),
    ("subscript chain", 60),
    ("method chain", 40),
    ("generator, yield from", 12),
    ("elif chain, returns", 80),
    ("while in a row", 80),
    ("finally in a row", 160),
    ("try in a row, except pass", 160),
    ("with, elif chain that returns", 50),
    ("many variables", 250),
]
MOST = 1.15


@lru_cache(maxsize=None)
def shapes() -> Any:
    """Return the module of the benchmark, which also counts lines."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import shapes
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return shapes


@pytest.fixture(scope="module")
def code_of() -> Callable[[str, int], CodeType]:
    by_name = {shape.name: shape for shape in shapes().SHAPES}

    def code(name: str, copies: int) -> CodeType:
        if name not in by_name:
            pytest.skip("not in this Python")
        made: CodeType = shapes().code_of(by_name[name], copies)
        return made

    return code


def lines_run(code: CodeType) -> int:
    """How many lines of this package run while ``code`` is decompiled and verified."""
    count: int = shapes().line_count(code)[0]
    return count


@pytest.mark.parametrize(("shape", "copies"), SHAPES, ids=[name for name, _ in SHAPES])
def test_an_instruction_costs_the_same_in_a_large_function(
    code_of: Callable[[str, int], CodeType], shape: str, copies: int
) -> None:
    small, large = code_of(shape, copies), code_of(shape, 4 * copies)
    decompile_code(small)  # what is loaded and cached once does not count
    assert lines_run(large) / instruction_count(large) < MOST * lines_run(small) / instruction_count(small)


def test_returns_of_none_cost_the_same_in_a_large_function() -> None:
    def code(copies: int) -> CodeType:
        cases = (f"    if x == {at}:\n        return None\n    done(x)\n" for at in range(copies))
        namespace: Dict[str, Any] = {}
        exec("def function(x):\n" + "".join(cases), namespace)
        found: CodeType = namespace["function"].__code__
        return found

    decompile_code(code(20))
    assert lines_run(code(80)) < 4 * MOST * lines_run(code(20))


# Lines that run for each instruction: a tenth above the most on 3.8, 3.11 and 3.13 in November 2026. With columns a
# state machine has the text of its author, whose bytecode is the same; else it needs a proof.
BUDGETS = [
    ("straight-line", 20, 310),
    ("branchy", 6, 630),
    ("functions with docstrings", 60, 570),
    ("class with many methods", 40, 480),
    ("try nested", 10, 660),
    ("state machine", 20, 400 if sys.version_info >= (3, 11) else 620),
    ("and chain, value", 100, 650),
    ("return of constants", 50, 560),
    ("while, breaks and continues", 20, 740),
]


@pytest.mark.parametrize(("shape", "copies", "most"), BUDGETS, ids=[name for name, _, _ in BUDGETS])
def test_an_instruction_costs_no_more_than_it_did(
    code_of: Callable[[str, int], CodeType], shape: str, copies: int, most: int
) -> None:
    code = code_of(shape, copies)
    decompile_code(code)
    assert lines_run(code) / instruction_count(code) < most


# The decompiler leaves out each ``return`` at the end of a branch: that bytecode differs, and needs a proof.
ABOVE = {"with, elif chain that returns": 4.2}


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the costs of all shapes were measured on CPython 3.11")
@pytest.mark.parametrize("name", [shape.name for shape in shapes().SHAPES])
def test_no_shape_costs_much_more_than_straight_line_code(name: str) -> None:
    benchmark = shapes()
    shape = next(each for each in benchmark.SHAPES if each.name == name)
    assert ABOVE.keys() <= {each.name for each in benchmark.SHAPES}
    *_, (_, code) = benchmark.sizes_of(shape, [400])
    count, _ = benchmark.line_count(code)
    assert count / benchmark.weight(shape, code) < ABOVE.get(name, benchmark.MOST) * straight_line()


@lru_cache(maxsize=None)
def straight_line() -> float:
    """Return the lines that run for an instruction of straight-line code."""
    benchmark = shapes()
    found: float = benchmark.reference(benchmark.line_count)
    return found


# --- steps that are skipped ------------------------------------------------------------------------------------------

COPIES = 30


def function(text: str) -> CodeType:
    code = compile(text, "<steps>", "exec", dont_inherit=True)
    return next(constant for constant in code.co_consts if isinstance(constant, CodeType))


def calls(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> List[Any]:
    """Record the calls of a method from now on."""
    found: List[Any] = []
    original: Callable[..., Any] = getattr(owner, name)

    def recorded(*args: Any, **kwargs: Any) -> Any:
        found.append(args)
        return original(*args, **kwargs)

    monkeypatch.setattr(owner, name, recorded)
    return found


AND = "def f(a, b):\n    return " + " and ".join(f"a.x{n}" for n in range(COPIES)) + "\n"
LIKE = "def f(a, b):\n    return " + " and ".join("a.x" for _ in range(COPIES)) + "\n"
IFS = "def f(a, b):\n" + "".join(f"    if a == {n}:\n        return {n}\n    b()\n" for n in range(COPIES))


def test_operands_of_and_are_not_read_as_patterns(monkeypatch: pytest.MonkeyPatch) -> None:
    from depyf.decompiler.flow.match.patterns import _Recovery

    found = calls(monkeypatch, _Recovery, "run")
    decompile_code(function(AND))
    assert not found


def test_the_tests_that_lead_to_a_block_are_found_only_if_another_block_is_equal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = calls(monkeypatch, Arms, "_tests_of")
    decompile_code(function(LIKE))
    assert len(found) < COPIES / 3


def test_a_function_without_redundant_returns_is_not_copied() -> None:
    tree = ast.parse("def f(a):\n    if a:\n        return 1\n    return a\n").body[0]
    assert tidy_returns(tree) is tree


def test_conditions_without_operators_are_not_visited(monkeypatch: pytest.MonkeyPatch) -> None:
    found = calls(monkeypatch, _Conditions, "_tested")
    decompile_code(function(IFS))
    assert not found


def test_whether_a_module_is_an_expression_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    found: List[NormalCode] = []
    original = NormalCode.returns_value.func  # type: ignore[attr-defined]
    monkeypatch.setattr(NormalCode.returns_value, "func", lambda normal: (found.append(normal), original(normal))[1])
    decompile_code(compile("a = 1\nb = 2\n", "<steps>", "exec"))
    assert len(found) <= 1


def nested_tries(depth: int) -> FlowGraph:
    text = "def f(a):\n" + "".join(" " * (level + 1) + "try:\n" for level in range(depth)) + " " * (depth + 1) + "a()\n"
    for level in reversed(range(depth)):
        text += " " * (level + 1) + "except a.b:\n" + " " * (level + 2) + "a.c()\n"
    return build(lower(function(text)))


def test_the_regions_around_a_region_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = nested_tries(15)
    found = calls(monkeypatch, FlowGraph, "outer")
    chains = Chains(graph)
    for block in graph.blocks.values():
        assert chains[block.region] == chains[block.region]
    assert len(found) <= len(graph.regions())
    for region in graph.regions():
        assert chains[region] == graph.chain(region)


def test_the_successors_of_a_node_are_found_once_for_its_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    from depyf.decompiler.flow.copies import undo_copies
    from depyf.decompiler.lift.lifter import lift
    from depyf.decompiler.lift.nodes import Node

    graph = build(lower(function(IFS)))
    undo_copies(graph)
    lifted = lift(graph)
    found = calls(monkeypatch, Node, "successors")
    Shape(lifted, graph)
    assert len(found) == len(lifted.nodes)


def test_code_without_branches_and_loops_needs_no_dominators(monkeypatch: pytest.MonkeyPatch) -> None:
    found = calls(monkeypatch, DepthFirstTree, "dominators")
    text = "".join(f"    with a({n}):\n        b()\n" for n in range(COPIES))
    decompile_code(function("def f(a, b):\n" + text))
    assert not found


def test_whether_the_branches_of_a_nested_if_leave_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def count(depth: int) -> int:
        text = "def f(a, b):\n" + "".join(" " * (n + 1) + f"if a > {n}:\n" for n in range(depth)) + " " * (depth + 1)
        text += "b()\n"
        for n in reversed(range(depth)):
            text += " " * (n + 1) + "else:\n" + " " * (n + 2) + f"b({n})\n"
        with monkeypatch.context() as patch:
            found = calls(patch, leaving, "fails")
            decompile_code(function(text))
        return len(found)

    assert count(24) < 3 * count(12)


def test_the_statement_in_front_of_a_written_jump_is_not_looked_for_from_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = calls(monkeypatch, _Restorer, "_first")
    text = "".join(f"    try:\n        a({n})\n    except b:\n        pass\n" for n in range(COPIES))
    decompile_code(function("def f(a, b):\n" + text))
    assert len(found) < 4 * COPIES


def continues(copies: int) -> CodeType:
    """Each ``continue`` turns the ``if`` at the end of the loop's body: the statements behind it move into the body."""
    cases = (f"        if f({n}):\n            continue\n        if g({n}):\n            pass\n" for n in range(copies))
    return function("def h(a, f, g):\n    while a:\n" + "".join(cases))


def test_a_block_is_not_measured_again_for_each_jump_that_is_inserted(monkeypatch: pytest.MonkeyPatch) -> None:
    decompile_code(continues(60))
    assert lines_run(continues(240)) < 4 * MOST * lines_run(continues(60))
    found = calls(monkeypatch, _Restorer, "_first")
    decompile_code(continues(COPIES))
    assert len(found) < 10 * COPIES


def test_code_without_jumps_has_no_copies_to_undo(monkeypatch: pytest.MonkeyPatch) -> None:
    found = calls(monkeypatch, copies, "thread_jumps")
    decompile_code(function("def f(a):\n    a.b()\n    return a\n"))
    assert not found


def test_code_without_handlers_has_no_regions_to_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = ["forget_exception_names", "cover_jumps", "join_finally_copies", "begin_loops_before_regions"]
    found = [calls(monkeypatch, copies, step) for step in steps]
    decompile_code(function(IFS))
    assert not any(found)


def test_arms_are_not_looked_for_where_only_handlers_end_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [calls(monkeypatch, room, "Arms") for room in (equal_blocks, exit_copies)]
    text = "".join(f"    try:\n        a({n})\n    except b as c:\n        d(c)\n" for n in range(COPIES))
    decompile_code(function("def f(a, b, d):\n" + text))
    assert not any(found)


def test_a_module_that_was_compiled_under_its_own_names_is_not_searched_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = calls(monkeypatch, Restoration, "restore")
    decompile_code(compile("def f(a):\n    return a\n", "<steps>", "exec", dont_inherit=True))
    assert not found


@pytest.mark.skipif(sys.version_info < (3, 11), reason="line tables have no columns")
@pytest.mark.parametrize("width", [1, 2, 3, 4, 8])
def test_the_last_return_of_an_elif_chain_stays_in_its_else(width: int) -> None:
    """An ``elif`` starts two columns before the ``if`` that its test shows. Narrow indentation made the ``return`` look
    as if it was written after the chain; the branches were exchanged then, and a simulation proof was needed."""
    text = (
        "def f(a, f, x):\n while True:\n  if x == -1:\n   x = 0\n  elif x == 0:\n   f(0)\n   x = a + 1\n"
        "  elif x == 1:\n   x = f(1)\n  else:\n   return a\n"
    )
    text = "\n".join(" " * (width * (len(line) - len(line.lstrip()))) + line.lstrip() for line in text.split("\n"))
    decompiled = decompile_code(function(text))
    assert ast.dump(ast.parse(decompiled.source)) == ast.dump(ast.parse(text))
    assert decompiled.verdict is Verdict.EXACT


@pytest.mark.skipif(sys.version_info < (3, 9), reason="the class that prints trees is made for each tree")
def test_nothing_is_left_to_the_collector() -> None:
    """A tree that functions inside of functions refer to is freed by the collector alone, long after its last use."""
    source = Path(argparse.__file__).read_text()
    code = compile(source, argparse.__file__, "exec", dont_inherit=True)
    decompile_code(code)  # what is loaded and cached once
    gc.collect()
    gc.disable()
    try:
        result = decompile_code(code)
        assert gc.collect() == 0
    finally:
        gc.enable()
    assert result.verdict.proved


def test_functions_without_returns_are_not_searched_for_bare_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: List[object] = []
    bare = "depyf.decompiler.source.passes.endings._bare"
    monkeypatch.setattr(bare, lambda statement: calls.append(statement) or statement)
    tidy_returns(ast.parse("def f():\n    a()\n    if b:\n        c()\n"))
    assert not calls
