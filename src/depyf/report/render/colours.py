"""The colours of the page's style sheet (``web/style/base.css``) on a light ground, for output without that sheet."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Mapping, Tuple

from depyf.base.late_regex import regex

STYLES = Path(__file__).parent / "web" / "style"
_VARIABLE = regex(r"^ *(--[\w-]+): (?:light-dark\(([^,]+), [^)]+\)|(.+));$", re.MULTILINE)


@functools.lru_cache(maxsize=None)
def variables() -> Mapping[str, str]:
    """Return the values of the variables of the style sheet, by name: ``--g0`` is ``#2f6fdb``."""
    found = _VARIABLE.findall((STYLES / "base.css").read_text(encoding="utf-8"))
    return {name: light or value for name, light, value in found}


def colours_of_graphs() -> Tuple[str, ...]:
    """Return red, green and blue of each colour of graphs, as CSS writes them: ``47,111,219``."""
    values = [value for name, value in variables().items() if name[2] == "g" and name[3:].isdigit()]
    return tuple(",".join(str(each) for each in bytes.fromhex(value[1:])) for value in values)
