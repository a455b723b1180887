"""The names ``__compiled_fn_<id>`` that Dynamo makes up, told as it does: before the stages of the graph come."""

from __future__ import annotations

import functools
from typing import Any, Callable, Optional

from depyf.dynamo.hooks import compat
from depyf.dynamo.hooks.patching import Undo, replace_attribute


def watch_compiled_names(note: Callable[[str], object]) -> Optional[Undo]:
    """Call ``note`` with each name from now on, on the thread that compiles; it must not raise. Answers how to end it,
    None where this torch can't be watched."""
    maker = compat.maker_of_names()
    if maker is None:
        return None
    module, attribute = maker
    original = getattr(module, attribute)

    @functools.wraps(original)
    def make_name(*args: Any, **kwargs: Any) -> Any:
        name = original(*args, **kwargs)
        note(name)
        return name

    return replace_attribute(module, attribute, make_name)
