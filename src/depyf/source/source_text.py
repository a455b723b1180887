"""The text of a decompiled tree together with what turns it back into the original code object."""

from __future__ import annotations

import ast
from dataclasses import field, replace
from typing import Mapping, Sequence

from depyf.bytecode.parsing import parse
from depyf.normal.modes import Mode
from depyf.quick_dataclass import dataclass


@dataclass(frozen=True)
class SourceText:
    """What a person reads, and the two mappings that the text alone does not hold.

    ``tree`` is what ``text`` parses to. ``constants`` maps the placeholder names in the text to the objects that
    stood in ``co_consts`` and have no literal. ``names`` maps identifiers of the text to the names in the bytecode,
    for those names that can't be written.
    ``mode``: how ``text`` has to be compiled.
    """

    text: str
    tree: ast.Module
    constants: Mapping[str, object] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    mode: Mode = Mode.EXEC

    def below(self, comment: Sequence[str]) -> SourceText:
        """The same with these lines, all comments, at its head."""
        text = "\n".join([*comment, "", self.text])
        return replace(self, text=text, tree=parse(text))
