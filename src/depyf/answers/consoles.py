"""How IPython's console shows an answer: as text. Notebooks show its table."""

from __future__ import annotations

from typing import Protocol


class Printer(Protocol):
    """IPython's printer, as far as it is used."""

    def text(self, text: str) -> object: ...


def in_console(answer: object, printer: Printer, *_: object) -> None:
    """Print the answer's text; IPython calls this as ``_repr_pretty_``."""
    printer.text(str(answer))
