"""Pairs of parts of a profile that Inductor has not fused, with the reason in words.

A module of its own: the rest of this folder is about time.
"""

from __future__ import annotations

from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.profiled import NotFused, PartOfKernel
from depyf.diagnosis.fusion_reasons import in_words
from depyf.dynamo.questions.profile.owners import KnownOwners
from depyf.report.model.run import ModuleKernel

_MOST_NODES = 3
_LONGEST_FIRST = 100
"""So many pairs are in a result at most: the pairs of the slowest kernels."""


def not_fused(
    kernels: Iterable[ModuleKernel],
    seconds: Mapping[Tuple[str, str, bool], float],
    owners: KnownOwners,
    device: str,
) -> Tuple[NotFused, ...]:
    """Return the pairs of these kernels, the pairs of the slowest kernels first. ``seconds`` are by name, graph and
    whether the graph is a backward; a pair is left out unless both kernels ran."""
    found: Dict[NotFused, float] = {}
    for kernel in kernels:
        for first, nodes, second, others, reason in kernel.unfused:
            graph, backward = kernel.compile_id or "?", bool(kernel.backward)
            took = [seconds.get((name, graph, backward)) for name in (first, second)]
            one, other = _part(kernel, first, nodes, owners), _part(kernel, second, others, owners)
            words = in_words(reason, one.name, other.name, device=device)
            if words is not None and one != other and took[0] is not None and took[1] is not None:
                found[NotFused(one, other, *words, graph)] = took[0] + took[1]
    return tuple(sorted(found, key=lambda each: -found[each])[:_LONGEST_FIRST])


def _part(kernel: ModuleKernel, name: str, nodes: Sequence[str], owners: KnownOwners) -> PartOfKernel:
    lines = [each.line for each in owners.of_nodes(kernel.compile_id, nodes, backward=kernel.backward) if each.line]
    told: List[Optional[str]] = [*nodes[:_MOST_NODES], *(["..."] if len(nodes) > _MOST_NODES else [])]
    # A C++ kernel holds several parts; a call of a library is known by its own name.
    return PartOfKernel(", ".join(filter(None, told)) if "." not in name and nodes else name, name, tuple(lines))
