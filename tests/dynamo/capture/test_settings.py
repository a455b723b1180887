"""The settings that are not PyTorch's defaults are known of each compilation."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, List, Tuple

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]
torch = pytest.importorskip("torch")
pytest.importorskip("torch._inductor.config")

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


def test_no_setting_is_overlooked_that_a_reading_of_all_of_them_finds() -> None:
    """Since 2.12 a setting is found by its variable in the context of the thread."""
    changes = {"verbose": True, "capture_scalar_outputs": True, "specialize_int": True}
    changes = {name: value for name, value in changes.items() if hasattr(torch._dynamo.config, name)}
    with torch._dynamo.config.patch(changes), torch._inductor.config.patch({"triton.cudagraphs": True}):
        found = settings_in_force()
        every = [f"torch._dynamo.config.{name} = {value}" for name, value in changes.items()]
        assert {*every, "torch._inductor.config.triton.cudagraphs = True"} <= set(found)
        # In another thread, the settings that are told are those that PyTorch reads there.
        elsewhere: List[Tuple[bool, bool]] = []

        def look() -> None:
            elsewhere.append((SCALARS in settings_in_force(), torch._dynamo.config.capture_scalar_outputs))

        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        assert elsewhere[0][0] == elsewhere[0][1]
    assert not set(every) & set(settings_in_force())
