"""The settings that are not PyTorch's defaults are known of each compilation."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Tuple

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.hooks.torch_settings import settings_in_force  # noqa: E402
from depyf.report.diff.comparison import compare  # noqa: E402
from depyf.report.diff.matching import ComparedRun  # noqa: E402
from depyf.report.model.run import Run  # noqa: E402
from depyf.report.read.reading import load  # noqa: E402

SCALARS = "torch._dynamo.config.capture_scalar_outputs = True"
LIMIT = "torch._dynamo.config.recompile_limit = 3"


def doubled(x: Any) -> Any:
    return x * 2


def recorded(folder: Path, *, changed: bool) -> Run:
    torch._dynamo.reset()
    with depyf.prepare_debug(folder):
        with torch._dynamo.config.patch(capture_scalar_outputs=changed):
            torch.compile(doubled, backend="eager")(torch.ones(3))
        with torch._dynamo.config.patch(capture_scalar_outputs=changed, recompile_limit=3):
            torch.compile(doubled, backend="eager")(torch.ones(3, 3))
    (loaded,) = load([str(folder)])
    return loaded.run


def no_text(_: object) -> None:
    return None


def of_each(run: Run) -> Tuple[Tuple[str, ...], ...]:
    own = [run.settings[each.settings] for each in run.compilations if each.settings is not None]
    return tuple(tuple(each for each in settings if each in (SCALARS, LIMIT)) for settings in own)


def test_each_compilation_has_its_settings_and_a_comparison_says_which_differ(tmp_path: Path) -> None:
    if not hasattr(torch._dynamo.config, "recompile_limit"):
        pytest.skip("this PyTorch has another name for the limit; 2.2 reports no start of a compilation")
    before, after = recorded(tmp_path / "a", changed=False), recorded(tmp_path / "b", changed=True)
    assert of_each(before) == ((), (LIMIT,))
    assert [set(each) for each in of_each(after)] == [{SCALARS}, {SCALARS, LIMIT}]
    index = (tmp_path / "b" / "index.md").read_text()
    assert f"`{SCALARS}`" in index
    found = compare(ComparedRun("before", before, no_text), ComparedRun("now", after, no_text))
    assert f"only now has the settings {SCALARS}" in found.notes


def test_a_setting_that_was_read_or_set_to_its_default_is_none() -> None:
    known = settings_in_force()
    assert torch._dynamo.config.traceable_tensor_subclasses is not None  # reading a container copies it
    with torch._dynamo.config.patch(capture_scalar_outputs=False):
        assert settings_in_force() == known


def test_variables_of_the_environment_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_MAX_AUTOTUNE", "1")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "/nowhere")
    assert "TORCHINDUCTOR_MAX_AUTOTUNE=1" in settings_in_force()
    assert not any("/nowhere" in each for each in settings_in_force())
