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
LISTINGS = {
    "with_two_contexts": "the code of two contexts around a graph break takes values from below both blocks",
    "generator_returned": "a comprehension left to Python is called with an iterator that no source makes",
}
"""Programs of which Dynamo's code for CPython before 3.11 may run from its listing, and why."""

Wanted = Tuple[str, str, bool, bool]


def program_names() -> List[str]:
    tree = ast.parse((PROGRAMS / "breaking.py").read_text())
    found = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(each, ast.Name) and each.id == "program" for each in node.decorator_list)
    ]
    assert set(LISTINGS) <= set(found)
    return [name for name in found if sys.version_info >= (3, 11) or name not in LISTINGS]


def failures(run_program: Callable[..., str], directory: Path, wanted: List[Wanted]) -> Any:
    printed = run_program("compare_runs.py", directory, json.dumps(wanted))
    report = json.loads(printed.split("REPORT")[-1])
    assert len(report) == len(wanted)
    return [entry for entry in report if entry["different"] or entry["unproved"]]


def test_there_are_at_least_thirty_programs_that_break_graphs() -> None:
    assert len(program_names()) >= 30


@pytest.mark.slow
def test_programs_that_break_graphs_do_the_same_in_inference(run_program: Any, tmp_path: Path) -> None:
    wanted = [(name, "eager", False, bool(index % 2)) for index, name in enumerate(program_names())]
    assert failures(run_program, tmp_path, wanted) == []


@pytest.mark.slow
def test_programs_that_break_graphs_do_the_same_in_training(run_program: Any, tmp_path: Path) -> None:
    wanted = [(name, "aot_eager", True, bool(index % 2)) for index, name in enumerate(program_names())]
    assert failures(run_program, tmp_path, wanted) == []


@pytest.mark.skipif(sys.version_info >= (3, 11), reason="these are among the others from CPython 3.11 on")
@pytest.mark.parametrize("name", LISTINGS)
def test_programs_that_run_from_a_listing_do_the_same(run_program: Any, tmp_path: Path, name: str) -> None:
    short = failures(run_program, tmp_path, [(name, "aot_eager", training, False) for training in (False, True)])
    assert [entry["different"] for entry in short] == [{}] * len(short)
    if short:
        pytest.skip(f"the results are right, but a frame runs from its listing: {LISTINGS[name]}")


@pytest.mark.parametrize(
    "backend",
    [
        pytest.param("eager", marks=pytest.mark.slow),
        "aot_eager",
        pytest.param("inductor", marks=[pytest.mark.inductor, pytest.mark.slow]),
    ],
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
