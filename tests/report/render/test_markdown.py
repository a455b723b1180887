"""Whatever names, paths, keys and messages contain, it is text in the reports in Markdown, and no markup."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import Any, Callable, Dict, List, Tuple

import pytest

from depyf.answers.expectation import NAMES
from depyf.base.quick_dataclass import replace
from depyf.report.model.cache_lookup import CacheLookup
from depyf.report.model.run import CudaGraphRerecord, CudaGraphSkip, Run
from depyf.report.render.flow_file import flow_markdown
from depyf.report.render.markdown import index_markdown
from depyf.report.render.markdown_text import code, fenced, html, inline, link
from depyf.running.baseline import BaselineSummary, TestResult
from tests.support.sample_runs import sample_run

markdown_it = pytest.importorskip("markdown_it")

MARKUP = (
    "](http://evil.example) [x](javascript:alert(1)) ![i](http://evil.example/i.png)",
    "**bold** *it* __init__ _a_ x__y__ ~~gone~~ ~a~",
    "<img src=x onerror=alert(1)> <!-- c --> </details> <http://evil.example>",
    "`code` ``two` three``` unbalanced `",
    "| a | b |\n|---|---|\n\n# heading\n- item\n> quote\n```\nfence\n---\n===",
    "&lt;b&gt; &#65; &amp;",
    "[a]: http://evil.example\n\n[a] [^1]",
    "- [ ] task",
    "1. one",
    "# x",
    "> x",
    "+ x",
    "---",
    "    indented",
    "\\ \\` \\* \\",
    "$x^2$ \\(y\\)",
    "L['x'].size()[0](y)",
    "\x1b[31m\u202e",
)

STRUCTURE = {"kind", "status", "origin", "stage", "state", "language", "text", "schema"}
"""Fields that hold one of a few words of depyf; and the texts of artifacts and sources, which no report quotes."""


def everywhere(change: Callable[[str], str], in_path: Callable[[str], str], value: Any, name: str = "") -> Any:
    """Return a part of the model with each of its texts changed."""
    if isinstance(value, str):
        return in_path(value) if name == "path" else value if name in STRUCTURE or value == "skipped" else change(value)
    if isinstance(value, tuple):
        return tuple(everywhere(change, in_path, each, name) for each in value)
    if isinstance(value, dict):
        return {change(key): everywhere(change, in_path, each) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        is_text = type(value).__name__ not in ("Artifact", "SourceFile")
        changed = {
            each.name: everywhere(
                change, in_path, getattr(value, each.name), "message" if each.name == "text" and is_text else each.name
            )
            for each in fields(value)
        }
        return replace(value, **changed)
    return value


def whole_run() -> Run:
    """Return a run with all parts that ``index.md`` shows."""
    run, _ = sample_run()
    one = run.compilations[0].compile_id
    kernels = next(each for each in run.artifacts if each.kind == "kernels")
    return replace(
        run,
        command=("python", "train.py"),
        notes=("a note",),
        failures=("writing a file failed",),
        cache_lookups=(CacheLookup(one, "fx_graph", "miss", reason="a reason"),),
        cudagraph_skips=(CudaGraphSkip(one, "a reason", advice="what to do"),),
        cudagraph_rerecords=(CudaGraphRerecord(one, "f", "FORWARD", "a reason", advice="what to do"),),
        artifacts=(
            *run.artifacts,
            replace(kernels, id="piece.py", path="piece.py", piece="piece_0"),
            replace(kernels, id="alone", path=None, compile_id=None, title="of nothing"),
        ),
    )


def shape_and_text(text: str) -> Tuple[List[str], str]:
    """Return the structure of Markdown (the kinds of its tokens, without text and code), and what is read."""
    parser = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"])
    shape, words, todo = [], [], list(reversed(parser.parse(text)))
    while todo:
        token = todo.pop()
        if token.type == "inline":
            todo += reversed(token.children)
        elif token.type in ("text", "code_inline", "fence"):
            words.append(token.content)
        elif token.type not in ("text_special", "softbreak"):
            shape.append(token.type)
        if token.type in ("text_special", "softbreak"):
            words.append(token.content or " ")
        if token.type == "fence":
            shape.append(token.type)
    return shape, "".join(words)


def plain(text: str) -> str:
    return "".join(text.replace("`", "").split())


def reports(run: Run) -> Dict[str, str]:
    return {"index.md": index_markdown(run), "flow.md": flow_markdown([(run.notes[0], run), ("second", run)])}


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("markup", MARKUP)
def test_every_text_of_the_model_stays_text(markup: str, first: bool) -> None:
    def with_(what: str) -> Callable[[str], str]:
        return lambda text: f"{what} {text}" if first else f"{text} {what}"

    path = re.sub(r"[/\\]", "", markup)
    whole = whole_run()
    marked = reports(everywhere(with_(markup), with_(path), whole))
    words = reports(everywhere(with_("MARK"), with_("PATH"), whole))
    for name, text in words.items():
        expected_shape, expected = shape_and_text(text)
        shape, shown = shape_and_text(marked[name])
        assert shape == expected_shape, name
        if name == "index.md" and "\x1b" not in markup and "\n" not in markup:  # of errors the first line is shown
            assert plain(shown) == plain(expected.replace("MARK", plain(markup)).replace("PATH", plain(path)))


@pytest.mark.parametrize("markup", MARKUP)
def test_one_text_is_the_same_in_every_place(markup: str) -> None:
    expected = plain(markup)
    for text in (f"# {inline(markup)}", f"- {inline(markup)}", f"**{inline(markup)}**", inline(markup), code(markup)):
        assert plain(shape_and_text(text)[1]) == expected, text
    table = f"| {inline(markup)} | {code(markup, in_table=True)} |\n|---|---|\n| x | {inline(markup)} |"
    shape, shown = shape_and_text(table)
    assert (shape.count("th_open"), shape.count("td_open")) == (2, 2)
    assert plain(shown) == plain(f"{expected}{expected}x{expected}")
    block = shape_and_text("\n".join(["before", *fenced(markup), "after"]))[0]
    assert block == ["paragraph_open", "paragraph_close", "fence", "paragraph_open", "paragraph_close"]
    shape, _ = shape_and_text(link(markup, f"folder/{markup}"))
    assert shape == ["paragraph_open", "link_open", "link_close", "paragraph_close"]
    assert re.search(r"[<>`]", html(markup).replace("&lt;", "").replace("&gt;", "")) is None


@pytest.mark.parametrize(
    "text",
    [
        "torch._dynamo.config",
        "L['x'].size()[0] == 3",
        "C:\\run\\new",
        "__compiled_fn_0.py",
        "a <b",
        "2 + 3 - 4",
        "a_b_c",
    ],
)
def test_what_is_no_markup_stays_readable(text: str) -> None:
    assert inline(text) == text.replace("<", "\\<")


@pytest.mark.parametrize("markup", MARKUP)
def test_the_summary_of_tests_has_no_markup_of_theirs(markup: str) -> None:
    def summary(name: str) -> str:
        counts = dict.fromkeys(NAMES, 1)
        return BaselineSummary({name: TestResult(counts, (f"1 {name}",), name)}).markdown()

    assert shape_and_text(summary(markup))[0] == shape_and_text(summary("MARK"))[0]
