"""``%load_ext depyf``: cells that are dumped, and questions about calls."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Iterator

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("IPython")

from IPython.core.error import UsageError  # noqa: E402
from IPython.core.interactiveshell import InteractiveShell  # noqa: E402
from IPython.utils.capture import capture_output  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("fresh_dynamo")]

CELL = """
import torch

@torch.compile(backend="eager", dynamic=False)
def scaled(x, n):
    return x * n

def plain(x):
    return x

result = scaled(torch.ones(2), 2)
"""


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.chdir(tmp_path)
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "depyf")
    yield shell
    shell.history_manager.end_session()
    InteractiveShell.clear_instance()


def test_a_cell_is_dumped_and_shown(shell: Any, tmp_path: Path) -> None:
    with capture_output() as captured:
        shell.run_cell_magic("depyf", "dump", CELL)
    assert torch.equal(shell.user_ns["result"], torch.full((2,), 2.0))
    assert "full_code_for_scaled_0.py" in os.listdir(tmp_path / "dump")
    (shown,) = captured.outputs
    assert "1 function compiled as 1 graph" in shown.data["text/html"]
    assert "1 function compiled as 1 graph" in shown.data["text/plain"]


def test_a_cell_that_fails_fails_and_is_dumped_all_the_same(shell: Any, tmp_path: Path) -> None:
    with capture_output() as captured, pytest.raises(ZeroDivisionError):
        shell.run_cell_magic("depyf", "", f"{CELL}\n1 / 0")
    assert len(captured.outputs) == 1
    assert (tmp_path / "depyf_notebook" / "index.html").exists()


def test_the_traceback_of_a_cell_is_shown_once_and_is_the_cells(shell: Any) -> None:
    for cell, name in ((f"{CELL}\n1 / 0", "ZeroDivisionError"), ("def f(:", "SyntaxError")):
        with capture_output() as captured:
            shell.run_cell(f"%%depyf\n{cell}")
        printed = re.sub(r"\x1b\[[\d;]*m", "", captured.stdout + captured.stderr)
        assert printed.count(f"{name}:") == 1, printed
        assert name == "SyntaxError" or "magics.py" not in printed  # IPython lets nobody render a SyntaxError
    with capture_output() as captured:
        shell.run_cell("1 / 0")
    assert captured.stdout.count("division by zero") == 1, "tracebacks of other cells are shown as before"


def test_a_call_is_asked_about_and_not_made(shell: Any) -> None:
    shell.run_cell(CELL)
    shell.user_ns["more"] = {"n": 3}
    answer = shell.run_line_magic("depyf", "why scaled(torch.ones(2), **more)")
    assert "n is 3, and was compiled for 2" in str(answer)
    assert shell.run_line_magic("depyf", "why scaled(torch.ones(2), 2)").hit is not None


@pytest.mark.parametrize("line", ["", "why", "why not", "why 1 +", "what f(x)"])
def test_what_is_no_question_is_a_usage_error(shell: Any, line: str) -> None:
    with pytest.raises(UsageError, match="depyf"):
        shell.run_line_magic("depyf", line)


def test_what_a_wrong_call_raises_arrives(shell: Any) -> None:
    with pytest.raises(NameError, match="missing"):
        shell.run_line_magic("depyf", "why missing(1)")


def test_a_console_shows_the_text_of_an_answer_and_not_its_fields(shell: Any) -> None:
    shell.run_cell(CELL)
    data, _ = shell.display_formatter.format(shell.run_line_magic("depyf", "why scaled(torch.ones(3), 2)"))
    assert data["text/plain"].startswith("scaled (")
    assert "Why(" not in data["text/plain"]
    assert "<table" in data["text/html"]
