"""Lines that are not of the program are folded: the profiler's in transformed code, names of parameters in graphs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Tuple

from browser import opened
from run_builder import RunBuilder

from depyf.report.model.run import Function, Link, SourceFile
from depyf.report.render.page import render_page

TRANSFORMED = """\
def __transformed_code_0_for_f(x):
    is_profiler_enabled = __import_torch_dot_autograd_dot_profiler._is_profiler_enabled
    __temp_0 = __import_torch_dot__dynamo_dot_utils
    tmp_1 = None
    if is_profiler_enabled:
        tmp_1 = __temp_0.record_pregraph_bytecode_enter()
    if tmp_1 is not None:
        __temp_0.record_pregraph_bytecode_exit(tmp_1)
    y = __compiled_fn_2(x)[0]
    other = None
    if other:
        return y
"""


def transformed_page(tmp_path: Path, text: str) -> Tuple[Path, str]:
    """The page of a function with this transformed code, and the id of that artifact."""
    b = RunBuilder(sources=[SourceFile("/m.py", "y = f(x)")])
    b.functions.append(Function("f", "f", 0, 1, 1))
    b.compilation("0/0", 0, [("sin", "sin(x)", ((0, 1),))])
    transformed = next(each.id for each in b.artifacts if each.kind == "transformed")
    b.texts[transformed] = text
    path = tmp_path / "index.html"
    path.write_text(render_page(*b.run()), encoding="utf-8")
    return path, transformed


def test_what_dynamo_adds_for_the_profiler_is_dimmed(chromium: Any, tmp_path: Path) -> None:
    path, transformed = transformed_page(tmp_path, TRANSFORMED)
    for address, pane in ((f"#stages/{transformed}", "stage-text"), (f"#source/f0?stage={transformed}", "stage-code")):
        with opened(chromium, path, address) as page:
            dimmed = page.eval_on_selector_all(f"#{pane} .line.bookkeeping", "all => all.map(e => +e.dataset.line)")
            assert dimmed == [2, 3, 4, 5, 6, 7, 8]
            assert not page.is_visible(f"#{pane}-L2")
            assert page.is_visible(f"#{pane}-L9")
            page.click(f"#{pane}-L2 + .remarks >> text=not of your program (7 lines)")
            assert page.is_visible(f"#{pane}-L2")
            page.click(f"#{pane}-L2 + .remarks button")
            page.focus(f"#{pane}")
            page.keyboard.press("Home")
            page.keyboard.press("ArrowDown")
            assert page.is_visible(f"#{pane}-L2")


OF_MODULES = """\
def __transformed_code_0_for_f(self, x):
    modules = self._modules['h']._modules
    parameters = modules['0']._parameters
    weight = parameters['weight']
    own = x.config['weight']
    y = __compiled_fn_2(x, weight, own)[0]
    del (
        modules, parameters,
        weight
    )
    del own
    return y
"""


def test_taking_parameters_out_of_modules_is_folded(chromium: Any, tmp_path: Path) -> None:
    path, transformed = transformed_page(tmp_path, OF_MODULES)
    with opened(chromium, path, f"#stages/{transformed}") as page:
        folded = page.eval_on_selector_all("#stage-text .line.bookkeeping", "all => all.map(e => +e.dataset.line)")
        assert folded == [2, 3, 4, 7, 8, 9, 10]
        page.click("#stage-text-L2 + .remarks >> text=Parameters taken out of modules, not of your program (7 lines)")
        assert page.is_visible("#stage-text-L4")


def parameters_page(tmp_path: Path, layers: int = 2, own_input: bool = False) -> Path:
    """The page of a graph that names an input, and the parameters of ``layers`` layers, before it computes.

    Line 2 of the source is in its operation (and with ``own_input`` in the input), line 1 in parameters alone."""
    b = RunBuilder(sources=[SourceFile("/m.py", "w = self.layers[0].weight\ny = w @ x")])
    b.functions.append(Function("f", "f", 0, 1, 2))
    b.compilation("0/0", 0, [("mm", "mm(l_x_)", ((0, 2),))])
    graph = next(each for each in b.artifacts if each.stage == "Captured_Graph")
    names = [f"l_self_modules_layers_modules_{n}_modules_norm_parameters_weight_" for n in range(layers)]
    given = [f"        {name} = {name.replace('norm', 'Norm').replace('l_', 'L_', 1)}" for name in names]
    lines = b.texts[graph.id].splitlines()
    added = ["        l_x_ = L_x_", *given]
    b.texts[graph.id] = "\n".join([*lines[:6], *added, *lines[6:]]) + "\n"
    links = [replace(each, first=each.first + len(added), last=each.last + len(added)) for each in graph.links]
    links += [Link(8 + n, 8 + n, ((0, 1),), (name,)) for n, name in enumerate(names)]
    links += [Link(7, 7, ((0, 2),), ("l_x_",))] if own_input else []
    b.artifacts[b.artifacts.index(graph)] = replace(graph, links=tuple(links))
    path = tmp_path / "index.html"
    path.write_text(render_page(*b.run()), encoding="utf-8")
    return path


def test_names_of_parameters_are_folded_in_a_graph_beside_the_source(chromium: Any, tmp_path: Path) -> None:
    with opened(chromium, parameters_page(tmp_path), "#source/f0/2") as page:
        folded = page.eval_on_selector_all("#stage-code .line.bookkeeping", "all => all.map(e => +e.dataset.line)")
        assert folded == [8, 9]
        assert [page.is_visible(f"#stage-code-L{n}") for n in (7, 8, 9, 11)] == [True, False, False, True]
        page.click("#stage-code >> text=Names of parameters (2 lines)")
        assert page.is_visible("#stage-code-L8")
    with opened(chromium, parameters_page(tmp_path), "#stages/__compiled_fn_1.Captured_Graph.0.py") as page:
        assert page.is_visible("#stage-text-L8")  # the file as it is


def test_what_is_chosen_does_not_unfold(chromium: Any, tmp_path: Path) -> None:
    with opened(chromium, parameters_page(tmp_path), "#source/f0/1") as page:
        page.wait_for_selector("#stage-code .line.hit", state="attached")
        assert not page.is_visible("#stage-code-L8")
        hits = page.locator("[data-pane=stage] .hits")
        assert hits.inner_text() == "1 of 1, folded"
        page.keyboard.press("Escape")
        page.click("[data-fold]")
        page.click("#source-code-L1 .text")
        assert hits.inner_text() == "1 of 1"


def test_stages_count_the_places_that_they_show(chromium: Any, tmp_path: Path) -> None:
    """Line 2 names an input in the captured graph, and is computed below; another stage is shown."""
    with opened(chromium, parameters_page(tmp_path, own_input=True), "#source/f0/2") as page:
        page.click("[data-pane=stage] .tab:has-text('Forward graph')")
        captured = page.locator("[data-pane=stage] .tab:has-text('Captured graph')")
        assert captured.inner_text() == "Captured graph1"
        captured.click()
        assert page.inner_text("[data-pane=stage] .hits") == "1 of 1"
        assert captured.inner_text() == "Captured graph1"


def test_a_fold_is_opened_with_the_keyboard(chromium: Any, tmp_path: Path) -> None:
    with opened(chromium, parameters_page(tmp_path), "#source/f0/2") as page:
        button = page.locator("#stage-code [data-fold]")
        button.focus()
        page.keyboard.press("Enter")
        assert page.is_visible("#stage-code-L8")
        assert button.get_attribute("aria-expanded") == "true"
        page.keyboard.press("Space")
        assert not page.is_visible("#stage-code-L8")
        page.focus("#stage-code")
        page.keyboard.press("Home")
        for _ in range(7):
            page.keyboard.press("ArrowDown")
        assert page.is_visible("#stage-code-L8")
        assert button.get_attribute("aria-expanded") == "true"


def test_what_is_folded_is_copied_with_the_rest(chromium: Any, tmp_path: Path) -> None:
    with opened(chromium, parameters_page(tmp_path), "#source/f0/2") as page:
        marked = "(pane) => { getSelection().selectAllChildren(pane); return getSelection().toString(); }"
        copied = page.locator("#stage-code .inner").evaluate(marked)
        assert "l_self_modules_layers_modules_1_modules_norm_parameters_weight_ = L_self" in copied


def test_folded_lines_take_no_room_before_they_are_drawn(chromium: Any, tmp_path: Path) -> None:
    with opened(chromium, parameters_page(tmp_path, layers=2000), "#source/f0/2") as page:
        assert page.locator("#stage-code .line.hit").is_visible()
        assert page.locator("#stage-code .inner").bounding_box()["height"] < 600
        assert page.is_visible("#stage-code-L7")


def test_more_stages_than_have_room_show_half_of_a_row(chromium: Any, tmp_path: Path) -> None:
    b = RunBuilder(sources=[SourceFile("/m.py", "y = f(x)")])
    b.functions.append(Function("f", "f", 0, 1, 1))
    b.compilation("0/0", 0, [("sin", "sin(x)", ((0, 1),))])
    graph = next(each for each in b.artifacts if each.stage == "Captured_Graph")
    b.artifacts += [replace(graph, id=f"g{n}", stage=f"a_stage_with_a_long_name_{n}") for n in range(20)]
    path = tmp_path / "index.html"
    path.write_text(render_page(*b.run()), encoding="utf-8")
    with opened(chromium, path, "#source/f0/1") as page:
        edge = page.locator("[data-pane=stage] .where").bounding_box()
        bottom = edge["y"] + edge["height"]
        boxes = [each.bounding_box() for each in page.locator("[data-pane=stage] .where .tab").all()]
        assert any(box["y"] + 6 < bottom < box["y"] + box["height"] - 6 for box in boxes)
