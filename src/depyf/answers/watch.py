"""What ``watch`` prints while a program runs: one line for each recompile, graph break and fallback, and a summary."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Dict, Final, Iterator, List, Literal, Optional, Sequence, Tuple, get_args

from depyf.base.asynchronous import synchronous
from depyf.base.plain_data import Answer

WatchEventKind = Literal["recompile", "graph break", "fallback"]
RECOMPILE: Final = "recompile"
BREAK: Final = "graph break"
FALLBACK: Final = "fallback"


@dataclass(frozen=True)
class WatchEvent:
    """One of them. ``kind`` is ``recompile``, ``graph break`` or ``fallback``.

    ``function`` is the user's (or the resume function's) name, ``place`` the file and the line of the user that is to
    blame, None where torch does not report one. ``words`` say what happened, ``advice`` what avoids it (may be empty).
    ``cause`` distinguishes graph breaks: torch's reason, and the line where it is, which may be a library's. Of a
    fallback it is its kind, in words. ``stack`` has file, line and function of the frames that led to it, the outermost
    first: the user's that called compiled code, and from there on all.
    """

    kind: WatchEventKind
    compile_id: Optional[str]
    function: str
    place: Optional[Tuple[str, int]]
    words: str
    advice: str = ""
    cause: Tuple[object, ...] = ()
    stack: Tuple[Tuple[str, int, str], ...] = field(default=(), repr=False, compare=False)

    def __str__(self) -> str:
        """Return one line: ``recompile f [0/1] train.py:12: n is 4, and was compiled for 3``."""
        number = "" if self.compile_id is None else f" [{self.compile_id}]"
        where = "" if self.place is None else f" {shortened(self.place[0])}:{self.place[1]}"
        return " ".join(f"{self.kind} {self.function}{number}{where}: {self.words}".split())


def shortened(path: str) -> str:
    """Return ``path`` relative to the current directory if it is below it."""
    try:
        relative = os.path.relpath(path)
    except synchronous(OSError, ValueError):  # the directory was deleted, or is on another drive
        return path
    return path if relative.startswith("..") else relative


@dataclass(frozen=True)
class Watched(Answer, kind="watch"):
    """All that ``watch`` has reported, in order. ``compiled`` is whether Dynamo has tried to compile anything."""

    happened: Tuple[WatchEvent, ...]
    compiled: bool
    graphs: int

    def __str__(self) -> str:
        return "\n".join([*map(str, self.happened), *summary(self.happened, compiled=self.compiled)])


def summary(happened: Sequence[WatchEvent], *, compiled: bool) -> Iterator[str]:
    """Yield lines for the end: how many of each kind, and the places with most of them, each with how to avoid it.
    ``compiled`` is whether anything was compiled at all."""
    if not compiled:
        yield "depyf watched: nothing was compiled"
        return
    numbers = [_counted([each for each in happened if each.kind == kind], kind) for kind in get_args(WatchEventKind)]
    yield "depyf watched: " + ", ".join(numbers)
    groups: Dict[Tuple[object, ...], List[WatchEvent]] = {}  # by what one advice is for
    for each in happened:
        groups.setdefault((each.kind, each.function, each.place, each.cause, each.advice), []).append(each)
    for alike in sorted(groups.values(), key=len, reverse=True)[:5]:
        kind, function, place, advice = alike[0].kind, alike[0].function, alike[0].place, alike[0].advice
        where = "" if place is None else f", {shortened(place[0])}:{place[1]}"
        yield f"  {_counted(alike, kind)} in {function}{where}" + (f". {advice}" if advice else "")


def _counted(alike: Sequence[WatchEvent], kind: str) -> str:
    """Return the number of events of one kind: graph breaks as docs/glossary.md defines them."""
    number = len({each.cause for each in alike}) if kind == BREAK else len(alike)
    return counted(number, kind) + (f" (met in {len(alike)} compilations)" if len(alike) > number else "")


def counted(count: int, word: str, several: str = "") -> str:
    """Return ``1 call``, ``2 calls``; ``several`` is a plural of another form."""
    return f"{count} {word if count == 1 else several or f'{word}s'}"
