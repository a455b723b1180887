"""A node of a graph in the user's terms: the line that it comes from, the operation, what was called."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Dict, List, Optional, Set, Tuple

from depyf.answers.nonfinite import Line
from depyf.base.late_regex import regex
from depyf.base.own_package import is_own
from depyf.base.source_lines import source_line
from depyf.diagnosis.guard_sources import module_path
from depyf.dynamo.hooks import known_code, private_names
from depyf.torch_trace import file_names
from depyf.torch_trace.tracebacks import code_of, frames_of
from depyf.torch_trace.user_code import innermost_frame, is_library

if TYPE_CHECKING:
    import torch

_COMPILED_MODULE = regex(r"\A(?:self|fn)(?:\.|\Z)")
"""How a module that is compiled itself is called: ``fn`` where Dynamo puts a function around one of torch's own."""
_FARTHEST = 4
"""How many steps from a node without a line of its own one is looked for: passes of a backend forget some."""


def line_of(node: torch.fx.Node) -> Optional[Line]:
    """Return the user's line of a node; for a node without one, the line of a neighbour."""
    near: List[torch.fx.Node] = [node]
    seen: Set[torch.fx.Node] = set()
    for _ in range(_FARTHEST):
        for each in near:
            found = _line_in(each.meta.get("stack_trace"))
            if found is not None:
                return found
        seen.update(near)
        near = [other for each in near for other in (*each.all_input_nodes, *each.users) if other not in seen]
    return None


def _line_in(stack: object) -> Optional[Line]:
    """Return the innermost line of the user's own in a stack."""
    if not isinstance(stack, str):
        return None
    frame = innermost_frame(frames_of(stack))
    if frame is None:
        return None
    code = code_of(stack).get(frame, "")
    return Line(frame[0], frame[1], code.partition(", code: ")[2] or code)


def operation_of(node: torch.fx.Node) -> str:
    """Return the operation that a node runs: ``aten.log.default``, ``torch.log``, ``Tensor.log``."""
    if node.op == "call_method":
        return f"Tensor.{node.target}"
    if node.op != "call_function" or private_names.SCHEMA.is_on(node.target):
        return str(node.target)
    name = str(getattr(node.target, "__name__", node.target))
    module = str(getattr(node.target, "__module__", "") or "")
    return f"{module}.{name}" if module.startswith("torch.nn.functional") else name


def called_of(node: torch.fx.Node) -> str:
    """Return the user's call that the node is a part of, "" if it is not known."""
    stack = node.meta.get("source_fn_stack") or node.meta.get("fwd_source_fn_stack") or ()
    if not stack:
        return ""
    called = stack[-1][1]
    return str(getattr(called, "__name__", called)).rpartition(".")[2]


def module_of(node: torch.fx.Node) -> str:
    """Return the module that the node runs in, by its path in ``named_modules``, and class: ``layers.3.attn (Attn)``.

    A module that the function reaches by another name than ``self`` has that in front: ``model.layers.3.attn (Attn)``.
    "" where it is not known.
    """
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    if not stack:
        return ""
    path, kind = list(stack.values())[-1]
    name = str(getattr(kind, "__name__", kind)).rpartition(".")[2]
    path = _COMPILED_MODULE.sub("", module_path(str(path)))
    return f"{path} ({name})" if path else name


def value_name(node: torch.fx.Node) -> str:
    """Return what a value is called: the name of its node, or, for one part of a result, what made it and which part:
    ``chunk[1]`` and not ``getitem_1``."""
    from torch import fx

    if not str(node.name).startswith("getitem"):
        return str(node.name)
    made, part = node.args[:2] if len(node.args) > 1 else (None, "...")
    known = made if isinstance(made, fx.Node) else None
    source = (known or node).meta.get("source_fn_stack") or ()
    if known is not None and (str(known.name).startswith("getitem") or not source):
        return f"{value_name(known)}[{part}]"
    return f"{source[-1][0]}[{part}]" if source else "a part of a result"


def running_line() -> Optional[Line]:
    """Return the innermost line of the user's own that runs on this thread, ``None`` on a thread of autograd."""
    location = running_location({})
    return None if location is None else Line(*location, source_line(*location))


def running_location(known: Dict[int, Tuple[CodeType, bool]]) -> Optional[Tuple[str, int]]:
    """Return file and number of the innermost line of the user's own that runs on this thread. ``known`` remembers by
    id which code is the user's: constants in Dynamo's code need not be hashable, and then the code isn't, either."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if id(code) not in known:
            path = code.co_filename
            other = path.startswith("<") or is_own(path) or is_library(path) or known_code.original_of(code) is not None
            other = other or file_names.begins_like_what_runs(os.path.basename(path))
            known[id(code)] = code, not other
        if known[id(code)][1]:
            return code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None


def by_name(graph: torch.fx.Graph) -> Dict[str, torch.fx.Node]:
    return {node.name: node for node in graph.nodes}
