"""The backends that ``torch.compile`` finds by name, and the graphs that they interpret node by node.

Up to 2.7 ``aot_eager`` hands its graphs to ``torch.fx.Interpreter``, so no line of their files would ever run. Those
that depyf has moved to a file run by their ``forward`` instead; all others are interpreted as before.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any, List

from depyf.base.locks import Lock
from depyf.decompiler.syntax import nested_codes
from depyf.dynamo.hooks import private_names, torch_names

if TYPE_CHECKING:
    import torch


def interprets_graphs() -> bool:
    """Return whether the backend aot_eager runs its graphs by ``torch.fx.Interpreter`` (2.13 calls ``forward``)."""
    compiler = private_names.BOXED_NOP.find()
    code = getattr(compiler, "__code__", None)
    return code is not None and any("boxed_run" in each.co_names for each in nested_codes(code))


def registered_backend(name: str, *, required: bool = False) -> Any:
    """Return the backend of that name; None if torch has none. If it is ``required``, raise torch's exception
    instead.
    """
    lookup = private_names.LOOKUP_BACKEND.find()
    return lookup(name) if required or name in names_of_backends() else None


def names_of_backends() -> List[str]:
    """Return the names of all registered backends."""
    known = private_names.LIST_BACKENDS.find()
    return [] if known is None else list(known(exclude_tags=()))


_runs_by_forward: weakref.WeakSet[torch.fx.GraphModule] = weakref.WeakSet()
_lock = Lock()
_installed = False


def run_by_forward(module: torch.fx.GraphModule) -> None:
    """Make interpreters of ``module`` call its ``forward``, where this torch would interpret it. This outlasts the
    session: users step through the graphs after they are compiled.
    """
    if not interprets_graphs():
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
