"""The piece of HTML that a notebook shows."""

from __future__ import annotations

from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from typing import Any, List

from browser import as_text
from sample_runs import hostile_run, sample_run

from depyf.report.model.headline import ORDER_OF_FINDINGS
from depyf.report.model.run import Run
from depyf.report.render.inline import marks_of, summary_html


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: List[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)


def test_it_counts() -> None:
    text = summary_html(sample_run()[0])
    for fact in ("<b>5</b> graph breaks", "<b>6</b> recompilations", "<b>1</b> fallback to eager", "<b>43</b> kernels"):
        assert fact in text


def test_lines_say_what_became_of_them(chromium: Any) -> None:
    shown = as_text(chromium, summary_html(sample_run()[0]))
    lines = shown.splitlines()
    at = next(number for number, line in enumerate(lines) if 'print("step"' in line)
    assert lines[at + 1] == "graph break: print() was called"


def test_a_line_says_why_it_was_recompiled() -> None:
    run = sample_run()[0]
    shown = unescape(summary_html(run))
    assert "recompiled 6 times: " in shown
    assert " and 5 more" in shown
    first = next(each for each in run.recompiles if each.place)
    shown = unescape(summary_html(replace(run, recompiles=(first,))))
    assert f"recompiled once: {first.failed[0].words}" in shown


def test_findings_are_those_of_the_page(chromium: Any) -> None:
    run = sample_run()[0]
    shown = as_text(chromium, summary_html(run))
    titles = [each.title for each in run.findings]
    assert len(titles) == 3
    assert sorted(titles, key=shown.index) == titles
    assert ORDER_OF_FINDINGS in shown
    assert run.findings[0].text in shown
    many = summary_html(replace(run, findings=run.findings * 3))
    assert many.count("<li><b>route runs as plain Python") == 2
    assert "and 4 more: index.html has them all." in many
    only = summary_html(replace(run, findings=(replace(run.findings[0], seconds=2.5),)))
    assert ORDER_OF_FINDINGS not in only
    assert ", 2.50 s<br>" in only
    assert "Worth acting on" not in summary_html(replace(run, findings=()))


def test_lines_of_one_graph_have_one_colour() -> None:
    text = summary_html(sample_run()[0])
    lines = {n: next(part for part in text.split('<div class="line"') if f">{n}</span>" in part) for n in (17, 19, 20)}
    colour = {n: line.split("rgb(")[1].split(")")[0] for n, line in lines.items()}
    assert colour[19] == colour[20] != colour[17]


def test_hostile_texts_stay_texts() -> None:
    ours, theirs = summary_html(sample_run()[0]), summary_html(hostile_run()[0])
    assert Tags(ours).tags == Tags(theirs).tags
    theirs.encode("utf-8")
    assert len(theirs) < 3 * len(ours)  # what is endless is cut


def test_there_may_be_nothing() -> None:
    assert "<b>0</b> functions" in summary_html(Run())


def test_a_function_whose_file_is_gone_is_named() -> None:
    run, _ = sample_run()
    run = replace(run, sources=(replace(run.sources[0], text=None), *run.sources[1:]))
    assert summary_html(run).count("its source could not be read") == 3


def test_marks_hold_every_break_recompile_and_kernel() -> None:
    run, _ = sample_run()
    marks = marks_of(run)
    assert sum(len(each.breaks) for each in marks.values()) == 5
    assert sum(len(each.recompiles) for each in marks.values()) == 6
    assert sum(each.kernels for each in marks.values()) == sum(len(e.places) for e in run.kernels if not e.extern)
    assert marks[(0, 33)].graphs == [f"6/{number}" for number in range(7)]
