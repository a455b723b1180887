"""Every frame that Dynamo makes of the programs in ``tests/programs/frames_*.py`` is decompiled, and proved."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType
from typing import Dict, List, Tuple

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "programs"))

import breaking_frames

import depyf
from depyf.decompiler.dynamo_code import hints_of
from depyf.dynamo.entries.hints import hints_for

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]

# One or two of each family and of each reason that something was refused for. All of them are run when slow tests are.
CHOSEN = [
    "three_levels", "recursion", "closures_two_levels_deep", "a_free_variable_is_written_two_levels_down",
    "in_no_grad_of_the_caller", "a_dict_of_keywords_inside_a_context", "a_backward_hook_of_a_module",
    "a_step_with_a_closure", "a_lambda_that_breaks_twice", "augmented_assignments",
    "effect_append_to_two_behind_a_break", "effect_a_slice_object_in_a_with", "comprehension_nested_behind_a_break",
    "element_append_to_two",
]  # fmt: skip

IMPOSSIBLE: Dict[str, str] = {
    "a_dict_comprehension": "since 3.12 it stores a NULL in a variable",
    "a_dict_on_the_stack": "DICT_UPDATE of a dict that is an argument has no syntax",
    "a_formatted_string": "a value dies between the parts of an f-string",
    "in_two_contexts": "an exception that an outer context swallows, raised by the exit of the inner one",
    "in_three_contexts": "the same",
}
"""Programs with an *original* code object of a resume function that is not proved, and why. Transformed code all is."""

_TWO_DEPTHS = ("depending on the path to it", "depends on the path to it")
"""How bytecode is refused in which a handler is entered with stacks of two depths: no compiler makes that. Dynamo does
on 3.14, of a ``with`` around a graph break: the old block's entry in the exception table leads to the handler of the
new one.
"""
_NO_NAMES = "has no constant names"
"""How a call with keywords is refused whose names were pushed before a block began."""
_IN_CONTEXTS = ["in_two_contexts", "in_three_contexts"]
_BELOW = {
    **dict.fromkeys(_IN_CONTEXTS, "the code of two contexts around a graph break takes values from below both blocks"),
    # The function, its arguments and their names are pushed before the block of the context begins.
    "effect_update_in_a_with": "a call in a context takes all of its values from below the block",
}
NOT_PROVED: Dict[Tuple[int, int], Dict[str, str]] = {
    (3, 8): _BELOW,
    (3, 9): _BELOW,
    # With PyTorch 2.9; with 2.14 and 2.15 they are proved.
    (3, 12): {
        "comprehension_of_a_generator_behind_a_break": "a cell is read in another order",
        "comprehension_with_a_closure_behind_a_break": "a function has a qualified name that no source gives it",
    },
    (3, 10): dict.fromkeys(_IN_CONTEXTS, "a value dies in another place"),
}
"""Programs whose frames are not all proved on a Python before 3.11, with the PyTorch for it, and why."""


def frames(name: str) -> List[breaking_frames.Frame]:
    nested = [False, True] if breaking_frames.has_nested_breaks() else [False]
    return [frame for each in nested for frame in breaking_frames.frames_of(name, each)]


def shortfall(code: CodeType, **options: object) -> str:
    """Why ``code`` is not proved, or can't be compiled to stand in for itself; empty if it is and can."""
    try:
        found = depyf.decompile_code(code, **options)
        found.compile_like()
    except depyf.DecompilationError as error:
        return str(error)
    return "" if found.verdict.code_proved else f"{found.reason}\n{found.source}"


def shortfalls(name: str) -> List[Tuple[str, str]]:
    found = []
    for frame in frames(name):
        hints = hints_for(frame.transformed, frame.original, {}, None, {})
        refused = shortfall(frame.transformed)
        found.append(("without hints", refused))
        found.append(("with hints", shortfall(frame.transformed, hints=hints)))
        if name not in IMPOSSIBLE:
            original = shortfall(frame.original)
            found.append(("the original", "" if original.endswith(_TWO_DEPTHS) else original))
        if refused.endswith((*_TWO_DEPTHS, _NO_NAMES)):
            continue
        own = hints_of(frame.transformed)
        assert own is None or own.droppable <= hints.droppable, "a variable of the user's is taken for Dynamo's"
    return [(kind, why) for kind, why in found if why]


def check_that_all_are_proved(name: str) -> None:
    found = shortfalls(name)
    known = NOT_PROVED.get(sys.version_info[:2], {})
    if found and name in known:
        pytest.skip(known[name])
    assert not found


@pytest.mark.parametrize("name", CHOSEN)
def test_every_frame_is_proved(name: str) -> None:
    check_that_all_are_proved(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in breaking_frames.PROGRAMS if name not in CHOSEN])
def test_every_frame_of_the_others_is_proved(name: str) -> None:
    check_that_all_are_proved(name)


def test_there_are_enough_programs() -> None:
    assert len(breaking_frames.PROGRAMS) >= 100
    assert len(breaking_frames.PROGRAMS) == sum(len(family.PROGRAMS) for family in breaking_frames.FAMILIES)


@pytest.mark.parametrize("name", ["three_levels", "closures_two_levels_deep", "a_lambda_that_breaks_twice"])
def test_nothing_runs_from_a_listing(name: str, tmp_path: Path) -> None:
    case = breaking_frames.PROGRAMS[name]()
    plain = breaking_frames.run(case, case.function, training=True)
    for nested in (False, True):
        breaking_frames.torch._dynamo.reset()
        case = breaking_frames.PROGRAMS[name]()
        with breaking_frames.nested_breaks(nested), depyf.prepare_debug(str(tmp_path / str(nested))):
            compiled = breaking_frames.torch.compile(case.function, backend="eager")
            assert breaking_frames.run(case, compiled, training=True) == plain
        texts = [path.read_text() for path in (tmp_path / str(nested)).glob("__transformed_code_*.py")]
        assert texts
        assert not [text for text in texts if "Dynamo's own bytecode runs" in text]
