"""The destination of decompiled source: one file, or a tree of files that mirrors a folder of modules."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Sequence, TextIO

from depyf.quick_dataclass import dataclass
from depyf.regular_files import write_whole
from depyf.result import Decompilation
from depyf.sweep.targets import Target, module_name


@dataclass(frozen=True)
class SourceTree:
    """Writes the sources of the modules below ``folder`` to the same relative paths below ``output``."""

    folder: str
    output: str
    verdicts: bool = False

    def __call__(self, target: Target, answer: Decompilation) -> None:
        place = self.place_of(target.path)
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, [source_of(answer, verdict=self.verdicts)])

    def place_of(self, path: str) -> str:
        parent = os.path.relpath(os.path.dirname(path) or ".", self.folder)
        if os.path.basename(parent) == "__pycache__":
            parent = os.path.dirname(parent)
        return os.path.normpath(os.path.join(self.output, parent, f"{module_name(path)}.py"))


def check_nothing_is_lost(inputs: Sequence[str], outputs: Sequence[str], *, force: bool) -> None:
    """Raise ``FileExistsError`` where ``outputs`` would replace one of ``inputs`` or, without ``force``, any file.
    Devices and pipes are written to, and lose nothing."""
    read = {os.path.realpath(path) for path in inputs}
    present = [path for path in outputs if os.path.isfile(path) or os.path.islink(path)]
    own = next((path for path in present if os.path.realpath(path) in read), None)
    if own is not None:
        raise FileExistsError(f"{own}: would replace the input: write to another place")
    if present and not force:
        more = f" and {len(present) - 1} more files exist" if len(present) > 1 else " exists"
        raise FileExistsError(f"{present[0]}{more} already: write to another place, or replace with --force")


def source_of(answer: Decompilation, *, verdict: bool) -> str:
    """Return the text to write for a result; with ``verdict`` a last line has its verdict."""
    text = answer.source if answer.source.endswith("\n") or not answer.source else f"{answer.source}\n"
    if not verdict:
        return text
    return f"{text}# depyf: {answer.verdict_line()}\n"


def print_source(text: str, stream: TextIO) -> None:
    """Write source to a stream, as UTF-8 where its encoding lacks some of the characters."""
    try:
        text.encode(stream.encoding or "utf-8")
    except UnicodeEncodeError:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    stream.write(text)
