"""Graphs whose texts come again, as of layers that are compiled one by one, are read once."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import List

import pytest

from depyf.report.analysis import graph_links, memory
from depyf.report.model.run import Artifact
from depyf.report.read.reading import load


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
