"""The data of the page, as one element of it: for each run its manifest, texts of artifacts, and links between lines.

All of it is JSON. Large data is packed (zlib, base64), which makes the page of 24 layers an eighth as large, and costs
no time when it is opened: there is less to read.
"""

from __future__ import annotations

import ast
import base64
import dataclasses
import json
import zlib
from collections import deque
from typing import Callable, Deque, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.asynchronous import synchronous
from depyf.bytecode.parsing import parse
from depyf.diagnosis.break_advice import called
from depyf.diagnosis.guard_groups import GROUPS, group_of, kind_in_words
from depyf.diagnosis.guard_sources import as_written
from depyf.lazy_pattern import re_compile
from depyf.report.model.counts import counts_by_function, totals_of
from depyf.report.model.headline import headline
from depyf.report.model.manifest import to_json
from depyf.report.model.run import Artifact, Place, Run
from depyf.report.model.sides import with_sides

TextOf = Callable[[Artifact], Optional[str]]

Difference = Mapping[str, object]
"""``{"title": ..., "text": ..., "ranks": {name of a run: text}, "place": (source, line) of the first run or None}``."""

_PACKED_FROM = 500_000
"""The size in bytes from which data is packed; smaller data stays readable in the page."""

_MARKUP = re_compile(r"<(?=[/!sS])")
_SURROGATE = re_compile("[\ud800-\udfff]")


def data_element(
    runs: Sequence[Tuple[Run, TextOf]], differences: Sequence[Difference], names: List[str], comparison: str
) -> str:
    """The element with the id ``data`` that the scripts read."""
    packed = ",".join(_packed(run, text_of) for run, text_of in runs)
    rest = f'"differences":{_json(list(differences))},"names":{_json(names)},"comparison":{_json(comparison)}'
    text = printable(f'{{"runs":[{packed}],{rest}}}', "\\u{:04x}")
    if len(text) < _PACKED_FROM:
        harmless = _MARKUP.sub(r"\\u003c", text)
        return f'<script type="application/json" id="data">{harmless}</script>'
    small = base64.b64encode(zlib.compress(text.encode("utf-8"), 5)).decode("ascii")
    return f'<script type="text/plain" id="data" data-packed>{small}</script>'


def _packed(run: Run, text_of: TextOf) -> str:
    """A run as JSON: its manifest, without data that is stored separately once (texts) or in a shorter form (stacks,
    links).
    """
    run = with_sides(run)
    texts: Dict[str, str] = {}
    links: Dict[str, List[List[object]]] = {}
    stacks: Dict[Tuple[Place, ...], int] = {}
    for artifact in run.artifacts:
        text = text_of(artifact)
        if text is None:
            text = artifact.text
        if text is not None:
            texts[artifact.id] = text
        if artifact.links:
            links[artifact.id] = [
                [link.first, link.last, stacks.setdefault(link.places, len(stacks))]
                + ([list(link.names)] if link.names else [])
                for link in artifact.links
            ]
    bare = dataclasses.replace(
        run,
        artifacts=tuple(dataclasses.replace(each, text=None, links=()) for each in run.artifacts),
        totals=totals_of(run),
    )
    parts = {"texts": texts, "links": links, "stacks": list(stacks), "statements": _statements(run)}
    parts["headline"] = headline(run)
    parts["phase_words"] = {name: called(name) for name in sorted({each.name for each in run.phases})}
    parts["guards"] = _guards(run)
    parts["counts"] = {root: dataclasses.asdict(each) for root, each in counts_by_function(run).items()}
    return f'{{"run":{to_json(bare)},{_json(parts)[1:]}'


def _guards(run: Run) -> Dict[str, object]:
    """The manifest's guards for display: groups, the group of each guard, and sources and kinds in words."""
    sources = {guard.source for each in run.compilations for guard in each.guards}
    written = {source: as_written(source) for source in sorted(sources)}
    kinds = {guard.kind: kind_in_words(guard.kind) for each in run.compilations for guard in each.guards}
    return {
        "groups": [(group.name, group.about) for group in GROUPS],
        "of": {
            each.compile_id: [group_of(guard.kind, guard.source, guard.text) for guard in each.guards]
            for each in run.compilations
        },
        "sources": {source: text for source, text in written.items() if source != text},
        "kinds": {kind: words for kind, words in kinds.items() if words},
    }


def _statements(run: Run) -> Dict[int, List[Tuple[int, int]]]:
    """Return the first and last lines of multi-line statements, by source: a fact about one line applies to all."""
    found = {}
    for index, source in enumerate(run.sources):
        try:
            # Source that does not parse (another Python version, or not Python): each line is a statement.
            tree = parse(source.text or "")
        except synchronous(SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        spans = [(node.lineno, node.end_lineno or node.lineno) for node in _simple_statements(tree)]
        found[index] = [span for span in spans if span[0] < span[1]]
    return found


def _simple_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements without a body, those around them first. Expressions hold none, and are most of a tree."""
    todo: Deque[ast.AST] = deque([tree])
    while todo:
        node = todo.popleft()
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            yield node
        for name in ("body", "handlers", "orelse", "finalbody", "cases"):
            todo.extend(getattr(node, name, ()))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def printable(text: str, form: str = "\ufffd") -> str:
    """The text without lone surrogates, which can't be written to a file."""
    return _SURROGATE.sub(lambda match: form.format(ord(match.group())), text)
