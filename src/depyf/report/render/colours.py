"""The colours of graphs, from the page's style sheet (``web/style/base.css``), for output without a style sheet."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Tuple

_STYLE = Path(__file__).parent / "web" / "style" / "base.css"


@functools.lru_cache(maxsize=None)
def colours_of_graphs() -> Tuple[str, ...]:
    """Return red, green and blue of each colour on a light ground, as CSS writes them: ``47,111,219``."""
    found = re.findall(r"--g\d+: light-dark\(#(\w{6}),", _STYLE.read_text(encoding="utf-8"))
    return tuple(",".join(str(each) for each in bytes.fromhex(colour)) for colour in found)
