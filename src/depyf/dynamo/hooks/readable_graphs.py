"""The text of a graph module, as PyTorch shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Tuple

if TYPE_CHECKING:
    import torch

_OPTIONS: Tuple[Mapping[str, Any], ...] = (
    {"print_output": False, "include_stride": True, "include_device": True},
    {"print_output": False},
)


def readable_text(module: torch.fx.GraphModule) -> str:
    """Return the graph of a graph module, as PyTorch shows it. Raises ``AttributeError`` for what has no
    ``print_readable``.
    """
    for options in _OPTIONS:
        try:
            return str(module.print_readable(**options))
        except TypeError:  # an older torch without these options
            continue
    return str(module.code)
