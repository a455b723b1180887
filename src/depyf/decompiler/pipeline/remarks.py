"""Comments beside functions and classes that say what of them is not proved.

A comment ends the line of the ``def`` or ``class``, so that all lines keep their numbers; that of a module is the last
line. A module of its own: the pipeline knows the comparison, the printer does not.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Dict, Iterator, Mapping, Optional, Tuple

from depyf.decompiler.source.source_text import SourceText

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LONGEST = 300


def with_remarks(source: SourceText, whole: str, reasons: Mapping[str, str]) -> SourceText:
    """Return ``source``, which is the text of the code called ``whole``, with the ``reasons``, by qualified names."""
    try:
        source.tree  # noqa: B018 - parsed once
    except SyntaxError:  # the text is of a newer Python, or no Python takes it
        found = [f"# depyf: not proved: {name}: {_on_one_line(reason)}" for name, reason in reasons.items()]
        return replace(source, text="\n".join([source.text.rstrip(), "", *found, ""]))
    definition = next((each for each in source.tree.body if isinstance(each, _DEFINITIONS)), None)
    inside: ast.AST = source.tree if whole == "<module>" or definition is None else definition
    lines_of = dict(_definitions(inside, ""))
    root = None if whole == "<module>" or definition is None else definition.lineno
    remarks: Dict[int, str] = {}
    at_end = ""
    for name, reason in reasons.items():
        text = f"# depyf: not proved: {_on_one_line(reason)}"
        inner = name if whole == "<module>" else name[len(whole) + 1 :]  # the code itself has no name in it
        line = _line_of(inner, lines_of, root)
        if line is None:
            at_end = at_end or text
        else:
            remarks.setdefault(line, text)
    lines = source.text.split("\n")
    for line, text in remarks.items():
        lines[line - 1] += f"  {text}"
    changed = replace(source, text="\n".join(lines))
    if ast.dump(changed.tree) != ast.dump(source.tree):  # the line ends inside of a string: of a default, for example
        changed, at_end = source, at_end or next(iter(remarks.values()))
    return replace(changed, text=f"{changed.text.rstrip()}\n\n{at_end}\n") if at_end else changed


def _on_one_line(reason: str) -> str:
    return " ".join(reason.split())[:_LONGEST]


def _line_of(name: str, lines_of: Mapping[str, int], root: Optional[int]) -> Optional[int]:
    """Return the line of the innermost definition around the code called ``name``."""
    parts = [part for part in name.split(".") if part != "<locals>"]
    while parts:
        if ".".join(parts) in lines_of:
            return lines_of[".".join(parts)]
        parts.pop()
    return root


def _definitions(node: ast.AST, around: str) -> Iterator[Tuple[str, int]]:
    """Yield the names of the definitions in ``node``, with those around them, and the lines of their first words."""
    for child in ast.iter_child_nodes(node):
        name = around
        if isinstance(child, _DEFINITIONS):
            name = f"{around}.{child.name}" if around else child.name
            yield name, child.lineno
        yield from _definitions(child, name)
