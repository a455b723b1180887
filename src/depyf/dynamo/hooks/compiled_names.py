"""Report each name ``__compiled_fn_<id>`` when Dynamo generates it: before the stages of the graph."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Callable, Optional, Tuple

from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.hooks.patching import Undo, replace_attribute

keep_builtins(globals())


def watch_compiled_names(note: Callable[[str], object]) -> Optional[Undo]:
    """Start to call ``note`` with each name, on the thread that compiles; it must not raise. Return the function that
    stops it, None if this torch can't be watched.
    """
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
    """Return the module and name of the function that generates ``__compiled_fn_<id>`` for Dynamo's output graph."""
    names = (private_names.MAKE_NAME, private_names.MAKE_NAME_BEFORE)
    name = torch_names.first_row_of(*names)
    if name is not None:
        return name.holder(), name.name
    torch_names.report_once(
        names[0].whole,
        f"this PyTorch has neither {names[0].name} nor {names[1].name} in {names[0].module}: {names[0].lost}",
    )
    return None
