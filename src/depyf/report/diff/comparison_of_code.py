"""What changed in the code that one compilation made: its graphs, stage by stage, and its kernels."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Tuple

from depyf.messages import listed
from depyf.report.diff.graph_text import plain_graph
from depyf.report.diff.matching import Side
from depyf.report.diff.unified import unified
from depyf.report.model.run import Artifact, Compilation, Kernel
from depyf.torch_trace.stages import Stage

Diffs = Tuple[Tuple[str, Tuple[str, ...]], ...]

_LAUNCHES = 4

StageKey = Tuple[str, int]
"""The stage, and which of its graphs."""


def changed_graphs(before: Side, one: Compilation, after: Side, other: Compilation) -> Diffs:
    """Return the stages of both runs whose graphs differ, the captured graph first, then from Dynamo down, with the
    changes. Line numbers of the user's files, and comments, do not count."""
    then, now = _graphs(before, one.compile_id), _graphs(after, other.compile_id)
    found = []
    for key in sorted(then, key=lambda each: each[0] != Stage.CAPTURED.value):
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


def changed_kernels(before: Side, one: Compilation, after: Side, other: Compilation) -> Tuple[str, str, Diffs]:
    """Return words for kernels that are new, removed or changed, a line for each that is launched in another way, and
    the changes; all empty if there are none."""
    then, now = _kernels(before, one.compile_id), _kernels(after, other.compile_id)
    new = [name for name in now if name not in then]
    gone = [name for name in then if name not in now]
    diffs = tuple(
        (name, tuple(unified(then[name], now[name], f"{name} before", f"{name} now")))
        for name in then
        if name in now and then[name] != now[name]
    )
    launches = _changed_launches(before, one, after, other)
    words: List[str] = []
    for names, what in ((new, "new"), (gone, "gone"), ([name for name, _ in diffs], "changed")):
        if names:
            words.append(f"{what}: {listed(names, 4)}")
    lines = [f"launch of {name}: {text}" for name, text in launches[:_LAUNCHES]]
    if len(launches) > _LAUNCHES:
        lines.append(f"launches of {len(launches) - _LAUNCHES} more")
    if launches and not words:
        words.append("launched in another way")
    return (f"kernels {'; '.join(words)}" if words else ""), "\n".join(lines), diffs


def _changed_launches(before: Side, one: Compilation, after: Side, other: Compilation) -> List[Tuple[str, str]]:
    """Return the kernels of both runs that are launched in another way, each with what is different."""
    then, now = _launches(before, one.compile_id), _launches(after, other.compile_id)
    found = []
    for name in then:
        both = then[name], now.get(name, {})
        names = [fact for fact in both[0] if fact in both[1] and both[0][fact] != both[1][fact]]
        if names:
            found.append((name, ", ".join(f"{fact} {both[0][fact]} before, {both[1][fact]} now" for fact in names)))
    return found


def _launches(side: Side, compile_id: str) -> Dict[str, Mapping[str, str]]:
    return {_name(each): each.launch for each in side.run.kernels if each.compile_id == compile_id and each.launch}


def _kernels(side: Side, compile_id: str) -> Dict[str, str]:
    """Return the code of each kernel by its name, and how often each kernel of a library is called."""
    texts = {artifact.id: (side.text_of(artifact) or "").splitlines() for artifact in side.stages(compile_id)}
    found: Dict[str, str] = {}
    for kernel in side.run.kernels:
        if kernel.artifact in texts:
            found[_name(kernel)] = _code(kernel, texts[kernel.artifact])
    return found


def _name(kernel: Kernel) -> str:
    return f"{kernel.name} (backward)" if kernel.backward else kernel.name


def _code(kernel: Kernel, lines: List[str]) -> str:
    """Return code without comments and ``#include`` lines: they name places of this machine and of the user's files."""
    if not kernel.first:
        return f"called {len(kernel.calls)} times"
    code = lines[kernel.first - 1 : kernel.last]
    return "\n".join(line.rstrip() for line in code if line.strip() and not line.lstrip().startswith(("#", "//")))
