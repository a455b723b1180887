"""A run as an HTML fragment for a notebook: what was compiled, and the source with the result for each line.

The fragment does not need the page's scripts and style sheets. Its colours are mixed into the colours of the notebook,
light or dark.
"""

from __future__ import annotations

import html
from dataclasses import field
from typing import Dict, List, Sequence, Tuple

from depyf.base.messages import cut
from depyf.base.quick_dataclass import dataclass
from depyf.report.model.counts import RAISED, counts_of, lost, raised
from depyf.report.model.headline import ORDER_OF_FINDINGS, cost_of, headline, in_seconds
from depyf.report.model.places import place_text
from depyf.report.model.run import Fallback, GraphBreak, Place, Recompile, Run
from depyf.report.render.colours import colours_of_graphs

_MOST_FUNCTIONS = 12
_MOST_LINES = 300
_MOST_FINDINGS = 5
_LONGEST = 400
"""A notebook stays in memory and on disk: longer output is cut, with a note."""

_STYLE = """\
.depyf-run{font:13px/1.5 system-ui,sans-serif;max-width:1000px}
.depyf-run ul.facts{display:flex;flex-wrap:wrap;gap:4px 22px;list-style:none;margin:4px 0 8px;padding:0}
.depyf-run summary{cursor:pointer;padding:3px 0}
.depyf-run .code{font:12px/1.5 ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;overflow-x:auto}
.depyf-run .code{border:1px solid rgba(128,128,128,.4);border-radius:5px}
.depyf-run .line{display:flex;white-space:pre;min-width:max-content}
.depyf-run .no{flex:none;width:48px;padding-right:10px;text-align:right;opacity:.75}
.depyf-run .tally{flex:none;width:76px;opacity:.8}
.depyf-run .mark{padding-left:18px;font-family:system-ui,sans-serif;font-weight:600}
"""


def summary_html(run: Run) -> str:
    """Return a self-contained HTML fragment."""
    marks = marks_of(run)
    roots = [index for index, each in enumerate(run.functions) if each.resumes is None]
    shown = [_function(run, index, marks, first=index == roots[0]) for index in roots[:_MOST_FUNCTIONS]]
    if len(roots) > _MOST_FUNCTIONS:
        shown.append(f"<p>and {len(roots) - _MOST_FUNCTIONS} more functions: index.html has them all.</p>")
    facts = "".join(f"<li><b>{_text(value)}</b> {_text(name)}</li>" for value, name in _facts(run))
    incomplete = "".join(f"<p>this dump is incomplete: {_text(each)}</p>" for each in run.failures)
    head = f"<p><b>{_text(headline(run))}</b></p>{incomplete}"
    body = f'<ul class="facts">{facts}</ul>{_findings(run)}{"".join(shown)}'
    return f'<div class="depyf-run"><style>{_STYLE}</style>{head}{body}</div>'


def _findings(run: Run) -> str:
    """Return the first findings, in the order and the words of the page."""
    if not run.findings:
        return ""
    items = []
    for each in run.findings[:_MOST_FINDINGS]:
        place = f" ({_text(_cut(place_text(run, each.place)))})" if each.place else ""
        items.append(f"<li><b>{_text(_cut(each.title))}</b>{place}{cost_of(each)}<br>{_text(_cut(each.text))}</li>")
    more = len(run.findings) - _MOST_FINDINGS
    order = f"<p>{_text(ORDER_OF_FINDINGS)}</p>" if len(run.findings) > 1 else ""
    rest = f"<p>and {more} more: index.html has them all.</p>" if more > 0 else ""
    return f"<details open><summary>Worth acting on</summary>{order}<ol>{''.join(items)}</ol>{rest}</details>"


def _facts(run: Run) -> List[Tuple[str, str]]:
    counts = counts_of(run)
    numbers = [
        (counts.functions, "function compiled", "functions compiled"),
        (counts.graphs, "graph", "graphs"),
        (counts.graph_breaks, "graph break", "graph breaks"),
        (counts.recompilations, "recompilation", "recompilations"),
        (counts.fallbacks, "fallback to eager", "fallbacks to eager"),
        (counts.kernels, "kernel", "kernels"),
    ]
    facts = [(str(number), one if number == 1 else many) for number, one, many in numbers]
    return [*facts, (in_seconds(counts.seconds), "to compile")] if counts.seconds else facts


def _function(run: Run, index: int, marks: Dict[Place, Marks], *, first: bool) -> str:
    one = run.functions[index]
    source = run.sources[one.source]
    name = (
        f"<code>{_text(_cut(one.qualified_name or one.name))}</code> {_text(_cut(f'{source.path}:{one.first_line}'))}"
    )
    if source.text is None:
        return f"<p>{name}: its source could not be read.</p>"
    last = min(one.last_line, one.first_line + _MOST_LINES - 1)
    lines = source.text.split("\n")[one.first_line - 1 : last]
    # Colours are given in order of appearance, so that neighbouring graphs differ.
    colours: Dict[str, str] = {}
    shown = []
    for number, text in enumerate(lines, one.first_line):
        shown.append(_line(number, text, marks.get((one.source, number), Marks()), colours))
    if last < one.last_line:
        shown.append(f'<div class="line"><span class="no"></span>… {one.last_line - last} more lines</div>')
    state = " open" if first else ""
    return f'<details{state}><summary>{name}</summary><div class="code">{"".join(shown)}</div></details>'


def _line(number: int, text: str, marks: Marks, colours: Dict[str, str]) -> str:
    style = ""
    if marks.graphs:
        graph = marks.graphs[0]
        all_colours = colours_of_graphs()
        colour = colours.setdefault(graph, all_colours[len(colours) % len(all_colours)])
        style = f' style="background:rgba({colour},.13);box-shadow:inset 4px 0 rgb({colour})"'
    title = f' title="in the graphs of {_text(_cut(", ".join(marks.graphs)))}"' if marks.graphs else ""
    tally = " ".join(f"{many}{letter}" for many, letter in ((marks.guards, "g"), (marks.kernels, "k")) if many)
    words = [f"graph break: {each.reason.splitlines()[0] if each.reason else ''}" for each in marks.breaks]
    words += [_recompiled(marks.recompiles)] if marks.recompiles else []
    words += [
        "failed to compile" if each.cause == RAISED else f"left to Python: {each.cause}" for each in marks.fallbacks
    ]
    mark = f'<span class="mark">{_text(_cut("; ".join(words)))}</span>' if words else ""
    return (
        f'<div class="line"{style}{title}><span class="no">{number}</span><span class="tally" '
        f'title="guards and kernels">{tally}</span><span>{_text(_cut(text))}</span>{mark}</div>'
    )


def _recompiled(recompiles: Sequence[Recompile]) -> str:
    """Return how often, and which guards failed first, of several the first one."""
    times = "once" if len(recompiles) == 1 else f"{len(recompiles)} times"
    causes = list(dict.fromkeys(each.failed[0].words for each in recompiles if each.failed and each.failed[0].words))
    more = f" and {len(causes) - 1} more" if len(causes) > 1 else ""
    return f"recompiled {times}" + (f": {causes[0]}{more}" if causes else "")


def _cut(text: str) -> str:
    return cut(text, _LONGEST, "…")


def _text(value: str) -> str:
    return html.escape(value.encode("utf-8", "replace").decode("utf-8"))


@dataclass
class Marks:
    """The known facts about one line. ``graphs`` are compile ids, in the order of the run."""

    breaks: List[GraphBreak] = field(default_factory=list)
    recompiles: List[Recompile] = field(default_factory=list)
    fallbacks: List[Fallback] = field(default_factory=list)
    graphs: List[str] = field(default_factory=list)
    guards: int = 0
    kernels: int = 0


def marks_of(run: Run) -> Dict[Place, Marks]:
    """Return the marks of every line that has some."""
    marks: Dict[Place, Marks] = {}

    def at(place: Place) -> Marks:
        return marks.setdefault((place[0], place[1]), Marks())

    for each in run.breaks:
        if each.place is not None:
            at(each.place).breaks.append(each)
    for fallback in (*lost(run), *raised(run)):
        if fallback.place is not None:
            at(fallback.place).fallbacks.append(fallback)
    for recompile in run.recompiles:
        if recompile.place is not None:
            at(recompile.place).recompiles.append(recompile)
    for compilation in run.compilations:
        for guard in compilation.guards:
            if guard.place is not None:
                at(guard.place).guards += 1
    for kernel in run.kernels:
        for place in kernel.places:
            at(place).kernels += not kernel.extern
    _graphs(run, marks)
    return marks


def _graphs(run: Run, marks: Dict[Place, Marks]) -> None:
    """Add the graphs of each line, from the links of graphs and from kernels."""
    found: Dict[Place, Dict[str, None]] = {}
    for artifact in run.artifacts:
        if artifact.kind == "graph" and artifact.compile_id:
            for link in artifact.links:
                for place in link.places:
                    found.setdefault((place[0], place[1]), {})[artifact.compile_id] = None
    for kernel in run.kernels:
        if kernel.compile_id:
            for place in kernel.places:
                found.setdefault((place[0], place[1]), {})[kernel.compile_id] = None
    for place, graphs in found.items():
        marks.setdefault(place, Marks()).graphs = list(graphs)
