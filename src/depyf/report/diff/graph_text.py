"""Normalise the text of a graph: remove what differs between runs, and between a dump and a log of the same run. It
works on the text of torch's printers, in its several forms, not on what a graph computes.
"""

from __future__ import annotations

import re
from typing import List, Match

from depyf.base.late_regex import regex

_COMMENT = regex(r"[ \t]*#.*")
_ANNOTATION = regex(r': "[^"]*"')
_COMPILED_NAME = regex(r"__compiled_fn_\d+\w*")
_CLASS = regex(r"^class (?:\w+|<\w+>)\(", re.MULTILINE)
_FORWARD = regex(r"^(\s*)def forward\((.*)\):$")
_BOXED = regex(r"^\s*(\w+(?:: \"[^\"]*\")?) = next\(args_iter\)$")
_OF_BOXES = regex(r"^\s*(?:args_iter = iter\(args_list\)|args_list\.clear\(\))$")
_PARAMETER = regex(r"[^\s,\"][^,\"]*(?:\"[^\"]*\"[^,\"]*)*")
_TRAILING_COMMA = regex(r"(\(\w+)?,\s*([)\]}])")


def plain_graph(text: str) -> str:
    """Return the code of a graph: without comments (lines of the user, what runs), imports and names that Dynamo
    numbers; statements that torch breaks over lines on one, and parameters a line each, boxed ones too.
    """
    # ``class <lambda>(torch.nn.Module):`` and ``class GraphModule(...):`` may be one graph; imports are above it.
    start = _CLASS.search(text)
    body = "class GraphModule(" + text[start.end() :] if start else text
    body = _COMPILED_NAME.sub("__compiled_fn", _COMMENT.sub("", body))
    return "\n".join(_with_parameters(_joined([line.rstrip() for line in body.splitlines() if line.strip()])))


def without_types(graph: str) -> str:
    """Return such a text without types and shapes: what is computed, and not on what."""
    return _ANNOTATION.sub("", graph)


def _joined(lines: List[str]) -> List[str]:
    """Put each statement on one line."""
    found: List[str] = []
    depth = 0
    for line in lines:
        if depth > 0:
            found[-1] += (" " if found[-1][-1:] not in "([{" and line.strip()[:1] not in ")]}" else "") + line.strip()
        else:
            found.append(line)
        # Brackets in annotations (``x: "f32[4]"``) do not open a statement.
        code = _ANNOTATION.sub("", line)
        depth += sum(code.count(each) for each in "([{") - sum(code.count(each) for each in ")]}")
    return [_TRAILING_COMMA.sub(_closed, line) for line in found]


def _closed(match: Match[str]) -> str:
    """Return the end of a display without its last comma, which only a tuple of one needs."""
    return match.group(0) if match.group(1) and match.group(2) == ")" else match.group(2)


def _with_parameters(lines: List[str]) -> List[str]:
    """Put each parameter of ``forward`` on a line of its own, whether it is passed by itself or in a list."""
    found: List[str] = []
    head = -1
    for line in lines:
        forward, boxed = _FORWARD.match(line), _BOXED.match(line)
        # ``def forward(self, x: "f32[4]", y):``, each parameter then on a line of its own
        if forward is not None:
            indent = forward.group(1)
            names = [each.strip() for each in _PARAMETER.findall(forward.group(2))]
            found.append(f"{indent}def forward(")
            found += [f"{indent}    {name}," for name in names if name != "args_list"]
            head = len(found)
            found.append(f"{indent}):")
        # ``x: "f32[4]" = next(args_iter)``: a boxed input, which becomes a parameter of the head
        elif boxed is not None and head >= 0:
            found.insert(head, f"{indent}    {boxed.group(1)},")
            head += 1
        elif not _OF_BOXES.match(line):
            found.append(line)
    return found
