"""The work of a session, counted in executed lines: times are unreliable on a busy machine."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any, Counter, Dict, List

import pytest
import torch
from torch_versions import IS_OLD

import depyf
from depyf.decompiler.normal import lowering
from depyf.decompiler.pipeline import attempts
from depyf.decompiler.pipeline.attempts import Attempts
from depyf.dynamo.capture import graphs
from depyf.report.analysis import compilations

ENTERED = """
import dataclasses, gc, sys
import torch
made = []
standard = dataclasses._process_class
def counted(cls, init, *args, **kwargs):
    made.extend([cls] if init and cls.__module__.startswith("depyf") else [])
    return standard(cls, init, *args, **kwargs)
dataclasses._process_class = counted
import depyf
before = sum(name.startswith("depyf") for name in sys.modules)
passes = []
gc.callbacks.append(lambda phase, info: passes.append(phase))
depyf.prepare_debug
print(before, sum(name.startswith("depyf") for name in sys.modules), len(made), passes.count("start"))
"""


def test_entering_a_session_imports_no_more_than_it_did() -> None:
    run = subprocess.run([sys.executable, "-c", ENTERED], capture_output=True, text=True, timeout=120, check=True)
    before, after, standard_dataclasses, passes_of_collector = map(int, run.stdout.split())
    assert before < 10  # import depyf
    assert after <= 418  # the page is made of 70 of them when the session ends
    assert standard_dataclasses <= 12  # each takes half a millisecond
    assert passes_of_collector <= 2  # some fifty, where the collector runs while modules are imported


@pytest.mark.skipif(IS_OLD, reason="this PyTorch keeps no modules on the stack while it reads their parameters")
def test_parameters_of_modules_are_decompiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Dynamo keeps modules on the stack while it reads their parameters: as variables they have to be deleted, which
    the first attempt foresees."""
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
    assert work == {"attempt": 1, "_tree": 1}
    assert len(lowered) == 2  # the original once, and the candidate, although it is compared with and without hints


@pytest.mark.skipif(IS_OLD, reason="this PyTorch reports the length of a dict, and not its keys")
def test_keys_are_read_for_guards_on_keys_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each recompilation reports every entry that failed, so 60 of them report 1,770 guards."""
    read: List[str] = []
    original = compilations.keys_of
    monkeypatch.setattr(compilations, "keys_of", lambda subject, each: read.append(subject) or original(subject, each))

    def keyed(x: torch.Tensor, factor: str, options: Dict[str, int]) -> torch.Tensor:
        return x * float(factor) + len(options)

    torch._dynamo.reset()
    with depyf.prepare_debug(str(tmp_path)):
        compiled = torch.compile(keyed, backend="eager")
        for number in range(4):
            compiled(torch.ones(2), str(number), {})
        assert not read
        compiled(torch.ones(2), "3", {"a": 1})
    assert set(read) == {"options"}


def test_graphs_are_printed_and_compiled_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """AOTAutograd boxes the arguments of the graph that it has printed; the file has them without a second print."""
    monkeypatch.setattr(graphs, "readable_text", lambda module: pytest.fail("a graph was printed again"))
    monkeypatch.setattr(graphs, "without_imports", lambda text: pytest.fail("a text was compiled again"))

    def halved(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x / y).sin()

    torch._dynamo.reset()
    with depyf.prepare_debug(str(tmp_path)):
        torch.compile(halved, backend="aot_eager")(torch.ones(2), torch.ones(2))
    (file,) = tmp_path.glob("__compiled_fn_*.Forward_graph.0.py")
    assert "This file is what runs" in file.read_text()


def test_the_collector_does_not_run_while_files_are_made(tmp_path: Path) -> None:
    """What is made for a file is alive until the file is written: each pass of the collector goes through all of it."""
    seen: List[str] = []

    def note(phase: str, info: Dict[str, int]) -> None:
        frame = sys._getframe(1)
        while phase == "start" and frame.f_back is not None:
            path = frame.f_code.co_filename
            if "depyf/dynamo/" in path and not path.endswith("run_callback.py"):  # its ``_write`` writes no file
                seen.append(frame.f_code.co_name)
            frame = frame.f_back

    def doubled(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    torch._dynamo.reset()
    threshold = gc.get_threshold()
    gc.callbacks.append(note)
    try:
        for enabled in (True, False):
            torch._dynamo.reset()
            with depyf.prepare_debug(str(tmp_path)):
                torch.compile(doubled, backend="aot_eager")(torch.ones(2, requires_grad=True)).sum().backward()
                gc.set_threshold(50)
                gc.enable() if enabled else gc.disable()
            assert gc.isenabled() == enabled
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*threshold)
        gc.enable()
    assert not {"full_code", "_write", "run_from_files", "capture_transformed"}.intersection(seen)
