"""Match a recompiled graph to the original one. A call of a copy compiles again, with other numbers each time. A graph
is shown under the number and the compile id of the cache entry with the same code, operations and input sizes.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import TYPE_CHECKING, List, Optional, Sequence, Tuple

from depyf.dynamo.observe.graph_facts import placeholders
from depyf.dynamo.questions.compare.recorded import Compilation
from depyf.quick_dataclass import dataclass
from depyf.torch_trace.stages import Stage

if TYPE_CHECKING:
    import torch

Place = Tuple[str, str, int]
"""Name, file and first line of a code object: a copy of it has the same."""


@dataclass(frozen=True)
class Compiled:
    """A compiled function of Dynamo's in a cache entry of the code at ``place``; ``captured`` is its graph, if kept."""

    name: str
    compile_id: Optional[str]
    function: object
    place: Place
    captured: Optional[torch.fx.GraphModule] = field(default=None, repr=False)


def known_ones(compilations: Sequence[Compilation], known: Sequence[Compiled]) -> List[Optional[Compiled]]:
    """Return which of the ``known`` compiled functions each compilation made again, ``None`` for none of them."""
    found: List[Optional[Compiled]] = []
    for compilation in compilations:
        of_code = [each for each in known if each.place == compilation.place and each not in found]
        alike = [each for each in of_code if _shown(each.captured) == _shown(compilation.graphs[Stage.CAPTURED].module)]
        once = sum(each.place == compilation.place for each in compilations) == 1
        only = of_code if once and sum(each.place == compilation.place for each in known) == 1 else []
        found.append(next(iter([*alike, *only]), None))
    return found


def _shown(module: Optional[torch.fx.GraphModule]) -> Tuple[object, ...]:
    """Return what distinguishes graphs of one code object: operations, and the sizes and types of inputs."""
    if module is None:
        return ()
    inputs = [node.meta.get("example_value", node.meta.get("val")) for node in placeholders(module.graph)]
    facts = [(str(getattr(each, "shape", each)), str(getattr(each, "dtype", ""))) for each in inputs]
    symbols: List[str] = []
    text = re.sub(r"\b[su]\d+\b", lambda match: _numbered(match.group(), symbols), f"{facts}")
    targets = [(node.op, str(node.target)) for node in module.graph.nodes if node.op not in ("placeholder", "get_attr")]
    return (text, tuple(targets))


def _numbered(symbol: str, symbols: List[str]) -> str:
    """Return the name of a symbol by its order: torch numbers symbols differently each time."""
    if symbol not in symbols:
        symbols.append(symbol)
    return f"s_{symbols.index(symbol)}"
