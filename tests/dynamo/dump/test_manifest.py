"""The manifest of real programs, compared with PyTorch's own logs of the same run."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, Callable, Optional, Tuple

import pytest
from torch_words import Words, words_in

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

from torch_versions import IS_OLD, LOG_NAMES_LINES, REPORTS_COMPILE_IDS  # noqa: E402

import depyf  # noqa: E402
from depyf.dynamo.dump.manifest import run_of  # noqa: E402
from depyf.dynamo.hooks import frame_evaluation  # noqa: E402
from depyf.report.model.manifest import from_json  # noqa: E402
from depyf.report.model.run import Run  # noqa: E402


@pytest.fixture
def ran(run_program: Callable[..., str], tmp_path: Path) -> Callable[..., Tuple[Run, Optional[Words]]]:
    def run(example: str, backend: str = "eager") -> Tuple[Run, Optional[Words]]:
        if example == "bert" and importlib.util.find_spec("transformers") is None:
            pytest.skip("transformers is not installed")
        log = tmp_path / "torch.log"
        environment = {"TORCH_LOGS": "graph_breaks,recompiles", "TORCH_LOGS_OUT": str(log)}
        run_program("run_example.py", example, backend, tmp_path / "dump", environment=environment)
        manifest = from_json((tmp_path / "dump" / "manifest.json").read_text())
        if not LOG_NAMES_LINES:
            return manifest, None
        return manifest, words_in(log.read_text() if log.exists() else "")

    return run


def places(run: Run) -> Any:
    return [(each.compile_id, run.sources[each.place[0]].path, each.place[1]) for each in run.breaks if each.place]


@pytest.mark.parametrize(
    ("example", "breaks", "recompiles"),
    [
        ("branch", 1, 0),
        ("breaks_and_recompiles", 5, 6),
        ("mixture_of_experts", 1, 1),
        pytest.param("bert", 0, 1, marks=pytest.mark.slow),
    ],
)
def test_each_break_and_each_recompilation_is_told_once_at_its_line(
    ran: Callable[..., Tuple[Run, Optional[Words]]], example: str, breaks: int, recompiles: int
) -> None:
    run, words = ran(example)
    if words is None:  # an older PyTorch, which traces less of transformers
        assert example == "bert" or (len(run.breaks), len(run.recompiles)) == (breaks, recompiles)
        return
    assert sorted(places(run)) == sorted(words.breaks)
    assert len(run.breaks) == breaks
    told = [
        (each.compile_id, function.name, run.sources[function.source].path, function.first_line)
        for each in run.recompiles
        for function in [run.functions[each.function]]
    ]
    assert told == words.recompiles
    assert len(told) == recompiles
    reasons = [(each.compile_id, str(failed.entry), failed.text) for each in run.recompiles for failed in each.failed]
    assert sorted(reasons) == sorted(words.reasons)  # the page tells what is new in a call first


def test_a_program_with_six_reasons_to_recompile(ran: Callable[..., Tuple[Run, Optional[Words]]]) -> None:
    run, _ = ran("breaks_and_recompiles")
    first = [each.failed[0] for each in run.recompiles]
    now = [
        ("times is 2, and was compiled for 1", "times is not 1, which it was compiled for"),
        ("how is 'none', and was compiled for 'relu'", "how is not 'relu', which it was compiled for"),
    ]
    for failed, (known, unknown) in zip(first, now):
        assert failed.words == known or (failed.words == unknown and IS_OLD)
    lines = [run.sources[f.place[0]].text.splitlines()[f.place[1] - 1].strip() for f in first if f.place]  # type: ignore
    if hasattr(torch._dynamo.guards.GuardBuilder, "SET_CONTAINS"):  # before PyTorch 2.8 guards have no lines
        assert lines[:3] == ["y = x * scaled.factor + times", 'if how == "relu":', "y = x * scaled.factor + times"]
    assert all(each.advice for each in run.recompiles)
    assert all(each.advice for each in run.breaks)
    if hasattr(torch._dynamo.guards.GuardBuilder, "SET_NOT_CONTAINS"):  # PyTorch 2.13 and later
        assert all(each.explanation and each.hints and each.url for each in run.breaks)
    if REPORTS_COMPILE_IDS:
        by_id = {each.compile_id: each for each in run.compilations}
        assert by_id["10/0"].guard_failures == 6
        assert by_id["10/1"].dynamic == ("s28: L['times']",) or by_id["10/1"].dynamic[0].endswith(": L['times']")
    titles = [finding.title for finding in run.findings]
    own = [title for title in titles if title.startswith("recompiles was recompiled ")]
    assert len(set(own)) == len(own)
    once, twice = (sum(f"recompiled {times} (guard on " in title for title in own) for times in ("once", "2 times"))
    # Each for a cause of its own. PyTorch before 2.4 names the first guard that fails in its order, the same for two.
    assert (once, twice) == (6, 0) or (IS_OLD and (once, twice) == (4, 1))
    (disabled,) = [title for title in titles if "asks_the_compiler_to_stay_out" in title]
    assert disabled.endswith("note (Skip calling `torch.compiler.disable()`d function)")
    (explanation,) = [each.explanation for each in run.breaks if "disable()`d" in each.reason]
    assert "<function note at 0x0>" in explanation  # the same in every run
    costs = [(finding.seconds or 0.0, finding.count) for finding in run.findings]
    assert costs == sorted(costs, reverse=True)


def test_a_branch_goes_on_in_two_resume_functions(ran: Callable[..., Tuple[Run, Optional[Words]]]) -> None:
    run, _ = ran("branch")
    root, *resumes = run.functions
    assert (root.qualified_name, root.resumes) == ("mean_or_flip", None)
    assert [(each.resumes, each.resumes_at) for each in resumes] == [(0, root.first_line + 2)] * 2
    by_id = {each.compile_id: each for each in run.compilations}
    first = by_id["0/0"]
    assert [call.function for call in first.calls if call.function is not None] == [1, 2]
    assert [call.graph for call in first.calls if call.graph] == [first.graph]
    assert {by_id["1/0"].function, by_id["2/0"].function} == {1, 2}
    if frame_evaluation.reports_runs():
        assert first.runs == 100
        assert (by_id["1/0"].runs or 0) + (by_id["2/0"].runs or 0) == 100
    transformed = next(each for each in run.artifacts if each.id == first.transformed)
    graph_call = next(link for link in transformed.links if first.graph in link.names)
    assert [line for _, line in graph_call.places] == [root.first_line + 1, root.first_line + 2]


def test_a_function_that_is_given_up_is_a_fallback_and_a_finding(
    ran: Callable[..., Tuple[Run, Optional[Words]]], tmp_path: Path
) -> None:
    run, _ = ran("mixture_of_experts")
    (fallback,) = (each for each in run.fallbacks if each.cause != "skipped")
    assert fallback.function is not None
    assert run.functions[fallback.function].qualified_name == "MixtureOfExperts.forward"
    titles = [finding.title for finding in run.findings]  # in the order of their compile time
    assert any(title.startswith("MixtureOfExperts.forward runs as plain Python") for title in titles)
    index = (tmp_path / "dump" / "index.md").read_text()
    assert "MixtureOfExperts.forward runs as plain Python" in index


def small(x: Any) -> Any:
    y = x.sin()
    return y + 1


def other(x: Any) -> Any:
    return x * 2


def manifest_in(directory: Path, name: str = "manifest.json") -> Run:
    return from_json((directory / name).read_text())


def names_of(run: Run) -> Any:
    return sorted(run.functions[each.function].name for each in run.compilations if each.function is not None)


def test_repeated_and_nested_sessions_in_one_directory_lose_nothing(tmp_path: Path) -> None:
    torch._dynamo.reset()
    for function in (small, other):
        with depyf.prepare_debug(tmp_path), depyf.prepare_debug(tmp_path):
            torch.compile(function, backend="eager")(torch.ones(2))
    run = manifest_in(tmp_path)
    assert names_of(run) == ["other", "small"]
    assert len([each for each in run.artifacts if each.stage == "Captured_Graph" and each.links]) == 2
    assert [len(each.calls) for each in run.compilations] == [1, 1]
    assert {each.path for each in run.artifacts} <= {path.name for path in tmp_path.iterdir()}
    assert len({each.id for each in run.artifacts}) == len(run.artifacts)
    before = (tmp_path / "manifest.json").stat().st_mtime_ns
    with depyf.prepare_debug(tmp_path):
        pass
    assert (tmp_path / "manifest.json").stat().st_mtime_ns == before


def test_compile_ids_that_a_reset_gives_out_again_are_told_apart(tmp_path: Path) -> None:
    torch._dynamo.reset()
    with depyf.prepare_debug(tmp_path):
        torch.compile(small, backend="eager")(torch.ones(2))
        torch._dynamo.reset()
        torch.compile(other, backend="eager")(torch.ones(2))
        torch.compile(other, backend="eager")(torch.ones(2, dtype=torch.float64))
    run = manifest_in(tmp_path)
    ids = [each.compile_id for each in run.compilations]
    assert len(set(ids)) == 3
    if ids[0] == "0/0":  # in PyTorch 2.2 a reset does not begin to count anew
        assert {"0/0", "0/0#2", "0/1#2"} == set(ids)
        entry = "0/0#2" if REPORTS_COMPILE_IDS else None
        assert [failed.entry for failed in run.recompiles[0].failed] == [entry]
    assert names_of(run) == ["other", "other", "small"]


def test_a_program_that_compiles_nothing_has_a_manifest_that_says_so(tmp_path: Path) -> None:
    with depyf.prepare_debug(tmp_path):
        pass
    run = manifest_in(tmp_path)
    assert (run.compilations, run.totals["compilations"]) == ((), 0)
    assert "| graphs | 0 |" in (tmp_path / "index.md").read_text()


def test_the_session_answers_its_run_while_it_is_open(tmp_path: Path) -> None:
    torch._dynamo.reset()
    with depyf.prepare_debug(tmp_path) as prepared:
        torch.compile(small, backend="aot_eager")(torch.ones(2, requires_grad=True)).sum().backward()
        assert prepared.session is not None
        run = run_of(prepared.session)
    (compilation,) = run.compilations
    assert compilation.status == "compiled"
    forward = next(each for each in run.artifacts if each.stage == "Forward_graph")
    sin = next(link for link in forward.links if "sin" in link.names)
    first = small.__code__.co_firstlineno
    assert sin.places == ((sin.places[0][0], first + 1),)
    assert run.sources[sin.places[0][0]].path == __file__
    backward = next(each for each in run.artifacts if each.stage == "Backward_graph")
    assert any(place[1] == first + 1 for link in backward.links for place in link.places)


@pytest.mark.inductor
@pytest.mark.parametrize("name", ["mlp", "custom_autograd_function"])
def test_each_kernel_that_torch_attributes_to_a_line_is_reached_from_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[3] / "tools" / "measure"))
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))  # another checkout's has its paths
    import measure_kernel_lines as tool

    found = tool.measure(name, tmp_path / "dump")
    assert found.kernels >= 2
    assert 0 < found.backward < found.kernels
    assert found.with_lines == found.kernels
    assert found.attributed > 0
    assert found.missed == []


def test_a_guard_in_a_called_function_has_the_calls_that_led_to_it(tmp_path: Path) -> None:
    def scale(x: Any, config: Any) -> Any:
        return x * config["scale"]

    def block(x: Any, config: Any) -> Any:
        return scale(x, config) + 1

    @torch.compile(backend="eager")
    def f(x: Any, config: Any) -> Any:
        return block(x, config).sin() * config["more"]

    torch._dynamo.reset()
    with depyf.prepare_debug(tmp_path):
        f(torch.ones(3), {"scale": 2, "more": 1})
        f(torch.ones(3), {"scale": 3, "more": 1})
        f(torch.ones(3), {"scale": 3, "more": 5})
    run = from_json((tmp_path / "manifest.json").read_text())
    text = (run.sources[0].text or "").splitlines()
    lines = [[text[line - 1].strip() for _, line in each.failed[0].stack] for each in run.recompiles]
    if hasattr(torch._dynamo.guards.GuardBuilder, "SET_NOT_CONTAINS"):  # PyTorch 2.13 and later record these calls
        calls = ['return block(x, config).sin() * config["more"]', "return scale(x, config) + 1"]
        assert lines == [[*calls, 'return x * config["scale"]'], []]
