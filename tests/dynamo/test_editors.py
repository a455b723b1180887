"""debugpy, driven as an editor drives it, stops in the dumped files with the tensors in sight, and steps there.

``tools/show/show_debugpy_session.py`` prints the transcript of such a session.
"""

from __future__ import annotations

import json
import os
import re
import sysconfig
from pathlib import Path
from typing import Any, Dict, List

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")
pytest.importorskip("debugpy")

from dap import Editor, launched  # noqa: E402
from stops import CAPTURED, LISTING, STOPS, Stop  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
STEPPED = str(ROOT / "tests" / "programs" / "stepped.py")


@pytest.fixture
def environment(program_environment: Dict[str, str]) -> Dict[str, str]:
    """depyf and PyTorch are libraries to the debugger, as they are where they are installed: it skips their files."""
    libraries = [str(ROOT / "src"), *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib"))]
    return {**program_environment, "LIBRARY_ROOTS": os.pathsep.join(libraries)}


def visit(editor: Editor, dump: Path, stops: List[Stop], step_from: Stop) -> List[str]:
    """Go on from stop to stop and look; from one of them a step at first. Answers the names of the threads."""
    threads = []
    for stop in stops:
        stopped = editor.stopped()
        assert (Path(stopped.path), stopped.line) == stop.place(dump), editor.story("another place")
        assert stop.value in editor.variables(stopped)[stop.variable], editor.story("another value")
        threads.append(stopped.thread_name)
        if stop is step_from:
            after = editor.step("next", stopped)
            assert (after.path, after.line) == (stopped.path, stopped.line + 1)
            stopped = after
        editor.resume("continue", stopped)
    return threads


@pytest.mark.parametrize(
    ("backend", "thread"),
    [
        ("aot_eager", "--autograds-thread"),
        pytest.param("inductor", None, marks=[pytest.mark.inductor, pytest.mark.slow]),
    ],
)
def test_an_editor_stops_forward_and_backward(
    environment: Dict[str, str], tmp_path: Path, backend: str, thread: Any
) -> None:
    program = [STEPPED, backend, str(tmp_path), *([thread] if thread else [])]
    with launched(program, environment=environment, show=[str(tmp_path)]) as editor:
        editor.request("configurationDone")
        # The pause of ``depyf.debug()`` is at that line of the user's file; what was dumped until here is there to see.
        pause = editor.stopped()
        assert pause.path == STEPPED
        assert "tensor([1., 1., 1.]" in editor.variables(pause)["a"]
        for stop in STOPS[backend]:
            path, line = stop.place(tmp_path)
            editor.set_breakpoints(str(path), [line])
        editor.resume("continue", pause)
        threads = visit(editor, tmp_path, STOPS[backend], step_from=STOPS[backend][-1])
        assert editor.finished() == 0
    assert "GRADIENT [0.5, 0.5, 0.5]" in "".join(editor.output)
    assert (threads[-1] != "MainThread") == bool(thread)


@pytest.mark.slow
def test_an_editor_stops_in_the_listing_of_a_frame_that_is_not_decompiled(
    run_program: Any, environment: Dict[str, str], tmp_path: Path
) -> None:
    # The breakpoints are set before the program starts, in the files of a run before.
    run_program("stepped.py", "eager", tmp_path, "--listing", stdin="c\n")
    stops = [CAPTURED, LISTING]
    with launched([STEPPED, "eager", str(tmp_path), "--listing"], environment=environment) as editor:
        for stop in stops:
            path, line = stop.place(tmp_path)
            editor.set_breakpoints(str(path), [line])
        editor.request("configurationDone")
        visit(editor, tmp_path, [LISTING, CAPTURED], step_from=LISTING)
        assert editor.stopped().path == STEPPED


LAUNCHED = """\
import torch

@torch.compile(backend="eager")
def doubled(x):
    return x + x

print(doubled(torch.ones(2)))
print(doubled(torch.ones(2)))
"""


@pytest.mark.slow
def test_a_program_is_launched_under_depyf_run_as_the_documentation_says(
    environment: Dict[str, str], tmp_path: Path
) -> None:
    """The launch.json of docs/editors.md: ``"module": "depyf"`` in the place of the program."""
    text = (ROOT / "docs" / "editors.md").read_text()
    (configuration,) = json.loads(re.findall(r"```json\n(.*?)```", text, re.DOTALL)[0])["configurations"]
    program, dump = tmp_path / "train.py", tmp_path / "dump"
    program.write_text(LAUNCHED)
    names = {"${file}": str(program), "${workspaceFolder}": str(tmp_path)}
    words = [str(each) for each in configuration["args"]]
    for name, value in names.items():
        words = [word.replace(name, value) for word in words]
    assert words[0] == "run"
    options = {"program": None, "module": configuration["module"], "args": words, "justMyCode": True}
    with launched([""], environment=environment, options=options) as editor:
        editor.set_breakpoints(str(program), [8])
        editor.request("configurationDone")
        stop = editor.stopped()
        assert (stop.path, stop.line) == (str(program), 8)
        transformed = dump / "__transformed_code_0_for_doubled.py"
        (line,) = (n for n, text in enumerate(transformed.read_text().splitlines(), 1) if "__compiled_fn" in text)
        editor.set_breakpoints(str(transformed), [line])
        editor.resume("continue", stop)
        stop = editor.stopped()
        assert (stop.path, stop.line) == (str(transformed), line)
        assert "x" in editor.variables(stop)
        editor.resume("continue", stop)
        assert editor.finished() == 0
    assert "tensor([2., 2.])" in "".join(editor.output)
    manifest = json.loads((dump / "manifest.json").read_text())
    assert [each["qualified_name"] for each in manifest["functions"]] == ["doubled"], "not what the editor calls"
