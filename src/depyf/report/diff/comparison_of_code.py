"""What changed in the code that one compilation made: its graphs, stage by stage, and its kernels."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from depyf.report.diff.graph_text import plain_graph
from depyf.report.diff.matching import Side
from depyf.report.diff.unified import unified
from depyf.report.model.run import Artifact, Compilation, Kernel

Diffs = Tuple[Tuple[str, Tuple[str, ...]], ...]

StageKey = Tuple[str, int]
"""The stage, and which of its graphs."""


def changed_graphs(before: Side, one: Compilation, after: Side, other: Compilation) -> Diffs:
    """The stages that both have and whose graphs are not the same, from Dynamo down, with the changes.

    Where lines stand in the user's files, and comments, do not count.
    """
    then, now = _graphs(before, one.compile_id), _graphs(after, other.compile_id)
    found = []
    for key in then:
        texts = _text(before, then[key]), _text(after, now.get(key))
        if texts[0] is not None and texts[1] is not None and texts[0] != texts[1]:
            name = key[0] + (f" {key[1]}" if key[1] else "")
            found.append((name, tuple(unified(texts[0], texts[1], f"{name} before", f"{name} now"))))
    return tuple(found)


def _graphs(side: Side, compile_id: str) -> Dict[StageKey, Artifact]:
    found: Dict[StageKey, Artifact] = {}
    for artifact in side.stages(compile_id):
        if artifact.kind == "graph":
            number = sum(stage == artifact.stage for stage, _ in found)
            found[artifact.stage, number] = artifact
    return found


def _text(side: Side, artifact: Optional[Artifact]) -> Optional[str]:
    text = None if artifact is None else side.text_of(artifact)
    return None if text is None else plain_graph(text)


def changed_kernels(before: Side, one: Compilation, after: Side, other: Compilation) -> Tuple[str, Diffs]:
    """In words which kernels are new, gone or other, and the changes; empty when none are."""
    then, now = _kernels(before, one.compile_id), _kernels(after, other.compile_id)
    new = [name for name in now if name not in then]
    gone = [name for name in then if name not in now]
    diffs = tuple(
        (name, tuple(unified(then[name], now[name], f"{name} before", f"{name} now")))
        for name in then
        if name in now and then[name] != now[name]
    )
    words: List[str] = []
    for names, what in ((new, "new"), (gone, "gone"), ([name for name, _ in diffs], "changed")):
        if names:
            words.append(f"{what}: {', '.join(names)}")
    return (f"kernels {'; '.join(words)}" if words else ""), diffs


def _kernels(side: Side, compile_id: str) -> Dict[str, str]:
    """The code of each kernel by its name, and how often each kernel of a library is called."""
    texts = {artifact.id: (side.text_of(artifact) or "").splitlines() for artifact in side.stages(compile_id)}
    found: Dict[str, str] = {}
    for kernel in side.run.kernels:
        if kernel.artifact in texts:
            found[_name(kernel)] = _code(kernel, texts[kernel.artifact])
    return found


def _name(kernel: Kernel) -> str:
    return f"{kernel.name} (backward)" if kernel.backward else kernel.name


def _code(kernel: Kernel, lines: List[str]) -> str:
    """Without comments and ``#include`` lines: they name places of this machine and of the user's files."""
    if not kernel.first:
        return f"called {len(kernel.calls)} times"
    code = lines[kernel.first - 1 : kernel.last]
    return "\n".join(line.rstrip() for line in code if line.strip() and not line.lstrip().startswith(("#", "//")))
