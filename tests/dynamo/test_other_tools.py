"""What a dump holds of PyTorch's other ways to compile: the table of docs/torch_tools.md, row by row."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Callable, List, Set

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.report.model.manifest import from_json  # noqa: E402
from depyf.report.model.run import Run  # noqa: E402

BACKEND = "aot_eager"


class Layer(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return self.linear(x).relu()


def f(x: Any) -> Any:
    return x.sin().relu().sum()


def tensor() -> Any:
    return torch.randn(4, 4, requires_grad=True)


def dumped(directory: Path, run: Callable[[], object]) -> Run:
    with depyf.prepare_debug(str(directory)):
        run()
    return from_json((directory / "manifest.json").read_text(encoding="utf-8"))


def stages(run: Run) -> Set[str]:
    return {artifact.stage for artifact in run.artifacts if artifact.kind == "graph"}


def functions(run: Run) -> List[str]:
    return [run.functions[each.function].name for each in run.compilations if each.function is not None]


def test_regional_compilation_compiles_the_layers_once(tmp_path: Path) -> None:
    layers = [Layer(), Layer()]
    for layer in layers:
        layer.compile(backend=BACKEND)
    x = tensor()
    run = dumped(tmp_path, lambda: layers[1](layers[0](x)).sum().backward())
    # Without it PyTorch (before 2.5) guards on the very module, so that each is compiled.
    inlined = getattr(torch._dynamo.config, "inline_inbuilt_nn_modules", False)
    assert functions(run) == ["forward"] * (1 if inlined else len(layers))
    assert {"Captured_Graph", "Forward_graph", "Backward_graph"} <= stages(run)


def test_a_nested_compile_region_is_a_class_in_the_graph(tmp_path: Path) -> None:
    if not hasattr(torch.compiler, "nested_compile_region"):
        pytest.skip("this PyTorch has no nested_compile_region")
    region = torch.compiler.nested_compile_region(lambda y: y.sin() + 1)
    run = dumped(tmp_path, lambda: torch.compile(lambda x: region(region(x)).sum(), backend=BACKEND)(tensor()))
    assert len(run.compilations) == 1
    graph = next(each for each in run.artifacts if each.stage == "Captured_Graph")
    text = (tmp_path / str(graph.path)).read_text(encoding="utf-8")
    assert "invoke_subgraph" in text
    assert text.count("(torch.nn.Module)") == 2


def test_compiled_autograd_is_a_compilation_of_its_own(tmp_path: Path) -> None:
    from torch._dynamo import compiled_autograd

    enable = getattr(compiled_autograd, "_enable", None)
    if enable is None:
        pytest.skip("another name in this PyTorch")
    value = torch.compile(f, backend=BACKEND)(tensor())
    torch._dynamo.reset()

    def backward() -> None:
        with enable(torch.compile(backend=BACKEND)):
            value.backward()

    run = dumped(tmp_path, backward)
    assert [each.compile_id.startswith("!") for each in run.compilations] == [True]
    found = [stage.lower() for stage in stages(run) if "compiled_autograd_graph" in stage.lower()]
    assert found
    assert len(found) == len(set(found)), "each graph once"


def test_debug_mode_changes_nothing_of_a_dump(tmp_path: Path) -> None:
    debug_mode = pytest.importorskip("torch.utils._debug_mode")

    def with_mode() -> None:
        with debug_mode.DebugMode():
            torch.compile(f, backend=BACKEND)(tensor())

    plain = dumped(tmp_path / "plain", lambda: torch.compile(f, backend=BACKEND)(tensor()))
    torch._dynamo.reset()
    run = dumped(tmp_path / "mode", with_mode)
    assert functions(run) == functions(plain) == ["f"]
    assert stages(run) == stages(plain)


def test_export_makes_no_kernels(tmp_path: Path) -> None:
    run = dumped(tmp_path, lambda: torch.export.export(Layer(), (torch.randn(2, 4),)))
    assert run.kernels == ()
    page = (tmp_path / "index.md").read_text(encoding="utf-8")
    if not run.compilations:  # some releases export by Dynamo
        assert "nothing was compiled" in page or "do not say which compilations" in page


def test_what_aot_compile_compiles_is_dumped_without_transformed_code(tmp_path: Path) -> None:
    compiled = torch.compile(f, fullgraph=True, backend=BACKEND)
    if not hasattr(compiled, "aot_compile"):
        pytest.skip("this PyTorch has no aot_compile")
    x = tensor()
    run = dumped(tmp_path, lambda: compiled.aot_compile(((x,), {})))
    assert functions(run) == ["f"]
    assert {"Captured_Graph", "Forward_graph"} <= stages(run)
    assert not any(each.kind == "transformed" for each in run.artifacts)


@pytest.mark.inductor
@pytest.mark.slow
def test_standalone_compile_has_an_id_of_its_own(tmp_path: Path) -> None:
    inductor = pytest.importorskip("torch._inductor")
    if not hasattr(inductor, "standalone_compile"):
        pytest.skip("this PyTorch has no standalone_compile")
    module, x = torch.fx.symbolic_trace(lambda x: x.sin() + 1), torch.randn(4, 4)
    run = dumped(tmp_path, lambda: inductor.standalone_compile(module, [x]))
    (compilation,) = run.compilations
    assert re.fullmatch(r"standalone/\d+", compilation.compile_id), compilation  # counted in the whole process
    assert any(each.kind == "kernels" for each in run.artifacts)


@pytest.mark.inductor
@pytest.mark.slow
@pytest.mark.parametrize("force_recompile", [False, True])
def test_a_saved_artifact_is_loaded_and_its_kernel_dumped(tmp_path: Path, *, force_recompile: bool) -> None:
    inductor = pytest.importorskip("torch._inductor")
    if not hasattr(inductor, "CompiledArtifact"):
        pytest.skip("this PyTorch has no CompiledArtifact")
    saved: List[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        saved.append(inductor.standalone_compile(graph, inputs, dynamic_shapes="from_example_inputs"))
        return saved[0]

    x = torch.ones(4, 4)
    with torch.no_grad():
        expected = torch.compile(f, backend=backend)(x)
        saved[0].save(path=str(tmp_path / "saved"), format="unpacked")
        with depyf.prepare_debug(str(tmp_path / "dump"), force_recompile=force_recompile):
            loaded = inductor.CompiledArtifact.load(path=str(tmp_path / "saved"), format="unpacked")
            assert torch.equal(loaded(x)[0], expected)
    run = from_json((tmp_path / "dump" / "manifest.json").read_text(encoding="utf-8"))
    assert not run.compilations
    assert any(each.kind == "kernels" for each in run.artifacts)


@pytest.mark.inductor
@pytest.mark.slow
def test_a_dump_after_load_cache_artifacts_is_whole(tmp_path: Path, run_program: Callable[..., str]) -> None:
    if not hasattr(torch.compiler, "save_cache_artifacts"):
        pytest.skip("this PyTorch has no save_cache_artifacts")
    for step in ("save", "load"):
        environment = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / f"cache_{step}")}
        run_program("cache_artifacts.py", step, tmp_path / "artifacts", tmp_path / step, environment=environment)
    saved, loaded = (
        from_json((tmp_path / step / "manifest.json").read_text(encoding="utf-8")) for step in ("save", "load")
    )
    if stages(loaded) != stages(saved):  # PyTorch 2.7: depyf can't have it compile again, and says what is missing
        assert tuple(map(int, torch.__version__.split(".")[:2])) < (2, 13)
        assert "BEFORE_POST_GRAD" in (tmp_path / "load" / "missing_stages_0.txt").read_text(encoding="utf-8")
    assert [each.name for each in loaded.kernels] == [each.name for each in saved.kernels]
