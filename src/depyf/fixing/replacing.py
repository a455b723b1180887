"""Put a text in the place of one expression of a source, and keep everything else as it is written.

The expression is found in libcst's tree by its position and its text, and the syntax tree of the result must be the old
tree with that expression alone exchanged.
"""

from __future__ import annotations

import ast

from depyf.decompiler.syntax import parse
from depyf.fixing.edits import NoEdit, column_of, segment, tree_of


def with_expression(source: bytes, file: str, tree: ast.Module, node: ast.expr, text: str) -> bytes:
    """Return the source with the text in the place of ``node``, an expression of ``tree``, which is the syntax tree of
    the source and is changed. Raises ``NoEdit``."""
    import libcst
    from libcst.metadata import MetadataWrapper, PositionProvider

    written = segment(source, node)
    wrapper = MetadataWrapper(libcst.parse_module(source), unsafe_skip_copy=True)
    module = wrapper.module
    found = [
        each
        for each, place in wrapper.resolve(PositionProvider).items()
        if isinstance(each, libcst.BaseExpression)
        and (place.start.line, place.start.column) == (node.lineno, column_of(source, node))
        and module.code_for_node(each.with_changes(lpar=(), rpar=())) == written
    ]
    if len(found) != 1:
        raise NoEdit("the expression was not found")
    old = found[0]
    new = libcst.parse_expression(text, config=module.config_for_parsing)
    new = new.with_changes(lpar=[*old.lpar, *new.lpar], rpar=[*new.rpar, *old.rpar])
    after: bytes = libcst.ensure_type(module.deep_replace(old, new), libcst.Module).bytes
    _exchange(tree, node, parse(text, mode="eval").body)
    if ast.dump(tree) != ast.dump(tree_of(after, file)):
        raise NoEdit("the edited source is not what it should be")
    return after


def _exchange(tree: ast.AST, old: ast.expr, new: ast.expr) -> None:
    """Put an expression in the place of another one in a syntax tree."""
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
            elif isinstance(value, list) and any(each is old for each in value):
                setattr(parent, name, [new if each is old else each for each in value])
