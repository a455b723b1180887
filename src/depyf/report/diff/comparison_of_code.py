"""Compare what one compilation made in two runs: its graphs, stage by stage, its kernels, and the answers of caches."""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.base.messages import listed
from depyf.report.diff.graph_text import plain_graph
from depyf.report.diff.matching import ComparedRun
from depyf.report.diff.unified import unified
from depyf.report.model.cache_lookup import CacheLookup, ChangedPart, changed_in_words
from depyf.report.model.run import Artifact, Compilation, ModuleKernel
from depyf.torch_trace.cache_lookups import differing
from depyf.torch_trace.stages import Stage

Diffs = Tuple[Tuple[str, Tuple[str, ...]], ...]

_LAUNCHES = 4

StageKey = Tuple[str, int]
"""The stage, and which of its graphs."""


def changed_graphs(before: ComparedRun, one: Compilation, after: ComparedRun, other: Compilation) -> Diffs:
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


def _graphs(side: ComparedRun, compile_id: str) -> Dict[StageKey, Artifact]:
    found: Dict[StageKey, Artifact] = {}
    for artifact in side.stages(compile_id):
        if artifact.kind == "graph":
            number = sum(stage == artifact.stage for stage, _ in found)
            found[artifact.stage, number] = artifact
    return found


def _text(side: ComparedRun, artifact: Optional[Artifact]) -> Optional[str]:
    text = None if artifact is None else side.text_of(artifact)
    return None if text is None else plain_graph(text)


def changed_kernels(
    before: ComparedRun, one: Compilation, after: ComparedRun, other: Compilation
) -> Tuple[str, str, Diffs]:
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


def _changed_launches(
    before: ComparedRun, one: Compilation, after: ComparedRun, other: Compilation
) -> List[Tuple[str, str]]:
    """Return the kernels of both runs that are launched in another way, each with what is different."""
    then, now = _launches(before, one.compile_id), _launches(after, other.compile_id)
    found = []
    for name in then:
        both = then[name], now.get(name, {})
        # Facts that both sides have: a version of PyTorch may write fewer.
        names = [fact for fact in both[0] if fact in both[1] and both[0][fact] != both[1][fact]]
        if names:
            found.append((name, ", ".join(f"{fact} {both[0][fact]} before, {both[1][fact]} now" for fact in names)))
    return found


def _launches(side: ComparedRun, compile_id: str) -> Dict[str, Mapping[str, str]]:
    return {_name(each): each.launch for each in side.run.kernels if each.compile_id == compile_id and each.launch}


def _kernels(side: ComparedRun, compile_id: str) -> Dict[str, str]:
    """Return the code of each kernel by its name, and how often each kernel of a library is called."""
    texts = {artifact.id: (side.text_of(artifact) or "").splitlines() for artifact in side.stages(compile_id)}
    found: Dict[str, str] = {}
    for kernel in side.run.kernels:
        if kernel.artifact in texts:
            found[_name(kernel)] = _code(kernel, texts[kernel.artifact])
    return found


def _name(kernel: ModuleKernel) -> str:
    return f"{kernel.name} (backward)" if kernel.backward else kernel.name


def _code(kernel: ModuleKernel, lines: List[str]) -> str:
    """Return code without comments and ``#include`` lines: they name places of this machine and of the user's files."""
    if not kernel.first:
        return f"called {len(kernel.calls)} times"
    code = lines[kernel.first - 1 : kernel.last]
    return "\n".join(line.rstrip() for line in code if line.strip() and not line.lstrip().startswith(("#", "//")))


_PARTS = 8


def compared_lookups(
    before: ComparedRun, after: ComparedRun, matched: Sequence[Tuple[str, Compilation, Compilation]]
) -> Tuple[str, ...]:
    """Return a line for each look-up whose answer or key is another one; ``matched`` are compilations with a title."""
    then, now = _by_compile_id(before), _by_compile_id(after)
    found: List[str] = []
    for title, one, other in matched:
        for first, second in _pairs(then.get(one.compile_id, []), now.get(other.compile_id, [])):
            line = _line(before, first, after, second)
            if line:
                found.append(f"{title}: {line}")
    return tuple(found)


def _by_compile_id(side: ComparedRun) -> Dict[str, List[CacheLookup]]:
    found: Dict[str, List[CacheLookup]] = {}
    for each in side.run.cache_lookups:
        if each.compile_id is not None:
            found.setdefault(each.compile_id, []).append(each)
    return found


def _pairs(one: Sequence[CacheLookup], other: Sequence[CacheLookup]) -> Iterator[Tuple[CacheLookup, CacheLookup]]:
    """Yield the look-ups of both runs in the same cache, for the same direction, in their order."""
    for kind in dict.fromkeys((each.cache, each.backward) for each in one):
        both = ([each for each in side if (each.cache, each.backward) == kind] for side in (one, other))
        yield from zip(*both)


def _line(before: ComparedRun, one: CacheLookup, after: ComparedRun, other: CacheLookup) -> str:
    """Return words for two look-ups, empty if answer and key are the same."""
    parts = [ChangedPart(*each) for each in differing(_parts(before, one), _parts(after, other))]
    known = bool(one.parts and other.parts)
    if one.state == other.state and not (known and parts):
        return ""
    states = f"{one.state} before, {other.state} now" if one.state != other.state else f"{other.state} in both"
    which = other.cache + (", backward" if other.backward else "")
    why = f" ({other.reason})" if other.reason and not parts else ""
    if not known:
        return f"{which}: {states}{why}"
    keys = f"differ in{changed_in_words(parts, _PARTS)}" if parts else "are equal"
    return f"{which}: {states}{why}; the keys {keys}"


def _parts(side: ComparedRun, lookup: CacheLookup) -> Tuple[str, ...]:
    settings = side.run.cache_settings
    known = lookup.settings is not None and 0 <= lookup.settings < len(settings)
    return lookup.parts + (settings[lookup.settings] if known and lookup.settings is not None else ())
