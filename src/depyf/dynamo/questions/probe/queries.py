"""Queries of ``probe``: a name, perhaps of a certain function, or a line; and the graph nodes that match it."""

from __future__ import annotations

import difflib
import os
import re
from typing import TYPE_CHECKING, Dict, Iterable, List, Optional, Sequence, Set, Tuple, Union

from depyf.answers.watch import shortened
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import torch_names
from depyf.dynamo.hooks.nested_code import is_qualified
from depyf.dynamo.observe.node_words import line_of
from depyf.dynamo.questions.probe.bindings import RETURNED, Binding
from depyf.torch_trace.resume_names import function_name
from depyf.torch_trace.tracebacks import frames_of

if TYPE_CHECKING:
    import torch

_QUALIFIED = is_qualified(re.compile.__code__)
"""Whether code objects have more than the plain name of their function: from Python 3.11 on."""

_LINE = regex(r"(?:(?P<file>.+):)?(?P<line>\d+)$")


@dataclass(frozen=True)
class Query:
    """A name (``function`` is the end of the qualified name of the function, or ""), or a line of a file."""

    asked: str
    name: str = ""
    function: str = ""
    file: str = ""
    line: int = 0

    def matches(self, binding: Binding) -> bool:
        if self.line:
            return binding.line == self.line and _is_file(binding.filename, self.file)
        if binding.name.lstrip(".") != self.name.lstrip("."):
            return False
        if binding.owner:
            return not self.function or f".{binding.owner}".endswith(f".{self.function}")
        if binding.name.startswith("."):  # an attribute: of ``self``, for all that is known
            return self.function in ("", "self") or _is_end(binding.function, self.function)
        return _is_end(binding.function, self.function)


def query_of(asked: Union[str, int]) -> Query:
    """Parse ``"hidden"``, ``"forward.hidden"``, ``"self.hidden"``, ``"model.py:41"`` or ``41`` as a query."""
    text = str(asked)
    line = _LINE.match(text)
    if line is not None:
        return Query(text, file=line.group("file") or "", line=int(line.group("line")))
    function, _, name = text.rpartition(".")
    return Query(text, name, function)


@dataclass(frozen=True)
class QueryMatch:
    """A node that matches a query, and the name of its value."""

    query: Query
    node: str
    binding: Binding


def answers(queries: Sequence[Query], bindings: Sequence[Binding], graph: torch.fx.Graph) -> List[QueryMatch]:
    """Return the nodes of a Dynamo graph that match these queries, in the order of the program."""
    known = {node.name for node in graph.nodes}
    found: List[QueryMatch] = []
    for query in queries:
        bound = [each for each in bindings if query.matches(each) and each.node in known]
        found += [QueryMatch(query, each.node, each) for each in bound if each.node is not None]
        if query.line and not bound:
            found += [QueryMatch(query, node.name, _unnamed(node, query)) for node in _of_line(graph, query)]
    return found


def problem(query: Query, bindings: Iterable[Binding], lines: Set[Tuple[str, int]]) -> str:
    """Return why nothing matches a query, with similar names."""
    bindings = list(bindings)
    bound = list(dict.fromkeys(each for each in bindings if query.matches(each)))
    if bound:
        return "; ".join(dict.fromkeys(_why_not(each) for each in bound))
    if query.line:
        near = sorted({line for file, line in lines if _is_file(file, query.file)}, key=lambda n: abs(n - query.line))
        where = f"lines with tensors near it: {', '.join(map(str, sorted(near[:5])))}" if near else _files(lines)
        return f"no compiled code that ran computes a tensor on that line; {where}"
    names = {
        (each.owner + each.name).lstrip("."): None
        for each in bindings
        if each.node is not None and each.name != RETURNED
    }
    elsewhere = sorted({each.function for each in bindings if each.name == query.name and each.node is not None})
    if elsewhere:
        return f"it is bound in {', '.join(elsewhere)}, and not in {query.function}"
    near_names = difflib.get_close_matches(query.name, names, n=5, cutoff=0.5) or sorted(names)[:8]
    hint = f"; there are: {', '.join(near_names)}" if near_names else ""
    return f"no compiled code that ran binds a tensor to that name{hint}"


def _why_not(binding: Binding) -> str:
    what = binding.constant or "a tensor that nothing needs, so that it is not computed at all"
    return f"at {shortened(binding.filename)}:{binding.line} it is {what}"


def lines_of(graph: torch.fx.Graph) -> Set[Tuple[str, int]]:
    """Return the lines (with their files) that compute something in this graph: all frames of each stack."""
    found: Set[Tuple[str, int]] = set()
    for node in graph.nodes:
        stack = node.meta.get("stack_trace")
        if node.op != "placeholder" and isinstance(stack, str):
            found.update((frame[0], frame[1]) for frame in frames_of(stack))
    return found


def _of_line(graph: torch.fx.Graph, query: Query) -> List[torch.fx.Node]:
    """Return the values of a line that binds nothing: the last node of each run of nodes from that line."""
    # ``return f(x) + 1`` is several nodes: the last is the value of the line. A loop gives the line several runs.
    found: List[torch.fx.Node] = []
    last: Optional[torch.fx.Node] = None
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr", "output"):
            continue
        stack = node.meta.get("stack_trace")
        frames = frames_of(stack) if isinstance(stack, str) else []
        here = any(frame[1] == query.line and _is_file(frame[0], query.file) for frame in frames)
        if last is not None and not here:
            found.append(last)
        last = node if here else None
    return found if last is None else [*found, last]


def _unnamed(node: torch.fx.Node, query: Query) -> Binding:
    frames = frames_of(node.meta.get("stack_trace") or "")
    frame = next((each for each in frames if each[1] == query.line and _is_file(each[0], query.file)), None)
    if frame is None:
        line = line_of(node)
        return Binding("", "", "" if line is None else line.file, query.line, node.name)
    return Binding("", function_name(frame[2]), frame[0], frame[1], node.name)


def _is_file(path: str, asked: str) -> bool:
    """Return whether ``asked`` (a path, or the end of one) names this file. An empty one names all of the user's."""
    if not asked:
        package = os.path.dirname(str(torch_names.module("torch").__file__)) + os.sep
        return not path.startswith(package)
    parts, wanted = os.path.normpath(path).split(os.sep), os.path.normpath(asked).split(os.sep)
    return path == asked or parts[-len(wanted) :] == wanted


def _is_end(function: str, asked: str) -> bool:
    """Return whether ``asked`` is the end of a qualified name: ``Model.forward`` ends in ``forward``."""
    if not asked:
        return True
    parts, wanted = [part for part in function.split(".") if part != "<locals>"], asked.split(".")
    if not _QUALIFIED:
        wanted = wanted[-1:]
    return parts[-len(wanted) :] == wanted


def _files(lines: Set[Tuple[str, int]]) -> str:
    names: Dict[str, None] = {os.path.basename(file): None for file, _ in sorted(lines)}
    return f"it has code of {', '.join(list(names)[:8])}" if names else "none has run"
