"""Lines of the program in a summary for the terminal, as links (OSC 8) to the page at that line."""

from __future__ import annotations

from pathlib import Path
from typing import Dict, Mapping, Optional

from depyf.base.late_regex import regex
from depyf.report.model.places import place_text
from depyf.report.model.run import Place, Run

_LINK = regex(r"\x1b\]8;;[^\x1b]*\x1b\\")
_PLACE = regex(r"(?<![^\s(),])[^\s(),]+:\d+")


def hyperlink(address: str, text: str) -> str:
    """Return the text as a link for terminals; others show the escapes."""
    return f"\x1b]8;;{address}\x1b\\{text}\x1b]8;;\x1b\\"


def without_links(text: str) -> str:
    """Return the text without the escapes of ``hyperlink``."""
    return _LINK.sub("", text)


def addresses_of_lines(run: Run, page: str, rank: Optional[int] = None) -> Dict[str, str]:
    """Return the address on the page of each line that a summary may name, by its text there. ``rank`` is the number of
    the run on a page of several. Lines of two files that have the same text have none.
    """
    places = [each.place for many in (run.findings, run.breaks, run.recompiles, run.fallbacks) for each in many]
    query = "" if rank is None else f"?rank={rank}"
    found: Dict[str, str] = {}
    for place in dict.fromkeys(places):
        function = None if place is None else _function_at(run, place)
        if place is not None and function is not None:
            address = f"{Path(page).resolve().as_uri()}#source/f{function}/{place[1]}{query}"
            text = place_text(run, place)
            found[text] = address if found.get(text, address) == address else ""
    return found


def _function_at(run: Run, place: Place) -> Optional[int]:
    """Return the function that the page shows with this line: the innermost, without its resume functions."""
    source, line = place
    inside = [
        (function.last_line - function.first_line, index)
        for index, function in enumerate(run.functions)
        if function.source == source and function.first_line <= line <= function.last_line
    ]
    return run.root(min(inside)[1]) if inside else None


def with_links(line: str, addresses: Mapping[str, str]) -> str:
    """Return a line of the summary with links."""
    return _PLACE.sub(
        lambda found: hyperlink(addresses[found[0]], found[0]) if addresses.get(found[0]) else found[0], line
    )
