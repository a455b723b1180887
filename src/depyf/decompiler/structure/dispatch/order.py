"""Topological order of the elements of a level, with loops (strongly connected components) collapsed.

Strongly connected components: Tarjan, "Depth-First Search and Linear Graph Algorithms" (1972), without recursion.
"""

from __future__ import annotations

from typing import AbstractSet, Dict, Iterable, List, Mapping, Optional, Sequence

from depyf.decompiler.structure.dispatch.edges import Edge, Element


class ComponentOrder:
    """The components reachable from ``starts`` over ``edges`` (by source), within ``allowed``, without edges to the
    nodes ``cut``. ``ways_in`` counts the edges into each component from others; each start counts as one."""

    def __init__(
        self,
        edges: Mapping[Element, Sequence[Edge]],
        starts: Iterable[Element],
        cut: AbstractSet[int],
        allowed: Optional[AbstractSet[Element]],
    ) -> None:
        self._edges, self._cut, self._allowed = edges, cut, allowed
        self.components: List[List[Element]] = []
        self.component: Dict[Element, int] = {}
        starts = list(starts)
        self._search(starts)
        self.components.reverse()
        for index, members in enumerate(self.components):
            for element in members:
                self.component[element] = index
        self.is_loop = [len(members) > 1 for members in self.components]
        self.ways_in = [0] * len(self.components)
        for start in starts:
            self.ways_in[self.component[start]] += 1
        for element, index in self.component.items():
            for edge in self.out(element):
                into = self.component[edge.target]
                if into != index:
                    self.ways_in[into] += 1
                elif edge.target == element:
                    self.is_loop[index] = True

    def out(self, element: Element) -> List[Edge]:
        return [
            edge
            for edge in self._edges.get(element, ())
            if edge.node not in self._cut and (self._allowed is None or edge.target in self._allowed)
        ]

    def _search(self, starts: Iterable[Element]) -> None:
        """Find the components, each after all components that it leads to."""
        # ``low`` is the least number that is reached over edges inside of the component so far. An element whose number
        # is still its own ``low`` is the first of its component: the component is everything above it on the stack.
        low: Dict[Element, int] = {}
        number: Dict[Element, int] = {}
        stack: List[Element] = []
        on_stack = set()
        for start in starts:
            if start in number:
                continue
            number[start] = low[start] = len(number)
            stack.append(start)
            on_stack.add(start)
            todo = [(start, iter(self.out(start)))]
            while todo:
                element, edges = todo[-1]
                for edge in edges:
                    target = edge.target
                    if target not in number:
                        number[target] = low[target] = len(number)
                        stack.append(target)
                        on_stack.add(target)
                        todo.append((target, iter(self.out(target))))
                        break
                    if target in on_stack:
                        low[element] = min(low[element], number[target])
                else:
                    todo.pop()
                    if todo:
                        low[todo[-1][0]] = min(low[todo[-1][0]], low[element])
                    if low[element] == number[element]:
                        members: List[Element] = []
                        while not members or members[-1] != element:
                            members.append(stack.pop())
                            on_stack.discard(members[-1])
                        self.components.append(members)
