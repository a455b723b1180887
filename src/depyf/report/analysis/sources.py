"""The files of the program that a run is about: a table that grows while places in them are looked up."""

from __future__ import annotations

import functools
import io
import itertools
import os
import tokenize
from typing import Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.own_package import is_own, without_launcher
from depyf.base.regular_files import open_regular
from depyf.base.source_lines import source_lines
from depyf.report.model.run import Place, SourceFile
from depyf.torch_trace import file_names
from depyf.torch_trace.user_code import is_library

ReadText = Callable[[str], Optional[str]]

_COMPILER = regex(r"(?:^|[/\\]torch[/\\])_(?:dynamo|inductor|functorch[/\\]_aot_autograd)[/\\]")


def read_source(path: str) -> Optional[str]:
    """Return the text of a source file or a notebook cell; None if it can't be read."""
    lines = source_lines(path)
    return "".join(lines) if lines else None


def read_named_source(path: str) -> Optional[str]:
    """Return the text of a source file that a log or a dump, perhaps an untrusted one, names; None if it can't be read.
    Only regular files called ``*.py`` are read, as the text is shown on a page.
    """
    if not path.endswith(".py") or not os.path.isabs(path) or path.startswith(("//", "\\\\")):
        return None
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size  # as much is allocated before anything is read
            content = file.read(min(size, _LARGEST_SOURCE) + 1)
        encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
        text = content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
    except synchronous(OSError, SyntaxError, ValueError, LookupError):
        return None
    return text if text and len(content) <= _LARGEST_SOURCE else None


_LARGEST_SOURCE = 1 << 24
"""In bytes: no hand-written file is larger."""


class Sources:
    """Paths by number, in the order in which they were asked for.

    Torch names a file in full in one place and by its last parts in another: ``known`` are full names that shortened
    ones may stand for, ``directory`` is what relative ones are relative to (empty where nobody knows).
    """

    def __init__(self, read: ReadText = read_source, known: Iterable[str] = (), directory: str = "") -> None:
        self._read = read
        self._known: Dict[str, Dict[str, None]] = {}
        """Full names by their last part."""
        self._directory = directory
        self._numbers: Dict[str, int] = {}
        self._numbered: Dict[str, List[str]] = {}
        self._full: Dict[str, str] = {}
        self._placed: Dict[str, int] = {}
        """The numbers of files whose whole name is known, by the name as it was given."""
        self._texts: Dict[str, Optional[str]] = {}
        self._libraries: Dict[int, bool] = {}
        self._unknown: Dict[str, int] = {}
        """Paths whose whole name is not known, and how many names were known then."""
        self._stacks: Dict[Tuple[Tuple[str, int, str], ...], Tuple[int, Tuple[Place, ...]]] = {}
        """The places of stacks, and how many names were known then."""
        self.learned = 0
        """Grows with each name that comes to be known."""
        for path in known:
            if _is_file(path):
                self._learn(_normal(path))

    def index(self, path: str) -> int:
        """Return the number of a file."""
        path = self.full(path)
        number = self._numbers.get(path)
        if number is None:
            number = self._numbers[path] = len(self._numbers)
            self.learned += 1
            self._numbered.setdefault(_last_part(path), []).append(path)
        return number

    def place(self, path: Optional[str], line: Optional[int]) -> Optional[Place]:
        """Return a place, ``None`` if the path is not a file of a program or the line is not known."""
        if not path or not line:
            return None
        number = self._placed.get(path)
        if number is None:
            if not _is_file(path):
                return None
            number = self.index(path)
            if path in self._full:
                self._placed[path] = number
        return number, int(line)

    def known_place(self, path: Optional[str], line: Optional[int]) -> Optional[Place]:
        """Return the place of a path that may be cut off on the left, ``None`` if the rest is unknown."""
        if not path or (not os.path.isabs(self.full(path)) and self.full(path) not in self._numbers):
            return None
        return self.place(path, line)

    def places(self, frames: Sequence[Tuple[str, int, str]]) -> Tuple[Place, ...]:
        """Return the places of the frames of a stack, without those of ``depyf run``, what started it, and transformed
        code, which are not the program's."""
        # Many guards have the stack of one line. Where a name has come to be known since, a place may be another one.
        key = tuple(frames)
        learned, places = self._stacks.get(key, (-1, ()))
        if learned != self.learned:
            before = self.learned  # a frame further in may give the whole name of one that comes before it
            places = self._places(frames)
            self._stacks[key] = before, places
        return places

    def _places(self, frames: Sequence[Tuple[str, int, str]]) -> Tuple[Place, ...]:
        frames = without_launcher(frames, lambda frame: frame[0])
        kept = (each for each in frames if not (is_own(each[0]) or file_names.is_dumped_code(_last_part(each[0]))))
        found = (self.place(path, line) for path, line, _ in kept)
        return tuple(place for place in found if place is not None)

    def full(self, path: str) -> str:
        """Return the full name of a file, as far as it is known."""
        if path in self._full:
            return self._full[path]
        if self._unknown.get(path) == self.learned:
            return path
        found = self._found(path)
        if found != path or _is_whole(path):
            self._full[path] = found
            self._learn(found)
        else:  # its whole name may come to be known with another one
            self._unknown[path] = self.learned
        return found

    def text(self, path: str) -> Optional[str]:
        """Return the text of that file, ``None`` if it can't be read."""
        path = self.full(path)
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def table(self) -> Tuple[SourceFile, ...]:
        """Return all files that have a number, with their texts."""
        return tuple(SourceFile(path, self.text(path), is_library(path)) for path in self._numbers)

    def is_library(self, index: int) -> bool:
        """Return whether the file with that number is installed."""
        if index not in self._libraries:
            self._libraries[index] = is_library(next(itertools.islice(self._numbers, index, None)))
        return self._libraries[index]

    def in_library(self, place: Place) -> bool:
        """Return whether a place is in an installed file."""
        return self.is_library(place[0])

    def _found(self, path: str) -> str:
        if _is_whole(path):
            return _normal(path)
        beside = _normal(os.path.join(self._directory, path)) if self._directory else ""
        if beside and (beside in self._known.get(_last_part(beside), ()) or os.path.exists(beside)):
            return beside
        last, shown = _last_part(path), path.replace(os.sep, "/")
        known: Sequence[str] = (*self._numbered.get(last, ()), *self._known.get(last, ()))
        for each in known:
            whole = each.replace(os.sep, "/")
            if whole.endswith("/" + shown) or _without_root(whole) == shown:
                return each
        return path

    def _learn(self, path: str) -> None:
        self.learned += 1
        self._known.setdefault(_last_part(path), {}).setdefault(path)


def _last_part(path: str) -> str:
    return path.replace(os.sep, "/").rpartition("/")[2]


def _without_root(path: str) -> str:
    """Return what PyTorch's guards call a file that has only the root in common with PyTorch: ``shorten_filename`` of
    ``torch.utils._traceback`` takes one more character away, ``ome/me`` is left of ``/home/me``."""
    return os.path.splitdrive(path)[1][2:]


def _is_whole(path: str) -> bool:
    return os.path.isabs(path) or path.startswith("<")


def _normal(path: str) -> str:
    return path if path.startswith("<") else os.path.normpath(path)


@functools.lru_cache(maxsize=4096)
def _is_file(path: str) -> bool:
    """Return whether it may be a file of a program: cells of notebooks may; code without source may not."""
    return bool(path) and (not path.startswith("<") or path.startswith("<ipython")) and not _COMPILER.search(path)
