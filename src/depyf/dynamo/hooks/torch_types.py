"""Protocols for PyTorch's objects without a public type; for annotations only."""

from __future__ import annotations

from types import CodeType
from typing import TYPE_CHECKING, Callable, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple, Union

if TYPE_CHECKING:
    import torch


class Removable(Protocol):
    """The handle of a hook."""

    def remove(self) -> object: ...


class DynamoFrame(Protocol):
    """A frame that PyTorch passes to Dynamo's callback: the interpreter's frame up to Python 3.10, from 3.11 on an
    object of PyTorch's with the same attributes."""

    @property
    def f_code(self) -> CodeType: ...

    @property
    def f_locals(self) -> Dict[str, object]: ...


class LeafGuard(Protocol):
    """One check in the tree of guards."""

    def verbose_code_parts(self) -> List[str]: ...


class GuardAccessor(Protocol):
    """How a value of the tree is reached from the one above it."""

    def repr(self) -> str: ...


class GuardNode(Protocol):
    """The guards on one value, and the values reached from it (``GuardManager`` in PyTorch's C++)."""

    def get_source(self) -> str: ...

    def get_leaf_guards(self) -> Sequence[LeafGuard]: ...

    def get_child_managers(self) -> Sequence[GuardNode]: ...


class DictGuardNode(GuardNode, Protocol):
    """The guards on a dict, by the positions of its keys: on the key, and on its value."""

    def get_key_value_managers(self) -> Mapping[int, Tuple[Optional[GuardNode], Optional[GuardNode]]]: ...


class GuardAnswer(Protocol):
    """The root's result for a call."""

    @property
    def result(self) -> bool: ...

    @property
    def verbose_code_parts(self) -> List[str]: ...


class GuardRoot(GuardNode, Protocol):
    """The root of a tree of guards."""

    def check_verbose(self, frame_locals: Dict[str, object]) -> GuardAnswer: ...

    def clone_manager(self, is_kept: Callable[[GuardNode], bool]) -> GuardRoot:
        """Return a clone of the tree with the nodes that ``is_kept`` accepts; absent in older versions."""


class GuardTree(Protocol):
    """The guards of a cache entry (``GuardManagerWrapper``)."""

    @property
    def root(self) -> GuardRoot: ...


class GuardFunction(Protocol):
    """The guards of a cache entry before PyTorch 2.4: a function with the texts of its conditions."""

    @property
    def code_parts(self) -> Sequence[str]: ...

    @property
    def closure_vars(self) -> Mapping[str, object]: ...

    @property
    def global_scope(self) -> Mapping[str, object]: ...


Guards = Union[GuardTree, GuardFunction]


class TranslatorOutput(Protocol):
    """What one attempt at tracing makes (``OutputGraph``)."""

    @property
    def graph(self) -> torch.fx.Graph: ...


class Translator(Protocol):
    """Dynamo's interpreter of bytecode (``InstructionTranslatorBase``)."""

    @property
    def stack(self) -> Sequence[object]: ...

    @property
    def symbolic_locals(self) -> Mapping[str, object]: ...

    @property
    def f_code(self) -> CodeType: ...

    @property
    def lineno(self) -> int: ...

    @property
    def output(self) -> TranslatorOutput: ...


class TranslatedInstruction(Protocol):
    """An instruction as Dynamo's interpreter reads it."""

    @property
    def argval(self) -> object: ...

    @property
    def starts_line(self) -> Optional[int]: ...
