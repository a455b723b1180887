"""Describe a fault: its operation, its line, its kernels."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence

from depyf.answers.compared import Culprit
from depyf.base.source_lines import source_line
from depyf.dynamo.observe.node_words import module_of, value_name
from depyf.dynamo.questions.compare.culprit import Fault
from depyf.dynamo.scripts.graph import user_stack
from depyf.torch_trace.stages import Stage
from depyf.torch_trace.tracebacks import Frame

if TYPE_CHECKING:
    import torch


def described(fault: Fault, kernels: Sequence[str]) -> Culprit:
    """Describe the fault in the user's terms."""
    node, frame = fault.found.node, _frame(fault.found.node)
    instead = fault.found.instead
    name = fault.compilation.name or f"graph {fault.compilation.number}"
    return Culprit(
        graph=f"{fault.graph.kind.facts.phrase} of {name}",
        backward=fault.graph.kind == Stage.BACKWARD or _is_backward(node),
        node=value_name(node),
        operation=operation(node),
        place=None if frame is None else (frame[0], frame[1]),
        code="" if frame is None else source_line(frame[0], frame[1]),
        measured=fault.found.measured,
        step=fault.step,
        instead=""
        if instead is None or operation(instead) == operation(node)
        else f"{value_name(instead)} = {operation(instead)}",
        kernels=tuple(kernels),
        module=module_of(node) or (module_of(instead) if instead is not None else ""),
    )


def _frame(node: torch.fx.Node) -> Optional[Frame]:
    """Return the user's line of a node; for a node that a pass made, and that has none, the line of its users."""
    near, seen = [node], {node}
    for each in near:  # grows while it is walked: the users, and theirs
        frame = user_stack(each)
        if frame is not None:
            return frame
        near += [user for user in each.users if user not in seen]
        seen.update(each.users)
    return next((frame for frame in map(user_stack, node.all_input_nodes) if frame is not None), None)


def _is_backward(node: torch.fx.Node) -> bool:
    """Return whether a node of the joint graph depends on an incoming gradient."""
    seen, todo = set(), [node]
    while todo:
        each = todo.pop()
        if each.op == "placeholder" and each.name.startswith("tangents"):
            return True
        new = [inner for inner in each.all_input_nodes if inner not in seen]
        seen.update(new)
        todo.extend(new)
    return False


def operation(node: torch.fx.Node) -> str:
    """Return the operation as in the graph, ``torch.ops.aten.sin.default(x)``, with ``value_name`` for its operands."""
    from torch import fx

    # Torch prints a graph, not a node: print a graph of this node alone, and take its line.
    graph = fx.Graph()
    known: Dict[torch.fx.Node, torch.fx.Node] = {}
    for each in node.all_input_nodes:
        known[each] = graph.placeholder(each.name)
    graph.node_copy(node, lambda each: known[each])
    lines = [line.strip() for line in str(graph.python_code("self").src).splitlines()]
    text = next((line for line in lines if line.startswith(f"{node.name} ") or line.startswith(f"{node.name}:")), "")
    text = text.partition(" = ")[2].partition(";  ")[0] or str(node.target)
    if str(getattr(node.target, "__module__", "")) == "_operator":  # printed as a symbol
        text += f" ({str(getattr(node.target, '__name__', node.target)).strip('_')})"
    for each in node.all_input_nodes:
        text = re.sub(rf"\b{re.escape(each.name)}\b", lambda _, each=each: value_name(each), text)  # type: ignore[misc]
    return text


def kernels_of(fault: Fault) -> List[str]:
    """Return Inductor's kernels that compute the node, from what Inductor recorded when it wrote them."""
    graphs = [fault.graph, *(fault.compilation.graph(kind) for kind in (Stage.FORWARD, Stage.BACKWARD))]
    name = fault.found.node.name
    other = fault.found.instead.name if fault.found.instead is not None else None
    found: Dict[str, None] = {}
    for graph in graphs:
        for kernel, nodes in graph.launches if graph is not None else ():
            if name in nodes or other in nodes:
                found.setdefault(kernel.partition(":")[0])
    return list(found)
