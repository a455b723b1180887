"""In a Jupyter kernel ``depyf.debug()`` pauses: in IPython's pdb, or in the visual debugger when that is on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Dict

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")
pytest.importorskip("ipykernel")
pytest.importorskip("jupyter_client")
pytest.importorskip("debugpy")

from dap import Editor  # noqa: E402
from notebook import Notebook, notebook  # noqa: E402
from stops import STOPS  # noqa: E402

FIRST = """
import torch, depyf
from stepped import toy
compiled = torch.compile(toy, backend="aot_eager")
a, b = torch.ones(3, requires_grad=True), torch.ones(3)
with depyf.prepare_debug({!r}):
    compiled(a, b).sum().backward()
"""
SECOND = """
a.grad = None
with depyf.debug():
    compiled(a, b).sum().backward()
print("GRADIENT", a.grad.tolist())
"""


def with_pdb(kernel: Notebook, dump: Path) -> None:
    """Breakpoints are typed where the cell asks for input, and stop forward and backward."""
    stops = STOPS["aot_eager"]
    places = [stop.place(dump) for stop in stops]
    visit = [command for stop in stops for command in ("c", f"p {stop.variable}")]
    commands = ["p a", *(f"tbreak {path}:{line}" for path, line in places), *visit, "c"]
    left = iter(commands)
    shown = []

    def answer(printed: str) -> str:
        shown.append(re.sub(r"\x1b\[[0-9;]*m", "", printed))  # without colours
        return next(left)

    result = kernel.run(SECOND, answer)
    assert result.status == "ok", result.printed
    assert result.prompts == ["ipdb> "] * len(commands)
    assert "with depyf.debug():" in shown[0]
    assert "tensor([1., 1., 1.]" in shown[1]
    for position, stop in enumerate(stops):
        assert stop.place(dump)[0].name in shown[2 + len(stops) + 2 * position]
        assert stop.value in shown[3 + len(stops) + 2 * position]
    assert result.printed.endswith("GRADIENT [0.25, 0.25, 0.25]\n")


def with_nobody_to_type(kernel: Notebook) -> None:
    """What to do is said, and nothing stays switched off."""
    result = kernel.run(SECOND)
    assert result.error.startswith("RuntimeError: depyf.debug() pauses in a debugger that reads commands")
    assert "PYTHONBREAKPOINT=0" in result.error
    after = kernel.run("print(torch.compile(lambda x: x + 1, backend=lambda m, _: print('compiled') or m)(b)[0])")
    assert after.printed == "compiled\ntensor(2.)\n"


def with_the_visual_debugger(kernel: Notebook, dump: Path) -> None:
    """The pause and the breakpoints are those of the debugger's panel."""
    editor = Editor(kernel, [str(dump)])
    editor.request("initialize", {"clientID": "depyf's tests", "adapterID": "", "pathFormat": "path"})
    attached = editor.send("attach")
    editor.event("initialized")
    stops = STOPS["aot_eager"]
    for path, line in (stop.place(dump) for stop in stops):
        editor.set_breakpoints(str(path), [line])
    editor.request("configurationDone")
    editor.response(attached)
    cell = kernel.start(SECOND)
    pause = editor.stopped()
    assert "tensor([1., 1., 1.]" in editor.variables(pause)["a"]
    editor.resume("continue", pause)
    for stop in stops:
        stopped = editor.stopped()
        assert (Path(stopped.path), stopped.line) == stop.place(dump), editor.story("another place")
        assert stop.value in editor.variables(stopped)[stop.variable], editor.story("another value")
        if stop is stops[-1]:
            after = editor.step("next", stopped)
            assert (after.path, after.line) == (stopped.path, stopped.line + 1)
        editor.resume("continue", stopped)
    result = kernel.finish(cell)
    assert (result.status, result.printed.splitlines()[-1]) == ("ok", "GRADIENT [0.25, 0.25, 0.25]")


def test_a_notebook_pauses_and_stops_at_breakpoints(
    program_environment: Dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One kernel for all: starting it, and compiling, is what takes the time.
    for variable in ("JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    dump = tmp_path / "dump"
    environment: Dict[str, Any] = {**program_environment, "IPYTHONDIR": str(tmp_path / "IPYTHONDIR")}
    with notebook(environment) as kernel:
        assert kernel.run(FIRST.format(str(dump))).status == "ok"
        with_pdb(kernel, dump)
        with_nobody_to_type(kernel)
        with_the_visual_debugger(kernel, dump)
