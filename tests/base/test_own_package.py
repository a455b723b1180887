"""Where Python compiles depyf's modules anew in each process, that is said, with the remedy."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from depyf.base.own_package import FOLDER, recompiled_each_time

PROGRAM = "from depyf.base.own_package import recompiled_each_time; print(recompiled_each_time())"


@pytest.mark.parametrize("writes", [True, False])
def test_bytecode_that_is_not_cached_is_noted(tmp_path: Path, *, writes: bool) -> None:
    environment = {
        **os.environ,
        "PYTHONPYCACHEPREFIX": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "" if writes else "1",
        "PYTHONPATH": os.path.dirname(os.path.dirname(FOLDER)),
    }
    said = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    if writes:
        assert said == ["\n", "\n"]
    else:
        assert [f"compileall -q {FOLDER}" in each for each in said] == [True, True]


def test_cached_bytecode_is_no_reason_for_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert recompiled_each_time() == ""
