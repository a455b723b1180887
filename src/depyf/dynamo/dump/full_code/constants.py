"""Constants of transformed code without a literal: the objects that the names ``__const_<kind>_<n>`` in its source
represent. The names are numbered for each code object, so two functions of a file may use one name for different
objects; one of them is then renamed.
"""

from __future__ import annotations

from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Dict, Iterator, Mapping, Optional, Sequence, Tuple

from depyf.dynamo.dump.full_code.original import Original
from depyf.dynamo.dump.full_code.story import Entry
from depyf.dynamo.dump.full_code.user_globals import description
from depyf.dynamo.guards.literals import literal_value
from depyf.dynamo.guards.stable_expressions import Naming, tidy
from depyf.lazy_pattern import re_compile
from depyf.quick_dataclass import dataclass, replace

_PLACEHOLDER = re_compile(r"\b__const_(\w+)_\d+\b")

ITER = "__const_iter_0"
"""The builtin ``iter`` itself, which the decompiler calls for an instruction that makes an iterator."""
_NAMES_ITER = re_compile(r"\biter\b")

_NAMED = (type, FunctionType, BuiltinFunctionType, ModuleType)

Position = Tuple[int, ...]
"""The position of a constant: its index in ``co_consts``, after those of the enclosing code objects and tuples."""


_Place = Tuple[object, CodeType, Position]


@dataclass(frozen=True)
class Constant:
    """A named constant. ``code`` and ``position`` say where it can be found as long as the code exists."""

    name: str
    value: object
    code: CodeType
    position: Position


class Constants:
    """The names ``__const_*`` of one file, each for one object; ``known`` are those whose object is known."""

    def __init__(self) -> None:
        self.known: Dict[str, Constant] = {}

    def in_entry(self, entry: Entry) -> Entry:
        """Return ``entry`` with its names made unique. Only the kind of a name's object is known. If the code has
        several constants of that kind, the name stays and its object is unknown."""
        if entry.source is None or entry.code is None:
            return entry
        found: Dict[str, _Place] = {}
        source = entry.source
        for match in _PLACEHOLDER.finditer(source):
            place = _only_constant(entry.code, match.group(1))
            if place is not None:
                found[match.group(0)] = place
        if ITER not in found and not _NAMES_ITER.search(source):
            source = source.replace(ITER, "iter")
        return replace(entry, source=self._renamed(source, found))

    def in_original(self, original: Original, code: CodeType) -> Original:
        """Return ``original`` with its names made unique. Its decompilation recorded their objects."""
        if original.source is None or not original.constants:
            return original
        positions = {id(value): position for value, position in constants_in(code)}
        found = {
            name: (value, code, positions[id(value)])
            for name, value in original.constants.items()
            if id(value) in positions
        }
        return replace(original, source=self._renamed(original.source, found))

    def _renamed(self, source: str, found: Mapping[str, _Place]) -> str:
        names: Dict[str, str] = {}
        for name, place in found.items():
            names[name] = self._free_name(name, place[0])
            self.known.setdefault(names[name], Constant(names[name], *place))
        return _PLACEHOLDER.sub(lambda match: names.get(match.group(0), match.group(0)), source)

    def _free_name(self, name: str, value: object) -> str:
        """Return ``name``, or the first ``name_<n>`` that is not the name of another object."""
        candidate, number = name, 1
        while candidate in self.known and self.known[candidate].value is not value:
            number += 1
            candidate = f"{name}_{number}"
        return candidate


def _only_constant(code: CodeType, kind: str) -> Optional[_Place]:
    found = {id(value): (value, code, position) for value, position in constants_in(code) if kind in _kinds(value)}
    return next(iter(found.values())) if len(found) == 1 else None


def _kinds(value: object) -> Tuple[str, ...]:
    """Return the middle part of the name for ``value``."""
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


def constant_definition(constant: Constant) -> Tuple[str, bool]:
    """Return a statement that gives the name its value, and whether that is only a placeholder."""
    shown = type(constant.value).__repr__(constant.value) if _has_plain_repr(constant.value) else ""
    found, value = literal_value(shown)
    expression = tidy(shown, Naming(str)) if found and type(value) is type(constant.value) else None
    if expression is not None and value == constant.value:
        return f"{constant.name} = {expression}", False
    what = description(constant.value)
    if isinstance(constant.value, CodeType):
        what = f"the code object of {constant.value.co_name}"
    return f"{constant.name} = ___placeholder({what!r})", True


def _has_plain_repr(value: object) -> bool:
    """Return whether it is an object of PyTorch's or Python's own, whose text may be asked for."""
    return type(value).__module__.partition(".")[0] in ("torch", "builtins", "numpy")
