"""Record why a CUDA graph is not used, or is recorded again.

While PyTorch compiles, its reasons for not using CUDA graphs are in its metrics; while code runs, only in its log. Why
a graph is recorded again is something that PyTorch computes only with its debug log on: it is computed here.
"""

from __future__ import annotations

import functools
import logging
import time
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Protocol, Sequence, Tuple

from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.capture.session import Receivers, Session
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.attribution import current_compile_id
from depyf.dynamo.hooks.patching import Undo, call_before, registered
from depyf.dynamo.hooks.safely import safely
from depyf.torch_trace.cudagraphs import RERECORDED, SKIPPED, is_skip
from depyf.torch_trace.events import Event

keep_builtins(globals())

_LOGGERS = ("__cudagraphs", "__perf_hints")
"""Inductor's loggers for these messages; PyTorch up to 2.4 uses the second."""


def watch_cudagraphs(receivers: Receivers) -> List[Undo]:
    """Start to record messages about skipped CUDA graphs in every session that ``receivers`` returns."""

    @safely("noting skipped CUDA graphs")
    def note(record: logging.LogRecord) -> None:
        message = record.getMessage()
        if not is_skip(message):
            return
        event = Event(SKIPPED, current_compile_id(), 0, None, message, time.time())
        for session in receivers():
            session.add(event)

    def filter_(record: logging.LogRecord) -> bool:
        note(record)
        return True

    undo: List[Undo] = []
    for logger in [
        logging.getLogger(f"{each.module}.{name}") for each in private_names.CUDAGRAPH_LOGGERS for name in _LOGGERS
    ]:
        undo.append(registered(functools.partial(logger.removeFilter, filter_)))
        logger.addFilter(filter_)
    return undo


_SHOWN = 3


class _Wrapped(Protocol):
    id: object
    placeholders: Sequence[object]


class _Model(Protocol):
    model: object


class _Node(Protocol):
    """A recording in PyTorch's tree."""

    wrapped_function: _Wrapped
    children: Mapping[object, Sequence[_Node]]
    static_input_data_ptrs: Sequence[Optional[int]]
    cudagraph_managed_idxs: Sequence[int]


class _Tree(Protocol):
    """PyTorch's manager of the recordings of one device; functions are known by ids."""

    roots: Mapping[object, Sequence[_Node]]
    current_node: Optional[_Node]
    ids_to_funcs: Mapping[object, _Model]


_NOTHING: Dict[object, object] = {}


def watch_rerecords(receivers: Callable[[Optional[str]], Sequence[Session]]) -> Optional[Undo]:
    """Start to report each recording of a graph that was recorded before; return the function that stops it."""
    manager = private_names.CUDAGRAPH_MANAGER.find_or_report()
    if manager is None:
        return None

    @safely("looking why a CUDA graph is recorded again")
    def note(tree: _Tree, inputs: Sequence[object], function: object) -> None:
        reason = _reason(tree, inputs, function)
        if reason is None:
            return
        compile_id = _compile_id(tree, function)
        mode = getattr(getattr(tree, "id_to_mode", _NOTHING).get(function), "name", "")
        meta = {"function": _name(tree, function), "mode": mode, "reason": reason[0], "place": reason[1]}
        for session in receivers(compile_id):
            session.add(Event(RERECORDED, compile_id, 0, meta, None, time.time()))

    return call_before(manager, "record_function", note)


def _compile_id(tree: _Tree, function: object) -> Optional[str]:
    found = getattr(tree, "id_to_compile_id", _NOTHING).get(function)
    return None if found is None else str(found)


def _name(tree: _Tree, function: object) -> str:
    return str(getattr(tree.ids_to_funcs[function].model, "__name__", "")) or "a compiled graph"


def _described(tree: _Tree, node: Optional[_Node]) -> str:
    """Return the name of the graph that a node of the tree has recorded."""
    if node is None:
        return "nothing"
    function = node.wrapped_function.id
    return _compile_id(tree, function) or _name(tree, function)


def _reason(tree: _Tree, inputs: Sequence[object], function: object) -> Optional[Tuple[str, str]]:
    """Return why this graph is recorded, and PyTorch's stack of an input; None for the first time."""
    # PyTorch's ``CUDAGraphTreeManager`` keeps a tree of recordings: a child was recorded after its parent in one step.
    # A recording is replayed only after the same parent, with static inputs at the same addresses.
    recorded = list(_recordings(tree, function))
    if not recorded:
        return _of_other_sizes(tree, function)
    parent = tree.current_node
    here = [node for above, node in recorded if above is parent]
    if not here:
        before = ", ".join(dict.fromkeys(_described(tree, above) for above, _ in recorded))
        return f"it runs after {_described(tree, parent)} now, and was recorded after {before}", ""
    return _moved(tree, here[-1], inputs)


def _of_other_sizes(tree: _Tree, function: object) -> Optional[Tuple[str, str]]:
    """Return the reason if the same code was recorded for other sizes: PyTorch adds it to the tree once more for each
    combination of dynamic sizes."""
    own = tree.ids_to_funcs[function].model
    others = (each for each, added in tree.ids_to_funcs.items() if each != function and added.model is own)
    if any(next(_recordings(tree, each), None) is not None for each in others):
        return "a dynamic size has a new value, and each is recorded on its own", ""
    return None


def _recordings(tree: _Tree, function: object) -> Iterator[Tuple[Optional[_Node], _Node]]:
    """Yield the recordings of a function, each after its parent; None: the recording begins a step."""
    left: List[Tuple[Optional[_Node], _Node]] = [(None, node) for nodes in tree.roots.values() for node in nodes]
    while left:
        above, node = left.pop()
        if node.wrapped_function.id == function:
            yield above, node
        left += [(node, each) for nodes in node.children.values() for each in nodes]


def _moved(tree: _Tree, node: _Node, inputs: Sequence[object]) -> Tuple[str, str]:
    """Return which inputs have another address than in the recording ``node``."""
    import torch

    moved = [
        index
        for index, (address, value) in enumerate(zip(node.static_input_data_ptrs, inputs))
        if address is not None and isinstance(value, torch.Tensor) and value.data_ptr() != address
    ]
    if not moved:
        return "other results of earlier graphs are still alive than when it was recorded", ""
    placeholders = node.wrapped_function.placeholders
    managed = [index for index in moved if index in node.cudagraph_managed_idxs]
    what = "results of other CUDA graphs" if managed else "parameters, buffers or static inputs"
    shown = managed or moved
    names = ", ".join(str(getattr(placeholders[index], "name", index)) for index in shown[:_SHOWN])
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    stacks = (_stack(placeholders[index]) for index in shown)
    return f"{what} are at another address: {names}{more}", next(filter(None, stacks), "")


def _stack(placeholder: object) -> str:
    """Return the stack of an input, or of the first operation that uses it."""
    own = [placeholder, *getattr(placeholder, "users", ())]
    return next((str(each.stack_trace) for each in own if getattr(each, "stack_trace", None)), "")
