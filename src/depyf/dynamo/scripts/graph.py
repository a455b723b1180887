"""The code of a graph module as plain Python: classes to put into a script, and what they need from elsewhere.

The code is what torch prints of the graph. Taken away are the deletions of values (``;  x = None``), added is, above
each operation, the user's own line: torch names the innermost frame, which is often one of a library.
"""

from __future__ import annotations

import keyword
import re
from dataclasses import field
from typing import TYPE_CHECKING, Dict, Iterator, List, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.base.source_lines import source_line
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.observe.graph_facts import attribute_at
from depyf.dynamo.scripts.imports import Imports
from depyf.dynamo.scripts.tensors import Tensors
from depyf.torch_trace.tracebacks import Frame, frames_of
from depyf.torch_trace.user_code import innermost_frame

if TYPE_CHECKING:
    import torch

_DELETED = regex(r";  (?:\w+ = )+None$", re.MULTILINE)
_NO_LINE = regex(r"^[ ]*# No stacktrace found for following nodes[ ]*\n", re.MULTILINE)
_BLANK = regex(r"\n[ ]+\n")
_FORWARD = regex(r"^def forward\(self(?:, )?")
_INTERPRETING = ("autograd_function_apply", "tag_activation_checkpoint")
_EMPTY_LINES = regex(r"\n{3,}")


@dataclass
class GraphCode:
    """The text of the classes, inner graphs first, what they import, and what can't be as it was."""

    text: str = ""
    imports: Imports = field(default_factory=Imports)
    notes: List[str] = field(default_factory=list)


def graph_code(module: torch.fx.GraphModule, tensors: Tensors) -> GraphCode:
    """Return Python source for ``module`` (an FX graph module, not changed) and each graph module nested in it. The
    class for ``module`` is named ``Graph``. ``tensors`` writes the parameters and constants of the modules."""
    code = GraphCode()
    _Classes(code, tensors).write(module, "Graph")
    return code


class _Classes:
    def __init__(self, code: GraphCode, tensors: Tensors) -> None:
        self._code = code
        self._tensors = tensors
        self._names: Dict[str, int] = {}
        self._written: Dict[int, str] = {}

    def write(self, module: torch.fx.GraphModule, name: str, *, whole: bool = True) -> str:
        """Write this module, after the graphs in it; return an expression that gives it to the class around it.

        A class, or where it holds nothing and is not the ``whole`` graph, a function: Dynamo takes those as branches.
        """
        if id(module) in self._written:
            return self._written[id(module)]
        name = self._unused(name)
        members = list(self._members(module))
        source = forward_source(module.graph, self._code.imports)
        if members or whole:
            self._written[id(module)] = f"{name}()"
            lines = [f"class {name}(torch.nn.Module):"]
            if members:
                lines += ["    def __init__(self):", "        super().__init__()"]
                lines += [*(f"        {each}" for each in members), ""]
            lines += [f"    {line}".rstrip() for line in source.splitlines()]
        else:
            self._written[id(module)] = name
            lines = [_FORWARD.sub(f"def {name}(", source, count=1)]
        self._code.text += "\n".join(lines) + "\n\n\n"
        return self._written[id(module)]

    def _unused(self, name: str) -> str:
        name = re.sub(r"\W", "_", name) or "graph"
        name = f"_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name
        number = self._names.get(name, 0)
        self._names[name] = number + 1
        return f"{name}_{number}" if number else name

    def _members(self, module: torch.fx.GraphModule) -> Iterator[str]:
        """Yield the statements of ``__init__`` that make the members that the graph reads."""
        containers: Dict[str, None] = {}
        for target in dict.fromkeys(
            str(node.target) for node in module.graph.nodes if node.op in ("get_attr", "call_module")
        ):
            # ``self.layers.0.weight`` needs ``self.layers`` and ``self.layers.0`` first: empty modules.
            path = target.split(".")
            for depth in range(1, len(path)):
                outer = ".".join(path[:depth])
                if outer not in containers and not _is_leaf(module, outer):
                    containers[outer] = None
                    yield _assign(path[:depth], "torch.nn.Module()")
            value = attribute_at(module, target)
            made = self._made(value, target, interpreted=_is_interpreted(module, target))
            yield _assign(path, made)

    def _made(self, value: object, target: str, *, interpreted: bool) -> str:
        """Return an expression for a member."""
        import torch

        if isinstance(value, torch.fx.GraphModule):
            # Dynamo makes globals called `cond_true_0`: ours have other names.
            made = self.write(value, f"graph_{target}", whole=interpreted)
            return f"torch.fx.symbolic_trace({made})" if interpreted else made
        if isinstance(value, torch.Tensor):
            return self._tensors.expression(f"self.{target}", value, constant=True)
        text = self._code.imports.literal(value)
        if text is not None:
            return text
        if isinstance(value, torch.nn.Module):
            return self._module(value, target)
        self._code.notes.append(f"{target} is a {type(value).__name__}, which a script can't make")
        return "None"

    def _module(self, value: torch.nn.Module, target: str) -> str:
        """Return a module that the graph calls: graphs of PyTorch up to 2.4 keep the modules of torch.nn whole."""
        cls = type(value)
        text = f"torch.nn.{value!r}"
        if not cls.__module__.startswith("torch.nn.modules") or not _makes(text, cls):
            self._code.notes.append(f"{target} is a module of class {cls.__qualname__}, which a script can't make")
            return "None"
        inside = ", ".join(
            f"{name!r}: {self._tensors.expression(f'self.{target}.{name}', tensor, constant=True)}"
            for name, tensor in value.state_dict().items()
        )
        text += f".train({value.training})"
        if not any(parameter.requires_grad for parameter in value.parameters()):
            text += ".requires_grad_(False)"
        return f"with_state({text}, {{{inside}}})"


def _is_interpreted(module: torch.fx.GraphModule, target: str) -> bool:
    """Return whether the operator that gets this inner graph interprets it, which takes a graph module."""
    users = [
        user for node in module.graph.nodes if node.op == "get_attr" and node.target == target for user in node.users
    ]
    return any(str(getattr(user.target, "__name__", user.target)) in _INTERPRETING for user in users)


def _makes(text: str, cls: type) -> bool:
    """Return whether the ``repr`` of a module is an expression that makes one."""
    try:
        return isinstance(eval(text, {"torch": torch_names.module("torch")}), cls)
    except synchronous():
        return False


def _is_leaf(module: torch.fx.GraphModule, path: str) -> bool:
    """Return whether one expression makes the object at ``path`` and all that is in it."""
    found = attribute_at(module, path)
    return hasattr(found, "graph") or any(n.op == "call_module" and n.target == path for n in module.graph.nodes)


def _assign(path: List[str], value: str) -> str:
    *outer, name = path
    owner = "self"
    for each in outer:
        owner = f"{owner}.{each}" if each.isidentifier() else f"getattr({owner}, {each!r})"
    return f"{owner}.{name} = {value}" if name.isidentifier() else f"setattr({owner}, {name!r}, {value})"


def forward_source(graph: torch.fx.Graph, imports: Imports) -> str:
    """Return ``def forward(self, ...)`` of a graph, with the user's lines as comments. Its needs are added to
    ``imports``."""
    copy = _plain_copy(graph)
    try:
        code = copy.python_code("self", verbose=True)
    except TypeError:  # an older torch does not print types and lines
        code = copy.python_code("self")
    source = _NO_LINE.sub("", _DELETED.sub("", str(code.src)))
    source = _EMPTY_LINES.sub("\n\n", _BLANK.sub("\n\n", source)).strip()
    for name, value in code.globals.items():
        if re.search(rf"(?<![\w.]){re.escape(name)}\b", source):
            imports.add(name, value)
    for node in graph.nodes:
        if node.op == "call_function":
            imports.for_operator(node.target)
    return source


def _plain_copy(graph: torch.fx.Graph) -> torch.fx.Graph:
    """Return the graph with arguments one by one (AOTAutograd's take one list), and the user's line as each node's
    stack."""
    from torch import fx

    copy = fx.Graph(tracer_cls=private_names.TRACER_OF_GRAPH.of(graph))
    known: Dict[torch.fx.Node, torch.fx.Node] = {}
    for node in graph.nodes:
        known[node] = copied = copy.node_copy(node, lambda each: known[each])
        copied.meta = dict(node.meta)
        stack = user_stack(node)
        copied.meta.pop("stack_trace", None)
        if stack is not None:
            copied.meta["stack_trace"] = _as_traceback(stack)
    return copy


def _as_traceback(frame: Frame) -> str:
    code = source_line(frame[0], frame[1])
    return f'  File "{frame[0]}", line {frame[1]}, in {frame[2]}\n    {code}\n'


def user_stack(node: torch.fx.Node) -> Optional[Frame]:
    """Return the innermost frame of the user's own in a node's stack, else the innermost, ``None`` without a stack."""
    return innermost_frame(frames_of(str(node.meta.get("stack_trace") or "")))


def names_of_inputs(module: torch.fx.GraphModule) -> Tuple[str, ...]:
    """Return the names of the graph's inputs, in order."""
    return tuple(str(node.target) for node in module.graph.nodes if node.op == "placeholder")
