"""PyTorch's bisector is driven, and nothing of it is left: no state, no text, no folder."""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path
from typing import Any, List, Optional

import pytest
from torch_versions import needs_stances

pytestmark = [pytest.mark.torch, needs_stances]
torch = pytest.importorskip("torch")
compiler_bisector = pytest.importorskip("torch._inductor.compiler_bisector")

from depyf.dynamo.hooks import bisector, private_names, torch_settings  # noqa: E402
from depyf.dynamo.hooks.torch_names import PrivateName  # noqa: E402

PyTorchs = compiler_bisector.CompilerBisector


def state() -> List[Any]:
    return [PyTorchs.bisection_enabled, PyTorchs.in_process_cache, vars(compiler_bisector).get("print")]


@pytest.fixture(autouse=True)
def nothing_left() -> Any:
    before = state()
    yield
    assert state() == before
    gc.collect()
    assert state() == before


def folder_of_bisector() -> Path:
    return Path(PyTorchs.in_process_cache)


def test_a_number_of_a_part_is_found_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    """The fifth decomposition is the wrong one."""
    folders = []

    def is_right(name: str, disabled: Optional[str]) -> bool:
        folders.append(folder_of_bisector())
        applied = [PyTorchs.disable_subsystem(name, "decomposition", lambda: "sin_5") for _ in range(9)]
        return name in ("eager", "aot_eager") or (disabled is not None and applied[5])

    found = bisector.bisect(is_right)
    assert (found.backend, found.subsystem, found.number) == ("aot_eager_decomp_partition", "decomposition", 5)
    assert "aot_eager_decomp_partition, decomposition, number 5: sin_5" in str(found)
    assert capsys.readouterr() == ("", "")
    assert folders
    assert not any(folder.exists() for folder in folders)


def test_a_setting_that_makes_the_difference_is_in_force_for_the_run_alone() -> None:
    import torch._inductor.config as config

    before = config.layout_optimization

    def is_right(name: str, disabled: Optional[str]) -> bool:
        return name != "inductor" or (disabled is not None and config.layout_optimization is not before)

    found = bisector.bisect(is_right)
    assert config.layout_optimization is before
    if before:  # it sets False
        assert "with another value of the setting inductor_layout_optimization nothing differs" in str(found)


def test_what_is_not_found_is_said() -> None:
    assert "nothing found; with each of its backends" in str(bisector.bisect(lambda name, _: True))
    assert "aot_eager; no part of it that can be disabled" in str(bisector.bisect(lambda name, _: name == "eager"))
    everything = bisector.bisect(lambda name, disabled: name != "inductor")
    assert "inductor; no part of it" in str(everything)
    assert everything.runs > 5


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_comes_through_and_leaves_nothing(kind: type, capsys: pytest.CaptureFixture[str]) -> None:
    folders = []

    def is_right(name: str, _: Optional[str]) -> bool:
        folders.append(folder_of_bisector())
        if name == "inductor":
            raise kind
        return True

    with pytest.raises(kind) as raised:
        bisector.bisect(is_right)
    assert state()[:2] == [False, None]  # while the traceback is there
    assert raised.value.__traceback__ is not None
    assert not folders[0].exists()
    del raised
    gc.collect()
    assert capsys.readouterr() == ("", "")


def test_a_failure_of_the_bisector_is_said() -> None:
    def contradicts(name: str, disabled: Optional[str]) -> bool:
        """Right in the first run of a part that is disabled, and in the next one, where nothing is disabled."""
        return name != "inductor" or disabled is not None

    assert "it failed: RuntimeError" in str(bisector.bisect(contradicts))


def test_a_bisection_that_is_under_way_is_left_alone() -> None:
    PyTorchs.bisection_enabled = True
    try:
        assert "has been started already" in str(bisector.bisect(lambda *_: True))
    finally:
        PyTorchs.bisection_enabled = False


def test_without_a_bisector_there_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = PrivateName("torch._inductor.no_such_bisector", "CompilerBisector", "nothing is lost")
    monkeypatch.setattr(private_names, "BISECTOR", absent)
    assert str(bisector.bisect(lambda *_: True)) == f"PyTorch's bisector: {bisector.NO_BISECTOR}"


SCRIPT = """
import torch
from torch._inductor.lowering import lowerings

lowerings[torch.ops.aten.sin.default] = lowerings[torch.ops.aten.cos.default]

def main():
    def wave(x):
        return x.exp().sin()

    x = torch.ones(3)
    return 0 if torch.allclose(torch.compile(wave)(x), wave(x)) else 1
"""


@pytest.mark.inductor
def test_a_script_is_bisected_in_a_process_of_its_own_and_the_cache_stays(tmp_path: Path) -> None:
    """As a command, PyTorch 2.13's bisector deletes the whole cache directory at its end."""
    (tmp_path / "script.py").write_text(SCRIPT)
    with tempfile.TemporaryDirectory(dir=torch_settings.cache_directory()) as kept:
        found = bisector.bisect_script(str(tmp_path / "script.py"), os.environ, 600)
        assert Path(kept).exists()
    assert str(found) == "PyTorch's bisector: inductor, lowerings, number 1: sin"


def test_a_script_that_ends_the_process_is_said_with_its_last_lines(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import sys\ndef main():\n    print('no more')\n    sys.exit(3)\n")
    assert "it failed: " in str(bisector.bisect_script(str(tmp_path / "script.py"), os.environ, 600))


def test_a_script_that_does_not_end_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("import time\ntime.sleep(600)\n")
    assert "it was stopped after 1 seconds" in str(bisector.bisect_script(str(tmp_path / "script.py"), os.environ, 1))


def test_what_is_found_is_read_behind_a_line_that_does_not_end(tmp_path: Path) -> None:
    script = "import sys\ndef main():\n    sys.stderr.write('compiling ...')\n    return 0\n"
    (tmp_path / "script.py").write_text(script)
    assert "nothing found" in str(bisector.bisect_script(str(tmp_path / "script.py"), os.environ, 600))
