"""What a session works, counted: times say nothing on a busy machine."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, Counter, List

import pytest
import torch

import depyf
from depyf.normal import lowering
from depyf.pipeline import attempts
from depyf.pipeline.attempts import Attempts

ENTERED = """
import dataclasses, sys
import torch
made = []
standard = dataclasses._process_class
def counted(cls, init, *args, **kwargs):
    made.extend([cls] if init and cls.__module__.startswith("depyf") else [])
    return standard(cls, init, *args, **kwargs)
dataclasses._process_class = counted
import depyf
before = sum(name.startswith("depyf") for name in sys.modules)
depyf.prepare_debug
print(before, sum(name.startswith("depyf") for name in sys.modules), len(made))
"""


def test_entering_a_session_imports_no_more_than_it_did() -> None:
    run = subprocess.run([sys.executable, "-c", ENTERED], capture_output=True, text=True, timeout=120, check=True)
    before, after, standard_dataclasses = map(int, run.stdout.split())
    assert before < 10  # import depyf
    assert after <= 370
    assert standard_dataclasses <= 30  # each takes half a millisecond


def test_parameters_of_modules_are_decompiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Dynamo keeps modules on the stack while it reads their parameters: as variables they have to be deleted, which
    takes a second attempt. That one begins where the first ended."""
    work: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            work[name] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, counted)

    count(Attempts, "attempt")
    count(Attempts, "_tree")
    lowered: List[Any] = []
    monkeypatch.setattr(attempts, "lower", lambda code: lowered.append(code) or lowering.lower(code))
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=10, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    model = torch.compile(transformers.BertForMaskedLM(config), backend="eager")
    torch._dynamo.reset()
    with depyf.prepare_debug(str(tmp_path)):
        model(input_ids=torch.ones(1, 4, dtype=torch.long))
    (file,) = tmp_path.glob("__transformed_code_*.py")
    assert "proved" in file.read_text()
    assert "del " in file.read_text()
    assert work == {"attempt": 2, "_tree": 1}
    # The original once, and each candidate once, although the second is compared with and without hints.
    assert len(lowered) == 3
