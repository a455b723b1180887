"""Parse guards as torch reports them: the tree of ``dynamo_cpp_guards_str``, before 2.4 the list of
``dynamo_guards``.
"""

from __future__ import annotations

import functools
from typing import Iterator, List, Optional, Sequence, Union

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass, replace
from depyf.torch_trace.events import Event
from depyf.torch_trace.guard_comments import frame_of, split_comment
from depyf.torch_trace.json_text import parsed
from depyf.torch_trace.tracebacks import Frame

_NODE = regex(r"^(?:\| )*\+- (?:__SHAPE_GUARD__|__[A-Z_]+__|(\w+)): ?(.*)$")
_SOURCE = regex(r"source=(.*?), accessed_by=")
_VALUE = regex(r"\b[LG]\['[^']*'\](?:\.\w+(?:\(\))?|\[[^\]]*\])*")

_STATE = frozenset({"GLOBAL_STATE", "TORCH_FUNCTION_MODE_STACK", "DEFAULT_DEVICE"})


@dataclass(frozen=True)
class GuardText:
    """One guard: torch's name of its kind, its text, what it reads, and the user's line that caused it."""

    kind: str
    text: str
    source: str
    place: Optional[Frame]


def guards_of(event: Event) -> List[GuardText]:
    """Return the guards that an event named ``dynamo_cpp_guards_str`` or ``dynamo_guards`` lists, in the order of
    checking."""
    text = event.payload or ""
    if event.name == "dynamo_guards":
        return list(_listed(text))
    return list(_tree(text.splitlines()))


def _tree(lines: Sequence[str]) -> Iterator[GuardText]:
    source = ""
    for line in lines:
        node = _node(line)
        if isinstance(node, str):
            source = node
        elif node is not None:
            yield node if node.source or node.kind in _STATE else replace(node, source=source)


@functools.lru_cache(maxsize=1 << 13)  # most guards of a function are equal to guards of its last compilation
def _node(line: str) -> Union[GuardText, str, None]:
    """Return the guard of a line of the tree, or the source that the guards below it read; None for other lines."""
    node = _NODE.match(line)
    if node is None:
        return None
    # ``| +- GuardManager: source=L['x'], accessed_by=...`` names what the guards below it read:
    # ``| | +- TENSOR_MATCH: check_tensor(L['x'], ...)  # h = x + 1  # a.py:3 in f``
    kind, rest = node.group(1) or "SHAPE_GUARD", node.group(2)
    if kind.endswith("Manager"):
        named = _SOURCE.search(rest)
        return named.group(1) if named else ""
    text, comment = split_comment(rest)
    return GuardText(kind, text, "" if kind in _STATE else source_of(text), frame_of(comment))


def _listed(text: str) -> Iterator[GuardText]:
    try:
        listed = parsed(text or "[]")
    except synchronous(ValueError):
        return
    for each in listed if isinstance(listed, list) else []:
        code = str(each.get("code", ""))
        user = each.get("user_stack") or []
        last = user[-1] if user else None
        place = (str(last.get("filename")), int(last.get("line", 0)), str(last.get("name", ""))) if last else None
        yield GuardText(str(each.get("type", "")), code, source_of(code), place)


def source_of(text: str) -> str:
    """Return the first value of the user that a guard reads (``L['x'].factor``); empty if it reads none."""
    found = _VALUE.search(text)
    return found.group(0) if found else ""
