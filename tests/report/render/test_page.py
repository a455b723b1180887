"""The text of the page, for any run; its appearance is tested in a browser."""

from __future__ import annotations

import base64
import json
import re
import sys
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, List

import pytest
from browser import TITLES
from sample_runs import HOSTILE, hostile_run, sample_run
from transformer_run import transformer_run

from depyf.report.model.counts import RAISED
from depyf.report.model.run import Compilation, Run
from depyf.report.model.timing import Timing
from depyf.report.render import page
from depyf.report.render.flow import drawings
from depyf.report.render.flow_file import flow_markdown
from depyf.report.render.inline import summary_html
from depyf.report.render.page import render_page, render_pages
from depyf.report.render.page_data import data_element


class Tags(HTMLParser):
    """Collects the tags of a page, and the text of its data."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: List[str] = []
        self.data = ""
        self._in_data = False
        self._packed = False
        self.feed(text)
        self.close()
        if self._packed:
            self.data = zlib.decompress(base64.b64decode(self.data)).decode("utf-8")

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        self._in_data = tag == "script" and ("id", "data") in attrs
        self._packed = self._packed or "data-packed" in dict(attrs)

    def handle_endtag(self, tag: str) -> None:
        self._in_data = False

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data += data


def test_a_page_holds_every_text_once() -> None:
    run, text_of = sample_run()
    data = json.loads(Tags(render_page(run, text_of)).data)
    assert data["runs"][0]["texts"] == {a.id: text_of(a) for a in run.artifacts}
    assert "text" not in data["runs"][0]["run"]["artifacts"][0]
    assert data["runs"][0]["run"]["schema"] == run.schema


@pytest.mark.parametrize("packer", ["isal", "zlib"])
def test_large_data_is_packed_and_the_same(packer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if packer == "isal":
        pytest.importorskip("isal")
    else:
        monkeypatch.setitem(sys.modules, "isal", None)
    run, text_of = transformer_run(6)
    element = "".join(data_element([(run, text_of)], [], ["one"], ""))
    match = re.fullmatch(r'<script type="text/plain" id="data" data-packed>([A-Za-z0-9+/=]+)</script>', element)
    assert match
    data = json.loads(zlib.decompress(base64.b64decode(match.group(1))))
    assert data["runs"][0]["texts"] == {a.id: text_of(a) for a in run.artifacts}
    assert len(element) < sum(map(len, data["runs"][0]["texts"].values())) / 3


def test_a_page_needs_nothing_from_elsewhere() -> None:
    text = render_page(Run(), lambda artifact: None)
    assert not re.search(r"""(?:src|href)=["']?(?:https?:)?//""", text)
    assert "@@" not in text
    assert not re.search(r"@import|url\(", text)


def test_hostile_texts_make_no_markup() -> None:
    run, text_of = hostile_run()
    text = render_page(run, text_of)
    ours, theirs = Tags(render_page(*sample_run())), Tags(text)
    assert theirs.tags.count("script") == ours.tags.count("script") == 2
    assert "img" not in theirs.tags
    assert json.loads(theirs.data)["runs"][0]["run"]["torch"] == HOSTILE
    text.encode("utf-8")  # has lone surrogates no more


def test_links_share_their_stacks() -> None:
    run, text_of = sample_run()
    data = json.loads(Tags(render_page(run, text_of)).data)["runs"][0]
    artifact = next(a for a in run.artifacts if a.stage == "Forward_graph")
    first, last, stack, names = data["links"][artifact.id][0]
    assert (first, last, names) == (artifact.links[0].first, artifact.links[0].last, list(artifact.links[0].names))
    assert [tuple(place) for place in data["stacks"][stack]] == list(artifact.links[0].places)
    assert len(data["stacks"]) < sum(len(a.links) for a in run.artifacts) / 4


def test_numbers_that_json_does_not_have_do_not_break_the_page() -> None:
    run, text_of = sample_run()
    first = replace(run.compilations[0], metrics={"a": float("nan"), "b": float("inf")}, seconds=float("nan"))
    data = Tags(render_page(replace(run, compilations=(first,)), text_of)).data

    def refuse(name: str) -> float:
        raise AssertionError(f"{name} is no JSON")

    json.loads(data, parse_constant=refuse)


def test_runs_have_names() -> None:
    run, text_of = sample_run()
    data = json.loads(Tags(render_pages([(run, text_of), (replace(run, rank=5), text_of)], names=["old"])).data)
    assert data["names"] == ["old", "rank 5"]


def test_a_drawing_has_a_frame_for_each_resume_function_once() -> None:
    run, _ = sample_run()
    svgs = dict(drawings(run))
    assert sorted(svgs) == [0, 6, 7]
    assert svgs[0].count('class="flow-frame"') == 6
    assert svgs[0].count("Resumed at line") == 5
    assert svgs[6].count("Guards of") == 2 * 2  # the text and its title
    assert svgs[6].count("5 entries like it: 6/1 to 6/5") == 2


def test_drawings_of_the_second_run_lead_into_it() -> None:
    run, _ = sample_run()
    assert "?rank=1" in dict(drawings(run, 1))[0]
    assert "?rank" not in dict(drawings(run))[0]


@pytest.mark.parametrize("caused", [True, False])
def test_what_failed_to_compile_has_no_guards_and_says_why(caused: bool) -> None:
    run, _ = sample_run()
    route = next(index for index, each in enumerate(run.functions) if each.name == "route")
    failed = Compilation("7/0", route, status="failed", failure="Unsupported: nonzero")
    svg = dict(drawings(replace(run, compilations=(failed,), fallbacks=run.fallbacks if caused else ())))[route]
    assert "Guards of" not in svg
    assert svg.count(">Plain Python<") == 1
    assert ("recompile limit" if caused else "Unsupported: nonzero") in svg


def test_what_raised_an_error_is_not_drawn_nor_marked_as_plain_python() -> None:
    run, _ = sample_run()
    (fallback,) = run.fallbacks
    run = replace(run, fallbacks=(replace(fallback, cause=RAISED, place=run.breaks[0].place),))
    svg = dict(drawings(run))[fallback.function]
    assert ">Plain Python<" not in svg
    assert ">Error<" in svg
    assert "plain Python" not in flow_markdown([("run", run)])
    assert "left to Python" not in summary_html(run)
    assert "failed to compile" in summary_html(run)


@pytest.mark.parametrize("resumes", [0, 5, 99])
def test_a_resume_function_that_goes_on_with_nonsense_is_drawn(resumes: int) -> None:
    run, _ = sample_run()
    functions = list(run.functions)
    functions[0] = replace(functions[0], resumes=resumes)
    assert 6 in dict(drawings(replace(run, functions=tuple(functions))))


def test_a_page_has_no_script_of_views_that_its_run_lacks() -> None:
    bare, timed = Run(), Run(timings=(Timing("step", 1, 1e-3, 1.0, {}),))
    assert "function showTimings" not in render_page(bare, lambda artifact: None)
    assert "function showTimings" in render_pages([(bare, lambda artifact: None), (timed, lambda artifact: None)])


def test_every_file_of_the_page_is_in_it() -> None:
    web = Path(page.__file__).parent / "web"
    text = page._script(page._SCRIPTS)[0] + render_page(Run(), lambda artifact: None)
    files = [path for path in web.rglob("*") if path.is_file() and path.suffix in (".js", ".css")]
    assert len(files) > 15
    lines = {path.name: path.read_text(encoding="utf-8").splitlines() for path in files}
    missing = [
        name
        for name, own in lines.items()
        if "\n".join(stripped for line in own for stripped in [line.strip()] if stripped and stripped[:2] != "//")
        not in text
    ]
    assert not missing, f"add to _SCRIPTS or _STYLES in report/render/page.py: {missing}"
    # Indentation is left out: a template literal that goes over lines would lose it.
    odd = [line for own in lines.values() for line in own if line.replace('"`"', "").replace("[^`", "").count("`") % 2]
    assert odd == []


def test_every_view_is_documented_and_has_a_picture_and_tests() -> None:
    document = (Path(__file__).resolve().parents[3] / "docs" / "page.md").read_text()
    assert len(TITLES) > 10
    for id_, title in TITLES.items():
        section = document.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        assert section, f"docs/page.md has no section {title!r}"
        assert re.search(rf"\(screenshots/\w+-{id_}\.png\)", section), f"the section {title!r} has no picture"
        tests = "".join(each.read_text(encoding="utf-8") for each in Path(__file__).parent.glob("test_page*.py"))
        assert re.search(rf"\.view-{id_}\b|#{id_}[/?\"]|\"{id_}/", tests), f"no test looks at what {title!r} shows"
