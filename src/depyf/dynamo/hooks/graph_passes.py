"""Observe the passes of Inductor, and custom passes, that change a graph.

Inductor runs each pass inside of a ``GraphTransformObserver``. A custom pass that calls others (a pass manager) has one
observer for all of them. The inner passes are known if the pass manager formats the graph for the logs around each, as
``<name>.before`` and ``<name>.after``.

A pass that changes nothing costs two walks over the nodes: the parts of a graph are compared by identity, and a text is
made only of a graph that has changed. The text of the earlier graph is made from the remembered parts, since the
arguments of a node are never changed in place.
"""

from __future__ import annotations

import functools
import operator
import threading
import types
from dataclasses import field
from typing import TYPE_CHECKING, Callable, Dict, List, Mapping, Protocol, Sequence, Tuple, cast

from depyf.base.locks import Lock
from depyf.base.own_builtins import keep_builtins
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.attribution import current_compile_id
from depyf.dynamo.hooks.patching import Undo, replace_attribute
from depyf.dynamo.hooks.safely import safely

keep_builtins(globals())

if TYPE_CHECKING:
    from torch.fx import GraphModule, Node

_PARTS = 5
"""The entries of a node in the list of all nodes: the node, its kind, its target, its arguments (two entries)."""

BETWEEN = "(between the passes that have names)"


@dataclass(frozen=True)
class ObservedPass:
    """A pass that changed a graph. ``group`` is Inductor's (``post_grad_passes``), ``function`` the custom pass that
    was called, ``within`` the names of the passes that called it, the outermost first. ``before`` and ``after`` are the
    graph, a line for each node; ``sizes`` the symbols of its inputs with their ranges.
    """

    compile_id: str
    group: str
    name: str
    function: str
    within: Tuple[str, ...]
    before: Tuple[str, ...] = field(repr=False)
    after: Tuple[str, ...] = field(repr=False)
    sizes: Tuple[str, ...] = ()
    failed: bool = False


class _Observer(Protocol):
    """PyTorch's observer of one pass: since 2.6 it also has the graph (``gm``) and the group (``subsystem``)."""

    passname: str


@dataclass
class _Open:
    """A pass that runs. ``observer`` is PyTorch's, or the name of a pass that is known by printed graphs. ``nodes`` is
    the graph at the start of the pass, or later at the end of the last pass that it called.
    """

    observer: object
    graph: GraphModule
    name: str
    group: str
    function: str
    nodes: List[object]


class GraphPasses:
    """Reports each pass that changed a graph, and counts all, by compile id."""

    def __init__(self, report: Callable[[ObservedPass], object]) -> None:
        self._report = report
        self._here = threading.local()
        self._lock = Lock()
        self._ran: Dict[str, int] = {}

    def watch(self) -> List[Undo]:
        """Start to observe; return the functions that stop it."""
        cls = private_names.GRAPH_TRANSFORM_OBSERVER.find_or_report()
        if cls is None:
            return []
        enter, leave = cls.__enter__, cls.__exit__

        @functools.wraps(enter)
        def entering(observer: _Observer) -> object:
            self._begin_observed(observer)
            return enter(observer)

        @functools.wraps(leave)
        def leaving(observer: _Observer, *error: object) -> object:
            try:
                self._end_observed(observer, failed=bool(error) and error[0] is not None)
            finally:
                result = leave(observer, *error)
            return result

        undo = [replace_attribute(cls, "__enter__", entering), replace_attribute(cls, "__exit__", leaving)]
        for name in ("apply_graph_pass", "apply_gm_pass"):
            original = getattr(cls, name, None)  # not there in older releases, which use the observer as a context
            if original is not None:
                undo.append(replace_attribute(cls, name, self._applying(original)))
        return undo

    def _applying(self, original: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(original)
        def apply(observer: object, *args: object, **kwargs: object) -> object:
            self._here.applied = observer, args[0] if args else kwargs.get("pass_fn")
            try:
                return original(observer, *args, **kwargs)
            finally:
                self._here.applied = None

        return apply

    @safely("observing a graph that is printed around a pass")
    def printed(self, title: str, gm: GraphModule) -> None:
        """Note a graph that is formatted for the logs: inside of a pass, one that is called ``<name>.before`` begins a
        pass, and ``<name>.after`` ends it.
        """
        name, _, side = title.rpartition(".")
        stack = self._stack()
        if not name or not stack:
            return
        if side == "before":
            self._begin(name, gm, name, stack[-1].group, "")
        elif side == "after" and any(each.observer == name for each in stack):
            self._end(name, gm, failed=False)

    def take_count(self, compile_id: str) -> int:
        """Return how many passes of this compilation ran since the last call, and forget the last graph."""
        self._here.last = None
        with self._lock:
            return self._ran.pop(compile_id, 0)

    def _stack(self) -> List[_Open]:
        try:
            stack: List[_Open] = self._here.stack
        except AttributeError:
            stack = self._here.stack = []
        return stack

    @safely("observing a pass over a graph")
    def _begin_observed(self, observer: _Observer) -> None:
        graph = getattr(observer, "gm", None)
        if graph is None:  # before 2.6 an observer that does not log has no graph
            return
        group = str(getattr(observer, "subsystem", None) or "")
        applied = getattr(self._here, "applied", None)
        function = _name_of(applied[1]) if applied is not None and applied[0] is observer else ""
        self._begin(observer, graph, str(observer.passname), group, function)

    def _begin(self, observer: object, graph: GraphModule, name: str, group: str, function: str) -> None:
        # A change since the last observation belongs to the pass around this one, or to no pass that has a name.
        stack, nodes = self._stack(), _nodes(graph)
        last = getattr(self._here, "last", None)
        if stack and stack[-1].graph is graph:
            self._changed(stack[-1], nodes, stack[:-1])
        elif last is not None and last[0] is graph:
            self._changed(_Open(observer, graph, BETWEEN, group, "", last[1]), nodes, stack)
        stack.append(_Open(observer, graph, name, group, function, nodes))

    @safely("observing a pass over a graph")
    def _end_observed(self, observer: _Observer, *, failed: bool) -> None:
        gm = getattr(observer, "gm", None)
        if gm is not None:
            self._end(observer, gm, failed=failed)

    def _end(self, observer: object, gm: GraphModule, *, failed: bool) -> None:
        stack, nodes = self._stack(), _nodes(gm)
        while stack:  # those above were interrupted
            opened = stack.pop()
            if opened.observer == observer:
                break
        else:
            return
        self._here.last = gm, nodes
        compile_id = current_compile_id()
        if compile_id is not None:
            with self._lock:
                self._ran[compile_id] = self._ran.get(compile_id, 0) + 1
        self._changed(opened, nodes, stack, failed=failed)
        if stack and stack[-1].graph is gm:
            stack[-1].nodes = nodes

    def _changed(self, opened: _Open, nodes: List[object], stack: List[_Open], *, failed: bool = False) -> None:
        """Report what a pass itself has changed up to now, if anything; passes that it called report their own
        changes.
        """
        before, opened.nodes = opened.nodes, nodes
        compile_id = current_compile_id()
        if compile_id is None or _same(before, nodes):
            return
        texts = _lines(before), _lines(nodes)
        if texts[0] == texts[1]:
            return
        self._report(
            ObservedPass(
                compile_id,
                opened.group,
                opened.name,
                opened.function,
                tuple(each.name for each in stack),
                *texts,
                sizes=_sizes(cast("Sequence[Node]", nodes[::_PARTS])),
                failed=failed,
            )
        )


def _nodes(gm: GraphModule) -> List[object]:
    """Flatten the graph to ``[node, op, target, args, kwargs, ...]``."""
    found: List[object] = []
    for node in gm.graph.nodes:
        found += (node, node.op, node.target, node.args, node.kwargs)
    return found


def _same(one: List[object], other: List[object]) -> bool:
    return len(one) == len(other) and all(map(operator.is_, one, other))


def _lines(nodes: List[object]) -> Tuple[str, ...]:
    line = cast(Callable[..., str], _line)
    return tuple(line(*nodes[at : at + _PARTS]) for at in range(0, len(nodes), _PARTS))


def _line(node: Node, op: str, target: object, args: Sequence[object], kwargs: Mapping[str, object]) -> str:
    """Return the operation as Python, with the type of its result as PyTorch prints it."""
    name = f"{node.name}{_type(node.meta)}"
    if op == "placeholder":
        return f"{name}  # input"
    if op == "output":
        return f"return {', '.join(map(repr, args))}"
    if op == "get_attr":
        return f"{name} = self.{target}"
    given = [repr(each) for each in args] + [f"{key}={value!r}" for key, value in kwargs.items()]
    if op == "call_method" and given:
        return f"{name} = {given[0]}.{target}({', '.join(given[1:])})"
    return f"{name} = {f'self.{target}' if op == 'call_module' else _called(target)}({', '.join(given)})"


def _called(target: object) -> str:
    if isinstance(target, types.FunctionType):
        return f"{target.__module__}.{target.__qualname__}"
    if isinstance(target, types.BuiltinFunctionType):
        return f"{target.__module__ or 'torch'}.{target.__name__}".replace("_operator.", "operator.")
    return f"torch.ops.{target}" if type(target).__name__ == "OpOverload" else str(target)


def _type(meta: Mapping[str, object]) -> str:
    value = meta.get("val", meta.get("example_value"))
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return ""
    return f': "{str(dtype).replace("torch.", "")}[{", ".join(map(str, shape))}]"'


def _sizes(nodes: Sequence[Node]) -> Tuple[str, ...]:
    """Return the symbols of the inputs with the ranges that they are compiled for."""
    found: Dict[str, str] = {}
    for node in nodes:
        value = node.meta.get("val", node.meta.get("example_value")) if node.op == "placeholder" else None
        for size in (value, *getattr(value, "shape", ())):
            inner = getattr(size, "node", None)
            ranges = getattr(getattr(inner, "shape_env", None), "var_to_range", None)
            expression = getattr(inner, "expr", None)
            if ranges is not None and expression in ranges:
                found[str(expression)] = range_in_words(ranges[expression].lower, ranges[expression].upper)
    return tuple(f"{symbol}: {words}" for symbol, words in found.items())


def range_in_words(lower: object, upper: object) -> str:
    """Return the text for a value range of PyTorch, such as ``2 to ∞``; ``any value`` without finite bounds."""
    low, high = (str(each).replace("int_oo", "∞").replace("oo", "∞") for each in (lower, upper))
    return "any value" if (low, high) == ("-∞", "∞") else f"{low} to {high}"


def _name_of(function: object) -> str:
    """Return the name of a custom pass: of a function, a method or the class of an object."""
    while isinstance(function, functools.partial):
        function = function.func
    kinds = (types.FunctionType, types.MethodType, types.BuiltinFunctionType)
    named = function if isinstance(function, kinds) else type(function)
    return f"{named.__module__}.{named.__qualname__}"
