"""All programs of ``frames_*.py``, by family and name, and the frames that Dynamo makes of them."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from types import CodeType
from typing import Dict, Iterator, List

import frames_blocks
import frames_calls
import frames_closures
import frames_effects
import frames_modules
import frames_nested
import torch
from breaking_case import Maker
from case import run

FAMILIES = (frames_nested, frames_closures, frames_blocks, frames_modules, frames_calls, frames_effects)
PROGRAMS: Dict[str, Maker] = {name: make for family in FAMILIES for name, make in family.PROGRAMS.items()}

TORCH = tuple(map(int, torch.__version__.split(".")[:2]))

NESTED = "nested_graph_breaks"
"""The setting of Dynamo (PyTorch 2.10) under which a break in an inlined function splits all frames around it."""


@dataclass(frozen=True)
class Frame:
    """One code object that Dynamo compiled, and what it made of it."""

    original: CodeType
    transformed: CodeType


def has_nested_breaks() -> bool:
    """Return whether this PyTorch can do it. 2.9 has the setting and a first form, of
    which 38 of these programs are not proved.
    """
    return hasattr(torch._dynamo.config, NESTED) and TORCH >= (2, 10)


@contextlib.contextmanager
def nested_breaks(enabled: bool) -> Iterator[None]:
    """Set whether graph breaks in inlined functions split the frames around them, where Dynamo can do that."""
    if not has_nested_breaks():
        yield
        return
    with torch._dynamo.config.patch({NESTED: enabled}):
        yield


def frames_of(name: str, nested: bool = False) -> List[Frame]:
    """Run the program ``name``, compiled with the backend "eager", and return the frames of it and of its callees."""
    found: List[Frame] = []
    torch._dynamo.reset()
    handle = torch._dynamo.convert_frame.register_bytecode_hook(
        lambda original, transformed: found.append(Frame(original, transformed))
    )
    try:
        with nested_breaks(nested):
            case = PROGRAMS[name]()
            run(case, torch.compile(case.function, backend="eager"), training=True)
    finally:
        handle.remove()
        torch._dynamo.reset()
    return found
