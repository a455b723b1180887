"""Random numbers as Inductor's kernels draw them: the eager versions of its operators draw others."""

from __future__ import annotations

import functools
from typing import Any, Callable, Dict, Tuple

from depyf.dynamo.hooks import private_names
from depyf.dynamo.observe.random_state import RandomState

_DRAWS = ("prims.inductor_seeds.", "prims.inductor_seed.", "prims.inductor_random.", "prims.inductor_randint.")


def draws(operator: object) -> bool:
    """Return whether it is one of Inductor's that draw seeds from the default generator, or numbers from a seed."""
    return str(operator).startswith(_DRAWS)


def draw(operator: object, args: Tuple[object, ...], kwargs: Dict[str, object]) -> object:
    """Return what Inductor's code for this operator alone returns: a number depends on seed and position only."""
    import torch

    given = tuple(value for value in args if isinstance(value, torch.Tensor))
    pattern = tuple(_HERE if isinstance(value, torch.Tensor) else _hashable(value) for value in args)
    return _kernel(operator, pattern, tuple(sorted(kwargs.items())), tuple(str(each.device) for each in given))(*given)


_HERE = object()


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


@functools.lru_cache(maxsize=64)
def _kernel(
    operator: Any,
    pattern: Tuple[Any, ...],
    kwargs: Tuple[Tuple[str, Any], ...],
    devices: Tuple[str, ...],
) -> Callable[..., object]:
    import torch

    graph = torch.fx.Graph()
    inputs = iter([graph.placeholder(f"seed_{number}") for number in range(len(devices))])
    arguments = tuple(next(inputs) if each is _HERE else each for each in pattern)
    graph.output((graph.call_function(operator, arguments, dict(kwargs)),))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    examples = [torch.zeros((), dtype=torch.int64, device=device) for device in devices]
    with RandomState(examples).restored():  # compiling draws, too
        compiled = private_names.INDUCTOR.holder().compile(module, examples)
    return lambda *values: compiled(*values)[0]
