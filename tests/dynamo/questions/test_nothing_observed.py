"""``find_nonfinite`` and ``probe`` report what they observed, and never "nothing found" when nothing was observed."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Callable, ContextManager

import pytest
from torch_versions import needs_stances

torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.hooks import cache_entries  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo"), needs_stances]


def find(directory: Path, **options: Any) -> Any:
    return depyf.find_nonfinite(str(directory), stream=io.StringIO(), **options)


def compiled_log() -> Any:
    def logarithm(x: Any) -> Any:
        y = torch.log(x)
        return y * 2

    # Code of its own: PyTorch 2.7 never compiles again what was called with Dynamo switched off.
    logarithm.__code__ = logarithm.__code__.replace()
    return torch.compile(logarithm, backend="aot_eager")


def stance(name: str) -> Callable[[], ContextManager[Any]]:
    return lambda: torch.compiler.set_stance(name)


@pytest.mark.parametrize(
    ("context", "called", "why"),
    [
        pytest.param(stance("default"), False, "no compiled function was called inside", id="nothing"),
        pytest.param(stance("force_eager"), True, "1 call ran under torch.compiler.set_stance('force", id="eager"),
        pytest.param(
            stance("eager_on_recompile"),
            True,
            "1 call ran under torch.compiler.set_stance('eager",
            id="on_recompile",
        ),
        pytest.param(lambda: torch._dynamo.config.patch(disable=True), True, "1 call ran with Dynamo", id="disabled"),
    ],
)
def test_what_was_not_observed_is_told_with_the_reason(
    context: Callable[[], ContextManager[Any]], called: bool, why: str, tmp_path: Path
) -> None:
    function = compiled_log()
    asked = depyf.probe("y", stream=io.StringIO())
    for observing in (find(tmp_path), asked):
        with observing as found, context():
            if called:
                function(-torch.ones(3))
        text = str(found) if found is not asked else asked.problems["y"]
        assert text.startswith(f"nothing was observed: {why}")


def test_a_function_that_dynamo_leaves_alone_is_told(tmp_path: Path) -> None:
    function = torch.compile(lambda x: [x, x], backend="aot_eager")
    with find(tmp_path) as found:
        function(3)
    assert "1 call of compiled functions ran no compiled graph: Dynamo leaves this code as it is" in str(found)


def test_in_debug_only_what_is_not_seen_counts_as_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.breakpoint", lambda: None)
    function = compiled_log()
    with find(tmp_path) as found:
        function(torch.ones(3))
        with depyf.debug():
            function(torch.ones(3))
            function(torch.ones(4))
    assert found.looked.calls == 2
    assert "not observed: 1 call ran in depyf.debug()" in str(found)


@pytest.mark.skipif(not cache_entries.has_regions(), reason="older PyTorch counts our entries with the others")
def test_calls_beyond_the_recompile_limit_are_told(tmp_path: Path) -> None:
    def scaled(x: Any, n: int) -> Any:
        y = x * n
        return y + 1

    function = torch.compile(scaled, backend="aot_eager", dynamic=False)
    finding, probing = find(tmp_path), depyf.probe("y", stream=io.StringIO())
    for observing in (finding, probing):
        with torch._dynamo.config.patch(recompile_limit=2), observing:
            for n in (0, 1, 2, 3, 0):
                function(torch.ones(2), n)
    told = "2 calls of compiled functions ran no compiled graph: Dynamo has given up scaled (recompile limit reached)"
    assert told in str(finding)
    assert told in str(probing)
    assert finding.looked.calls == len(probing["y"]) == 3


def test_clean_code_is_counted(tmp_path: Path) -> None:
    function = compiled_log()
    with find(tmp_path) as found:
        function(torch.ones(3, requires_grad=True)).sum().backward()
    assert not found
    assert str(found) == (
        "no value that is not finite was made: looked at 2 calls of 1 compiled graph (1 of them backward)"
    )
    assert (found.looked.functions, found.looked.calls, found.looked.missed) == (1, 2, {})
    with found:
        function(torch.ones(3))
    assert found.looked.functions == 2


def test_backwards_of_earlier_forwards_are_told(tmp_path: Path) -> None:
    function = compiled_log()
    loss = function(torch.zeros(3, requires_grad=True)).sum()
    with find(tmp_path) as found:
        loss.backward()
    assert str(found) == "nothing was observed: 1 call for the backward of a forward that had run before"
    with find(tmp_path) as found:
        loss = function(torch.ones(3, requires_grad=True)).sum()
    with find(tmp_path) as found:  # one of an earlier context is seen
        loss.backward()
    assert (found.looked.backwards, found.looked.missed) == (1, {})


def test_gradients_that_are_not_seen_are_told(tmp_path: Path) -> None:
    function = torch.compile(lambda x: x * 2, backend="eager")
    with find(tmp_path) as found:
        function(torch.ones(3, requires_grad=True)).sum().backward()
    assert "gradients are not seen" in str(found)


def test_an_inf_that_is_passed_on_is_told(tmp_path: Path) -> None:
    function = torch.compile(lambda given: given * 2, backend="aot_eager")
    with find(tmp_path) as found:
        function(torch.tensor([float("inf"), 1.0]))
        function(torch.tensor([float("inf"), 1.0]))
    assert not found
    assert "2 calls passed on Inf that came in as given" in str(found)


@pytest.mark.parametrize("name", ["fail_on_recompile", "eager_on_recompile"])
def test_what_was_compiled_before_is_observed_where_nothing_may_be_compiled(name: str, tmp_path: Path) -> None:
    function = compiled_log()
    function(torch.ones(3))
    with find(tmp_path) as found, torch.compiler.set_stance(name):
        function(torch.ones(3))
        assert found.looked.calls == 1
        function(-torch.ones(3))
    assert found.first.operation == "aten.log.default"
    with depyf.probe("y", stream=io.StringIO()) as values, torch.compiler.set_stance(name):
        function(torch.ones(3))
    assert torch.equal(values["y"][0].value, torch.zeros(3))


def test_what_ran_as_plain_python_is_compiled_afterwards(tmp_path: Path) -> None:
    function = compiled_log()
    with find(tmp_path) as found, torch.compiler.set_stance("eager_on_recompile"):
        function(torch.ones(3))
    assert not found.looked.calls
    with find(tmp_path) as found:
        function(torch.ones(3))
    assert found.looked.calls == 1
    assert len(depyf.why(function, torch.ones(3)).entries) == 0
    function(torch.ones(3))
    assert len(depyf.why(function, torch.ones(3)).entries) == 1


def test_what_may_not_be_compiled_fails_as_it_would_without(tmp_path: Path) -> None:
    function = compiled_log()
    with find(tmp_path):
        function(torch.ones(3))  # in the program's eyes this has compiled it
        with torch.compiler.set_stance("fail_on_recompile"):
            function(torch.ones(3))
            with pytest.raises(RuntimeError, match="fail_on_recompile"):
                function(torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize("earlier", [False, True])
def test_a_dump_around_it_has_the_guards(earlier: bool, tmp_path: Path) -> None:
    function = compiled_log()
    if earlier:
        function(torch.ones(3))
    with depyf.prepare_debug(tmp_path / "dump"), find(tmp_path) as found:
        function(torch.ones(3))
    assert found.looked.calls == 1
    full_code = next((tmp_path / "dump").glob("full_code_for_logarithm_*.py")).read_text()
    assert "___check_tensor(" in full_code
    assert "cache entry is gone" not in full_code


@pytest.mark.parametrize("name", ["default", "fail_on_recompile", "eager_on_recompile"])
@pytest.mark.parametrize("first", ["find", "probe"])
def test_one_inside_of_the_other_both_see_everything(name: str, first: str, tmp_path: Path) -> None:
    function = compiled_log()
    function(torch.ones(3))
    finding, probing = find(tmp_path), depyf.probe("y", stream=io.StringIO())
    outer, inner = (finding, probing) if first == "find" else (probing, finding)
    with outer:
        with inner, torch.compiler.set_stance(name):
            function(torch.ones(3))
        function(torch.ones(3))
    assert len(probing["y"]) == (1 if first == "find" else 2)
    assert finding.looked.calls == (2 if first == "find" else 1)
    assert finding.looked.missed == {}
    assert depyf.why(function, torch.ones(3)).entries[0].hit
