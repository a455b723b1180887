"""The names ``__compiled_fn_<id>`` that Dynamo makes up, told as it does: before the stages of the graph come."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Callable, Optional, Tuple

from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.hooks.patching import Undo, replace_attribute


def watch_compiled_names(note: Callable[[str], object]) -> Optional[Undo]:
    """Call ``note`` with each name from now on, on the thread that compiles; it must not raise. Return how to end it,
    None where this torch can't be watched."""
    maker = maker_of_names()
    if maker is None:
        return None
    module, attribute = maker
    original = getattr(module, attribute)

    @functools.wraps(original)
    def make_name(*args: object, **kwargs: object) -> object:
        name = original(*args, **kwargs)
        note(name)
        return name

    return replace_attribute(module, attribute, make_name)


def maker_of_names() -> Optional[Tuple[ModuleType, str]]:
    """The module and the name of the function that makes up ``__compiled_fn_<id>`` for Dynamo's output graph."""
    names = (private_names.MAKE_NAME, private_names.MAKE_NAME_BEFORE)
    name = torch_names.first_row_of(*names)
    if name is not None:
        return name.holder(), name.name
    torch_names.report_once(
        names[0].whole,
        f"this PyTorch has neither {names[0].name} nor {names[1].name} in {names[0].module}: {names[0].lost}",
    )
    return None
