"""Where in a tree a node stands, and what the mutators ask about it."""

from __future__ import annotations

import ast
from typing import Any, Callable, Iterator, List, Optional, Tuple, Type

Change = Callable[[], None]
Mutator = Callable[["Place"], Iterator[Change]]

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
LEAVES = (ast.Return, ast.Raise, ast.Break, ast.Continue)
TRIES: Tuple[Type[ast.AST], ...] = tuple(
    getattr(ast, name) for name in ("Try", "TryStar") if hasattr(ast, name)
)  # 3.11 has except*
_LOUD = (ast.Call, ast.Attribute, ast.Subscript, ast.Await, ast.Yield, ast.YieldFrom)


class Place:
    """A node with its way up. ``index`` is set where the field of the parent is a list."""

    def __init__(self, node: Any, parent: Optional[Place], field: str, index: Optional[int]) -> None:
        self.node, self.parent, self.field, self.index = node, parent, field, index

    def replace(self, node: ast.AST) -> None:
        assert self.parent is not None
        if self.index is None:
            setattr(self.parent.node, self.field, node)
        else:
            getattr(self.parent.node, self.field)[self.index] = node

    @property
    def siblings(self) -> List[Any]:
        """The list that the node stands in; empty if it stands in none."""
        return getattr(self.parent.node, self.field) if self.parent is not None and self.index is not None else []

    @property
    def following(self) -> List[Any]:
        return self.siblings[self.index + 1 :] if self.index is not None else []

    @property
    def shows(self) -> bool:
        """Whether what a statement stores shows: others look at the variables when something loud is next."""
        return not self.is_local or (bool(self.following) and is_loud(self.following[0]))

    def remove(self) -> None:
        """Take the node out of its list; ``pass`` takes the place of an only statement."""
        if isinstance(self.node, ast.stmt) and len(self.siblings) == 1:
            self.replace(ast.Pass())
        else:
            del self.siblings[self.index]

    def put(self, nodes: List[Any]) -> None:
        """Put ``nodes`` in the place of the node."""
        assert self.index is not None
        self.siblings[self.index : self.index + 1] = nodes

    def above(self) -> Iterator[Place]:
        place = self.parent
        while place is not None:
            yield place
            place = place.parent

    def inside(self, kinds: Any, until: Any) -> bool:
        """Whether a node of ``kinds`` is around it, inside of the nearest one of ``until``."""
        for place in self.above():
            if isinstance(place.node, kinds):
                return True
            if isinstance(place.node, until):
                return False
        return False

    @property
    def scope(self) -> Optional[ast.AST]:
        """The function or class whose body it stands in; ``None`` in a module's."""
        for place in self.above():
            if isinstance(place.node, (*FUNCTIONS, ast.ClassDef)):
                return place.node
        return None

    @property
    def is_local(self) -> bool:
        """Whether it stands in the body of a function, where names are silent."""
        return isinstance(self.scope, FUNCTIONS)


def places_of(root: ast.AST) -> Iterator[Place]:
    """All places of a tree, outermost first, in the order of the source."""
    todo = [Place(root, None, "", None)]
    while todo:
        place = todo.pop()
        yield place
        below: List[Place] = []
        for field, value in ast.iter_fields(place.node):
            if isinstance(value, list):
                below.extend(
                    Place(item, place, field, at) for at, item in enumerate(value) if isinstance(item, ast.AST)
                )
            elif isinstance(value, ast.AST):
                below.append(Place(value, place, field, None))
        todo.extend(reversed(below))


def same(one: Any, other: Any) -> bool:
    """Whether two nodes are written alike."""
    return ast.dump(one) == ast.dump(other)


def is_loud(node: ast.AST) -> bool:
    """Whether running ``node`` does something that others can tell: a call, an attribute, a subscript, a yield.

    What it only defines does not run, so that bodies of functions do not count.
    """
    todo: List[ast.AST] = [node]
    while todo:
        current = todo.pop()
        if isinstance(current, (*_LOUD, ast.Import, ast.ImportFrom)):
            return True
        if isinstance(current, FUNCTIONS):
            todo.extend([*current.args.defaults, *filter(None, current.args.kw_defaults)])
            todo.extend(getattr(current, "decorator_list", []))
        else:
            todo.extend(ast.iter_child_nodes(current))
    return False


def falls_through(body: List[Any]) -> bool:
    """Whether a body surely goes on behind its end: it is only simple statements that do not leave."""
    simple = (ast.Expr, ast.Assign, ast.AugAssign, ast.Pass, ast.Import, ast.ImportFrom)
    return all(isinstance(statement, simple) for statement in body)


def load(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def constant(value: Any) -> ast.Constant:
    return ast.Constant(value=value, kind=None)


def simple_name(name: str) -> str:
    """Another identifier, of the same kind as ``name``: private stays private, special stays special."""
    return name[:-2] + "_other__" if name.endswith("__") and len(name) > 4 else name + "_other"


def swap(items: List[Any], one: int, other: int) -> Change:
    def change() -> None:
        items[one], items[other] = items[other], items[one]

    return change
