"""The modules that the operations of a graph were called in, as a tree."""

from __future__ import annotations

from typing import Dict, List, Mapping, Optional, Tuple

from depyf.diagnosis.guard_sources import module_path
from depyf.report.model.module_part import ModulePart
from depyf.torch_trace.provenance import ModuleChain


def module_parts(modules: Mapping[str, ModuleChain]) -> Tuple[ModulePart, ...]:
    """Return the modules of graph nodes, each once, and after the module around it."""
    numbers: Dict[ModuleChain, int] = {}
    nodes: List[List[str]] = []

    def number_of(chain: ModuleChain) -> Optional[int]:
        for length in range(1, len(chain) + 1):
            if chain[:length] not in numbers:
                numbers[chain[:length]] = len(numbers)
                nodes.append([])
        return numbers[chain] if chain else None

    for node, chain in modules.items():
        number = number_of(chain)
        if number is not None:
            nodes[number].append(node)
    return tuple(
        ModulePart(module_path(chain[-1][0]), chain[-1][1], numbers.get(chain[:-1]), tuple(nodes[number]))
        for chain, number in numbers.items()
    )
