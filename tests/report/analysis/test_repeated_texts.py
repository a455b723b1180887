"""Graphs and guards whose texts come again, as of layers that are compiled one by one, are read once."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import List, Tuple

import pytest

from depyf.report.analysis import graph_links, memory
from depyf.report.analysis.compilations import Compilations, CompilationStacks
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Artifact, EntryGuard
from depyf.report.read.reading import load
from depyf.torch_trace.events import Event
from depyf.torch_trace.provenance import NODE_STACKS


def graph(size: int, count: int = 60) -> str:
    body = "".join(
        f"        # File: /x/a.py:{n + 1} in f, code: line {n}\n"
        f'        x{n}: "f32[s0]" = torch.ops.aten.sin.default(primals_1)\n'
        for n in range(count)
    )
    return (
        "class GraphModule(torch.nn.Module):\n"
        f'    def forward(self, primals_1: "f32[{size}]"):\n{body}        return (primals_1,)\n'
    )


def run_of(texts: List[str], symbols: List[int], path: Path) -> List[Artifact]:
    """Return the graphs of a log with one compilation for each text, in which ``s0`` has that value."""
    lines = []
    for number, (text, value) in enumerate(zip(texts, symbols)):
        of = {"frame_id": number, "frame_compile_id": 0}
        digest = hashlib.md5(text.encode()).hexdigest()
        lines += [
            json.dumps({"create_symbol": {"symbol": "s0", "val": str(value)}, **of}),
            json.dumps({"aot_forward_graph": {}, **of, "has_payload": digest}),
        ]
        lines[-1] += "\n\t" + text.replace("\n", "\n\t")
    path.write_text("".join(f"V1122 00:00:00.000000 7 torch/a.py:1] {line}\n" for line in lines), encoding="utf-8")
    (loaded,) = load([str(path)])
    return [each for each in loaded.run.artifacts if each.kind == "graph"]


def test_equal_texts_are_read_once_and_others_are_not_taken_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts, symbols = [graph(8), graph(16), *[graph(8)] * 20, graph(8)], [4, 4, *[4] * 20, 5]
    alone = [run_of([text], [value], tmp_path / "a.log")[0] for text, value in zip(texts, symbols)]
    made: List[str] = []
    links_of, read_graph = graph_links.graph_links, memory.read_graph
    monkeypatch.setattr(graph_links, "graph_links", lambda *given: (made.append("links"), links_of(*given))[1])
    monkeypatch.setattr(
        memory, "read_graph", lambda *given, **more: (made.append("memory"), read_graph(*given, **more))[1]
    )
    together = run_of(texts, symbols, tmp_path / "b.log")
    assert [each.links for each in together] == [each.links for each in alone]
    assert [each.memory for each in together] == [each.memory for each in alone]
    assert len({each.memory.peak for each in together if each.memory}) == 3
    assert made.count("memory") == 3
    assert made.count("links") <= 4  # once more where a file came to be known with the first


def guards(line: int, count: int = 40) -> str:
    return "TREE_GUARD_MANAGER:\n" + "".join(
        f"| +- GuardManager: source=L['x{n}'], accessed_by=FrameLocalsGuardAccessor(key='x{n}', framelocals_idx={n})\n"
        f"| | +- TYPE_MATCH: ___check_type_id(L['x{n}'], {n})  # h = x{n}  # here.py:{line} in f\n"
        for n in range(count)
    )


def guards_of(texts: List[str], path: Path, frames: List[int]) -> List[Tuple[EntryGuard, ...]]:
    """Return the guards of a log with one compilation for each text. A compilation whose number is in ``frames`` begins
    in a frame that has the whole path of ``here.py``."""
    lines = []
    for number, text in enumerate(texts):
        of = {"frame_id": number, "frame_compile_id": 0}
        if number in frames:
            stack = [{"filename": "/x/here.py", "line": 3, "name": "f"}]
            lines.append(json.dumps({"dynamo_start": {"stack": stack}, **of}))
        digest = hashlib.md5(text.encode()).hexdigest()
        lines.append(json.dumps({"dynamo_cpp_guards_str": {}, **of, "has_payload": digest}))
        lines[-1] += "\n\t" + text.replace("\n", "\n\t")
    path.write_text("".join(f"V1122 00:00:00.000000 7 torch/a.py:1] {line}\n" for line in lines), encoding="utf-8")
    (loaded,) = load([str(path)])
    return [each.guards for each in loaded.run.compilations]


@pytest.mark.parametrize("frames", [[], [0], [1], [0, 1, 2, 3, 4]], ids=str)
def test_equal_guards_are_read_once_and_others_are_not_taken_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, frames: List[int]
) -> None:
    texts = [guards(5), guards(5), guards(6), guards(5), guards(5)]
    monkeypatch.setattr(CompilationStacks, "identity", lambda self, compile_id: None)
    each_read = guards_of(texts, tmp_path / "a.log", frames)
    monkeypatch.undo()
    read: List[str] = []
    placed = Compilations._placed_guards
    monkeypatch.setattr(
        Compilations, "_placed_guards", lambda self, name, found: (read.append(name), placed(self, name, found))[1]
    )
    assert guards_of(texts, tmp_path / "b.log", frames) == each_read
    assert len({*each_read}) >= (2 if frames else 1)
    assert all(len(each) == 40 for each in each_read)
    assert "4/0" not in read
    assert {"0/0", "2/0", "3/0"} <= {*read}


def test_guards_of_compilations_with_symbols_are_read_each(tmp_path: Path) -> None:
    """A symbol's stack is no text that could be compared."""
    symbol = Event("create_symbol", "0/0", 0, {"symbol": "s0", "val": "4"}, None, 0.0)
    noted = Event(NODE_STACKS, "0/0", 0, {}, "{}", 0.0)
    stacks = CompilationStacks({"0/0": [noted], "1/0": [noted], "2/0": [noted, symbol]}, Sources(), {})
    assert stacks.identity("0/0") == stacks.identity("1/0") is not None
    assert stacks.identity("2/0") is None
