"""A guard as a typed value: the check, the source, the expected and the actual value. It is parsed once: from PyTorch's
text (``guard_text``), or from the value that fails (``dynamo/guards``). All explanations of a guard are made from it
(``guard_explanations``), and nothing parses the text again.
"""

from __future__ import annotations

import enum
from typing import Optional, Sequence, Tuple

from depyf.diagnosis.guard_sources import as_written
from depyf.quick_dataclass import dataclass, replace

Location = Tuple[str, int]
"""A file and a line, from 1."""


class GuardKind(enum.Enum):
    """The form of a guard. Beside each: what its fields hold, where that is more than ``source`` and ``expected``."""

    UNKNOWN = "text of no known form"
    RELATION = "relation of sizes"  # ``detail`` is the relation
    ALIASING = "relation of the memory of tensors"  # ``code`` is the relation
    NUMBER = "number"  # ``detail`` is what is compared, ``operands`` are the two sides
    CHOICE = "constant"  # the same
    TRAINING = "train() or eval()"  # the same
    NONE = "None or not"  # ``detail`` is what is compared, ``expected`` "None" or "not None"
    SAME_OBJECT = "the same object or not"  # ``operands`` are the two sides, ``holds`` whether they were the same
    LENGTH = "length"
    EMPTY = "empty"
    KEYS = "keys in their order"  # ``detail`` is what is compared, ``operands`` are the two sides
    NUMBER_OF_KEYS = "number of keys"
    CONTAINS = "a key or an item"  # ``detail`` is the key, ``holds`` whether it was there
    ATTRIBUTE = "an attribute"  # ``detail`` is its name, ``holds`` whether it was there
    MISSING = "the value is there"
    NAN = "nan"  # ``holds`` whether it was nan
    ITERATOR_LENGTH = "items left in an iterator"  # ``detail`` is what is compared
    ITERATOR_STATE = "state of an iterator"  # the same
    CLASS = "class"  # ``expected`` is its name, ``identity`` its id, where PyTorch reports them
    CLASS_OF_DICT = "class of a dict"
    IDENTITY = "identity of an object"  # ``detail`` is its class, ``identity`` its id
    FUNCTION = "code of a function"  # the same of a code object
    FAKE_SCRIPT_CLASS = "class of a script object"
    TENSOR = "all properties of a tensor"  # ``tensor`` has them; a mismatch is of one of the kinds below
    TENSOR_CLASS = "class of a tensor"  # ``actual`` is its name
    SIZE = "size"  # ``detail`` is the dimension
    STRIDE = "stride"  # ``detail`` is the dimension
    RANK = "number of dimensions"
    DTYPE = "dtype"
    REQUIRES_GRAD = "requires_grad"  # ``holds`` whether it was required
    DISPATCH_KEYS = "dispatch keys"  # names with ", " between them
    SAME_TENSOR = "the same tensor twice"
    MARKS = "marked dimensions"  # ``detail`` is the mark; ``expected`` None where nothing was marked
    GLOBAL_STATE = "global state"  # ``expected`` is JSON; ``operands`` what has changed, with ``=`` and its value
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
    """What a guard requires of a tensor, as PyTorch prints it; ``size`` and ``stride`` have brackets, or are "None"."""

    class_name: str
    dispatch_keys: str
    dtype: str
    device: str
    requires_grad: str
    size: str
    stride: str

    @property
    def sizes(self) -> Optional[Sequence[str]]:
        """The required size of each dimension, "None" for any size; None if there is no requirement."""
        return _listed(self.size)

    @property
    def strides(self) -> Optional[Sequence[str]]:
        """The same for the strides."""
        return _listed(self.stride)


def _listed(text: str) -> Optional[Sequence[str]]:
    return None if text == "None" else [each for each in text[1:-1].split(", ") if each]


@dataclass(frozen=True)
class Guard:
    """One guard. ``GuardKind`` says which of the fields each kind has.

    ``source`` is the guarded value as PyTorch writes it; it is empty for global state and relations. ``expected`` is
    the value at compile time, ``actual`` the current one; both are texts, or None if unknown. ``code`` is PyTorch's
    text without its comment, and ``user_line`` is the comment. ``user_code`` and ``location`` are the user's line that
    the comment names: Dynamo installed the guard there.
    """

    kind: GuardKind
    source: str = ""
    expected: Optional[str] = None
    actual: Optional[str] = None
    detail: str = ""
    holds: bool = True
    operands: Tuple[str, ...] = ()
    identity: Optional[int] = None
    tensor: Optional[TensorProperties] = None
    code: str = ""
    user_line: str = ""
    user_code: str = ""
    location: Optional[Location] = None

    @property
    def subject(self) -> str:
        """``source`` as the user writes it."""
        return as_written(self.source)

    def with_actual(self, actual: Optional[str]) -> Guard:
        """Return the guard with the current value, unless its text has it."""
        return self if actual is None or self.actual is not None else replace(self, actual=actual)


NO_GUARD = Guard(GuardKind.UNKNOWN)
"""Represents an unknown guard."""
