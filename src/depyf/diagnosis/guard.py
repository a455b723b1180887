"""A guard as a typed value: its kind, source, operands and relation, the expected and the actual value.

``guard_text`` parses PyTorch's text into it, once; ``dynamo/guards`` makes one from the value that fails. All
explanations of a guard are made from these fields (``guard_explanations``), and nothing parses the text again.
"""

from __future__ import annotations

import enum
from typing import NamedTuple, Optional, Tuple

from depyf.base.quick_dataclass import dataclass, replace
from depyf.diagnosis.guard_sources import as_written, size_in_parts

Location = Tuple[str, int]
"""A file and a line, from 1."""


class GuardKind(enum.Enum):
    """The form of a guard. Beside each: what its fields hold, where that is more than ``source`` and ``expected``."""

    UNKNOWN = "text of no known form"
    RELATION = "relation of sizes"  # ``detail`` is the relation, ``sizes`` are the values that it compares
    ALIASING = "relation of the memory of tensors"  # ``detail`` is PyTorch's name of it, ``operands`` overlap or not
    NUMBER = "number"  # ``detail`` is what is compared
    CHOICE = "constant"  # the same
    TRAINING = "train() or eval()"  # the same
    NONE = "None or not"  # ``detail`` is what is compared, ``expected`` "None" or "not None"
    SAME_OBJECT = "the same object or not"  # ``holds`` whether the operands were the same
    LENGTH = "length"
    EMPTY = "empty"
    KEYS = "keys in their order"  # ``detail`` is what is compared, ``position`` says which key, None for all
    NUMBER_OF_KEYS = "number of keys"
    CONTAINS = "a key or an item"  # ``detail`` is the key, ``holds`` whether it was there
    ATTRIBUTE = "an attribute"  # ``detail`` is its name, ``holds`` whether it was there
    MISSING = "the value is there"  # ``detail`` is "itself" where it is known that the value is not to be read
    MOVED = "an attribute of a module that is registered, or no longer"  # ``detail`` is how it is registered now
    NAN = "nan"  # ``holds`` whether it was nan
    ITERATOR_LENGTH = "items left in an iterator"  # ``detail`` is what is compared
    ITERATOR_STATE = "state of an iterator"  # the same
    CLASS = "class"  # ``expected`` is its name, ``identity`` its id, where PyTorch reports them
    CLASS_OF_DICT = "class of a dict"
    IDENTITY = "identity of an object"  # ``detail`` is its class, ``identity`` its id
    MEMBER = "member of an enum"  # the same; ``expected`` and ``actual`` are members, where they are known
    NAMED = "object with a name of its own"  # the same for classes, modules, functions of a module
    METADATA = "metadata of a tensor subclass"  # ``detail`` is what differs, ``identity`` the id of PyTorch's check
    FUNCTION = "code of a function"  # the same of a code object
    FAKE_SCRIPT_CLASS = "class of a script object"
    TENSOR = "all properties of a tensor"  # ``tensor`` has them; a mismatch is of one of the kinds below
    TENSOR_CLASS = "class of a tensor"  # ``actual`` is its name
    SIZE = "size"  # ``detail`` is the dimension; of several, all three fields have values with ", " between them
    STRIDE = "stride"  # ``detail`` is the dimension
    RANK = "number of dimensions"
    DTYPE = "dtype"
    REQUIRES_GRAD = "requires_grad"  # ``holds`` whether it was required
    DISPATCH_KEYS = "dispatch keys"  # names with ", " between them
    SAME_TENSOR = "the same tensor twice"
    MARKS = "marked dimensions"  # ``detail`` is the mark; ``expected`` None where nothing was marked
    GLOBAL_STATE = "global state"  # ``expected`` is JSON; ``changed`` are the settings that have changed
    MODES = "torch function modes"
    HOOKS = "saved-tensors hooks"  # ``operands`` are the ids of the two
    BACKEND = "backend"
    NOT_COMPUTED = "relation of sizes that can't be computed"  # ``code`` is Python's exception
    GONE = "an object is gone"


def items(count: str) -> str:
    """Return ``1 item``, ``2 items``."""
    return f"{count} item{'' if count == '1' else 's'}"


COMPARISONS = frozenset(
    (GuardKind.NUMBER, GuardKind.CHOICE, GuardKind.TRAINING, GuardKind.NONE, GuardKind.LENGTH, GuardKind.KEYS)
    + (GuardKind.ITERATOR_LENGTH, GuardKind.ITERATOR_STATE)
)
"""Kinds that compare a value, the left operand, with a constant."""


@dataclass(frozen=True)
class TensorProperties:
    """What a guard requires of a tensor, as PyTorch prints it.

    ``sizes`` and ``strides`` have one text for each dimension, "None" for any value; None if there is no requirement.
    """

    class_name: str
    dispatch_keys: str
    dtype: str
    device: str
    requires_grad: str
    sizes: Optional[Tuple[str, ...]]
    strides: Optional[Tuple[str, ...]]


class StateChange(NamedTuple):
    """A setting of PyTorch's global state that has changed: PyTorch's name of it, and its value now, empty if unknown.

    ``autocast`` is the device type, and "enabled" or "dtype", for a setting of autocast; None for others.
    """

    name: str
    now: str = ""
    autocast: Optional[Tuple[str, str]] = None

    def __str__(self) -> str:
        return f"{self.name}={self.now}" if self.now else self.name

    def with_value(self, now: str) -> StateChange:
        return StateChange(self.name, now, self.autocast)


@dataclass(frozen=True)
class Guard:
    """One guard. ``GuardKind`` says which of the fields each kind has.

    ``source`` is the guarded value as PyTorch writes it; it is empty for global state and relations. ``expected`` is
    the value at compile time, ``actual`` the current one; both are texts, or None if unknown. ``code`` is PyTorch's
    text without its comment, and ``user_line`` is the comment. ``user_code`` and ``location`` are the user's line that
    the comment names: Dynamo installed the guard there. ``hint`` is what PyTorch recommends in its text, or "static
    mark" where the program marks the value as static. ``differences`` is in how many guards and properties of tensors
    the call differs: from what this guard requires, or, for the reason of a recompilation, from the whole entry; 0 if
    that is not known. ``together`` are the tensors whose sizes have changed in this call, as the user writes them, each
    with its dimensions.

    ``operands`` are the sides of a comparison (the ids, for HOOKS), and ``operators`` the relations between them:
    ``2 <= n <= 7`` has three operands and two operators. The sides of ``==``, ``is`` and ``is not`` are PyTorch's own
    text, which may not be Python. ``arguments`` are what a call such as ``len`` gets; for ``not x`` it is ``x``. They
    are empty if the text is not Python as it stands.
    """

    kind: GuardKind
    source: str = ""
    expected: Optional[str] = None
    actual: Optional[str] = None
    detail: str = ""
    holds: bool = True
    operands: Tuple[str, ...] = ()
    operators: Tuple[str, ...] = ()
    arguments: Tuple[str, ...] = ()
    sizes: Tuple[str, ...] = ()
    position: Optional[int] = None
    changed: Tuple[StateChange, ...] = ()
    identity: Optional[int] = None
    tensor: Optional[TensorProperties] = None
    code: str = ""
    user_line: str = ""
    user_code: str = ""
    location: Optional[Location] = None
    hint: str = ""
    differences: int = 0
    together: Tuple[Tuple[str, str], ...] = ()

    @property
    def is_of_parameter(self) -> bool:
        """Whether a guard on a tensor is on a parameter, or on a buffer of a module: their sizes are static."""
        named = self.tensor is not None and self.tensor.class_name == "Parameter"
        return named or "force_parameter" in self.hint or any(each in self.source for each in _OF_MODULES)

    @property
    def is_of_module_number(self) -> bool:
        """Whether the guarded value is an int that is an attribute of a module: these are static."""
        return "allow_unspec_int_on_nn_module" in self.hint

    @property
    def subject(self) -> str:
        """``source`` as the user writes it."""
        return as_written(self.source)

    @property
    def bounded_size(self) -> Optional[Tuple[str, str, str]]:
        """The tensor, the dimension, and the bounds in words, of one size between numbers (``2 <= L['x'].size()[0]``);
        None for another guard."""
        found = size_in_parts(self.sizes[0]) if len(self.sizes) == 1 else None
        if found is None or set(self.operators) != {"<="} or self.sizes[0] not in self.operands:
            return None
        at = self.operands.index(self.sizes[0])
        least, most = self.operands[:at], self.operands[at + 1 :]
        if len(least) > 1 or len(most) > 1 or not all(each.isdigit() for each in (*least, *most)):
            return None
        if not most:
            return (*found, f"{least[0]} or more")
        return (*found, f"{least[0]} to {most[0]}" if least else f"at most {most[0]}")

    def with_actual(self, actual: Optional[str]) -> Guard:
        """Return the guard with the current value, unless its text has it."""
        return self if actual is None or self.actual is not None else replace(self, actual=actual)


_OF_MODULES = ("_parameters", "_buffers")

NO_GUARD = Guard(GuardKind.UNKNOWN)
"""Represents an unknown guard."""
