"""Short texts for any value: tensors by kind and shape, others by their ``repr``, which may fail."""

from __future__ import annotations

from depyf.asynchronous import synchronous
from depyf.dynamo.hooks import torch_names
from depyf.messages import describe

_LONGEST = 80


def shown(value: object) -> str:
    """Return ``value`` on one line of at most 80 characters; never raises."""
    try:
        tensor = torch_names.find("torch", "Tensor")
        if tensor is not None and isinstance(value, tensor):
            return f"{value.dtype}".replace("torch.", "") + f"{list(value.shape)} on {value.device}"
        text = " ".join(repr(value).split())
    except synchronous() as error:
        return f"a {type(value).__name__} ({describe(error)})"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
