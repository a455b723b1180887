"""Print each graph once: PyTorch's trace and its logs show the same graph several times, with nothing changed between.

The last text of each thread is kept until the compilation ends, with all that it was made from. It is given again only
where depyf asks for it, and only if all of that is the same. A graph with symbolic sizes is always printed again: its
shapes may be known better by then, with no object replaced.
"""

from __future__ import annotations

import functools
import operator
import os
import sys
from threading import get_ident
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Set, Tuple, TypeVar

from depyf.dynamo.hooks import compile_ids, private_names
from depyf.dynamo.hooks.patching import Undo, registered, replace_attribute
from depyf.dynamo.hooks.safely import safely
from depyf.quick_dataclass import dataclass

if TYPE_CHECKING:
    import torch

T = TypeVar("T")

_OPTIONS: Tuple[Mapping[str, Any], ...] = (
    {"print_output": False, "include_stride": True, "include_device": True},
    {"print_output": False},
)

_MORE = {"expanded_def": True}
"""An option with which a print shows all that it shows without, and describes each input."""

_SHOW_ALL = "FX_GRAPH_SHOW_META"
"""The environment variable with which a print shows all values in ``meta``, some of which can change."""


@dataclass(frozen=True)
class _Sources:
    """What a text was made from: ``objects``, which it keeps alive and whose identity is compared, and ``values``."""

    objects: List[object]
    values: List[object]

    def are(self, others: Optional[_Sources]) -> bool:
        return (
            others is not None
            and len(self.objects) == len(others.objects)
            and all(map(operator.is_, self.objects, others.objects))
            and self.values == others.values
        )


@dataclass(frozen=True)
class _Print:
    text: str
    options: Mapping[str, object]
    graph: object
    made_from: _Sources

    def is_of(self, module: torch.fx.GraphModule, options: Mapping[str, object]) -> bool:
        """Return whether the module would be printed as this text, or as less, with these options."""
        if module.graph is not self.graph or self.options not in (options, {**options, **_MORE}):
            return False
        return self.made_from.are(_sources(module))


_last: Dict[int, _Print] = {}
"""By thread."""

_asking: Set[int] = set()
"""The threads on which depyf asks for a text now."""


def watch() -> Optional[Undo]:
    """Start to keep what is printed; return the function that stops it."""
    cls = private_names.GRAPH_MODULE.find()
    original = getattr(cls, "print_readable", None)
    if cls is None or original is None:
        return None

    @functools.wraps(original)
    def print_readable(module: torch.fx.GraphModule, *args: object, **options: object) -> str:
        known = None if args else _known(module, options)
        if known is not None:
            return known
        text: str = original(module, *args, **options)
        if not args:
            _keep(module, options, text)
        return text

    registered(forget)
    return replace_attribute(cls, "print_readable", print_readable)


@safely("looking for an earlier print of a graph")
def _known(module: torch.fx.GraphModule, options: Mapping[str, object]) -> Optional[str]:
    last = _last.get(get_ident())
    if last is not None and get_ident() in _asking and last.is_of(module, options):
        return last.text
    return None


@safely("keeping the print of a graph")
def _keep(module: torch.fx.GraphModule, options: Mapping[str, object], text: str) -> None:
    _last.pop(get_ident(), None)
    if options.get("print_output") is not False or compile_ids.current_compile_id() is None:
        return
    made_from = _sources(module)
    if made_from is not None:
        _last[get_ident()] = _Print(text, options, module.graph, made_from)


def forget() -> None:
    """Keep no text, and nothing alive, until another graph is printed."""
    _last.clear()


def asked(payload: Callable[[], T]) -> T:
    """Return what PyTorch makes for its trace, where depyf is the only one to read it."""
    thread = get_ident()
    _asking.add(thread)
    try:
        return payload()
    finally:
        _asking.discard(thread)


def readable_text(module: torch.fx.GraphModule) -> str:
    """Return the graph of a graph module, as PyTorch shows it. Raises ``AttributeError`` for what has no
    ``print_readable``.
    """
    for options in _OPTIONS:
        try:
            return str(asked(functools.partial(module.print_readable, **options)))
        except TypeError:  # an older torch without these options
            continue
    return str(module.code)


def _sources(module: torch.fx.GraphModule) -> Optional[_Sources]:
    """Return what the print of a module shows. None if it shows more than its own graph, or something that may change
    while it stays the same object.
    """
    kind = private_names.GRAPH_MODULE.find()
    if os.environ.get(_SHOW_ALL) or any(isinstance(child, kind) for child in module.children()):
        return None
    codegen = getattr(module.graph, private_names.CODEGEN.name)
    objects: List[object] = [type(module).__name__, codegen, *vars(codegen).values()]
    values: List[object] = []
    kinds = (sys.modules["torch"].Tensor, private_names.FAKE_TENSOR.find())
    strided = sys.modules["torch"].strided
    for node in module.graph.nodes:
        meta = node.meta
        shown = meta.get("val", meta.get("tensor_meta", meta.get("example_value")))
        if "custom" in meta or not _add_values(shown, kinds, strided, values):
            return None
        objects += (node, node.name, node.op, node.target, node.args, node.kwargs, node.type)
        objects += meta.values()
    return _Sources(objects, values)


def _add_values(shown: Any, kinds: Tuple[object, ...], strided: object, values: List[object]) -> bool:
    """Add what a print shows of the value of a node and can change in place; return False for a value of which that is
    not known. ``kinds`` are the types that are shown as plain tensors.
    """
    for each in shown if type(shown) in (tuple, list) else (shown,):
        if type(each) in kinds:
            sizes = each.shape
            if each.layout is not strided or not all(type(size) is int for size in sizes):
                return False
            values.append((sizes, each.stride(), each.dtype, each.device))
        elif each is None or type(each) in (bool, int, float, str):
            values.append(each)
        else:
            return False
    return True
