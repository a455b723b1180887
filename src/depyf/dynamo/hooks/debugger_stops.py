"""Keep Dynamo from compiling what a debugger calls while it is stopped: it reads variables with functions of the
standard library, and its user evaluates expressions. If the program is stopped in compiled code, Dynamo would compile
these, too, and number the graphs that follow otherwise than without the debugger."""

from __future__ import annotations

import functools
import sys
from typing import Callable, Mapping, Optional, Tuple

from depyf.dynamo.hooks.frame_evaluation import set_eval_frame
from depyf.dynamo.hooks.late_modules import when_imported
from depyf.dynamo.hooks.patching import replace_attribute

_STOPS: Mapping[str, Tuple[str, str]] = {"pdb": ("Pdb", "interaction"), "pydevd": ("PyDB", "do_wait_suspend")}
"""By module: the class of the debugger, and the method that returns when the program goes on."""


def keep_dynamo_out_of_stops() -> None:
    """Make the debuggers pdb (IPython's, too) and debugpy stop without Dynamo, whenever they are imported."""
    for module in _STOPS:
        when_imported(module, functools.partial(_watch, module))


def _watch(module: str) -> object:
    owner, method = _STOPS[module]
    debugger = getattr(sys.modules.get(module), owner, None)
    stop: Optional[Callable[..., object]] = getattr(debugger, method, None)
    if stop is None:
        return None

    @functools.wraps(stop)
    def stopped(*args: object, **kwargs: object) -> object:
        before = set_eval_frame(None)
        try:
            return stop(*args, **kwargs)
        finally:
            set_eval_frame(before)

    return replace_attribute(debugger, method, stopped)
