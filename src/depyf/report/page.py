"""``index.html``: one self-contained page that explains a run, or several runs beside each other.

The page holds the manifest of each run, the texts of its artifacts and the links between lines, once, as JSON; what is
looked at is built and highlighted in the browser (``web/script``). Drawings are made here (``flow.py``).
"""

from __future__ import annotations

import ast
import dataclasses
import html
import json
import re
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.report.flow import drawings
from depyf.report.manifest import to_json
from depyf.report.model import Artifact, Place, Run
from depyf.report.sides import with_sides

TextOf = Callable[[Artifact], Optional[str]]

Difference = Mapping[str, Any]
"""``{"title": ..., "text": ..., "ranks": {name of a run: text}, "place": (source, line) of the first run or None}``."""

_WEB = Path(__file__).parent / "web"

_STYLES = ("base.css", "code.css", "views.css")

# In this order: later files use what the earlier ones define.
_SCRIPTS = (
    "dom.js",
    "model.js",
    "highlight.js",
    "code.js",
    "links.js",
    "diff.js",
    "router.js",
    "overview.js",
    "details.js",
    "artifact_pane.js",
    "source.js",
    "flow.js",
    "recompiles.js",
    "time.js",
    "stages.js",
    "ranks.js",
    "main.js",
)

_MARKUP = re.compile(r"<(?=[/!sS])")
_SURROGATE = re.compile("[\ud800-\udfff]")


def render_page(run: Run, text_of: TextOf) -> str:
    """The page of one run. ``text_of`` gives the text of an artifact, None where there is none any more."""
    return render_pages([(run, text_of)])


def render_pages(
    runs: Sequence[Tuple[Run, TextOf]],
    differences: Sequence[Difference] = (),
    names: Sequence[str] = (),
    comparison: str = "",
) -> str:
    """One page for several runs: a selector of the run, and a view of where they differ.

    ``names`` are what the runs are called (``rank 0``, by default); ``differences`` name them in ``ranks``.
    ``comparison`` is the title of that view, ``Ranks`` by default.
    """
    called = [names[at] if at < len(names) else _name(run, at) for at, (run, _) in enumerate(runs)]
    parts = {
        "title": html.escape(_printable(f"{_program(runs[0][0])} · depyf" if runs else "depyf")),
        "style": "\n".join(_file("style", name) for name in _STYLES),
        "script": "\n".join(_file("script", name) for name in _SCRIPTS),
        "drawings": "\n".join(_drawings(at, run) for at, (run, _) in enumerate(runs)),
        "data": _data(runs, differences, called, comparison),
    }
    # One pass: what is put in may itself look like a place to put something.
    return re.sub(r"@@(\w+)@@", lambda match: parts[match.group(1)], _file("", "page.html"))


def _file(folder: str, name: str) -> str:
    return (_WEB / folder / name).read_text(encoding="utf-8")


def _name(run: Run, at: int) -> str:
    return f"rank {run.rank if run.rank is not None else at}"


def _program(run: Run) -> str:
    return " ".join(run.command)[:80] or "A run of torch.compile"


def _drawings(at: int, run: Run) -> str:
    return "\n".join(
        f'<template data-run="{at}" data-function="{function}">{_printable(svg)}</template>'
        for function, svg in drawings(run, at if at else None)
    )


def _data(runs: Sequence[Tuple[Run, TextOf]], differences: Sequence[Difference], names: List[str], title: str) -> str:
    packed = ",".join(_packed(run, text_of) for run, text_of in runs)
    rest = f'"differences":{_json(list(differences))},"names":{_json(names)},"comparison":{_json(title)}'
    return _MARKUP.sub("\\\\u003c", _printable(f'{{"runs":[{packed}],{rest}}}', "\\u{:04x}"))


def _packed(run: Run, text_of: TextOf) -> str:
    """A run as JSON: its manifest, without what stands beside it once (texts), or shorter (stacks of calls, links)."""
    run = with_sides(run)
    texts: Dict[str, str] = {}
    links: Dict[str, List[List[Any]]] = {}
    stacks: Dict[Tuple[Place, ...], int] = {}
    for artifact in run.artifacts:
        text = text_of(artifact)
        if text is None:
            text = artifact.text
        if text is not None:
            texts[artifact.id] = text
        if artifact.links:
            links[artifact.id] = [
                [link.first, link.last, stacks.setdefault(tuple(map(_pair, link.places)), len(stacks))]
                + ([list(link.names)] if link.names else [])
                for link in artifact.links
            ]
    bare = dataclasses.replace(
        run, artifacts=tuple(dataclasses.replace(each, text=None, links=()) for each in run.artifacts)
    )
    parts = {"texts": texts, "links": links, "stacks": list(stacks), "statements": _statements(run)}
    return f'{{"run":{to_json(bare)},{_json(parts)[1:]}'


def _statements(run: Run) -> Dict[int, List[Tuple[int, int]]]:
    """The first and last lines of statements that take several, by source: what PyTorch tells of one line is of all."""
    found = {}
    for index, source in enumerate(run.sources):
        try:
            # What does not parse is of another Python, or no Python: its lines stand for themselves.
            tree = ast.parse(source.text or "")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        simple = (node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not hasattr(node, "body"))
        spans = [(node.lineno, node.end_lineno or node.lineno) for node in simple]
        found[index] = [span for span in spans if span[0] < span[1]]
    return found


def _pair(place: Place) -> Place:
    return place[0], place[1]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _printable(text: str, form: str = "\ufffd") -> str:
    """The text without lone surrogates, which no file can hold."""
    return _SURROGATE.sub(lambda match: form.format(ord(match.group())), text)
