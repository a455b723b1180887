"""Dominators: Lengauer, Tarjan, "A Fast Algorithm for Finding Dominators in a Flowgraph" (1979), the simple version.

It takes O(m log n) on any graph. The iterative algorithm of Cooper, Harvey, Kennedy takes quadratic time where a long
chain of tests has one target.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterator, List, Sequence


class DepthFirstTree:
    """The depth-first tree of a graph. Nodes are represented by their number in preorder; ``sources`` has the numbers
    of their predecessors. ``postorder``: the nodes themselves."""

    def __init__(self, entry: int, successors: Callable[[int], Sequence[int]]) -> None:
        nodes = self.nodes = [entry]
        parent = self.parent = [0]
        sources: List[List[int]] = [[]]
        self.sources, self.postorder = sources, []
        numbers = {entry: 0}
        path = [0]
        todo: List[Iterator[int]] = [iter(successors(entry))]
        while todo:
            for target in todo[-1]:
                number = numbers.get(target)
                if number is not None:
                    sources[number].append(path[-1])
                    continue
                number = numbers[target] = len(nodes)
                nodes.append(target)
                parent.append(path[-1])
                sources.append([path[-1]])
                path.append(number)
                todo.append(iter(successors(target)))
                break
            else:
                self.postorder.append(nodes[path.pop()])
                todo.pop()

    def dominators(self) -> Dict[int, int]:
        """Return the immediate dominator of every node; the entry is its own."""
        count, parent = len(self.nodes), self.parent
        self.ancestor = [-1] * count
        self.label = list(range(count))
        semi = self.semi = list(range(count))
        dominator = list(parent)
        buckets: Dict[int, List[int]] = {}
        joins: List[int] = []
        for number in range(count - 1, 0, -1):
            above = parent[number]
            if self.sources[number] == [above]:
                semi[number] = above
            else:
                joins.append(number)
                semi[number] = min(semi[self._least(source)] for source in self.sources[number])
                buckets.setdefault(semi[number], []).append(number)
            self.ancestor[number] = above
            for other in buckets.pop(above, ()):
                least = self._least(other)
                dominator[other] = least if semi[least] < semi[other] else above
        for number in reversed(joins):
            if dominator[number] != semi[number]:
                dominator[number] = dominator[dominator[number]]
        return {node: self.nodes[dominator[number]] for number, node in enumerate(self.nodes)}

    def _least(self, number: int) -> int:
        """Return the ancestor of ``number`` with the least semidominator, below the root of its tree so far, and
        compress the path."""
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
