"""Walk the guard tree of a cache entry: yield every check of PyTorch's C++ code, in its order.

Most checks are leaf guards, which carry their own text. Two kinds have no leaf guard: a dict manager compares class and
length, and an accessor without further guards still requires that its value exists.
"""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Dict, FrozenSet, Iterator, List, Optional, Set, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.diagnosis.guard import GuardKind
from depyf.diagnosis.guard_sources import local_name
from depyf.diagnosis.guard_text import local_index_of, read, without_ids
from depyf.dynamo.guards import python_guards as guards_function
from depyf.dynamo.guards.live_values import check_in_its_grad_mode
from depyf.dynamo.hooks.torch_types import DictGuardNode, GuardAccessor, GuardNode, Guards

if TYPE_CHECKING:
    from typing_extensions import TypeGuard


DICT_MANAGER = "DICT_MANAGER"
ACCESS = "ACCESS"
"""The two kinds of check that have no leaf guard."""

TEXT = "TEXT"
"""A guard of which only PyTorch's Python text is known."""

EPILOGUE = "epilogue"
"""The source of guards that run after all others; they read several values."""

_RELATIONAL = ("NO_TENSOR_ALIASING", "OBJECT_ALIASING", "STORAGE_OVERLAPPING", "SYMBOLIC_SHAPE_GUARD")


@dataclass(frozen=True)
class Check:
    """One check of the tree.

    ``kind`` is the name of PyTorch's leaf guard class (or one of the two above), ``source`` the text of the value that
    is checked (empty for global state), ``parts`` PyTorch's own text, ``value_type`` the class of the value when it
    was compiled (None where that is not known), ``path`` the sources of all managers from the root to this one.
    For an ACCESS ``parts`` is the accessor's text; for a DICT_MANAGER ``length`` is the number of keys if it is known.
    """

    kind: str
    source: str
    parts: Tuple[str, ...]
    value_type: Optional[type]
    path: FrozenSet[str]
    length: Optional[int] = None


def checks_of(manager: Guards) -> Iterator[Check]:
    """Yield every check of a cache entry's guards: global state, arguments in order, globals, then the epilogue.

    PyTorch before 2.4 has no tree but a function: the path to a check is its text.
    """
    if guards_function.is_function(manager):
        for code, with_comment in guards_function.conditions(manager):
            yield Check(TEXT, without_ids(code), (with_comment,), None, frozenset({code}))
        return
    root = manager.root
    seen: Set[Tuple[str, Tuple[str, ...]]] = set()
    found: List[Check] = []
    _visit(root, root, frozenset(), None, found)
    for check in [*found, *_epilogue(root)]:
        if check.kind in _RELATIONAL:
            # Such a guard is attached to each of the values that it relates.
            if (check.kind, check.parts) in seen:
                continue
            seen.add((check.kind, check.parts))
        yield check


def form_of(manager: Guards) -> object:
    """Return what differs if the guards are others now: the root, and how many values and checks it has. None if that
    is not known.
    """
    if guards_function.is_function(manager):
        return tuple(guards_function.conditions(manager))
    root = getattr(manager, "root", None)
    if root is None:
        return None
    lookup = getattr(root, "get_epilogue_lambda_guards", None)
    values, checks = 0, 0 if lookup is None else len(lookup())
    pending: List[GuardNode] = [root]
    while pending:
        node = pending.pop()
        values += 1
        checks += len(node.get_leaf_guards())
        pending += [each for each, _ in _dict_children(node)] if _is_dict_manager(node) else node.get_child_managers()
    return getattr(manager, "invalidation_reason", None), id(root), values, checks


def _epilogue(root: GuardNode) -> Iterator[Check]:
    lookup = getattr(root, "get_epilogue_lambda_guards", None)
    for leaf in lookup() if lookup is not None else ():
        parts = tuple(leaf.verbose_code_parts())
        if parts:  # up to 2.5 there is always one for symbolic shapes; without any it checks nothing
            yield Check(type(leaf).__name__, EPILOGUE, parts, None, frozenset())


def _visit(
    node: GuardNode, root: GuardNode, above: FrozenSet[str], accessor: Optional[GuardAccessor], found: List[Check]
) -> None:
    """Add the checks of ``node`` and of its descendants to ``found``, parents first.

    For ``L['x'].f is None`` and a class check of ``L['x']``::

        root
        └─ FrameLocalsGuardAccessor(key='x', framelocals_idx=0)   L['x']:    TYPE_MATCH
           └─ GetAttrGuardAccessor(f)                             L['x'].f:  NONE_MATCH
    """
    # The root has no source, and is on no path: every path would have it.
    source = "" if node is root else node.get_source()
    path = above if node is root else above | {source}
    value_type = _value_type(node)
    leaves = node.get_leaf_guards()
    children = list(_dict_children(node) if _is_dict_manager(node) else _ordered_children(node))
    # A DictGuardManager checks class and length in C++ before its leaf guards, and has no text for that.
    if _is_dict_manager(node):
        found.append(Check(DICT_MANAGER, source, (), value_type, path, _dict_length(node, root, source, path)))
    # An accessor whose value nothing checks: C++ reads the value, and fails if it is not there.
    elif node is not root and not leaves and not children and accessor is not None:
        found.append(Check(ACCESS, source, (accessor.repr(),), value_type, path))
    for leaf in leaves:
        found.append(Check(type(leaf).__name__, source, tuple(leaf.verbose_code_parts()), value_type, path))
    for child, child_accessor in children:
        _visit(child, root, path, child_accessor, found)


def _is_dict_manager(node: GuardNode) -> TypeGuard[DictGuardNode]:
    return hasattr(node, "get_key_value_managers")


def _value_type(node: object) -> Optional[type]:
    lookup = getattr(node, "get_type_of_guarded_value", None)
    found = lookup() if lookup is not None else None
    return found if isinstance(found, type) else None


def _dict_children(node: DictGuardNode) -> Iterator[Tuple[GuardNode, None]]:
    for _, pair in sorted(node.get_key_value_managers().items()):
        for child in pair:
            if child is not None:
                yield child, None


def _ordered_children(node: GuardNode) -> List[Tuple[GuardNode, Optional[GuardAccessor]]]:
    """Return the children with their accessors; arguments come in the order in which the function takes them. PyTorch
    sorts accessors by how often they failed, which is not the same in every run."""
    managers = node.get_child_managers()
    accessors = node.get_accessors() if hasattr(node, "get_accessors") else [None] * len(managers)
    pairs = list(zip(managers, accessors))
    return sorted(pairs, key=lambda pair: _place(pair[1], pair[0]))


def _place(accessor: Optional[GuardAccessor], manager: GuardNode) -> Tuple[int, int, str, str]:
    text = "" if accessor is None else accessor.repr()
    local = local_index_of(text)
    source = manager.get_source()
    if local is not None:
        return 0, local, "", source
    return (2 if source == "G" else 1), 0, source, text


def _dict_length(node: GuardNode, root: GuardNode, source: str, path: FrozenSet[str]) -> Optional[int]:
    """Return how many keys a dict manager requires. PyTorch has no getter for it; it is in the message when the number
    is wrong.
    """
    # Ask the guards on the path to this dict with an empty dict of its class: ``len(L['d']) != 2`` has the number.
    # Only for a local variable, as the path to any other dict would have to be made up, too.
    local = local_name(source)
    probe = _empty_dict(_value_type(node))
    if local is None or probe is None or not hasattr(root, "clone_manager"):
        return None
    only_this = root.clone_manager(lambda other: isinstance(other, type(root)) or other.get_source() in path)
    answer = check_in_its_grad_mode(only_this, {local: probe})
    if answer.result:
        return 0
    reasons = [read(part) for part in answer.verbose_code_parts]
    return next(
        (int(each.expected) for each in reasons if each.kind is GuardKind.NUMBER_OF_KEYS and each.expected), None
    )


def _empty_dict(dict_type: Optional[type]) -> Optional[Dict[object, object]]:
    """Return an empty dict of that class, made without running code of the class; ``None`` if that is impossible."""
    for base in (collections.OrderedDict, dict):
        if dict_type is not None and issubclass(dict_type, base):
            try:
                return base.__new__(dict_type)
            except TypeError:
                # The class has its own C layout, which only its constructor can create.
                return None
    return None
