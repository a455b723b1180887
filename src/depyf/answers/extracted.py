"""The answer of ``extract``: where the script of a graph is, and what happened when it was run."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from typing import Iterator, Optional, Tuple


@dataclass(frozen=True)
class Extracted:
    """A script that was written; prints as text.

    ``graph`` is what was extracted, ``path`` the script, ``values`` the file of saved values beside it (None where they
    are made up). ``runs`` says whether the script ended well when it was run in a process of its own: it runs, and its
    compiled results are the eager ones (None: it was not tried); ``output`` is what it printed. ``notes`` say what is
    not as it was in the program.
    """

    graph: str
    path: str
    values: Optional[str] = None
    runs: Optional[bool] = None
    output: str = field(default="", repr=False)
    notes: Tuple[str, ...] = ()

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return "\n".join(_lines(self))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _lines(answer: Extracted) -> Iterator[str]:
    yield f"{answer.graph}: {answer.path}"
    if answer.values is not None:
        yield f"  the values of its inputs: {answer.values}"
    if answer.runs is None:
        yield "  not run yet"
    else:
        if answer.runs:
            count = sum(line.startswith("    same") for line in answer.output.splitlines())
            yield f"  checked in a process of its own: it runs, and gives the same compiled as eagerly ({count} values)"
        else:
            yield "  checked in a process of its own: it does NOT run correctly by itself"
            yield from (f"    {line}" for line in answer.output.splitlines()[-12:])
    for note in answer.notes:
        yield f"  note: {note}"
