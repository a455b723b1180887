"""Missing stages are reported, and ``force_recompile`` restores those that compiler caches omit."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any, Dict, List

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.capture.graphs import write_graph  # noqa: E402
from depyf.dynamo.capture.records import KernelFile  # noqa: E402
from depyf.dynamo.capture.session import Session  # noqa: E402
from depyf.dynamo.capture.warm_caches import WarmCaches, sees_look_ups  # noqa: E402
from depyf.dynamo.dump.missing import missing, missing_text  # noqa: E402
from depyf.dynamo.hooks import generated_code, torch_names  # noqa: E402
from depyf.dynamo.store.directory import DumpDirectory  # noqa: E402
from depyf.torch_trace.events import Event  # noqa: E402
from depyf.torch_trace.stages import Stage  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]


def candidates(*, by: str = "torch._inductor.compile_fx") -> List[Any]:
    """What the module ``by`` finds in a cache with an entry for a key."""
    cache = torch_names.find("torch._inductor.codecache", "GuardedCache")
    if cache is None or not hasattr(cache, "iterate_over_candidates"):
        pytest.skip("this PyTorch has no such cache")

    class Remote:
        def get(self, key: str) -> Any:
            import base64
            import pickle

            return {"data": base64.b64encode(pickle.dumps(key)).decode()}

    of_module: Dict[str, Any] = {"__name__": by}
    of_module["candidates"] = lambda: cache.iterate_over_candidates(False, Remote(), "depyf_test_key")
    exec("def look_up():\n    return [found[0] for found in candidates()]", of_module)
    return list(of_module["look_up"]())


def test_force_recompile_finds_nothing_in_caches_until_it_is_left(tmp_path: Path) -> None:
    assert candidates() == ["depyf_test_key"]
    with depyf.prepare_debug(tmp_path / "a", force_recompile=True):
        assert candidates() == []
        assert candidates(by="torch._inductor.standalone_compile") == ["depyf_test_key"]  # nothing would compile it
        with depyf.prepare_debug(tmp_path / "b", force_recompile=True):
            assert candidates() == []
    assert candidates() == ["depyf_test_key"]


def test_force_recompile_is_undone_after_an_exception(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), depyf.prepare_debug(tmp_path, force_recompile=True):
        raise ZeroDivisionError
    assert candidates() == ["depyf_test_key"]


def test_where_look_ups_are_not_seen_settings_are_changed_and_put_back(tmp_path: Path) -> None:
    from torch._inductor import config

    def session(force: bool) -> Session:
        return Session(DumpDirectory.at(tmp_path), clean_wild_fx_code=True, log_bytecode=False, force_recompile=force)

    caches, first, second = WarmCaches(lambda: None, lambda event: None), session(True), session(True)
    with config.patch(fx_graph_cache=True):
        for sessions, expected in [
            ([session(False)], True),
            ([first], False),
            ([first, second], False),
            ([second], False),
            ([], True),
        ]:
            caches.follow(sessions)
            assert config.fx_graph_cache is expected


def test_force_recompile_is_a_keyword_only() -> None:
    with pytest.raises(TypeError):
        depyf.prepare_debug("folder", True, False, True)  # type: ignore[misc]


def knows_late_backwards() -> bool:
    from torch._functorch import config

    return hasattr(config, "force_non_lazy_backward_lowering")


def test_a_backward_that_was_not_called_is_told(tmp_path: Path) -> None:
    compiled = torch.compile(lambda x: x.sin().sum(), backend="aot_eager")
    with depyf.prepare_debug(tmp_path / "forward"):
        loss = compiled(torch.ones(3, requires_grad=True))
    loss.backward()
    if not (tmp_path / "forward" / "missing_stages_0.txt").exists() and not knows_late_backwards():
        pytest.skip("this PyTorch compiles the backward together with the forward")
    text = (tmp_path / "forward" / "missing_stages_0.txt").read_text()
    assert re.search(r"^   __compiled_fn_\d+: the compiled backward, compile id 0/0$", text, re.MULTILINE)
    assert "Call backward() before prepare_debug is left." in text
    torch._dynamo.reset()
    with depyf.prepare_debug(tmp_path / "both"):
        compiled(torch.ones(3, requires_grad=True)).backward()
    assert not list((tmp_path / "both").glob("missing_stages*"))


READABLE = "class GraphModule(torch.nn.Module):\n    def forward(self, x):\n        return (x,)\n"


def compile_elsewhere(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    compile_fx = torch_names.module("torch._inductor.compile_fx")
    if not hasattr(compile_fx, "FxCompileMode"):
        pytest.skip("this PyTorch compiles in the process only")
    assert not generated_code.compiles_elsewhere()
    monkeypatch.setattr(compile_fx, "fx_compile_mode", compile_fx.FxCompileMode.SUBPROCESS)


REASONS = {
    "This PyTorch did not report it.": lambda session, monkeypatch: None,
    "force_recompile=True": lambda session, _: session.add(Event("fx_graph_cache_hit", "0/0", 0, {}, None, 0.0)),
    "Run once without TORCHINDUCTOR_FX_COMPILE_MODE.": compile_elsewhere,
}


@pytest.mark.parametrize("told", REASONS)
def test_a_stage_that_torch_does_not_report_is_told_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    session = Session(DumpDirectory.at(tmp_path), clean_wild_fx_code=True, log_bytecode=False)
    for stage in (Stage.CAPTURED, Stage.FORWARD, Stage.AFTER_POST_GRAD):
        write_graph(session, "0/0", "__compiled_fn_1", stage, 0, READABLE)
    session.add(KernelFile("0/0", "__compiled_fn_1", 0, str(tmp_path / "kernel"), "", "", False))
    REASONS[told](session, monkeypatch)
    stages = {each.what for each in missing(session)} - {"graphs that passes print"}  # before 2.8, of cached graphs
    assert stages == {"BEFORE_PRE_GRAD", "AFTER_PRE_GRAD", "BEFORE_POST_GRAD"}
    assert [each for each in REASONS if each in missing_text(session)] == [told]


@pytest.mark.inductor
@pytest.mark.slow
def test_nothing_vanishes_when_caches_are_warm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools" / "check"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    import compare_cold_and_warm as tool

    dumps = tool.dump_three_times(ROOT / "examples" / "training.py", tmp_path)
    counts = {run: tool.kinds(dump) for run, dump in dumps.items()}
    assert {"BEFORE_PRE_GRAD", "BEFORE_POST_GRAD", "AFTER_POST_GRAD", "Joint_graph", "kernel"} <= set(counts["cold"])
    for run in ("warm", "filled unseen"):
        for kind in counts["cold"] - counts[run]:
            assert tool.reports_of(kind, tool.reported_missing(dumps[run])), (run, kind)
    from torch._inductor import codecache

    if not hasattr(codecache, "GuardedCache"):
        return  # before 2.8 nobody sees when a graph is taken out of the cache: what it lacks is told, as seen above
    cold, warm = ({p.name: p.read_bytes() for p in dumps[run].glob("_*.py")} for run in ("cold", "warm"))
    assert cold == warm


@pytest.mark.inductor
@pytest.mark.skipif(not sees_look_ups(), reason="before 2.8 nothing is repeated: what a cache loses is reported")
@pytest.mark.parametrize("lost", ["aotautograd", "fxgraph"])
def test_a_stage_is_repeated_once_where_only_one_of_two_caches_was_warm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    from torch._inductor import config

    told_again = {Stage.FORWARD.value} if lost == "fxgraph" else set()  # by PyTorch, when it loads and when it compiles

    caches = tmp_path / "cache"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(caches))
    found: Dict[str, List[str]] = {}
    with config.patch(fx_graph_cache=True), torch._functorch.config.patch(enable_autograd_cache=True):
        for directory in ("cold", "one", "both"):
            torch._dynamo.reset()
            with depyf.prepare_debug(tmp_path / directory, dump="all"):
                torch.compile(lambda x: x.sin() + 1)(torch.ones(4))
            names = [path.name.partition(".")[2] for path in (tmp_path / directory).glob("__compiled_fn*")]
            found[directory] = sorted(name for name in names if name.partition(".")[0] not in told_again)
            if directory == "cold":
                shutil.rmtree(caches / lost)  # as if only its key had changed
    assert {"BEFORE_PRE_GRAD.0.py", "BEFORE_POST_GRAD.0.py"} <= set(found["cold"])
    assert found["cold"] == found["one"] == found["both"]


@pytest.mark.inductor
def test_custom_passes_that_a_cache_leaves_out_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph_passes = pytest.importorskip("torch._inductor.custom_graph_pass", reason="this PyTorch has no such passes")
    from torch._inductor import config

    class Fused(graph_passes.CustomGraphPass):  # type: ignore[misc, name-defined]
        ran = 0

        def __call__(self, graph: Any) -> None:
            self.ran += 1

        def uuid(self) -> bytes:
            return b"the same although its code has changed"

    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "cache"))
    fused, notes = Fused(), []
    with config.patch(post_grad_custom_post_pass=fused, fx_graph_cache=True):
        for directory in ("cold", "warm"):
            torch._dynamo.reset()
            with depyf.prepare_debug(tmp_path / directory):
                torch.compile(lambda x: x.sin() + 1)(torch.ones(4))
            notes.append(json.loads((tmp_path / directory / "manifest.json").read_text()).get("notes", []))
    assert fused.ran == 1
    cold, (warm,) = notes
    assert cold == []
    assert warm.startswith("post_grad_custom_post_pass (")
    assert "Fused) did not run for compile id 0/0: " in warm
