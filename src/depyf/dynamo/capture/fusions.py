"""Record why Inductor's scheduler keeps two nodes apart, while it says so: the reasons are in no artifact.

The scheduler gives each reason to an object of ``WhyNoFuse``, for a debug log that is off. The C++ backend refuses
pairs without a reason, so that the loops of both nodes are recorded instead; calls of libraries are never tried.
Decisions are not changed.
"""

from __future__ import annotations

import functools
import re
import threading
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.attribution import current_compile_id
from depyf.dynamo.hooks.patching import Undo, replace_attribute
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.hooks.torch_names import PrivateName
from depyf.torch_trace.provenance import UnfusedLaunches

keep_builtins(globals())

_OPERATION = re.compile(r"op\d+")
"""A fused node is called after its operations: ``op0_op3``."""

_NOTHING_IN_COMMON = "no shared data"
"""The reason of most pairs: fusing these would save nothing."""

_Reason = Callable[[], str]


class FusionNotes:
    """The reasons of each pair of nodes on each thread, until the module is reported; the last of a pair counts."""

    def __init__(self) -> None:
        self._thread = threading.local()

    def watch_scheduler(self) -> List[Undo]:
        """Start to record the reasons of the scheduler and of Triton; return the functions that stop it."""
        called, fuse_nodes = private_names.WHY_NO_FUSE, private_names.FUSE_NODES
        if not _is_reported() or called.find() is None or fuse_nodes.find() is None:
            return []
        return [
            replace_attribute(called.owner(), called.name, self._noting(called.find())),
            replace_attribute(fuse_nodes.owner(), fuse_nodes.name, self._ending(fuse_nodes.find())),
        ]

    def watch_cpp(self) -> List[Undo]:
        """Start to record the pairs that the C++ backend refuses; return the functions that stop it."""
        rows = private_names.CPP_FUSES_VERTICALLY, private_names.CPP_FUSES_HORIZONTALLY
        return [
            replace_attribute(row.owner(), row.name, self._refusals_of(row))
            for row in (rows if _is_reported() else ())
            if row.find() is not None
        ]

    def _noting(self, original: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(original)
        def called(why: object, reason: str, *args: object) -> object:
            result = original(why, reason, *args)
            if reason != _NOTHING_IN_COMMON:
                names = private_names.FIRST_NOT_FUSED.of(why), private_names.SECOND_NOT_FUSED.of(why)
                self._note(*names, lambda: _filled_in(reason, args))
            return result

        return called

    def _ending(self, original: Callable[..., Sequence[object]]) -> Callable[..., object]:
        @functools.wraps(original)
        def fuse_nodes(scheduler: object, *args: object, **kwargs: object) -> object:
            made = original(scheduler, *args, **kwargs)
            self._note_end(scheduler, made)
            return made

        return fuse_nodes

    def _refusals_of(self, row: PrivateName) -> Callable[..., object]:
        original = row.find()

        @functools.wraps(original)
        def can_fuse(backend: object, *nodes: object, **kwargs: object) -> object:
            result = original(backend, *nodes, **kwargs)
            if not result and len(nodes) == 2:  # noted only where PyTorch calls it as it does in 2.8 to 2.15
                self._note_refusal(*nodes)
            return result

        return can_fuse

    @safely("noting which kernels are not fused")
    def _note_refusal(self, first: object, second: object) -> None:
        text = f"C++ backend: {_loops(first)}; {_loops(second)}"
        self._note(_name_of(first), _name_of(second), lambda: text)

    @safely("noting what is fused")
    def _note_end(self, scheduler: object, made: Sequence[object]) -> None:
        """Note the nodes that are left, and those that share data with a call of a library."""
        groups = self._noted()[1]
        users: Dict[str, List[object]] = {}
        for node in made:
            groups.append(_name_of(node))
            for buffer in private_names.USED_BUFFERS.of(node)():
                users.setdefault(buffer, []).append(node)
        unfusable = private_names.UNFUSABLE.of(scheduler)
        fixed = {id(node) for node in made if unfusable(node)}
        for node in made:
            # The names of what a node writes: an input that is read by both is no reason to fuse.
            for buffer in private_names.WRITTEN_BUFFERS.of(node)():
                for user in users.get(buffer, ()):
                    if user is not node and (id(node) in fixed) != (id(user) in fixed):
                        which = "first" if id(node) in fixed else "second"
                        self._note(_name_of(node), _name_of(user), functools.partial(str, f"not fusable: the {which}"))

    def _noted(self) -> Tuple[Dict[Tuple[str, str], _Reason], List[str]]:
        # A compilation that failed leaves its reasons, and the operations of the next one have the same names.
        compile_id = current_compile_id()
        if getattr(self._thread, "compile_id", "") != compile_id:
            self._thread.compile_id, self._thread.noted = compile_id, ({}, [])
        noted: Tuple[Dict[Tuple[str, str], _Reason], List[str]] = self._thread.noted
        return noted

    @safely("noting why kernels are not fused")
    def _note(self, first: str, second: str, reason: _Reason) -> None:
        pairs = self._noted()[0]
        pairs.pop((first, second), None)
        pairs[first, second] = reason

    def take(self, launches: Sequence[Mapping[str, Sequence[str]]]) -> List[UnfusedLaunches]:
        """Return the pairs of scheduler nodes that were not fused, and forget all reasons of this thread.

        ``launches`` are the operations that each launch computes, by name, with their graph nodes. A C++ kernel holds
        several scheduler nodes, each with loops of its own."""
        pairs, groups = getattr(self._thread, "noted", ({}, []))
        self._thread.noted = {}, []
        launched = _unique([list(each) for each in launches])
        grouped = _unique([_OPERATION.findall(name) for name in groups])
        found: Dict[Tuple[int, int], Tuple[int, int, _Reason]] = {}
        for (first, second), reason in pairs.items():
            one, other = (_only(grouped, name) for name in (first, second))
            kernels = [None if group is None else _only(launched, groups[group]) for group in (one, other)]
            if one is not None and other is not None and one != other:
                if kernels[0] is not None and kernels[1] is not None:
                    found.pop((one, other), None)
                    found[one, other] = kernels[0], kernels[1], reason

        def nodes(group: int, launch: int) -> List[str]:
            operations = _OPERATION.findall(groups[group])
            return list(dict.fromkeys(node for each in operations for node in launches[launch].get(each, ())))

        return [
            (kernel, nodes(one, kernel), other_kernel, nodes(other, other_kernel), reason())
            for (one, other), (kernel, other_kernel, reason) in found.items()
        ]


def _is_reported() -> bool:
    """Return whether this PyTorch reports which nodes a launch computes; without it no reason is tied to a kernel, and
    the scheduler of those versions has other signatures."""
    return private_names.LAUNCH_TRACER.find() is not None


def _filled_in(reason: str, args: Tuple[object, ...]) -> str:
    """Return PyTorch's text with its arguments, or as it is where these have no text: launches must not be lost."""
    try:
        return reason % args if args else reason
    except synchronous():
        return reason


def operation_of(node: object) -> str:
    """Return the name of the operation that a scheduler node or a node of Inductor's IR computes; empty for others."""
    if isinstance(node, type):  # a mark between the nodes of a kernel
        return ""
    name = private_names.OPERATION_NAME.of(node) or private_names.NODE_NAME.of(node)
    return str(name()) if callable(name) else ""


def _unique(lists: Sequence[Sequence[str]]) -> Dict[str, Optional[int]]:
    """Return the position of the list that each operation is in; None if it is in several: graphs in a graph number
    their operations anew, and which of them is meant is not known."""
    found: Dict[str, Optional[int]] = {}
    for number, operations in enumerate(lists):
        for operation in operations:
            found[operation] = None if operation in found else number
    return found


def _only(known: Mapping[str, Optional[int]], name: str) -> Optional[int]:
    """Return the position that all operations of a node have, or None."""
    numbers: Set[Optional[int]] = {known.get(each) for each in _OPERATION.findall(name)}
    return numbers.pop() if len(numbers) == 1 else None


def _name_of(node: object) -> str:
    return str(private_names.NODE_NAME.of(node)())


def _loops(node: object) -> str:
    """Return the sizes of the loops of a node, and after a ``|`` of its reduction: ``64 x 128 | 32``."""
    sizes = [" x ".join(map(str, part)) for part in private_names.NODE_GROUP.of(node)[1]]
    return " | ".join(sizes) if sizes[-1] else sizes[0]
