"""WCAG 2 AA, by HTML_CodeSniffer and a measurement of contrast of our own, in every view, light and dark, two widths.

HTML_CodeSniffer does not see colours that are mixed by the browser, so contrast is measured here as well.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Dict, List

import pytest
from browser import VIEWS, opened

CHECKER = Path(sys.prefix, "npm", "node_modules", "html_codesniffer", "build", "HTMLCS.js")

ADDRESSES = [
    "overview",
    "source/f0/20",
    "source/f6/33",
    "flow/f0",
    "breaks/0",
    "recompiles",
    "guards/6%2F0",
    "time",
    "layers",
    "compilations/6%2F4",
    "stages/__compiled_fn_1.kernel_0.py/L9",
    "stages/__compiled_fn_1.Forward_graph.0.py?diff=__compiled_fn_1.Joint_graph.0.py",
    "ranks",
]

RUN = """() => new Promise((done) => HTMLCS.process("WCAG2AA", document, () => done(
    HTMLCS.getMessages().filter((each) => each.type === HTMLCS.ERROR)
        .map((each) => [each.code, each.msg, (each.element.outerHTML || "").slice(0, 200)]))))"""

# Links of the page lead to views, and not to elements with such an id: test_links_lead_somewhere checks them.
NOT_OURS = "NoSuchID"

CONTRAST = """() => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    const brush = canvas.getContext("2d", {willReadFrequently: true});
    const over = (colours) => {  // from the ground up
        brush.clearRect(0, 0, 1, 1);
        for (const colour of colours) { brush.fillStyle = colour; brush.fillRect(0, 0, 1, 1); }
        return [...brush.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (rgb) => {
        const [r, g, b] = rgb.map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const bad = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    let seen = 0;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const element = node.parentElement;
        if (!node.data.trim() || !element.checkVisibility()) continue;
        if (element.closest("script, style, svg title, option")) continue;
        const grounds = [];
        for (let each = element; each; each = each.parentElement) {
            if (each.closest("svg") && each.localName !== "svg") continue;  // boxes are drawn, not grounds of text
            grounds.unshift(getComputedStyle(each).backgroundColor);
        }
        const style = getComputedStyle(element);
        if (element.closest("svg")) grounds.push(getComputedStyle(document.querySelector(".flow-frame")).fill);
        const ink = element.closest("svg") ? style.fill : style.color;
        const [one, other] = [light(over(grounds)), light(over([...grounds, ink]))].sort((a, b) => b - a);
        const ratio = (one + 0.05) / (other + 0.05);
        seen += 1;
        if (ratio < 4.5) bad.push([ratio, element.className.toString(), node.data.slice(0, 40)]);
    }
    return {bad, seen};
}"""


@pytest.fixture(scope="module")
def checker() -> str:
    if not CHECKER.is_file():
        pytest.skip(f"HTML_CodeSniffer is not there (npm install --prefix {sys.prefix}/npm html_codesniffer)")
    return CHECKER.read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_no_error_at_level_aa(chromium: Any, pages: Dict[str, Path], checker: str, scheme: str, width: int) -> None:
    with opened(chromium, pages["ranks"], width=width, scheme=scheme) as page:
        page.evaluate(checker)
        for address in ADDRESSES:
            page.evaluate(f"location.hash = '#{address}'")
            page.wait_for_timeout(60)
            errors = [each for each in page.evaluate(RUN) if NOT_OURS not in each[0]]
            assert errors == [], address


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dialogs_and_the_comparison_have_no_error_and_contrast(
    chromium: Any, pages: Dict[str, Path], checker: str, scheme: str
) -> None:
    with opened(chromium, pages["diff"], scheme=scheme) as page:
        page.evaluate(checker)
        for keys in ((), ("?",), ("Escape", "Control+k", "s", "i", "n")):
            for key in keys:
                page.keyboard.press(key)
            page.wait_for_timeout(200)
            errors = [each for each in page.evaluate(RUN) if NOT_OURS not in each[0]]
            assert errors == [], keys
            found = page.evaluate(CONTRAST)
            assert found["seen"] > 20
            assert found["bad"] == [], keys
        assert page.locator("#search a").count() > 2


def test_the_checker_finds_what_is_wrong(chromium: Any, pages: Dict[str, Path], checker: str) -> None:
    with opened(chromium, pages["sample"]) as page:
        page.evaluate("document.querySelector('main').insertAdjacentHTML('beforeend', '<input><img src=\"data:,\">')")
        page.evaluate(checker)
        codes = " ".join(each[0] for each in page.evaluate(RUN))
        assert "H37" in codes
        assert "F68" in codes


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_contrast(chromium: Any, pages: Dict[str, Path], scheme: str) -> None:
    with opened(chromium, pages["ranks"], scheme=scheme) as page:
        for address in ADDRESSES:
            page.evaluate(f"location.hash = '#{address}'")
            page.wait_for_timeout(60)
            found = page.evaluate(CONTRAST)
            assert found["seen"] > 20
            assert found["bad"] == [], address
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: #777\">pale</p>')")
        assert [text for _, _, text in page.evaluate(CONTRAST)["bad"]] == ["pale"]


def test_links_lead_somewhere(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"]) as page:
        artifacts = page.evaluate("Object.keys(JSON.parse(document.getElementById('data').textContent).runs[0].texts)")
        for address in ADDRESSES[:-1]:
            page.evaluate(f"location.hash = '#{address}'")
            page.wait_for_timeout(60)
            links: List[str] = page.eval_on_selector_all(
                "a[href^='#']", "all => all.map((e) => e.getAttribute('href'))"
            )
            assert len(links) > 7
            for link in set(links) - {"#main"}:
                view, *rest = link[1:].partition("?")[0].split("/")
                assert view in VIEWS, link
                assert view != "stages" or not rest or rest[0] in artifacts, link


def test_there_are_landmarks_and_every_control_has_a_name(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#source/f0/20") as page:
        assert page.locator("header, main, nav[aria-label]").count() >= 3
        assert page.locator("h1:visible, h1.hidden").count() >= 1
        nameless = page.eval_on_selector_all(
            "button, select, input, [role=listbox], [role=region], nav",
            """all => all.filter((e) => e.checkVisibility() && !e.getAttribute("aria-label"))
                .filter((e) => !(e.labels && e.labels.length) && !e.textContent.trim()).map((e) => e.outerHTML)""",
        )
        assert nameless == []


def test_the_focus_can_be_seen(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#source/f0") as page:
        for _ in range(25):
            page.keyboard.press("Tab")
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid", page.evaluate("document.activeElement.outerHTML.slice(0, 200)")


SMALL = ".stripes"
"""Marks without text."""


@pytest.mark.parametrize("width", [400, 1280])
def test_text_is_large_enough_to_read_and_targets_to_hit(chromium: Any, pages: Dict[str, Path], width: int) -> None:
    with opened(chromium, pages["sample"], width=width) as page:
        for address in ADDRESSES[:-1]:
            page.evaluate(f"location.hash = '#{address}'")
            page.wait_for_timeout(60)
            small = page.evaluate(
                """(small) => [...document.querySelectorAll("body *")].filter((each) => {
                  const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
                  const shown = each.getClientRects().length && !each.closest("svg, [hidden], .hidden");
                  return own && shown && !each.closest(small) && parseFloat(getComputedStyle(each).fontSize) < 14;
                }).map((each) => `${each.className} ${each.textContent.slice(0, 40)}`)""",
                SMALL,
            )
            assert small == [], address
            low = page.evaluate(
                """() => [...document.querySelectorAll("button, select, input, summary, nav a")].filter((each) => {
                  const box = each.getBoundingClientRect();
                  const target = (each.closest("label") || each).getBoundingClientRect(); // labels are clicked
                  return box.height && (target.height < 24 || (each.type === "checkbox" && target.width < 24));
                }).map((each) => `${each.outerHTML.slice(0, 80)} ${each.getBoundingClientRect().height}`)"""
            )
            assert low == [], address


def test_letters_of_drawings_are_shown_as_large(chromium: Any, pages: Dict[str, Path]) -> None:
    with opened(chromium, pages["sample"], "#flow/f0") as page:
        sizes = page.eval_on_selector_all(
            ".drawing text",
            "all => all.map(e => parseFloat(getComputedStyle(e).fontSize) * e.getScreenCTM().a)",
        )
        assert min(sizes) >= 14
        assert page.evaluate("(e => e.scrollWidth - e.clientWidth)(document.querySelector('.drawing'))") <= 0
