"""What calls go through, as files: Mermaid charts and one SVG."""

from __future__ import annotations

import re
import xml.dom.minidom
from dataclasses import replace

from sample_runs import sample_run

from depyf.report.model.run import Run
from depyf.report.render.flow import drawings
from depyf.report.render.flow_file import flow_markdown, flow_svg

HOSTILE = '%%{init: 1}%% end"] --> x; `<img src=x onerror=alert(1)>` #quot; \\'


def charts(text: str) -> list[str]:
    return re.findall(r"```mermaid\n(.*?)\n```", text, re.DOTALL)


def with_name(run: Run, name: str) -> Run:
    return replace(run, functions=tuple(replace(each, qualified_name=name, name=name) for each in run.functions))


def test_every_function_with_compilations_has_a_chart() -> None:
    run, _ = sample_run()
    found = charts(flow_markdown([("run", run)]))
    assert len(found) == len(list(drawings(run)))
    assert all(each.startswith("flowchart TD\n") for each in found)


def test_edges_lead_to_nodes_that_are_there() -> None:
    run, _ = sample_run()
    edges = 0
    for chart in charts(flow_markdown([("run", run)])):
        nodes = set(re.findall(r"\b([gtcn]\d+(?:_\d+)?)[{(\[]", chart)) | set(re.findall(r"subgraph (f\d+)", chart))
        for line in chart.splitlines()[1:]:
            ends = re.findall(r"(?:^\s+|> |\| )([fgtcn]\d+(?:_\d+)?)", line)
            edges += len(ends) > 1
            assert set(ends) <= nodes
    assert edges > 5


def test_names_stay_inside_their_quotes() -> None:
    run, _ = sample_run()
    text = flow_markdown([("run", with_name(run, HOSTILE))])
    assert re.search(r"(?<!\\)<img", text) is None
    for chart in charts(text):
        for line in chart.splitlines():
            bare = re.sub(r'"[^"]*"', "", line)
            assert "x" not in bare.replace("flowchart", "")
            assert "`" not in line
            assert "%%" not in line  # settings are looked for before texts are


def test_names_of_runs_are_no_markdown() -> None:
    text = flow_markdown([("a\n# b", Run()), ("<img src=x>", Run())])
    assert [line for line in text.splitlines() if line.startswith("# ")] == ["# a \\# b", "# \\<img src=x\\>"]


def test_the_drawing_is_xml_and_leads_to_the_page() -> None:
    run, _ = sample_run()
    text = flow_svg([("run", run), ("rank 1", with_name(run, HOSTILE))], "out/index.html")
    document = xml.dom.minidom.parseString(text)
    links = [each.getAttribute("href") for each in document.getElementsByTagName("a")]
    assert links
    assert all(each.startswith("out/index.html#") for each in links)
    assert any("?rank=1" in each for each in links)
    assert "var(--ground)" not in text
    assert len(document.documentElement.getElementsByTagName("svg")) == 2 * len(list(drawings(run)))


def test_a_run_without_compilations_gives_files_that_say_so() -> None:
    assert "Nothing was compiled." in flow_markdown([("run", Run())])
    xml.dom.minidom.parseString(flow_svg([("run", Run())], "index.html"))


def test_guards_are_counted_by_group_and_what_never_ran_is_dimmed() -> None:
    run, _ = sample_run()
    unused = replace(run, compilations=tuple(replace(each, runs=0) for each in run.compilations))
    assert "flow-unused" not in "".join(svg for _, svg in drawings(run))
    drawn = "".join(svg for _, svg in drawings(unused))
    assert "flow-unused" in drawn
    assert "2 checked: values 1, tensors 1" in drawn
