"""A dump in which nothing was compiled gives the reason."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import Any, Callable, Tuple

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

from torch_versions import IS_OLD  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.capture import plain_calls  # noqa: E402
from depyf.dynamo.hooks import frame_evaluation  # noqa: E402
from depyf.report.model.run import Compilation, Run  # noqa: E402
from depyf.report.render.summary import summary_lines  # noqa: E402


def doubled(x: Any) -> Any:
    return x * 2


def tripled(x: Any) -> Any:
    """As ``doubled``, which a test above disables: up to PyTorch 2.7 it stays so."""
    return x * 3


def number() -> int:
    return 3


def stance(name: str) -> Any:
    return torch.compiler.set_stance(name)


REASONS = {
    "force_eager": "torch.compiler.set_stance('force_eager') was in force (doubled)",
    "config": "torch._dynamo.config.disable was set",
    "environment": "TORCHDYNAMO_DISABLE=1 is set in the environment",
    "disabled": "torch.compiler.disable keeps Dynamo out (doubled)",
    "no tensors": "Dynamo looked at number and compiled nothing of it",
    "disable=True": "no function that torch.compile has made was called, or none that Dynamo was let into",
    "nothing": "no function that torch.compile has made was called",
}


def case(kind: str, monkeypatch: pytest.MonkeyPatch) -> Tuple[Any, Callable[[], object]]:
    x = torch.ones(2)
    compiled = torch.compile(doubled, backend="eager", disable=kind == "disable=True")
    if kind == "force_eager":
        return stance(kind), lambda: compiled(x)
    if kind == "config":
        return torch._dynamo.config.patch(disable=True), lambda: compiled(x)
    if kind == "environment":
        monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
        return contextlib.nullcontext(), lambda: torch.compile(doubled, backend="eager")(x)
    if kind == "disabled":
        return contextlib.nullcontext(), lambda: torch.compiler.disable(compiled)(x)
    if kind == "no tensors":
        return contextlib.nullcontext(), torch.compile(number, backend="eager")
    return contextlib.nullcontext(), (lambda: compiled(x)) if kind == "disable=True" else (lambda: None)


@pytest.mark.parametrize("kind", REASONS)
def test_what_kept_it_empty_is_said(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if not frame_evaluation.has_stances():
        pytest.skip("PyTorch before 2.6 does not report calls that it runs as plain Python")
    caplog.set_level(logging.WARNING, "depyf")
    context, call = case(kind, monkeypatch)
    with depyf.prepare_debug(tmp_path) as prepared, context:
        call()
    torch._dynamo.reset()
    (message,) = [record.getMessage() for record in caplog.records if record.name == "depyf"]
    reason = REASONS["nothing" if kind == "no tensors" and IS_OLD else kind]  # it says nothing of empty graphs
    for text in (message, (tmp_path / "index.md").read_text(), (tmp_path / "manifest.json").read_text()):
        assert reason in text
    assert "nothing was compiled" in str(prepared) or "no graph was compiled" in str(prepared)


def sizes_do_not_fit(x: Any) -> Any:
    return x + torch.ones(7)


def prints(x: Any) -> Any:
    print("no")
    return x


@pytest.mark.parametrize(
    ("function", "fullgraph", "said"),
    [(sizes_do_not_fit, False, "compiling sizes_do_not_fit raised "), (prints, True, "compiling prints raised ")],
)
def test_an_error_that_the_program_gets_is_no_fallback(
    function: Any, fullgraph: bool, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "depyf")
    with depyf.prepare_debug(tmp_path), pytest.raises(Exception, match=r"(?s)."):
        torch.compile(function, backend="eager", fullgraph=fullgraph)(torch.ones(3))
    (message,) = [record.getMessage() for record in caplog.records if record.name == "depyf"]
    index = (tmp_path / "index.md").read_text()
    for text in (message, index):
        assert said in text
        assert "no function that torch.compile has made was called" not in text
    assert f"{function.__name__} failed to compile, and the call raised the error" in index
    assert "| fallbacks to eager | 0 |" in index
    assert "plain Python" not in index


def test_calls_that_ran_as_plain_python_are_noted_beside_what_was_compiled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if not frame_evaluation.has_stances():
        pytest.skip("PyTorch before 2.6 does not report calls that it runs as plain Python")
    caplog.set_level(logging.WARNING, "depyf")
    compiled = torch.compile(tripled, backend="aot_eager")
    with depyf.prepare_debug(tmp_path):
        compiled(torch.ones(2))
        with stance("force_eager"):
            compiled(torch.ones(2))
    assert [record for record in caplog.records if record.name == "depyf"] == []
    index = (tmp_path / "index.md").read_text()
    assert "torch.compiler.set_stance('force_eager') was in force: tripled ran as plain Python" in index
    assert "nothing was compiled" not in index


def test_a_compiled_graph_is_looked_at_in_its_first_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call of a graph comes with Dynamo disabled: looking whose code it is took as long as the call."""
    looked = []
    original = plain_calls._is_the_programs
    monkeypatch.setattr(plain_calls, "_is_the_programs", lambda *each: looked.append(each[0]) or original(*each))
    compiled = torch.compile(doubled, backend="eager")
    with depyf.prepare_debug(tmp_path):
        for _ in range(20):
            compiled(torch.ones(2))
        before = len(looked)
        torch.compiler.disable(tripled)(torch.ones(2))
        assert len(looked) == before + frame_evaluation.has_stances()
    assert before < 5


def tripled_again(x: Any) -> Any:
    return x * 3


@pytest.mark.skipif(IS_OLD, reason="guards are dropped and skipped from PyTorch 2.6 on")
def test_calls_whose_guards_are_not_checked_are_noted(tmp_path: Path) -> None:
    filtered = torch.compile(
        doubled, backend="eager", options={"guard_filter_fn": torch.compiler.skip_guard_on_all_nn_modules_unsafe}
    )
    compiled = torch.compile(tripled_again, backend="eager")
    compiled(torch.ones(2))
    with depyf.prepare_debug(str(tmp_path)):
        filtered(torch.ones(2))
        with torch.compiler.set_stance(skip_guard_eval_unsafe=True):
            compiled(torch.ones(2))
            compiled(torch.ones(2))
    notes = [
        "results may be stale: a guard_filter_fn, which may drop guards, was set in 1 call of doubled",
        "results may be stale: torch.compiler.set_stance(skip_guard_eval_unsafe=True) skipped guards in 2 calls of "
        "tripled_again",
    ]
    written = (tmp_path / "index.md").read_text()
    assert [note for note in notes if note not in written] == []
    run = Run(notes=(*notes, "another note"), compilations=(Compilation("0/0", None),))
    assert [line for line in summary_lines(run) if line.startswith("!")] == [f"! {note}" for note in notes]


class OfAKey(torch.nn.Module):
    def forward(self, x: Any, key: str) -> Any:
        return x + len(key)


def test_calls_of_a_module_after_a_limit_are_counted(tmp_path: Path) -> None:
    if not frame_evaluation.reports_runs():
        pytest.skip("PyTorch before 2.13 does not report which entry runs")
    with torch._dynamo.config.patch(recompile_limit=2), depyf.prepare_debug(tmp_path):
        compiled = torch.compile(OfAKey(), backend="eager")
        for key in ("a", "bb", "ccc", "dddd", "a", "ccc"):
            compiled(torch.ones(2), key)
    assert "3 calls ran as plain Python" in (tmp_path / "index.md").read_text()
