"""List the graph breaks of the installed PyTorch by their codes: for which depyf has advice, and for which it has none.

    python tools/show/list_break_codes.py             print the lists
    python tools/show/list_break_codes.py --write     write them into docs/graph-breaks.md

``tests/diagnosis/test_break_codes.py`` requires that the page is up to date.
"""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Dict, List, Optional

import torch._dynamo

from depyf.diagnosis.break_advice import BreakCause, cause_of_break

PAGE = Path(__file__).resolve().parents[2] / "docs" / "graph-breaks.md"
BEGIN, END = "<!-- begin: list_break_codes.py -->\n", "<!-- end: list_break_codes.py -->\n"


def causes() -> Dict[str, Optional[BreakCause]]:
    """Return the cause that depyf has advice for, by PyTorch's code; None for codes without advice of depyf's own."""
    registry = json.loads((Path(torch._dynamo.__file__).parent / "graph_break_registry.json").read_text())
    # The first of several texts is the latest. A function in the text may lead to a more specific advice.
    return {
        code: cause_of_break(texts[0]["Gb_type"], str(texts[0].get("Explanation", "")))
        for code, texts in registry.items()
    }


def lists() -> str:
    """Return the lists in Markdown."""
    found = causes()
    by_cause: Dict[BreakCause, List[str]] = {}
    for code, cause in found.items():
        if cause is not None:
            by_cause.setdefault(cause, []).append(code)
    without = sorted(code for code, cause in found.items() if cause is None)
    version = ".".join(torch.__version__.split(".")[:2])
    lines = [f"PyTorch {version} has {len(found)} codes. depyf has advice of its own for:", ""]
    lines += ["| Cause | Codes |", "|---|---|"]
    lines += [f"| {cause.value} | {', '.join(sorted(codes))} |" for cause, codes in by_cause.items()]
    lines += ["", f"For {len(without)} codes depyf has no advice of its own, and PyTorch's first hint is shown:", ""]
    lines += textwrap.wrap(", ".join(without), 120)
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the page with today's lists."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return f"{before}{BEGIN}\n{lists()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page())
    else:
        print(lists(), end="")
