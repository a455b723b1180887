"""Find operations outside of compiled graphs that produce a non-finite value, forward or backward. Such values are only
recorded here, with their memory: one matters if it is passed to a graph, or still exists at the end. Operations take
longer meanwhile, as each result is checked.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from types import CodeType
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.nonfinite import Line, TensorFacts
from depyf.base.asynchronous import synchronous
from depyf.base.locks import Lock
from depyf.base.quick_dataclass import dataclass
from depyf.base.source_lines import source_line
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.observe.finite import all_finite, count_bad, facts, tensors_in
from depyf.dynamo.observe.node_words import running_location
from depyf.dynamo.observe.observation import observation
from depyf.dynamo.observe.random_state import is_capturing
from depyf.dynamo.questions.nonfinite.origin import has_infinite, is_written_down_by

if TYPE_CHECKING:
    import torch

_MOST_LINES = 100_000
"""How many operations of forwards have their lines kept, for their backwards."""

_Location = Tuple[str, int]


@dataclass(frozen=True)
class Birth:
    """An operation that made a bad value from finite ones. ``line`` is the line of the forward for a ``backward``."""

    kind: str
    operation: str
    line: Optional[Line]
    backward: bool
    node: str
    inputs: Tuple[TensorFacts, ...]
    output: Optional[TensorFacts]
    written_down: bool


class EagerOperations:
    """Records the births of bad values, from ``start`` to ``stop`` (of the thread that calls them)."""

    def __init__(self) -> None:
        self._births: Dict[int, Tuple[Any, Birth]] = {}
        self._lines: OrderedDict[int, _Location] = OrderedDict()
        self._lock = Lock()
        self._mode: Any = None
        self._thread = 0
        self.enough = False
        """Set when nothing more needs to be recorded."""
        self.looked_at = 0
        """How many operations."""
        self._users: Dict[int, Tuple[CodeType, bool]] = {}

    def start(self) -> None:
        """Start. Raises ``RuntimeError`` if this torch's modes can't be entered around compiled code."""
        base: Any = private_names.DISPATCH_MODE.find()
        if not hasattr(base, "supports_higher_order_operators"):
            raise RuntimeError(
                "this PyTorch has no TorchDispatchMode.supports_higher_order_operators (2.9 and later have it): "
                "depyf.find_nonfinite(eager=True) can't watch operations outside of compiled graphs with it"
            )
        self._thread = threading.get_ident()
        self._mode = _mode_class()(self._look)
        self._mode.__enter__()

    def is_here(self) -> bool:
        """Return whether the operations of this thread are checked."""
        return threading.get_ident() == self._thread

    def stop(self) -> None:
        """Stop. May be called again, and after ``start`` was interrupted."""
        if self._mode is None or not self.is_here():  # each thread has modes of its own
            return
        modes = private_names.DISPATCH_MODES.find()
        if any(each is self._mode for each in modes()):
            self._mode.__exit__(None, None, None)
        self._mode = None

    def birth_of(self, tensor: torch.Tensor) -> Optional[Birth]:
        """Return the birth of the bad value in this memory; None if no such operation made it."""
        storage = _storage(tensor)
        if storage is None:
            return None
        reference, birth = self._births.get(private_names.STORAGE_ADDRESS.of(storage), (None, None))
        return None if reference is None or reference.expired() else birth

    def living(self) -> Iterator[Birth]:
        """Return the births of values that still exist and that the user did not write, NaN first, the earliest
        first.
        """
        alive = [birth for reference, birth in list(self._births.values()) if not reference.expired()]
        yield from sorted((birth for birth in alive if not birth.written_down), key=lambda birth: birth.kind != "NaN")

    @safely("looking at what an operation has computed")
    def _look(
        self,
        operator: object,
        arguments: object,
        taken: List[torch.Tensor],
        bad_before: List[torch.Tensor],
        result: object,
    ) -> None:
        """Check the result of an operator. ``taken`` are tensors that it only reads, ``bad_before`` those that it has
        written to and that were bad."""
        if self.enough:
            return
        self.looked_at += 1
        node = _autograd_node()
        if node is None:
            self._note_line()
        results = tensors_in(result)
        if not results or "empty" in str(operator) or all_finite(results):
            return  # memory that was not written to yet may hold anything
        # Bad operands: if a recorded operation made them, its birth goes on to the result; if none did, the value came
        # from a graph, or from before. A NaN from operands that had only Infs is a birth of its own.
        bad = [*bad_before, *(each for each in taken if not all_finite([each]))]
        known = [birth for birth in map(self.birth_of, bad) if birth is not None]
        worse = [birth for birth in known if birth.kind == "NaN"] or known
        counted = count_bad(results)
        if bad and not worse:
            return  # it came from elsewhere
        if worse and (worse[0].kind == counted.kind or not counted.nans):
            birth = worse[0]
        else:
            birth = self._born(operator, arguments, taken, results, node)
        # By memory, with a weak reference: the address may be used again once the tensor is gone.
        weak: Any = torch_names.find("torch.multiprocessing.reductions", "StorageWeakRef")
        with self._lock:
            for each in results:
                storage = _storage(each)
                if storage is not None and not all_finite([each]):
                    self._births[private_names.STORAGE_ADDRESS.of(storage)] = weak(storage), birth

    def _born(
        self,
        operator: object,
        arguments: object,
        taken: List[torch.Tensor],
        results: List[torch.Tensor],
        node: Optional[torch.autograd.graph.Node],
    ) -> Birth:
        location = (
            self._lines.get(private_names.SEQUENCE_OF_NODE.of(node)())
            if node is not None
            else running_location(self._users)
        )
        counted = count_bad(results)
        return Birth(
            kind=counted.kind,
            operation=str(operator),
            line=None if location is None else Line(*location, source_line(*location)),
            backward=node is not None,
            node="" if node is None else str(node.name()),
            inputs=tuple(facts("input", each) for each in taken),
            output=facts("output", next(each for each in results if not all_finite([each]))),
            written_down=is_written_down_by(operator, arguments) or (not counted.nans and has_infinite(arguments)),
        )

    def _note_line(self) -> None:
        number = torch_names.first_of(private_names.SEQUENCE_NUMBER, private_names.SEQUENCE_NUMBER_BEFORE)
        location = running_location(self._users)
        if number is not None and location is not None and torch_names.module("torch").is_grad_enabled():
            with self._lock:
                self._lines[number() - 1] = location
                if len(self._lines) > _MOST_LINES:
                    self._lines.popitem(last=False)


def _autograd_node() -> Optional[torch.autograd.graph.Node]:
    current = private_names.CURRENT_NODE.find()
    return None if current is None else current()


def _storage(tensor: torch.Tensor) -> Optional[torch.UntypedStorage]:
    try:
        return tensor.untyped_storage()
    except synchronous(NotImplementedError, RuntimeError):  # of a kind that has none
        return None


def _mode_class() -> type:
    base: Any = private_names.DISPATCH_MODE.find()

    class Watching(base):  # type: ignore[misc]
        supports_higher_order_operators = True

        def __init__(self, look: Callable[..., object]) -> None:
            super().__init__()
            self._look = look

        # In C: torch calls them while it enters the mode, and a signal handler may raise where Python runs.
        is_infra_mode = staticmethod(functools.partial(bool, True))  # else Dynamo compiles nothing
        ignore_compile_internals = staticmethod(functools.partial(bool, True))

        def __torch_dispatch__(
            self,
            operator: Callable[..., object],
            types: object,
            args: Tuple[object, ...] = (),
            kwargs: Optional[Mapping[str, object]] = None,
        ) -> object:
            kwargs = kwargs or {}
            if observation.inside_a_graph() or is_capturing():
                return operator(*args, **kwargs)
            written = _written(operator, args, kwargs)
            taken = [each for each in tensors_in((args, kwargs)) if not any(each is other for other in written)]
            bad_before = [each for each in written if not all_finite([each])]
            result = operator(*args, **kwargs)
            self._look(operator, (args, kwargs), taken, bad_before, (result, written))
            return result

    return Watching


def _written(operator: object, args: Sequence[object], kwargs: Mapping[str, object]) -> List[torch.Tensor]:
    """Return the tensors that the operator writes to."""
    schema = private_names.SCHEMA.of(operator)
    if schema is None or not schema.is_mutable:
        return []
    found = []
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            found.append(args[position] if position < len(args) else kwargs.get(argument.name))
    return tensors_in(found)
