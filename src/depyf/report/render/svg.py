"""A few shapes as SVG text; colours come from the page's style sheet."""

from __future__ import annotations

import html
import re
from typing import List, Sequence, Tuple

from depyf.base.messages import cut
from depyf.base.quick_dataclass import dataclass

_TITLE_WIDTH = 6.9
"""How wide a letter of a box is, on average and generously, in pixels: texts that could be wider are cut."""
_SMALL_WIDTH = 6.3
_SCALE = 1.22
"""How much larger a drawing is shown than it is drawn: its letters have 14 pixels then."""
LINE = 16
"""Pixels between two lines of details in a box."""
_APART = 24
"""Pixels between two drawings in one file."""


@dataclass(frozen=True)
class Box:
    """A place on the drawing, in pixels."""

    x: int
    y: int
    width: int
    height: int


def svg(width: int, height: int, title: str, body: str) -> str:
    """Return a whole drawing. Links in it can be reached, so it is a group to assistive technology, not an image."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{round(width * _SCALE)}" height="{round(height * _SCALE)}" '
        f'viewBox="0 0 {width} {height}" role="group" aria-label="{_escaped(title)}">'
        f'<defs><marker id="head" viewBox="0 0 8 8" refX="7.5" refY="4" '
        f'markerWidth="7" markerHeight="7" orient="auto"><path class="flow-head" d="M0 0.5 L8 4 L0 7.5 z"/></marker>'
        f"</defs>{body}</svg>"
    )


def stacked(drawings: Sequence[str], style: str, page: str) -> str:
    """Return drawings below each other as one file with a style sheet; links into the page get its address ``page``."""
    # Drawings are placed by the sizes in their own heads, the first one on top.
    sizes = [re.search(r'width="(\d+)" height="(\d+)"', each) for each in drawings]
    widths, heights = zip(*((int(size.group(1)), int(size.group(2))) for size in sizes if size)) if sizes else ((), ())
    tops = [sum(heights[:at]) + at * _APART for at in range(len(heights))]
    body = "".join(
        each.replace("<svg ", f'<svg y="{top}" ', 1).replace('href="#', f'href="{_escaped(page)}#')
        for each, top in zip(drawings, tops)
    )
    width, height = max(widths, default=0), sum(heights) + len(heights) * _APART
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"<style>{_escaped(style)}</style>{body}</svg>\n"
    )


def box(place: Box, title: str, text: str = "", href: str = "", kind: str = "", details: Sequence[str] = ()) -> str:
    """Return a box with one line or two, and lines of ``details`` below them, which links to ``href``. Text that does
    not fit is cut; the title (tooltip) has the whole text."""
    middle = place.y + (place.height - LINE * len(details)) / 2
    # One line is centred; of two the first is above the middle.
    baseline = middle + 4 if not text else middle - 3
    lines = [label(place.x + 9, baseline, title, "flow-text flow-mono", limit=int((place.width - 16) / _TITLE_WIDTH))]
    if text:
        lines.append(label(place.x + 9, middle + 12, text, "flow-small", limit=_room(place.width)))
    limit = int((place.width - 16) / _TITLE_WIDTH)
    lines += [
        label(place.x + 9, middle + 12 + LINE * at, each, "flow-text flow-mono", limit=limit)
        for at, each in enumerate(details, 1)
    ]
    shape = (
        f'<rect class="flow-box {kind}" x="{place.x}.5" y="{place.y}.5" width="{place.width}" '
        f'height="{place.height}" rx="4"/>'
    )
    about = f"{title}: {text}" if text else title
    whole = f"<title>{_escaped('; '.join([about, *details]))}</title>"
    inner = f"{whole}{shape}{''.join(lines)}"
    return f'<a href="{_escaped(href)}">{inner}</a>' if href else f"<g>{inner}</g>"


def fits(text: str, width: int) -> bool:
    """Return whether the second line of a box has room for a text."""
    return len(text) <= _room(width)


def _room(width: int) -> int:
    return int((width - 16) / _SMALL_WIDTH)


def label(x: float, y: float, text: str, kind: str, *, limit: int = 200, end: bool = False) -> str:
    """Return one line of text that begins (or ends) at ``x``."""
    anchor = ' text-anchor="end"' if end else ""
    shown = cut(text, limit, "…")
    whole = "" if shown == text else f' data-whole="{_escaped(text)}"'  # for the list of a narrow page
    return f'<text class="{kind}" x="{x:g}" y="{y:g}"{anchor}{whole}>{_escaped(shown)}</text>' if text else ""


def arrow(points: Sequence[Tuple[int, int]]) -> str:
    """Return a line along the points with a head at its end; corners are rounded a little."""
    steps: List[str] = [f"M{points[0][0] + 0.5:g} {points[0][1] + 0.5:g}"]
    # At each corner: a line up to ``_RADIUS`` before it, and a quadratic curve around it.
    for (x0, y0), (x1, y1), (x2, y2) in zip(points, points[1:], points[2:]):
        before, after = _towards(x1, y1, x0, y0), _towards(x1, y1, x2, y2)
        steps.append(
            f"L{before[0] + 0.5:g} {before[1] + 0.5:g}Q{x1 + 0.5:g} {y1 + 0.5:g} {after[0] + 0.5:g} {after[1] + 0.5:g}"
        )
    steps.append(f"L{points[-1][0] + 0.5:g} {points[-1][1] + 0.5:g}")
    return f'<path class="flow-edge" aria-hidden="true" marker-end="url(#head)" d="{"".join(steps)}"/>'


_RADIUS = 5
"""Of the corners of arrows, in pixels."""


def _towards(x: int, y: int, to_x: int, to_y: int) -> Tuple[float, float]:
    length = max(abs(to_x - x), abs(to_y - y), 1)
    share = min(_RADIUS, length / 2) / length
    return x + (to_x - x) * share, y + (to_y - y) * share


def _escaped(text: str) -> str:
    """Return text for SVG, without the characters that XML has no form for."""
    return html.escape("".join(c if c >= " " else " " for c in text))
