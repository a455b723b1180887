"""In a notebook the session object shows what was compiled, and the source with the result for each line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

import depyf  # noqa: E402
from depyf.dynamo.dump import manifest  # noqa: E402

CELL = """
import torch, depyf

def branching(x):
    y = x.sin()
    if y.sum() > 100:
        y = y * 2
    return y + 1

with depyf.prepare_debug({!r}) as session:
    torch.compile(branching, backend="eager")(torch.ones(3))
"""


@pytest.mark.slow
def test_the_session_is_shown_in_a_kernel(tmp_path: Path) -> None:
    pytest.importorskip("ipykernel")
    pytest.importorskip("jupyter_client")
    from notebook import notebook

    with notebook(dict(os.environ)) as kernel:
        first = kernel.run(CELL.format(str(tmp_path / "dump")))
        assert first.status == "ok", first.printed
        html = kernel.run("session").html
    assert "<b>2</b> graphs" in html
    assert "<b>1</b> graph break<" in html
    assert "graph break: Data-dependent branching" in html
    assert "y = x.sin()" in html


@pytest.mark.usefixtures("fresh_dynamo")
def test_it_can_be_shown_while_it_captures_and_before(tmp_path: Path) -> None:
    session = depyf.prepare_debug(tmp_path)
    assert session._repr_html_() is None
    with session:
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(3))
        assert "<b>1</b> graph<" in str(session._repr_html_())
    assert "<b>1</b> graph<" in str(session._repr_html_())


def test_what_goes_wrong_does_not_reach_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with depyf.prepare_debug(tmp_path) as session:
        pass
    monkeypatch.setattr(manifest, "build_run", lambda *arguments, **more: 1 / 0)
    assert session._repr_html_() is None
