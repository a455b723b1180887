"""Make graphs that torch interprets node by node run as the function that they print as.

Up to 2.7 ``aot_eager`` hands its graphs to ``torch.fx.Interpreter``, so no line of their files would ever run. Those
that depyf has moved to a file run by their ``forward`` instead; all others are interpreted as before.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any, List

from depyf.dynamo.hooks import backends, torch_names
from depyf.dynamo.hooks.locks import Lock

if TYPE_CHECKING:
    import torch

_runs_by_forward: weakref.WeakSet[torch.fx.GraphModule] = weakref.WeakSet()
_lock = Lock()
_installed = False


def run_by_forward(module: torch.fx.GraphModule) -> None:
    """Make interpreters of ``module`` call its ``forward``, where this torch would interpret it. This outlasts the
    session: users step through the graphs after they are compiled.
    """
    if not backends.interprets_graphs():
        return
    with _lock:
        _runs_by_forward.add(module)
        _install()


def _install() -> None:
    global _installed
    if _installed:
        return
    interpreter = torch_names.find("torch.fx", "Interpreter")
    original = getattr(interpreter, "boxed_run", None)
    if interpreter is None or original is None:
        return

    @functools.wraps(original)
    def boxed_run(self: Any, args_list: List[object]) -> object:
        if type(self) is interpreter and self.module in _runs_by_forward:
            arguments = list(args_list)
            args_list.clear()
            return self.module.forward(*arguments)
        return original(self, args_list)

    interpreter.boxed_run = boxed_run
    _installed = True
