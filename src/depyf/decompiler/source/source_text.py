"""The text of a decompiled tree, with the facts that text can't express."""

from __future__ import annotations

import ast
from dataclasses import field, replace
from functools import cached_property
from typing import Mapping, Sequence

from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.parsing import parse
from depyf.decompiler.normal.modes import Mode


@dataclass(frozen=True)
class SourceText:
    """The text for the user, and the two mappings that it does not contain.

    ``constants`` maps the placeholder names in the text to the objects in
    ``co_consts`` without a literal. ``names`` maps identifiers of the text to the names in the bytecode, for names that
    can't be written. ``mode``: how to compile ``text``.
    """

    text: str
    constants: Mapping[str, object] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    mode: Mode = Mode.EXEC

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed ``text``, made on demand: compiling a module does not need it."""
        return parse(self.text)

    def below(self, comment: Sequence[str]) -> SourceText:
        """Return the same with these lines, all comments, at its head."""
        text = "\n".join([*comment, "", self.text])
        return replace(self, text=text)
