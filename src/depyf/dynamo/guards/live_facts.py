"""What only a running program shows of a guard that fails: which member, class or function an object is, what differs
in the metadata of a tensor subclass, all sizes of a tensor that differ, marks.

The facts go into the fields of the ``Guard``, and ``diagnosis/guard_explanations.py`` makes the sentence from them. A
module of its own: these look at objects, and ``current_values.py`` makes texts of values.
"""

from __future__ import annotations

import ast
import enum
import gc
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Dict, Iterator, Mapping, Optional, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import replace
from depyf.diagnosis.guard import Guard, GuardKind
from depyf.diagnosis.guard_explanations import STATIC_MARK
from depyf.diagnosis.guard_sources import holder_of
from depyf.dynamo.guards import runtime as guard_runtime
from depyf.dynamo.guards.current_values import shown, tensor_mismatches
from depyf.dynamo.guards.kept_readings import code_of
from depyf.dynamo.hooks import private_names

if TYPE_CHECKING:
    import torch

_CHECKED = ("original_metadata", "expected", "original_values")
"""The free variables of PyTorch's checks of metadata that hold the metadata at compile time."""


_CONSTANTS = (GuardKind.NUMBER, GuardKind.CHOICE)
WITH_FACTS = frozenset(
    (
        *(GuardKind.SIZE, GuardKind.CLASS, GuardKind.FUNCTION, GuardKind.IDENTITY, GuardKind.MEMBER),
        *(GuardKind.METADATA, *_CONSTANTS),
    )
)
"""The kinds of guards that facts are known of."""

_CODE = "__code__"
"""Guards on a function are guards on its code, which functions of one ``def`` share."""
_FUNCTION = "function"


def with_facts(
    guard: Guard, line: Guard, frame_locals: Mapping[str, object], frame_globals: Mapping[str, object]
) -> Guard:
    """Return ``guard``, which fails, with the facts that these values show. ``line`` is the guard as the entry has it,
    which may have more than PyTorch's message about it.
    """
    if guard.kind not in WITH_FACTS:
        return guard
    if guard.kind is GuardKind.METADATA:
        guard = replace(guard, source=guard.source or line.source)
    # ``L['m']`` is ``m`` in the reasons of a recompilation.
    names = {**frame_locals, **guard_runtime.torch_guard_names(), "L": frame_locals, "G": frame_globals}
    holder, attribute = holder_of(guard.source)
    source = holder if guard.kind is GuardKind.FUNCTION and attribute == _CODE else guard.source
    try:
        value = eval(code_of(source), names)
        if guard.kind is GuardKind.FUNCTION or (guard.kind is GuardKind.CLASS and guard.expected == _FUNCTION):
            return _with_functions(replace(guard, source=source), guard, value, frame_globals)
        if guard.kind is GuardKind.SIZE:
            return _with_all_sizes(guard, line, value)
        if guard.kind is GuardKind.CLASS:
            return replace(guard, actual="None") if value is None else guard
        if guard.kind is GuardKind.METADATA:
            return _with_metadata(guard, value)
        if guard.kind in _CONSTANTS:
            return _with_class(guard, value)
        return _with_names(guard, value, frame_globals)
    except synchronous():  # the value, or a class of the program's, can't be asked: the guard stays as it is
        return guard


_REGISTERED = (
    (private_names.MODULES, "as a submodule"),
    (private_names.PARAMETERS, "as a parameter"),
    (private_names.BUFFERS, "as a buffer"),
)
"""The attributes of a module that hold its registered members, and what they make of a member."""


def as_missing(
    source: str, line: Guard, frame_locals: Mapping[str, object], frame_globals: Mapping[str, object]
) -> Guard:
    """Return the guard on a value that is not where it was: moved, where the module has it elsewhere; on the code of
    what is no function now, the guard on that. ``line`` is the entry's guard on the value, if it is known."""
    missing = Guard(GuardKind.MISSING, source, detail="itself")
    # ``L['f'].__code__`` is missing where ``f`` is no function any more: that is what differs.
    holder, name = holder_of(source)
    if name == _CODE:
        no_function = Guard(GuardKind.CLASS, holder, _FUNCTION, identity=line.identity)
        return with_facts(no_function, no_function, frame_locals, frame_globals)
    # ``L['m']._parameters['w']`` may be a plain attribute, a buffer or a submodule of ``m`` now: each place is read.
    owned = next((each for each, _ in _REGISTERED if holder.endswith(f".{each.name}")), None)
    holder = holder if owned is None else holder[: -len(f".{owned.name}")]
    if not holder or not isinstance(name, str):
        return missing
    names = {**guard_runtime.torch_guard_names(), "L": frame_locals, "G": frame_globals}
    try:
        owner = eval(code_of(holder), names)
        own = object.__getattribute__(owner, "__dict__")
        places = [("as a plain attribute", own), *((how, each.of(owner)) for each, how in _REGISTERED)]
    except synchronous():
        return missing
    for how, place in places:
        if isinstance(place, dict) and name in place:
            value = place[name]
            now = "None" if value is None else f"of class {type(value).__qualname__}"
            return replace(missing, kind=GuardKind.MOVED, expected=line.expected, actual=now, detail=how)
    return missing


def _with_all_sizes(guard: Guard, line: Guard, value: torch.Tensor) -> Guard:
    marked = private_names.STATIC_MARK.of(value)
    if isinstance(marked, set) and int(guard.detail) in marked:
        return replace(guard, hint=STATIC_MARK)
    changed = [each for each in tensor_mismatches(line, value) if each.kind is GuardKind.SIZE]
    if guard.tensor is None:  # PyTorch's message says nothing of the class
        guard = replace(guard, tensor=line.tensor)
    if len(changed) < 2:
        return guard
    detail, before, now = (
        ", ".join(filter(None, texts))
        for texts in zip(*((each.detail, each.expected, each.actual) for each in changed))
    )
    return replace(guard, detail=detail, expected=before, actual=now)


def _with_class(guard: Guard, value: object) -> Guard:
    """Return a guard on a constant as one on its class where only that differs: of True, 1.0 and an enum's member that
    is 1."""
    constant = ast.literal_eval(guard.expected or "")
    if type(constant) is type(value) or not isinstance(value, (int, float, str)) or constant != value:
        return guard
    names = (type(each).__qualname__ for each in (constant, value))
    return replace(guard, kind=GuardKind.CLASS, expected=next(names), actual=next(names))


def _with_names(guard: Guard, value: object, frame_globals: Mapping[str, object]) -> Guard:
    """Return the guard with the names of the object that was compiled for and of the object now."""
    if value is None:  # as PyTorch's guards on classes have it
        return replace(guard, kind=GuardKind.CLASS, expected=guard.detail or None, actual="None")
    if _is_enum(guard.detail) and not isinstance(value, enum.Enum):
        return replace(guard, kind=GuardKind.CLASS, expected=guard.detail, actual=type(value).__qualname__)
    if isinstance(value, enum.Enum):
        kind = type(value)
        members = [*kind, *getattr(kind, "_value2member_map_", {}).values()]  # of flags, the combinations that exist
        before = next((each for each in members if id(each) == guard.identity), None)
        known = None if before is None else str_of_member(before)
        return replace(
            guard, kind=GuardKind.MEMBER, detail=kind.__qualname__, expected=known, actual=str_of_member(value)
        )
    name = _name_of(value, frame_globals)
    if name is None:
        return guard
    found = _object_with(guard.identity, value, frame_globals)
    before = None if found is None else _name_of(found, frame_globals)
    return replace(guard, kind=GuardKind.NAMED, expected=before, actual=name)


def _with_functions(of_function: Guard, of_code: Guard, value: object, frame_globals: Mapping[str, object]) -> Guard:
    """Return a guard on the code of a function with the names of the functions, if it has one now; of what is no
    function now with its name or its class."""
    named = _with_names(of_function, value, frame_globals)
    if of_code.kind is GuardKind.FUNCTION:
        return of_code if named is of_function else replace(of_code, expected=named.expected, actual=named.actual)
    return replace(of_function, actual=type(value).__qualname__) if named is of_function else named


def _is_enum(name: str) -> bool:
    """Return whether a name, which has that of its module, is the name of an enum."""
    parts = name.split(".")
    for at in range(len(parts) - 1, 0, -1):
        found: object = sys.modules.get(".".join(parts[:at]))
        for part in parts[at:]:
            found = vars(found).get(part) if hasattr(found, "__dict__") else None
        if isinstance(found, enum.EnumMeta):
            return True
    return False


def str_of_member(member: enum.Enum) -> str:
    """Return a member as the program writes it; a class may have a ``str`` and ``repr`` of its own."""
    kind, name = type(member).__qualname__, getattr(member, "name", None)
    if name is None:  # a combination of flags, up to Python 3.10
        return f"{kind}({member.value!r})"
    return "|".join(f"{kind}.{each}" for each in name.split("|"))


def _name_of(value: object, frame_globals: Mapping[str, object]) -> Optional[str]:
    """Return the name of a class, module, or function of a module; None for what is made anew, and other objects."""
    if isinstance(value, ModuleType):
        return value.__name__
    if not isinstance(value, (type, FunctionType, BuiltinFunctionType)):
        return None
    owner = getattr(value, "__module__", None)
    found: object = sys.modules.get(owner or "")
    for name in value.__qualname__.split("."):
        found = vars(found).get(name) if hasattr(found, "__dict__") else None
    if found is value and owner:
        own = owner in ("builtins", frame_globals.get("__name__"))
        return value.__qualname__ if own else f"{owner}.{value.__qualname__}"
    return _name_in_torch(value)


def _name_in_torch(value: object) -> Optional[str]:
    """Return the name under which PyTorch has an object: ``torch.sin`` is a method of a class without a public name."""
    name = getattr(value, "__name__", "")
    for module in ("torch", "torch.nn.functional", "torch.special", "torch.linalg"):
        if name and vars(sys.modules.get(module, sys)).get(name) is value:
            return f"{module}.{name}"
    return None


def _object_with(identity: Optional[int], like: object, frame_globals: Mapping[str, object]) -> Optional[object]:
    """Return the object with this id, or the function whose code has it, if the function's globals or a module that has
    ``like`` knows it: it is alive, so that the id is its own."""
    modules = (str(getattr(like, "__module__", "")), "builtins", "torch", "torch.nn.functional", "math", "operator")
    owners = (frame_globals, *(vars(sys.modules[name]) for name in modules if name in sys.modules))
    known: Iterator[object] = (each for owner in owners for each in list(owner.values()))
    for each in known:
        if id(each) == identity or (type(each) is FunctionType and id(each.__code__) == identity):
            return each
    return None


def _with_metadata(guard: Guard, value: torch.Tensor) -> Guard:
    """Return the guard with the metadata of a tensor subclass then and now; of dicts, the first item that differs."""
    # PyTorch's check is a function with a cell for the metadata, and its text has the id of that function. The function
    # lives as long as the guard.
    check = next((each for each in gc.get_objects() if id(each) == guard.identity), None)
    if not isinstance(check, FunctionType):
        return guard
    cells = dict(zip(check.__code__.co_freevars, check.__closure__ or ()))
    before = next((cells[name].cell_contents for name in _CHECKED if name in cells), None)
    flatten = getattr(value, "__tensor_flatten__", None)
    now = None if flatten is None else flatten()[1]
    if before is None or now is None:
        return guard
    for key, one, other in _different(before, now):
        return replace(guard, detail=key, expected=shown(one), actual=shown(other))
    return guard


def _different(before: object, now: object) -> Iterator[Tuple[str, object, object]]:
    if not (isinstance(before, Dict) and isinstance(now, Dict)):
        yield "", before, now
        return
    for key in {**before, **now}:
        one, other = before.get(key, "missing"), now.get(key, "missing")
        if one != other:
            yield str(key), one, other
