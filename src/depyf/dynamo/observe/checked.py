"""The calls of compiled graphs, observed while a program runs; code that was compiled earlier, too.

``observe_graphs(observer)`` is a context manager. While it is open, ``observer(call)`` is called after each call of a
compiled graph, in the thread that made it, with a ``GraphCall``: the graph as it was before the backend changed it,
what went in (before the call) and what came out of the code that the backend made. Interpreting
``call.graph.module`` with ``call.inputs`` computes the same once more. Results of the program stay those of its own
backend, with its options.

How it works: what is compiled does not keep the graph that it was compiled from, and a compiler cache never had it. So
Dynamo is handed a backend that calls the user's own and notes the graphs on their way (``checked_backend.py``), and
compiles once more what is called inside (``shadow_entries.py``). At the end these cache entries are made invalid. The
entries from before are neither used nor moved meanwhile. Backwards of forwards that ran before are not seen.

Levels: a backend that uses AOTAutograd (Inductor, aot_eager and most others) is observed at ``"aten"``, forward and
backward. Another one at ``"dynamo"``: the graph that Dynamo captured, forward only.

Observers run with Dynamo off, without gradients, and must leave values alone. What one raises is reported and goes no
further; an exception that it *returns* is raised in the program. Contexts may be nested: all observers are called.
"""

from __future__ import annotations

from depyf.dynamo.hooks import torch_names
from depyf.dynamo.hooks.hooked_context import HookedContext
from depyf.dynamo.observe.checked_backend import begin
from depyf.dynamo.observe.observation import ATEN, DYNAMO, GraphCall, ObservedGraph, Observer, observation

__all__ = ["ATEN", "DYNAMO", "GraphCall", "ObservedGraph", "Observer", "observe_graphs"]


class observe_graphs(HookedContext[object]):  # noqa: N801 - used like a function
    """A context manager: ``observer`` is called with a ``GraphCall`` after each call of a compiled graph.

    Raises ``RuntimeError`` on entering when this PyTorch (before 2.6) has nothing that it could observe with.
    """

    _name = "observe_graphs()"

    def __init__(self, observer: Observer) -> None:
        torch_names.require_torch("observe_graphs")
        super().__init__()
        self._observer = observer

    def _start(self, entry: object) -> None:
        observation.add(self._observer, begin)

    def _drop(self, entry: object) -> None:
        observation.remove(self._observer)
