"""Declare the attributes that the stages keep on nodes of ``ast`` beside the fields that Python defines.

A node carries them in its ``__dict__``, so that copies of a node (``source/rewriting.py``) and nodes that replace it
(``spans.moved``) keep what is known of it. No attribute has a meaning for Python: the tree compiles to the same code
without them. mypy checks each key and each type against ``NodeAttributes``; nothing else is stored on nodes.
"""

from __future__ import annotations

import ast
from operator import attrgetter
from typing import Callable, NamedTuple, Optional, TypedDict

from depyf.decompiler.bytecode.lines import Span


class Start(NamedTuple):
    """The start of a statement; ``exact``: it is read from the line table, not estimated."""

    line: int
    column: Optional[int]
    exact: bool = True


class NodeAttributes(TypedDict, total=False):
    """The attributes of a node. All are optional: a missing key means that the fact is unknown, or false."""

    span: Span
    """Any node: the span of the instruction that computes it, the last one of a statement. Set by ``spans.put``, and by
    ``structure/returns_in_with.py``; read through ``spans.span_of``."""
    jump: Span
    """A tested expression: the span of the jump that depends on it. Set and read by ``spans.put_jump``, ``jump_of``."""
    tested_by: Optional[Span]
    """A tested expression: the cached result of ``spans.statement_of``. ``rewriting.replaced`` drops it, since it was
    derived from the operands."""
    start: Optional[Start]
    """A statement: the cached result of ``spans.start_of``. ``author_form/conditions.py`` drops it with the test from
    which it was derived."""
    turned: bool
    """A comparison that ``build.negate`` made: its operator is the opposite of the one in the bytecode. Read there to
    negate conditions with as few such comparisons as possible."""
    plain_items: int
    """A dict display: the number of items after the last ``**``. Cached by ``display_expressions.py``, which appends
    items one display at a time."""
    request: object
    """``from m import a``: the operands of its IMPORT operation (an ``items.Import``), compared by identity.
    ``stored_items.py`` sets it, and appends the further names that the same operation imports."""
    leaves: bool
    """A ``break`` that control follows to the function's ``return None``, so that ``return`` would mean the same. Set
    and read by ``structure/returns_in_with.py``."""
    code_id: int
    """A definition: the ``id`` of the code object that its body is made from. Set and read by
    ``source/definitions/put_aside.py``, which shields bodies from a readability pass."""
    is_lazy: int
    """``lazy import``: a field since 3.15, and the printer reads it on every Python. Set by ``items.Import``."""


attributes_of: Callable[[ast.AST], NodeAttributes] = attrgetter("__dict__")
"""Return the attributes of a node, to read or change. They share a dict with its fields, which have no key here."""
