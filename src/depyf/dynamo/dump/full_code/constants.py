"""Find the objects that the names ``__const_<kind>_<n>`` in decompiled source represent: constants without a literal.

The decompiler numbers these names for each code object, so two functions of a file may use one name for different
objects. Then one of the two names is changed.
"""

from __future__ import annotations

from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Dict, Iterator, Mapping, Optional, Sequence, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass, replace
from depyf.dynamo.dump.full_code.original import Original
from depyf.dynamo.dump.full_code.story import Entry
from depyf.dynamo.dump.full_code.user_globals import description, hidden_description
from depyf.dynamo.guards.literals import literal_value
from depyf.dynamo.guards.stable_expressions import Naming, tidy
from depyf.report.render.hidden_values import NAME, PLAIN, HiddenValues, in_code

_PLACEHOLDER = regex(r"\b__const_(\w+)_\d+\b")

ITER = "__const_iter_0"
"""The builtin ``iter``, which the decompiler calls for an instruction that makes an iterator: ``__const_iter_0(x)``."""
_NAMES_ITER = regex(r"\biter\b")

_NAMED = (type, FunctionType, BuiltinFunctionType, ModuleType)

Position = Tuple[int, ...]
"""The position of a constant: its index in ``co_consts``, after the indexes of the enclosing code objects and
tuples.
"""


_Located = Tuple[object, CodeType, Position]
"""A constant, the code object that has it, and its position there."""


@dataclass(frozen=True)
class Constant:
    """A named constant. ``code`` and ``position`` say where it can be found as long as the code exists."""

    name: str
    value: object
    code: CodeType
    position: Position


class Constants:
    """The names ``__const_*`` of one file, each for one object; ``known`` has the names whose object is known."""

    def __init__(self, hidden: Optional[HiddenValues] = None) -> None:
        self.hidden = hidden
        self.known: Dict[str, Constant] = {}

    def in_entry(self, entry: Entry) -> Entry:
        """Return ``entry`` with its names made unique.

        A name says only the kind of its object. If the code has several constants of that kind, the name stays and its
        object is unknown.
        """
        if entry.source is None or entry.code is None:
            return entry
        found: Dict[str, _Located] = {}
        source = entry.source
        for match in _PLACEHOLDER.finditer(source):
            constant = _only_constant(entry.code, match.group(1))
            if constant is not None:
                found[match.group(0)] = constant
        self._note_hidden(source, entry.code)
        # ``iter`` is no constant of the code: the plain name is right, unless the function has a variable of that name.
        if ITER not in found and not _NAMES_ITER.search(source):
            source = source.replace(ITER, "iter")
        return replace(entry, source=self._renamed(source, found))

    def _note_hidden(self, source: str, code: CodeType) -> None:
        """Note which constants of the code the names of hidden values in ``source`` stand for."""
        wanted = set(NAME.findall(source))
        if self.hidden is None or not wanted:
            return
        for value, position in constants_in(code):
            name = in_code(self.hidden.name_of(value)) if type(value) in PLAIN else ""
            if name in wanted:
                self.known.setdefault(name, Constant(name, value, code, position))

    def in_original(self, original: Original, code: CodeType) -> Original:
        """Return ``original`` with its names made unique; its decompilation has recorded the objects."""
        if original.source is None or not original.constants:
            return original
        positions = {id(value): position for value, position in constants_in(code)}
        found = {
            name: (value, code, positions[id(value)])
            for name, value in original.constants.items()
            if id(value) in positions
        }
        return replace(original, source=self._renamed(original.source, found))

    def _renamed(self, source: str, found: Mapping[str, _Located]) -> str:
        names: Dict[str, str] = {}
        for name, constant in found.items():
            names[name] = self._free_name(name, constant[0])
            self.known.setdefault(names[name], Constant(names[name], *constant))
        return _PLACEHOLDER.sub(lambda match: names.get(match.group(0), match.group(0)), source)

    def _free_name(self, name: str, value: object) -> str:
        """Return ``name``, or the first ``name_<n>`` that is not the name of another object."""
        candidate, number = name, 1
        while candidate in self.known and self.known[candidate].value is not value:
            number += 1
            candidate = f"{name}_{number}"
        return candidate


def _only_constant(code: CodeType, kind: str) -> Optional[_Located]:
    found = {id(value): (value, code, position) for value, position in constants_in(code) if kind in _kinds(value)}
    return next(iter(found.values())) if len(found) == 1 else None


def _kinds(value: object) -> Tuple[str, ...]:
    """Return the kinds that the decompiler may have written into a name for ``value``; none if it has a literal."""
    # A finite float has a literal; ``nan`` has none. A class, function or module may be named after itself.
    if issubclass(type(value), (str, bytes, tuple, int)) or value is None:
        return ()
    if isinstance(value, (float, complex)):
        return ("nan",) if value != value else ()
    return type(value).__name__, getattr(value, "__name__", "") if issubclass(type(value), _NAMED) else ""


def constants_in(code: CodeType) -> Iterator[Tuple[object, Position]]:
    """Yield every constant of a code object and of those nested in it, with its position."""

    def inside(values: Sequence[object], position: Position) -> Iterator[Tuple[object, Position]]:
        for index, value in enumerate(values):
            yield value, (*position, index)
            if isinstance(value, CodeType):
                yield from inside(value.co_consts, (*position, index))
            elif type(value) is tuple:
                yield from inside(value, (*position, index))

    return inside(code.co_consts, ())


def constant_definition(constant: Constant, hidden: Optional[HiddenValues] = None) -> Tuple[str, bool]:
    """Return a statement that gives the name its value, and whether that is only a placeholder."""
    if NAME.match(constant.name):
        return f"{constant.name} = ___placeholder({hidden_description(constant.value)!r})", True
    # An object like ``torch.Size`` prints as an expression, which is used if it is known to give an equal object. Only
    # for classes of PyTorch, NumPy and Python ``__repr__`` is no code of the user.
    cls = type(constant.value)
    shown = cls.__repr__(constant.value) if cls.__module__.partition(".")[0] in ("torch", "builtins", "numpy") else ""
    found, value = literal_value(shown)
    expression = tidy(shown, Naming(str)) if found and type(value) is type(constant.value) else None
    if expression is not None and value == constant.value and (hidden is None or hidden.code(expression) == expression):
        return f"{constant.name} = {expression}", False
    what = description(constant.value)
    if isinstance(constant.value, CodeType):
        what = f"the code object of {constant.value.co_name}"
    return f"{constant.name} = ___placeholder({what!r})", True
