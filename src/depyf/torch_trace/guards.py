"""Parse guards as torch reports them: the tree of ``dynamo_cpp_guards_str``, before 2.4 the list of
``dynamo_guards``.
"""

from __future__ import annotations

from typing import Iterator, List, Optional, Sequence

from depyf.asynchronous import synchronous
from depyf.lazy_pattern import re_compile
from depyf.quick_dataclass import dataclass
from depyf.torch_trace.breaks import Frame
from depyf.torch_trace.events import Event
from depyf.torch_trace.guard_comments import frame_of, split_comment
from depyf.torch_trace.json_text import parsed

_NODE = re_compile(r"^(?:\| )*\+- (?:__SHAPE_GUARD__|__[A-Z_]+__|(\w+)): ?(.*)$")
_SOURCE = re_compile(r"source=(.*?), accessed_by=")
_VALUE = re_compile(r"\b[LG]\['[^']*'\](?:\.\w+(?:\(\))?|\[[^\]]*\])*")

_STATE = frozenset({"GLOBAL_STATE", "TORCH_FUNCTION_MODE_STACK", "DEFAULT_DEVICE"})


@dataclass(frozen=True)
class GuardText:
    """One guard: torch's name of its kind, its text, what it reads, and the user's line that caused it."""

    kind: str
    text: str
    source: str
    place: Optional[Frame]


def guards_of(event: Event) -> List[GuardText]:
    """The guards that an event named ``dynamo_cpp_guards_str`` or ``dynamo_guards`` lists, in the order of checking."""
    text = event.payload or ""
    if event.name == "dynamo_guards":
        return list(_listed(text))
    return list(_tree(text.splitlines()))


def _tree(lines: Sequence[str]) -> Iterator[GuardText]:
    source = ""
    for line in lines:
        node = _NODE.match(line)
        if node is None:
            continue
        kind, rest = node.group(1) or "SHAPE_GUARD", node.group(2)
        if kind.endswith("Manager"):
            named = _SOURCE.search(rest)
            source = named.group(1) if named else ""
            continue
        text, comment = split_comment(rest)
        yield GuardText(kind, text, "" if kind in _STATE else source_of(text) or source, frame_of(comment))


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
    """The first value of the user that a guard reads (``L['x'].factor``); empty where it reads none."""
    found = _VALUE.search(text)
    return found.group(0) if found else ""
