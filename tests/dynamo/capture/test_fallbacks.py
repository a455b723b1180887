"""Functions that run as plain Python although they were to be compiled are in the dump, with the reason."""

from __future__ import annotations

import ast
import json
import logging
import os
from pathlib import Path
from typing import Any, List

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.capture.fallbacks import _cause_of, fallbacks  # noqa: E402
from depyf.dynamo.capture.records import Cause, FrameSkipped  # noqa: E402
from depyf.dynamo.hooks import safely, torch_names  # noqa: E402


def run(function: Any, calls: List[Any], directory: Path, **options: Any) -> List[FrameSkipped]:
    """The fallbacks of a session in which the compiled function gives the same results as the function."""
    options.setdefault("backend", "eager")
    with depyf.prepare_debug(directory) as prepared:
        compiled = torch.compile(function, **options)
        for arguments in calls:
            assert torch.equal(compiled(*arguments), function(*arguments))
    assert prepared.session is not None
    return fallbacks(prepared.session)


reports_reasons = pytest.mark.skipif(
    not hasattr(torch._dynamo.convert_frame, "add_skip_reason"),
    reason="this PyTorch says that it skips a frame, and not why",
)


def text_of(directory: Path) -> str:
    return (directory / "eager_fallbacks_0.txt").read_text()


def chooses(x: Any, name: str) -> Any:
    return x.sin() if name in ("a", "b") else x.cos()


@pytest.mark.parametrize("limit", ["recompile_limit", "accumulated_recompile_limit"])
def test_a_recompile_limit_is_told_with_the_guards_that_failed(tmp_path: Path, limit: str) -> None:
    if not hasattr(torch._dynamo.config, limit):
        pytest.skip("this PyTorch calls it differently")
    calls = [(torch.ones(2), name) for name in "abcdeabc"]
    with torch._dynamo.config.patch(**{limit: 2}):
        (found,) = run(chooses, calls, tmp_path)
    assert (found.cause, found.limit, found.compile_id) == (Cause.LIMIT, (limit, 2), "0/2")
    assert (found.function, found.first_line) == ("chooses", chooses.__code__.co_firstlineno)
    text = text_of(tmp_path)
    assert f"torch._dynamo.config.{limit} is 2" in text
    assert "0/1: name == 'b'" in text
    assert "0/0: name == 'a'" in text
    story = (tmp_path / "full_code_for_chooses_0.py").read_text()
    ast.parse(story)
    assert "1 fallback to eager" in story
    assert "else chooses, as plain Python, see above" in story
    assert f"# torch._dynamo.config.{limit} is 2." in story


def test_a_graph_break_in_a_loop_is_told_with_its_line(tmp_path: Path) -> None:
    def loops(x: Any) -> Any:
        for _ in range(3):
            x = x + 1
            torch._dynamo.graph_break()
        return x

    (found,) = (each for each in run(loops, [(torch.ones(2),)] * 2, tmp_path) if each.cause is not Cause.SKIPPED)
    assert found.cause is Cause.GRAPH_BREAK
    assert found.place == (__file__, loops.__code__.co_firstlineno + 3)
    text = text_of(tmp_path)
    assert f"1. {getattr(loops.__code__, 'co_qualname', 'loops')} (" in text
    assert "that Dynamo can't go on from" in text
    assert not list(tmp_path.glob("__transformed_code*"))


@reports_reasons
def test_a_resume_function_that_is_skipped_is_told_in_the_story_too(tmp_path: Path) -> None:
    def resumes(x: Any) -> Any:
        y = x + 1
        torch._dynamo.graph_break()
        for _ in range(2):
            torch._dynamo.graph_break()
            y = y * 2
        return y

    (found,) = run(resumes, [(torch.ones(2),)], tmp_path)
    assert found.function.startswith("torch_dynamo_resume_in_resumes_at_")
    story = (tmp_path / "full_code_for_resumes_0.py").read_text()
    ast.parse(story)
    assert "# A call may run as plain Python. Graph break that Dynamo can't go on from (compile id 1/0)" in story
    line = resumes.__code__.co_firstlineno + 2
    assert f"# Graph break at {__file__}:{line}: Call to `torch._dynamo.graph_break()`" in story


def test_an_error_that_dynamo_suppresses_is_told(tmp_path: Path) -> None:
    def broken(module: Any, example: Any) -> Any:
        raise ValueError("a bug of the backend")

    with torch._dynamo.config.patch(suppress_errors=True):
        (found,) = run(lambda x: x + 1, [(torch.ones(2),)], tmp_path, backend=broken)
    assert found.cause is Cause.ERROR
    assert "ValueError: a bug of the backend" in text_of(tmp_path)


def test_an_error_is_no_limit_because_its_text_says_so() -> None:
    text = "my recompile_limit reached"
    assert _cause_of(ValueError(text), f"ValueError: {text}") == (Cause.ERROR, None)
    broken = torch._dynamo.exc.Unsupported("recompile_limit reached")
    assert _cause_of(broken, "Unsupported: recompile_limit reached") == (
        Cause.LIMIT,
        "recompile_limit",
    )
    hit = getattr(torch._dynamo.exc, "FailOnRecompileLimitHit", None)  # new in 2.6, and no Unsupported
    if hit is not None:
        assert _cause_of(hit("recompile_limit reached"), "recompile_limit reached") == (Cause.LIMIT, "recompile_limit")


def test_an_error_that_reaches_the_program_is_told_from_the_metrics(tmp_path: Path) -> None:
    def breaks(x: Any) -> Any:
        torch._dynamo.graph_break()
        return x

    with depyf.prepare_debug(tmp_path) as prepared, pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(breaks, backend="eager", fullgraph=True)(torch.ones(2))
    assert prepared.session is not None
    (found,) = fallbacks(prepared.session)
    assert (found.cause, found.function) == (Cause.RAISED, "breaks")
    assert "Error while compiling, raised into the program" in text_of(tmp_path)


def test_a_limit_that_is_an_error_is_reported_though_the_metrics_do_not_name_the_function(tmp_path: Path) -> None:
    error = getattr(torch._dynamo.exc, "FailOnRecompileLimitHit", None)
    if error is None:
        pytest.skip("this PyTorch runs the function eagerly")
    compiled = torch.compile(chooses, backend="eager", fullgraph=True)
    with torch._dynamo.config.patch(recompile_limit=1), depyf.prepare_debug(tmp_path) as prepared:
        compiled(torch.ones(2), "a")
        with pytest.raises(error):
            compiled(torch.ones(2), "d")
    assert prepared.session is not None
    (found,) = fallbacks(prepared.session)
    assert (found.cause, found.function, found.compile_id) == (Cause.RAISED, "chooses", "0/1")
    assert found.first_line == chooses.__code__.co_firstlineno
    index = (tmp_path / "index.md").read_text()
    assert "chooses can't be compiled: the call raised FailOnRecompileLimitHit" in index
    assert "raise the limit that was hit, which PyTorch names in its log only" in index
    assert "| fallbacks to eager | 0 |" in index


@pytest.mark.parametrize("of_the_library", [True, False])
def test_generators_of_the_standard_library_are_no_fallbacks_of_the_program(
    of_the_library: bool, tmp_path: Path
) -> None:
    @torch.compiler.disable(recursive=False)
    def outside(x: Any) -> Any:
        if of_the_library:
            os.path.commonpath(["/a", "/b"])
        else:
            tuple(each for each in [x])
        return x * 2

    found = run(lambda x: outside(x) + 1, [(torch.ones(2),)], tmp_path)
    generators = [each.function for each in found if each.function == "<genexpr>"]
    assert generators == ([] if of_the_library else ["<genexpr>"])


@reports_reasons
def test_frames_without_anything_to_compile_are_listed(tmp_path: Path) -> None:
    if torch_names.find("torch._dynamo.convert_frame", "add_skip_reason") is None:
        pytest.skip("this PyTorch skips frames without a word")
    (found,) = run(lambda x: x, [(torch.ones(2),)], tmp_path)
    assert found.cause is Cause.SKIPPED
    assert "No ops traced" in text_of(tmp_path).split("Frames that Dynamo skipped:")[1]


def test_a_program_that_compiles_has_no_such_file(tmp_path: Path) -> None:
    assert run(chooses, [(torch.ones(2), "a")], tmp_path) == []
    assert not list(tmp_path.glob("eager_fallbacks*"))


@reports_reasons
def test_a_bug_in_the_hooks_costs_one_message_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*arguments: Any) -> Any:
        raise ZeroDivisionError("a bug")

    def loops(x: Any) -> Any:
        for _ in range(3):
            torch._dynamo.graph_break()
        return x + 1

    monkeypatch.setattr("depyf.dynamo.capture.fallbacks._record", broken)
    monkeypatch.setattr(safely, "_reported", {})
    with caplog.at_level(logging.WARNING, "depyf"):
        run(loops, [(torch.ones(2),)], tmp_path)
    (message,) = [record.message for record in caplog.records if record.name == "depyf"]
    assert "ZeroDivisionError" in message


def specialising(x: Any) -> Any:
    if x.shape[0] == 7:
        return x + 1
    return x * 2


def test_a_violated_constraint_is_a_finding_with_the_line_that_specialises(tmp_path: Path) -> None:
    x = torch.ones(7, 3)
    torch._dynamo.mark_dynamic(x, 0)
    with depyf.prepare_debug(tmp_path), pytest.raises(Exception, match="Constraints violated"):
        torch.compile(specialising, backend="eager")(x)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (found,) = manifest["findings"]
    title = "specialising can't be compiled: dimension 0 of x is marked dynamic, and is specialised to 7"
    assert found["title"] == title
    assert title in (tmp_path / "index.md").read_text()
    first = specialising.__code__.co_firstlineno
    if "User stack" in manifest["fallbacks"][0]["reason"]:  # since PyTorch 2.13
        assert found["place"][1] == manifest["fallbacks"][0]["place"][1] == first + 1
        assert "by `if x.shape[0] == 7:`" in found["text"]
