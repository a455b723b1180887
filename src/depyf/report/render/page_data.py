"""The data of the page, in one element: for each run its manifest, texts of artifacts, and links between lines.

The data is JSON. Large data is packed (zlib, base64), which makes the page of 24 layers an eighth as large, and costs
no time when it is opened: there is less to read.
"""

from __future__ import annotations

import base64
import dataclasses
import itertools
import json
import zlib
from collections import Counter
from typing import Callable, Dict, FrozenSet, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import replace
from depyf.diagnosis.break_advice import called, described_break
from depyf.diagnosis.guard_explanations import AND, MORE
from depyf.diagnosis.guard_groups import GROUPS, group_of, kind_in_words
from depyf.diagnosis.guard_requirements import required
from depyf.diagnosis.guard_sources import as_written
from depyf.diagnosis.recompile_limits import in_words
from depyf.report.analysis.source_facts import spans_with
from depyf.report.model.counts import counts_by_function, totals_of
from depyf.report.model.headline import ORDER_OF_FINDINGS, headline
from depyf.report.model.manifest import defaults_of_lists, json_parts
from depyf.report.model.phases import parts_in_words
from depyf.report.model.places import places_in
from depyf.report.model.run import Artifact, Place, Run
from depyf.report.model.starts import PARTS
from depyf.report.render.memory_words import for_page
from depyf.torch_trace.json_text import quoted

TextOf = Callable[[Artifact], Optional[str]]

Difference = Mapping[str, object]
"""``{"title": ..., "text": ..., "ranks": {name of a run: text}, "place": (source, line) of the first run or None}``."""

_PACKED_FROM = 500_000
"""The size in bytes from which data is packed; smaller data stays readable in the page."""

_MARKUP = regex(r"<(?=[/!sS])")
_SURROGATE = regex("[\ud800-\udfff]")


def data_element(
    runs: Sequence[Tuple[Run, TextOf]],
    differences: Sequence[Difference],
    names: List[str],
    comparison: Optional[Mapping[str, object]] = None,
) -> Iterator[str]:
    """Yield the element with the id ``data`` that the scripts read, in parts."""
    parts = (printable(part, "\\u{:04x}") for part in _data(runs, differences, names, comparison))
    first: List[str] = []
    size = 0
    for part in parts:
        # Collected up to the limit: data that ends before it stays readable, and is not packed.
        first.append(part)
        size += len(part)
        if size >= _PACKED_FROM:
            break
    else:
        harmless = _MARKUP.sub(r"\\u003c", "".join(first))
        yield f'<script type="application/json" id="data">{harmless}</script>'
        return
    yield '<script type="text/plain" id="data" data-packed>'
    yield from _packed(itertools.chain(first, parts))
    yield "</script>"


def _packed(parts: Iterable[str]) -> Iterator[str]:
    """Yield a text packed by zlib, in base64."""
    compress, flush = _packer()
    left = b""
    for part in parts:
        left += compress(part.encode("utf-8"))
        # base64 turns 3 bytes into 4 letters: parts of a multiple of 3 can be joined.
        whole = len(left) - len(left) % 3
        if whole:
            yield base64.b64encode(left[:whole]).decode("ascii")
            left = left[whole:]
    yield base64.b64encode(left + flush()).decode("ascii")


def _packer() -> Tuple[Callable[[bytes], bytes], Callable[[], bytes]]:
    """Return what packs a part, and what ends the packed text: those of ``isal`` if it is installed (``depyf[fast]``),
    which take an eighth of zlib's time and make a third more."""
    try:
        from isal import isal_zlib

        fast = isal_zlib.compressobj(2)
        return fast.compress, fast.flush
    except synchronous(ImportError, AttributeError):  # not installed, or another module of that name
        packer = zlib.compressobj(5)
        return packer.compress, packer.flush


def _data(
    runs: Sequence[Tuple[Run, TextOf]],
    differences: Sequence[Difference],
    names: List[str],
    comparison: Optional[Mapping[str, object]],
) -> Iterator[str]:
    """Yield the data of the page as JSON, in parts."""
    before = '{"runs":['
    for run, text_of in runs:
        yield before
        yield from _run(run, text_of)
        before = ","
    rest = {
        "differences": list(differences),
        "names": names,
        "comparison": comparison,
        "defaults": defaults_of_lists(),  # what the manifests of the runs omit
    }
    yield f"{'' if runs else before}],{_json(rest)[1:]}"


def _run(run: Run, text_of: TextOf) -> Iterator[str]:
    """Yield a run as JSON: its manifest, without data that is stored once elsewhere (texts) or shorter (stacks,
    links)."""
    run = with_sides(run)
    # Texts, links and the parts of cache keys are not repeated in the manifest.
    bare = replace(
        run,
        artifacts=tuple(replace(each, text=None, links=(), memory=None) for each in run.artifacts),
        totals=totals_of(run),
        cache_lookups=tuple(dataclasses.replace(each, parts=(), settings=None) for each in run.cache_lookups),
        cache_settings=(),
    )
    yield '{"run":'
    yield from json_parts(bare)
    yield ',"texts":'
    yield from _object(_texts(run, text_of))
    # Links name a stack by its number: ``stacks`` is complete once all links are written.
    stacks: Dict[Tuple[Place, ...], int] = {}
    yield ',"links":'
    yield from _object(_links(run, stacks))
    parts = {"stacks": list(stacks), "statements": _statements(run, itertools.chain(places_in(bare), *stacks))}
    parts["part_words"] = PARTS
    parts["headline"] = headline(run)
    parts["limits"] = {
        number: (in_words(each.limits), any(limit.is_close for limit in each.limits))
        for number, each in enumerate(run.functions)
        if each.limits
    }
    parts["order_of_findings"] = ORDER_OF_FINDINGS
    parts["more_changed"] = f"{AND}{MORE}"
    parts["phase_words"] = {name: called(name) for name in sorted({each.name for each in run.phases})}
    parts["time_parts"] = [(words, seconds) for seconds, words, _ in parts_in_words(run)]
    parts["break_titles"] = [described_break(each.reason.split("\n")[0], each.explanation) for each in run.breaks]
    parts["guards"] = _guards(run)
    parts["memory"] = for_page(run)
    parts["counts"] = {root: dataclasses.asdict(each) for root, each in counts_by_function(run).items()}
    yield f",{_json(parts)[1:]}"


def _object(items: Iterable[Tuple[str, str]]) -> Iterator[str]:
    """Yield an object as JSON; its values are JSON."""
    before = "{"
    for name, value in items:
        yield f"{before}{_json(name)}:"
        yield value
        before = ","
    yield "}" if before == "," else "{}"


def _texts(run: Run, text_of: TextOf) -> Iterator[Tuple[str, str]]:
    """Yield the text of each artifact that has one, as JSON."""
    for artifact in {artifact.id: artifact for artifact in run.artifacts}.values():
        text = text_of(artifact)
        if text is None:
            text = artifact.content
        if text is not None:
            yield artifact.id, quoted(text)


def _links(run: Run, stacks: Dict[Tuple[Place, ...], int]) -> Iterator[Tuple[str, str]]:
    """Yield the links of each artifact that has some, as JSON. Stacks are numbered by ``stacks``, which grows."""
    of_names: Dict[Tuple[str, ...], str] = {(): ""}
    linked = {artifact.id: artifact for artifact in run.artifacts if artifact.links}
    repeated = {at for at, count in Counter(id(each.links) for each in linked.values()).items() if count > 1}
    known: Dict[int, str] = {}
    for artifact in linked.values():
        # Layers that are compiled one by one share their links: these are written as text once.
        at = id(artifact.links)
        if at in known:
            yield artifact.id, known[at]
            continue
        rows = []
        for link in artifact.links:
            names = of_names.get(link.names)
            if names is None:
                names = of_names[link.names] = f",{_json(link.names)}"
            rows.append(f"[{link.first},{link.last},{stacks.setdefault(link.places, len(stacks))}{names}]")
        text = f"[{','.join(rows)}]"
        if at in repeated:
            known[at] = text
        yield artifact.id, text


def _guards(run: Run) -> Dict[str, object]:
    """Return the manifest's guards for display: groups, the group of each guard, what it requires (as a number of
    ``requirements``), and sources and kinds in words."""
    requirements: Dict[str, int] = {}
    required_by: Dict[str, List[int]] = {}
    groups: Dict[str, List[int]] = {}
    # Layers that are compiled one by one share their guards.
    of_shared: Dict[int, Tuple[List[int], List[int]]] = {}
    for each in run.compilations:
        known = of_shared.get(id(each.guards))
        if known is None:
            known = of_shared[id(each.guards)] = (
                [requirements.setdefault(required(guard.text), len(requirements)) for guard in each.guards],
                [group_of(guard.kind, guard.source, guard.text) for guard in each.guards],
            )
        required_by[each.compile_id], groups[each.compile_id] = known
    every = {id(each.guards): each.guards for each in run.compilations}.values()
    sources = {guard.source for guards in every for guard in guards}
    written = {source: as_written(source) for source in sorted(sources)}
    kinds = {kind: kind_in_words(kind) for kind in dict.fromkeys(guard.kind for guards in every for guard in guards)}
    return {
        "groups": [(group.name, group.about) for group in GROUPS],
        "of": groups,
        "required": required_by,
        "requirements": list(requirements),
        "sources": {source: text for source, text in written.items() if source != text},
        "kinds": {kind: words for kind, words in kinds.items() if words},
    }


def _statements(run: Run, places: Iterable[Place]) -> Dict[int, List[Tuple[int, int]]]:
    """Return the first and last lines of multi-line statements with one of the places, by source: a fact about one line
    applies to all."""
    lines: Dict[int, Set[int]] = {}
    for source, line in places:
        lines.setdefault(source, set()).add(line)
    return {index: spans_with(source.text or "", lines.get(index, ())) for index, source in enumerate(run.sources)}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def printable(text: str, form: str = "\ufffd") -> str:
    """Return the text without lone surrogates, which can't be written to a file."""
    try:
        text.encode("utf-8")
    except synchronous(UnicodeError):
        pass
    else:
        return text
    return _SURROGATE.sub(lambda match: form.format(ord(match.group())), text)


def with_sides(run: Run) -> Run:
    """Return the run with ``backward`` set for the later graphs of compilations that have a forward and a backward one.
    Inductor's passes run on both alike and keep most names of nodes; a graph is on the side that it has more names of.
    Joint graphs are both, and earlier graphs are neither."""
    known: Dict[Optional[str], List[Artifact]] = {}
    for each in run.artifacts:
        if each.kind == "graph" and each.backward is not None:
            known.setdefault(each.compile_id, []).append(each)
    return replace(run, artifacts=tuple(_with_side(each, known) for each in run.artifacts))


def _with_side(artifact: Artifact, known: Dict[Optional[str], List[Artifact]]) -> Artifact:
    graphs = known.get(artifact.compile_id, [])
    if artifact.kind != "graph" or artifact.backward is not None or len({each.backward for each in graphs}) < 2:
        return artifact
    if artifact.order <= min(each.order for each in graphs) or "joint" in artifact.stage.lower():
        return artifact
    names = _names(artifact)
    shared: List[Tuple[int, bool]] = [(len(names & _names(each)), bool(each.backward)) for each in graphs]
    most, side = max(shared)
    return replace(artifact, backward=side) if most else artifact


def _names(artifact: Artifact) -> FrozenSet[str]:
    return frozenset(name for link in artifact.links for name in link.names)
