"""Find the graphs and kernels that a function compiled before the session still references.

The compiled function is walked like any other object: closures, bound methods, and what AOTAutograd and Inductor wrap
around the graphs. Nothing is called and nothing is changed.
"""

from __future__ import annotations

import contextlib
from collections import deque
from dataclasses import field
from types import BuiltinMethodType, CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Deque, Dict, Iterator, List, Optional, Tuple

from depyf.base.asynchronous import suppressed
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.hooks.nested_code import closure_of
from depyf.torch_trace.stages import Stage

if TYPE_CHECKING:
    import torch

_MOST_OBJECTS = 5000
"""The limit of the walk: a compiled function references some hundreds of objects."""

_WALKED_INTO = (private_names.FUNCTORCH.whole, private_names.INDUCTOR.whole, private_names.DYNAMO.whole)
_BACKWARD = frozenset({"compiled_bw", "bw_module", private_names.LAZY_BACKWARD.name, "backward_compiler"})


@dataclass(frozen=True)
class Kernel:
    """A module that Inductor generated, ``path`` being where it runs from, and the graph after the last passes."""

    source: str = field(repr=False)
    path: Optional[str]
    post_grad: str = field(repr=False)
    backward: Optional[bool]


@dataclass(frozen=True)
class Recovered:
    """What a compiled function still references. ``pending``: its backward has not been compiled."""

    graphs: Tuple[Tuple[Stage, torch.fx.GraphModule], ...]
    kernels: Tuple[Kernel, ...]
    pending: bool


def recover(compiled: object) -> Recovered:
    """Return the graphs (as graph modules, by stage) and kernels that ``compiled``, a ``__compiled_fn`` of Dynamo,
    holds."""
    from torch import fx

    graphs: Dict[Stage, torch.fx.GraphModule] = {}
    kernels: List[Kernel] = []
    pending = False
    for part, stage in _walk(compiled):
        if isinstance(part, fx.GraphModule):
            graphs.setdefault(stage, part)
        elif _is_compiled_graph(part):
            kernels.append(_kernel(part))
        elif isinstance(part, type) and private_names.LAZY_BACKWARD.name in vars(part):
            pending = vars(part).get("compiled_bw") is None
    return Recovered(tuple(graphs.items()), tuple(sorted(kernels, key=lambda kernel: bool(kernel.backward))), pending)


def backward_classes(compiled: object) -> List[type]:
    """Return the classes of AOTAutograd in ``compiled`` that run a compiled backward."""
    return [part for part, _ in _walk(compiled) if isinstance(part, type) and "compiled_bw" in vars(part)]


def _walk(start: object) -> Iterator[Tuple[object, Stage]]:
    """Yield every part of a compiled function, nearest first, with the stage of graphs found in it."""
    from torch import fx

    todo: Deque[Tuple[object, Stage]] = deque([(start, Stage.CAPTURED)])
    seen: Dict[int, object] = {}
    while todo and len(seen) < _MOST_OBJECTS:
        part, stage = todo.popleft()
        if id(part) in seen:
            continue
        seen[id(part)] = part
        yield part, stage
        if not isinstance(part, fx.GraphModule) and not _is_compiled_graph(part):
            todo.extend((value, _stage_behind(part, name, stage)) for name, value in _parts(part))


def _stage_behind(part: object, name: str, stage: Stage) -> Stage:
    if name in _BACKWARD:
        return Stage.BACKWARD
    below_aot = isinstance(part, FunctionType) and name == "compiled_fn"  # AOTAutograd's wrapper closes over it
    return Stage.FORWARD if below_aot and stage is Stage.CAPTURED else stage


def _parts(part: object) -> List[Tuple[str, object]]:
    if isinstance(part, FunctionType):
        return [*closure_of(part), *vars(part).items()]
    if isinstance(part, MethodType):
        return [("", part.__self__), ("", part.__func__)]
    if isinstance(part, BuiltinMethodType) and isinstance(part.__self__, type):
        return [("", part.__self__)]  # ``apply`` of an autograd function
    if isinstance(part, (staticmethod, classmethod)):
        return [("", part.__func__)]
    if isinstance(part, (list, tuple)):
        return [("", each) for each in part]
    function = torch_names.find("torch.autograd.function", "Function")
    if isinstance(part, type):
        return list(vars(part).items()) if function is not None and issubclass(part, function) else []
    if type(part).__module__.startswith(_WALKED_INTO):
        return list(getattr(part, "__dict__", {}).items())
    return []


def _is_compiled_graph(part: object) -> bool:
    return type(part).__name__ == "CompiledFxGraph" and hasattr(part, "current_callable")


def _kernel(graph: object) -> Kernel:
    code = getattr(getattr(graph, "current_callable", None), "__code__", None)
    path = code.co_filename if isinstance(code, CodeType) else None
    backward = (getattr(graph, "fx_kwargs", None) or {}).get("is_backward")
    return Kernel(
        source=str(getattr(graph, "source_code", "") or ""),
        path=path,
        post_grad=str(getattr(graph, "inductor_post_grad_graph_str", "") or ""),
        backward=backward if isinstance(backward, bool) else None,
    )


def tensor_bytes(compiled: object) -> int:
    """Return how many bytes the tensors have that the graphs in a ``__compiled_fn`` hold: constants, parameters and
    buffers that are no inputs. A storage counts once."""
    import torch

    storages: Dict[int, int] = {}
    # A mode of the program, which may be on, is not told of these calls.
    without_modes = private_names.DISABLE_TORCH_FUNCTION.find() or contextlib.nullcontext
    with without_modes():
        for part, _ in _walk(compiled):
            for each in _held(part):
                if isinstance(each, torch.Tensor) and type(each) in (torch.Tensor, torch.nn.Parameter):
                    with suppressed(RuntimeError, NotImplementedError):  # without a storage
                        storage = each.untyped_storage()
                        key = id(storage) if storage.device.type == "meta" else storage.data_ptr()
                        storages[key] = storage.nbytes()
    return sum(storages.values())


def _held(part: object) -> List[object]:
    import torch

    if isinstance(part, torch.fx.GraphModule):
        names = (private_names.PARAMETERS, private_names.BUFFERS)
        return [value for each in names for value in each.of(part).values()]
    return list((getattr(part, "constants", None) or {}).values()) if _is_compiled_graph(part) else []
