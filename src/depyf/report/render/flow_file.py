"""Write the paths of calls of compiled functions as a separate file: Mermaid charts in Markdown, or one SVG.

The notation of the charts is Mermaid's flowchart (https://mermaid.js.org/syntax/flowchart.html), which GitHub and
GitLab draw.
"""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, Sequence, Tuple

from depyf.base.late_regex import regex
from depyf.report.model.counts import RAISED
from depyf.report.model.run import Compilation, Run
from depyf.report.read.own_files import MARKDOWN_MARK, SVG_MARK
from depyf.report.render.branches import Onward
from depyf.report.render.colours import STYLES, variables
from depyf.report.render.flow import MOST_ENTRIES, drawings, times
from depyf.report.render.flow_facts import FlowFacts
from depyf.report.render.markdown_text import inline
from depyf.report.render.svg import stacked

_USED = regex(r"var\((--[\w-]+)\)")


def flow_markdown(runs: Sequence[Tuple[str, Run]]) -> str:
    """Return a Markdown file with a Mermaid chart of each of the user's functions; ``runs`` have names."""
    lines = [MARKDOWN_MARK, ""]
    for name, run in runs:
        facts = FlowFacts(run)
        if len(runs) > 1:
            lines += [f"# {inline(name)}", ""]
        for root in facts.roots():
            one = run.functions[root]
            title = inline(one.qualified_name or one.name)
            lines += [f"## {title}", "", "```mermaid", *_chart(facts, root), "```", ""]
        if not facts.roots():
            lines += ["Nothing was compiled.", ""]
    return "\n".join(lines)


def _chart(facts: FlowFacts, root: int) -> Iterator[str]:
    yield "flowchart TD"
    begins: Dict[int, str] = {}
    # Nodes: ``g`` guards, ``t`` transformed code, ``c`` a graph, ``n`` what follows when no entry fits.
    calls: List[Tuple[str, Onward]] = []
    for function in facts.family(root):
        one = facts.run.functions[function]
        title = f"Call of {one.qualified_name or one.name}" if function == root else f"Resumed at line {one.resumes_at}"
        entries = facts.cached(function)
        shown = entries[:MOST_ENTRIES]
        begins[function] = f"g{function}_0" if shown else f"n{function}"
        yield f"  subgraph f{function} [{_text(title)}]"
        for at, entry in enumerate(shown):
            following = f"g{function}_{at + 1}" if at + 1 < len(shown) else f"n{function}"
            yield from _entry(facts, entry, f"{function}_{at}", following)
            calls += [(f"t{function}_{at}", each) for each in facts.branches.ways_on(entry)[0]]
        cause = facts.otherwise(function)
        words = "recompile" if entries else "not compiled"
        words = words if cause is None else cause if cause == RAISED else f"plain Python: {cause}"
        if len(entries) > len(shown):
            words = f"{len(entries) - len(shown)} more cache entries, then: {words}"
        yield f"    n{function}[{_text(words)}]"
        yield "  end"
    # Edges between functions come last: Mermaid draws a node where it is named first.
    called = set()
    for node, way in calls:
        called.add(way.function)
        line = facts.run.functions[way.function].resumes_at
        words = "" if line is None else f"|{_text(way.label or f'resume at line {line}')}|"
        yield f"  {node} -->{words} {begins[way.function]}"
        for callee in facts.called_at(way.function, line or 0):
            name = facts.run.functions[callee].qualified_name or facts.run.functions[callee].name
            yield f"  {node} -->|{_text(f'line {line} calls')}| c{callee}[{_text(name)}]"
    for function in begins:  # a log does not say what calls it
        before = facts.run.functions[function].resumes
        if before in begins and function not in called:
            yield f"  f{before} -.-> f{function}"


def _entry(facts: FlowFacts, entry: Compilation, name: str, following: str) -> Iterator[str]:
    """Yield the nodes of a cache entry: its guards, its transformed code, the graph that this calls."""
    guards = f"{len(entry.guards)} guards of {entry.compile_id}" if entry.guards else f"guards of {entry.compile_id}"
    ran = "" if entry.runs is None else f", ran {times(entry.runs)}"
    yield f"    g{name}{{{_text(guards)}}} -- hold --> t{name}[{_text(f'transformed {entry.compile_id}{ran}')}]"
    yield f"    g{name} -- fail --> {following}"
    graph = facts.graph_of(entry)
    if graph:
        kernels = facts.kernels_in_words(entry)
        more = f", {kernels}" if kernels else ""
        yield f"    t{name} --> c{name}([{_text(f'{graph}{more}')}])"


def _text(text: str) -> str:
    """Return a text in quotes for Mermaid: its entities are written with ``#`` and decimal numbers. Text between
    ``%%{`` and ``}%%`` is a setting, in quotes, too."""
    shown = " ".join(text.split())
    return '"' + re.sub(r"[\"#<>&`;\\%]", lambda match: f"#{ord(match.group())};", shown) + '"'


def flow_svg(runs: Sequence[Tuple[str, Run]], page: str) -> str:
    """Return all drawings below each other as one SVG file, in light colours; boxes lead to ``page``, an address."""
    pieces = [svg for at, (_, run) in enumerate(runs) for _, svg in drawings(run, at or None)]
    return SVG_MARK + stacked(pieces, _style(), page)


def _style() -> str:
    """Return the rules of the page's style sheets that drawings need, with their colours for a light background."""
    base, views = ((STYLES / name).read_text(encoding="utf-8").splitlines() for name in ("base.css", "views.css"))
    rules = [line for line in (*base, *views) if line.startswith((".graph-", ".flow-", ".drawing"))]
    rules.insert(0, "svg { background: var(--ground); font: 12px/1.3 var(--sans); }")
    return _USED.sub(lambda match: variables().get(match.group(1), match.group()), "\n".join(rules))
