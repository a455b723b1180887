"""Dominators: Lengauer, Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph" (1979), the simple version.

Its cost hardly grows with the size of the graph, whatever its shape. The algorithm that goes up the tree from all
predecessors of a node (Cooper, Harvey, Kennedy) takes quadratic time where a long chain of tests goes to one end.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterable, List


def immediate_dominators(entry: int, successors: Callable[[int], Iterable[int]]) -> Dict[int, int]:
    """Return the immediate dominator of every node reachable from ``entry``; that of ``entry`` is itself."""
    tree = _Tree(entry, successors)
    return tree.dominators()


class _Tree:
    """The depth-first tree of a graph; nodes are called by their number in it."""

    def __init__(self, entry: int, successors: Callable[[int], Iterable[int]]) -> None:
        self.nodes: List[int] = []
        self.parent: List[int] = []
        numbers: Dict[int, int] = {}
        edges: List[List[int]] = []
        todo = [(entry, 0)]
        while todo:
            node, parent = todo.pop()
            if node in numbers:
                continue
            number = numbers[node] = len(self.nodes)
            self.nodes.append(node)
            self.parent.append(parent)
            edges.append(list(successors(node)))
            todo.extend((target, number) for target in edges[-1] if target not in numbers)
        self.sources: List[List[int]] = [[] for _ in self.nodes]
        for number, targets in enumerate(edges):
            for target in targets:
                self.sources[numbers[target]].append(number)
        self.semi = list(range(len(self.nodes)))
        self.ancestor = [-1] * len(self.nodes)
        self.label = list(range(len(self.nodes)))

    def dominators(self) -> Dict[int, int]:
        count, semi, parent = len(self.nodes), self.semi, self.parent
        dominator = [0] * count
        buckets: List[List[int]] = [[] for _ in self.nodes]
        for number in range(count - 1, 0, -1):
            for source in self.sources[number]:
                semi[number] = min(semi[number], semi[self._least(source)])
            buckets[semi[number]].append(number)
            self.ancestor[number] = parent[number]
            for other in buckets[parent[number]]:
                least = self._least(other)
                dominator[other] = least if semi[least] < semi[other] else parent[number]
            buckets[parent[number]].clear()
        for number in range(1, count):
            if dominator[number] != semi[number]:
                dominator[number] = dominator[dominator[number]]
        return {node: self.nodes[dominator[number]] for number, node in enumerate(self.nodes)}

    def _least(self, number: int) -> int:
        """The node with the least semidominator on the way up from ``number``, below the root of its tree so far; the
        way is made short (path compression)."""
        ancestor, label, semi = self.ancestor, self.label, self.semi
        if ancestor[number] < 0:
            return number
        way = []
        while ancestor[ancestor[number]] >= 0:
            way.append(number)
            number = ancestor[number]
        for below in reversed(way):
            above = ancestor[below]
            if semi[label[above]] < semi[label[below]]:
                label[below] = label[above]
            ancestor[below] = ancestor[above]
        return label[way[0]] if way else label[number]
