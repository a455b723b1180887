"""What calls go through, as files: Mermaid charts and one SVG."""

from __future__ import annotations

import re
import xml.dom.minidom
from dataclasses import replace

from sample_runs import sample_run

from depyf.report.model.run import Call, Compilation, EntryGuard, Fallback, Function, GraphBreak, Run, SourceFile
from depyf.report.render.flow import drawings
from depyf.report.render.flow_facts import Conditions
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
    assert "<img" not in re.sub(r"`[^`\n]+`", "", text)  # as code it is shown, and nothing else
    for chart in charts(text):
        for line in chart.splitlines():
            bare = re.sub(r'"[^"]*"', "", line)
            assert "x" not in bare.replace("flowchart", "")
            assert "`" not in line
            assert "%%" not in line  # settings are looked for before texts are


def test_names_of_runs_are_no_markdown() -> None:
    text = flow_markdown([("a\n# b", Run()), ("<img src=x>", Run())])
    assert [line for line in text.splitlines() if line.startswith("# ")] == ["# a # b", "# \\<img src=x>"]


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


def test_how_often_guards_failed_is_not_said_of_one_group_of_them() -> None:
    run, _ = sample_run()
    failed = replace(run, compilations=tuple(replace(each, guard_failures=1) for each in run.compilations))
    drawn = "".join(svg for _, svg in drawings(failed))
    assert "2 checked: values 1, tensors 1; failed once" in drawn


def test_a_dynamic_size_has_the_words_of_a_guard_that_failed() -> None:
    one = Compilation("0/0", 0, dynamic=("s7: L['x'].size()[1]", "s8: L['n']"))
    assert Conditions(Run(compilations=(one,))).of(one) == ["dynamic: size of x in dimension 1 (s7)", "dynamic: n (s8)"]


def test_a_function_that_the_line_of_a_break_calls_is_named_and_linked() -> None:
    names = ("step", "torch_dynamo_resume_in_step_at_3", "Net.forward")
    step, resumed, forward = (
        Function(name, name, 0, first, last, *at)
        for name, first, last, at in zip(names, (1, 1, 6), (5, 5, 9), ((), (0, 3), ()))
    )
    run = Run(
        sources=(SourceFile("/m.py", ""),),
        functions=(step, resumed, forward),
        compilations=(
            Compilation("0/0", 0, calls=(Call(function=1, line=4, resumes_at=3),), transformed="t"),
            Compilation("1/0", 2),
            Compilation("2/0", 1),
        ),
        breaks=(GraphBreak("0/0", (0, 8), "print", stack=((0, 3), (0, 8))), GraphBreak("1/0", (0, 8), "print")),
    )
    drawn = dict(drawings(run))
    assert "line 3 calls Net.forward" in drawn[0]
    assert 'href="#flow/f2"' in drawn[0]
    assert "calls" not in drawn[2].replace("What a call", "")
    first, second = charts(flow_markdown([("run", run)]))
    assert '-->|"line 3 calls"| c2["Net.forward"]' in first
    assert "c2" not in second


def test_a_value_that_is_its_own_name_is_no_condition() -> None:
    guards = tuple(
        EntryGuard("EQUALS_MATCH", f"{name} == {value}", name) for name, value in (("G['t']", "t"), ("L['n']", "2"))
    )
    one = Compilation("0/0", 0, guards=guards)
    assert Conditions(Run(compilations=(one,))).of(one) == ["n == 2"]


def test_guards_that_nothing_is_marked_are_not_what_a_box_counts() -> None:
    run, _ = sample_run()
    marked = tuple(EntryGuard("DIMENSION_MATCH", f"not marked {at}", f"L['x{at}']") for at in range(9))
    more = replace(run, compilations=tuple(replace(c, guards=(*c.guards, *marked)) for c in run.compilations))
    drawn = "".join(svg for _, svg in drawings(more))
    assert "11 checked: values 1, tensors 1" in drawn
    assert "marked dimensions" not in drawn


def with_branch(run: Run, *lines: int) -> Run:
    """The sample with a branch: the second part of ``train_step`` goes on at these lines."""
    second = next(each for each in run.compilations if each.compile_id == "1/0")
    calls = [each for each in second.calls if each.function is not None]
    calls = [replace(each, resumes_at=line) for each, line in zip(calls, lines)]
    bound = (*(each for each in second.calls if each.graph), *calls)
    return replace(run, compilations=tuple(replace(c, calls=bound) if c is second else c for c in run.compilations))


def test_both_sides_of_a_branch_have_their_condition_and_line() -> None:
    run, _ = sample_run()
    if_line = 1 + run.sources[0].text.split("\n").index("    if h.sum() < 0:")  # type: ignore[union-attr]
    drawn = "".join(svg for _, svg in drawings(with_branch(run, if_line + 2, if_line + 1)))
    assert drawn.index(f">true: line {if_line + 1}: 2/0") < drawn.index(f">false: line {if_line + 2}: 2/0")
    assert ">if h.sum() &lt; 0<" in drawn
    chart = flow_markdown([("run", with_branch(run, if_line + 2, if_line + 1))])
    assert f'|"true: line {if_line + 1}"|' in chart
    assert f'|"false: line {if_line + 2}"|' in chart


def test_a_branch_whose_sides_are_not_known_has_no_labels() -> None:
    run, _ = sample_run()
    if_line = 1 + run.sources[0].text.split("\n").index("    if h.sum() < 0:")  # type: ignore[union-attr]
    damaged = replace(run, sources=(replace(run.sources[0], text="if h.sum( <"), *run.sources[1:]))
    for each in (run, with_branch(run, if_line + 1, if_line + 1), with_branch(damaged, if_line + 2, if_line + 1)):
        drawn = "".join(svg for _, svg in drawings(each))
        assert "true: line" not in drawn
        assert f"resume at line {if_line}: 2/0 (from 2 places)" in drawn


def test_boxes_say_what_the_guards_require() -> None:
    run, _ = sample_run()
    assert ">L[&#x27;factor&#x27;] == 0</text>" in dict(drawings(run))[6]  # an old manifest has PyTorch's text only
    named = tuple(
        replace(each, failed=tuple(replace(failed, checked="factor") for failed in each.failed))
        for each in run.recompiles
    )
    texts = re.findall(r">([^<>]+)</text>", dict(drawings(replace(run, recompiles=named)))[6])
    assert "factor: 0" in texts


def test_the_frames_of_both_sides_are_told_apart() -> None:
    run, _ = sample_run()
    if_line = 1 + run.sources[0].text.split("\n").index("    if h.sum() < 0:")  # type: ignore[union-attr]
    branching = with_branch(run, if_line + 2, if_line + 1)
    more = replace(branching.functions[2], resumes_at=if_line)
    functions = (*branching.functions, more)
    second = next(each for each in branching.compilations if each.compile_id == "1/0")
    calls = tuple(
        replace(call, function=len(functions) - 1) if call.resumes_at == if_line + 1 else call for call in second.calls
    )
    compilations = tuple(replace(c, calls=calls) if c is second else c for c in branching.compilations)
    drawn = dict(drawings(replace(branching, functions=functions, compilations=compilations)))[0]
    assert f">Resumed at line {if_line}, true: line {if_line + 1}<" in drawn
    assert f">Resumed at line {if_line}, false: line {if_line + 2}<" in drawn


def test_a_side_in_which_nothing_is_compiled_has_no_guards_and_one_that_never_ran_is_dimmed() -> None:
    run, _ = sample_run()
    again = replace(run.functions[2], name="again")
    empty = Compilation("9/0", len(run.functions), status="empty")
    skips = tuple(Fallback(each, None, "skipped", "No ops traced") for each in (2, len(run.functions)))
    more = replace(run, functions=(*run.functions, again), compilations=(*run.compilations, empty), fallbacks=skips)
    drawn = dict(drawings(more))[0]
    assert ">Guards of 9/0<" not in drawn
    assert drawn.count(">nothing to compile in it<") == 1  # not of the function that has entries and the same name
    never = dict(drawings(replace(more, compilations=run.compilations, fallbacks=())))[0]
    assert re.search(r'flow-unused"[^>]*/><text[^>]*>not compiled<', never)
    with_guards = replace(empty, guards=run.compilations[0].guards[:1])
    assert ">Guards of 9/0<" in dict(drawings(replace(more, compilations=(*run.compilations, with_guards))))[0]


def test_texts_of_boxes_are_whole_and_entries_without_a_graph_are_said_to_have_none() -> None:
    guards = (
        EntryGuard("TENSOR_MATCH", "t"),
        *[EntryGuard("TYPE_MATCH", "c", "L['x']")] * 3,
        EntryGuard("GLOBAL_STATE", "g"),
    )
    entries = [Compilation(f"0/{at}", 0, status="empty", guards=guards * (200 + at), runs=1) for at in range(5)]
    run = Run(
        sources=(SourceFile("/m.py", "x"),), functions=(Function("f", "f", 0, 1, 1),), compilations=tuple(entries)
    )
    [(_, drawing)] = drawings(run)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawing)
    assert "without a graph, 3 times in all" in texts
    assert not [text for text in texts if text.endswith("…")]
    assert [text for text in texts if text.startswith("1000 checked: ")] == ["1000 checked: functions and classes 600"]
