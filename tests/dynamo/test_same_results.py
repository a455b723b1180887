"""Under ``prepare_debug`` a program computes, prints, raises and changes what it does without, bit for bit; and all of
it runs from proved source."""

from __future__ import annotations

import ast
import itertools
import json
import sys
from pathlib import Path
from typing import Any, Callable, List, Tuple

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
Wanted = Tuple[str, str, bool, bool]


def program_names() -> List[str]:
    tree = ast.parse((PROGRAMS / "breaking.py").read_text())
    missing = set() if sys.version_info >= (3, 11) else {"since_3_11"}
    found = {
        node.name: {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
    }
    return [name for name, decorators in found.items() if "program" in decorators and not decorators & missing]


def failures(run_program: Callable[..., str], directory: Path, wanted: List[Wanted]) -> Any:
    printed = run_program("compare_runs.py", directory, json.dumps(wanted))
    report = json.loads(printed.split("REPORT")[-1])
    assert len(report) == len(wanted)
    return [entry for entry in report if entry["different"] or entry["unproved"]]


def test_there_are_at_least_thirty_programs_that_break_graphs() -> None:
    assert len(program_names()) >= 30


def test_programs_that_break_graphs_do_the_same_in_inference(run_program: Any, tmp_path: Path) -> None:
    wanted = [(name, "eager", False, bool(index % 2)) for index, name in enumerate(program_names())]
    assert failures(run_program, tmp_path, wanted) == []


def test_programs_that_break_graphs_do_the_same_in_training(run_program: Any, tmp_path: Path) -> None:
    wanted = [(name, "aot_eager", True, bool(index % 2)) for index, name in enumerate(program_names())]
    assert failures(run_program, tmp_path, wanted) == []


@pytest.mark.parametrize(
    "backend", ["eager", "aot_eager", pytest.param("inductor", marks=[pytest.mark.inductor, pytest.mark.slow])]
)
def test_function_and_module_do_the_same_static_and_dynamic(run_program: Any, tmp_path: Path, backend: str) -> None:
    names = ["branch_on_data", "module_with_a_branch"]
    wanted = [
        (name, backend, training, dynamic)
        for name, training, dynamic in itertools.product(names, [False, True], [False, True])
    ]
    assert failures(run_program, tmp_path, wanted) == []


def test_programs_do_the_same_when_asserts_are_switched_off(run_program: Any, tmp_path: Path) -> None:
    wanted = [("module_with_a_branch", "aot_eager", True, False), ("closure_writes_cell", "eager", False, False)]
    printed = run_program("compare_runs.py", tmp_path, json.dumps(wanted), flags="-O")
    assert [entry["different"] for entry in json.loads(printed.split("REPORT")[-1])] == [{}, {}]
