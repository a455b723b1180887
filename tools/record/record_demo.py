"""Drive the page through six questions in Chromium, as an animated PNG of 20 seconds, which browsers play.

An overview comes first; of each question what is clicked, in a frame, and twice as long what it leads to.

    python tools/record/record_demo.py --dump FOLDER --after FOLDER [--out demo.png] [--seconds 20]

``--dump`` is a dump with a graph break, a recompilation and kernels; ``--after`` another one of the same program. It
writes the picture only. The questions are those of ``tools/measure/measure_tasks.py``, which counts clicks.
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any, Iterator, List, Tuple

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools" / "measure"), str(ROOT / "tests" / "support"), str(ROOT / "src")]

from browser import browser, opened
from dumps import dumped
from measure_tasks import TASKS, Clicks, compared_page, what_changed

from depyf.report.render.page import render_page

_CAPTION = """(text) => {
    const caption = document.getElementById('demo') || document.body.appendChild(document.createElement('p'));
    caption.id = 'demo';
    caption.textContent = text;
    Object.assign(caption.style, {position: 'fixed', bottom: '0', left: '0', right: '0', margin: '0', padding: '10px',
        background: '#0a58b8', color: '#fff', font: '600 18px sans-serif', textAlign: 'center', zIndex: 99});
}"""


_OPENING = "What did torch.compile do?"

Film = List[Tuple[bytes, int]]
"""Pictures, and how long each is shown beside the others: answers twice as long as clicks."""


class Filmed(Clicks):
    """A tab that is photographed before each click, when what is clicked has a frame, and where the answer stands."""

    def __init__(self, tab: Any, caption: str, film: Film) -> None:
        super().__init__(tab)
        self._film = film
        tab.evaluate(_CAPTION, caption)

    def click(self, selector: str) -> None:
        target = self.tab.locator(selector).first
        target.evaluate("(each) => { each.style.outline = '3px solid #e8590c'; each.style.outlineOffset = '-3px'; }")
        self._film.append((self.tab.screenshot(), 1))
        super().click(selector)
        target.evaluate("(each) => { each.style.outline = each.style.outlineOffset = ''; }")

    def answer(self) -> None:
        self.tab.wait_for_timeout(150)
        self._film.append((self.tab.screenshot(), 2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dump", metavar="FOLDER", required=True)
    parser.add_argument("--after", metavar="FOLDER", required=True)
    parser.add_argument("--out", metavar="FILE", default="demo.png")
    parser.add_argument("--seconds", type=float, default=20.0)
    arguments = parser.parse_args()
    before, after = dumped(Path(arguments.dump)), dumped(Path(arguments.after))
    film: Film = []
    with tempfile.TemporaryDirectory() as scratch, browser() as chromium:
        page = Path(scratch, "index.html")
        page.write_text(render_page(*before), encoding="utf-8")
        with opened(chromium, page, width=1280, height=720) as tab:
            Filmed(tab, _OPENING, film).answer()
        answered = [task for task, has_answer in TASKS if has_answer(before[0])]
        for name, task in [*answered, ("what changed", what_changed)]:
            if task is what_changed:
                page.write_text(compared_page(before, after), encoding="utf-8")
            with opened(chromium, page, width=1280, height=720) as tab:
                filmed = Filmed(tab, f"{name[0].upper()}{name[1:]}?", film)
                task(filmed, before[0])
                filmed.answer()
    Path(arguments.out).write_bytes(animated(film, arguments.seconds / sum(beats for _, beats in film)))
    print(f"{arguments.out}: {len(film)} pictures, {Path(arguments.out).stat().st_size / 1e6:.1f} MB")


def animated(film: Film, seconds: float) -> bytes:
    """Return pictures of one size as one animated PNG, which shows each for ``seconds``, times its number.

    PNG specification, third edition, "Animation information": frames are the image data of each picture.
    """
    head = next(data for name, data in chunks(film[0][0]) if name == b"IHDR")
    parts = [chunk(b"IHDR", head), chunk(b"acTL", struct.pack(">II", len(film), 0))]
    number = 0
    for at, (picture, beats) in enumerate(film):
        if next(data for name, data in chunks(picture) if name == b"IHDR") != head:
            raise ValueError(f"picture {at} has another size or form than the first")
        control = struct.pack(
            ">IIIIIHHBB", number, *struct.unpack(">II", head[:8]), 0, 0, int(1000 * seconds * beats), 1000, 0, 0
        )
        parts.append(chunk(b"fcTL", control))
        number += 1
        for data in (data for name, data in chunks(picture) if name == b"IDAT"):
            parts.append(chunk(b"IDAT", data) if at == 0 else chunk(b"fdAT", struct.pack(">I", number) + data))
            number += at > 0
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts) + chunk(b"IEND", b"")


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def chunks(picture: bytes) -> Iterator[Tuple[bytes, bytes]]:
    at = 8
    while at < len(picture):
        (size,) = struct.unpack(">I", picture[at : at + 4])
        yield picture[at + 4 : at + 8], picture[at + 8 : at + 8 + size]
        at += size + 12


if __name__ == "__main__":
    main()
