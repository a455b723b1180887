"""What Inductor's scheduler says of pairs that it does not fuse is in the run, with the graph nodes of both."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, List, Set, Tuple

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

from torch_versions import IS_OLD  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.capture.fusions import FusionNotes, operation_of  # noqa: E402
from depyf.dynamo.hooks import private_names  # noqa: E402
from depyf.report.model.manifest import from_json  # noqa: E402

SAYS_WHY = private_names.LAUNCH_TRACER.find() is not None
needs_reasons = pytest.mark.skipif(
    IS_OLD or not SAYS_WHY, reason="this PyTorch does not report what a launch on the CPU computes"
)

Pair = Tuple[str, str, str]


def library_between(x: Any, w: Any) -> Any:
    return torch.sigmoid(torch.relu(x) @ w)


def changed_in_between(x: Any, y: Any) -> Any:
    before = x.sum(0)
    x.copy_(torch.flip(x, [0]))
    return before + x[0], y


def other_sizes(x: Any, y: Any) -> Any:
    return torch.sin(x[:, :16]).sum(0), x.mean(0).mean()


def pairs_of(function: Callable[..., Any], directory: Path) -> Set[Pair]:
    """The nodes of both parts of each pair, and the reason."""
    found: List[Pair] = []
    with depyf.prepare_debug(str(directory)):
        torch.compile(function)(torch.randn(64, 64), torch.randn(64, 64))
    for kernel in from_json((directory / "manifest.json").read_text()).kernels:
        found += [(" ".join(one), " ".join(other), reason) for _, one, _, other, reason in kernel.unfused]
    return set(found)


@needs_reasons
@pytest.mark.slow
def test_a_call_of_a_library_is_between_two_kernels(tmp_path: Path) -> None:
    assert pairs_of(library_between, tmp_path) == {
        ("relu", "mm", "not fusable: the second"),
        ("mm", "sigmoid", "not fusable: the first"),
    }


@needs_reasons
@pytest.mark.slow
def test_an_input_is_changed_between_two_kernels(tmp_path: Path) -> None:
    assert pairs_of(changed_in_between, tmp_path) == {("rev", "rev copy_", "memory deps did not match")}


@needs_reasons
@pytest.mark.slow
def test_reductions_of_other_sizes(tmp_path: Path) -> None:
    """What the C++ backend refuses has the loops of both."""
    found = pairs_of(other_sizes, tmp_path)
    assert ("mean", "mean mean_1", "C++ backend: 64 | 64;  | 64") in found
    assert all(reason.startswith("C++ backend: ") for _, _, reason in found)


class Node:
    """A node of Inductor's scheduler, as far as it is read."""

    def __init__(self, name: str, used: str = "", written: str = "") -> None:
        self._name, self._used, self._written = name, used, written

    def get_name(self) -> str:
        return self._name

    def used_buffer_names(self) -> List[str]:
        return self._used.split()

    def get_buffer_names(self) -> List[str]:
        return self._written.split()


def notes_of(*names: str) -> FusionNotes:
    """Notes of a graph whose nodes are these at the end."""
    notes = FusionNotes()
    notes._note_end(SimpleNamespace(unfusable_node=lambda node: False), [Node(name) for name in names])
    return notes


@needs_reasons
def test_only_pairs_that_are_apart_at_the_end_are_kept() -> None:
    notes = notes_of("op0_op1", "op2")
    for first, second, reason in (("op0", "op1", "early"), ("op0", "op2", "early"), ("op0_op1", "op2", "late")):
        notes._note(first, second, lambda reason=reason: reason)
    launches = [{"op0": ["sin"], "op1": ["cos"]}, {"op2": ["mean"]}]
    assert notes.take(launches) == [(0, ["sin", "cos"], 1, ["mean"], "late")]
    assert notes.take(launches) == []


@needs_reasons
def test_operations_of_two_graphs_with_one_name_are_left_out() -> None:
    notes = notes_of("op0", "op1", "op0")
    notes._note("op0", "op1", lambda: "a reason")
    assert notes.take([{"op0": ["sin"]}, {"op1": ["cos"]}]) == []


@needs_reasons
def test_what_has_no_launch_is_left_out() -> None:
    notes = notes_of("op0", "op1")
    notes._note("op0", "op1", lambda: "a reason")
    assert notes.take([{"op0": ["sin"]}]) == []


@needs_reasons
def test_the_decision_and_the_hooks_of_pytorch_stay() -> None:
    rows = [private_names.WHY_NO_FUSE, private_names.FUSE_NODES, private_names.CPP_FUSES_VERTICALLY]
    before = [row.find() for row in rows]
    notes = FusionNotes()
    undo = [*notes.watch_scheduler(), *notes.watch_cpp()]
    try:
        assert all(row.find() is not each for row, each in zip(rows, before))
        first, second = Node("op0"), Node("op1")
        why = private_names.WHY_NO_FUSE.owner()(first, second)
        why("device mismatch (%s vs %s)", "a", "b")
        private_names.WHY_NO_FUSE.owner()(second, first)("invalid tiling for reduction %d", "no number")
        assert str(why) == "cannot fuse op0 with op1: device mismatch (a vs b)"
    finally:
        for each in reversed(undo):
            each()
    assert [row.find() for row in rows] == before
    notes._note_end(SimpleNamespace(unfusable_node=lambda node: False), [first, second])
    assert notes.take([{"op0": ["sin"]}, {"op1": ["cos"]}]) == [
        (0, ["sin"], 1, ["cos"], "device mismatch (a vs b)"),
        (1, ["cos"], 0, ["sin"], "invalid tiling for reduction %d"),
    ]


def test_nothing_is_hooked_where_no_launch_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before PyTorch 2.8: the scheduler has other signatures, and no reason could be tied to a kernel."""
    if SAYS_WHY:
        monkeypatch.delattr(private_names.LAUNCH_TRACER.holder(), private_names.LAUNCH_TRACER.name)
    notes = FusionNotes()
    assert [*notes.watch_scheduler(), *notes.watch_cpp()] == []


def test_arguments_that_the_hooks_do_not_know_reach_pytorch() -> None:
    """Up to PyTorch 2.4 ``fuse_nodes`` takes no nodes; a later one may take more."""
    notes, got = FusionNotes(), []

    def original(*args: Any, **kwargs: Any) -> List[Any]:
        got.append((args, kwargs))
        return []

    row: Any = SimpleNamespace(find=lambda: original)
    scheduler = SimpleNamespace(unfusable_node=lambda node: False)
    notes._ending(original)(scheduler)
    notes._ending(original)(scheduler, [], again=True)
    notes._refusals_of(row)("backend", node1="first", node2="second", more=1)
    assert got == [
        ((scheduler,), {}),
        ((scheduler, []), {"again": True}),
        (("backend",), {"node1": "first", "node2": "second", "more": 1}),
    ]


def test_marks_between_nodes_are_no_operations() -> None:
    assert operation_of(Node) == ""
    assert operation_of(Node("op3")) == "op3"
    assert operation_of(None) == ""
