"""Everything that a call can reach, and whether a run of the call can be taken back.

``state_snapshot`` restores what it knows, and passes over the rest. That is enough for a question that is asked once;
a shadow run happens while the program goes on. So here each object that the call can reach is of a kind that is known
to be restored or copied, or the call is refused, with a reason.

Two walks: what the private copy shares with the program (functions, classes, globals) is restored; what it copies
(arguments, modules, enclosed variables) is examined for objects whose copy is none. ``deepcopy`` shares functions and
classes, so the second walk hands these to the first.
"""

from __future__ import annotations

import datetime
import dis
import functools
import random
import re
import struct
import sys
import types
from collections import OrderedDict, defaultdict, deque
from enum import Enum
from types import FrameType, FunctionType, MethodType, ModuleType
from typing import Deque, Dict, Iterator, List, Sequence, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.messages import listed
from depyf.decompiler.syntax import nested_codes
from depyf.dynamo.entries.call_target import CallTarget
from depyf.dynamo.entries.hints import RESUMED
from depyf.dynamo.hooks import compiled_callables, known_code, torch_names
from depyf.dynamo.hooks.nested_code import names_in
from depyf.dynamo.questions.compare.state_snapshot import StateSnapshot, is_user_module, place_of, slots_of
from depyf.torch_trace.user_code import is_library

_CONTAINERS = (list, tuple, dict, set, frozenset, deque, OrderedDict, defaultdict, bytearray)
_VALUES = (object, int, float, complex, str, bytes, bool)
_BASES = (*_CONTAINERS, *_VALUES, BaseException)

_HARMLESS: Tuple[type, ...] = (
    *_VALUES[1:],
    type(None),
    type(Ellipsis),
    type(NotImplemented),
    slice,
    range,
    types.CodeType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    re.Pattern,
    struct.Struct,
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    datetime.timezone,
)
_HARMLESS_NAMES = frozenset(("_abc._abc_data", "_abc_data", "collections._tuplegetter", "_collections._tuplegetter"))
_HARMLESS_NAMES |= {"typing.TypeVar", "typing.ParamSpec", "types.GenericAlias", "types.UnionType", "decimal.Decimal"}
_OF_TORCH = ("dtype", "device", "layout", "memory_format", "finfo", "iinfo")

_COPIES = ("__deepcopy__", "__reduce_ex__", "__reduce__", "__getstate__", "__setstate__", "__new__")
"""Methods by which a class decides how it is copied."""

_ANYTHING = frozenset(("globals", "__globals__", "_getframe", "currentframe", "get_objects", "get_referrers"))

_WORD = struct.calcsize("P")


class ReachableState(StateSnapshot):
    """The values that a call may change, as they are now; ``refused`` says which objects prevent a run."""

    def __init__(self, target: CallTarget, arguments: Sequence[object], memory: int) -> None:
        self.refused: Dict[str, None] = {}
        self.size = 0
        """The bytes of the tensors and arrays of which the snapshot has copies."""
        self._memory = memory
        self._copied: Set[int] = set()
        self._alive: List[object] = []
        self._codes: Set[int] = set()
        self._known_classes: Dict[type, _ClassFacts] = {}
        """Of this walk alone: the program may change a class before the next one."""
        super().__init__(target, arguments)

    def why_not_twice(self) -> str:
        """Return why a call may not be made once more than the program makes it; empty if it may."""
        if self.refused:
            return listed(list(self.refused), 1)
        return super().why_not_twice()

    def cover(self, frame: FrameType) -> None:
        """Add what a frame that starts now reaches: by name, and, where the walk has not found its function, by what
        it has enclosed."""
        code = frame.f_code
        if is_library(code.co_filename) or str(frame.f_globals.get("__name__", "")).startswith("torch."):
            return  # code that a compiler has written is in a module of torch
        if known_code.is_guard(frame):
            return  # it reads what the guards of the entry read, and its globals hold all of a module
        if place_of(code) not in self._functions and not code.co_name.startswith(RESUMED):
            self._functions.update(map(place_of, nested_codes(code)))
            self._unknown(frame)
        elif id(code) in self._codes:
            return
        self._codes.add(id(code))
        self._alive.append(code)
        self._names(frame.f_globals, set(names_in(code)), own=False)
        self._visit_all(set())

    def _unknown(self, frame: FrameType) -> None:
        """Add what a function that the walk has not found has enclosed; refuse it where it may change more."""
        code, values = frame.f_code, frame.f_locals
        if any(each.argval in owner.co_freevars for owner, each in _stores(code)):
            self._refuse(f"it calls {code.co_name}, which changes variables of a function that is not known")
        # Not restored: they may be copies, or made by this run, whose values are read after it.
        torch = torch_names.module("torch")
        plain = (*_HARMLESS, *_CONTAINERS, torch.Tensor, torch.nn.Parameter)
        for name, value in values.items() if is_user_module(str(frame.f_globals.get("__name__", ""))) else ():
            known = name in code.co_freevars or id(value) in self._seen or _is_graph(value)
            if not known and type(value) not in plain:
                self._refuse(f"it calls {code.co_name} on an object that is reached in a way that is not known")
        self._all(values[name] for name in code.co_freevars if name in values)

    def _refuse(self, why: str) -> None:
        self.refused.setdefault(why)

    # What is copied.

    def _classes(self, value: object) -> None:
        """Examine what is reached from a value that is copied."""
        todo: Deque[object] = deque([value])
        while todo and not self.refused and len(self._copied) <= self._most:
            each = todo.popleft()
            if type(each) in _HARMLESS or id(each) in self._copied:
                continue
            self._copied.add(id(each))
            self._alive.append(each)  # a ``__dict__`` may be made when it is asked for
            todo.extend(self._parts(each))
        if todo and not self.refused:
            self._refuse("too many objects are reachable from it")

    def _parts(self, value: object) -> Iterator[object]:
        """Yield what a copy of the value has copies of; what the copy shares is added to what is restored."""
        torch = torch_names.module("torch")
        if isinstance(value, (FunctionType, type, types.BuiltinFunctionType, torch.Generator, random.Random, Enum)):
            self._add(value)
        elif isinstance(value, MethodType):
            self._add(value.__func__)
            yield value.__self__
        elif isinstance(value, functools.partial):
            yield from (value.func, *value.args, *value.keywords.values(), *vars(value).values())
        elif isinstance(value, torch.Tensor):
            self._all(vars(value).values())
        elif isinstance(value, ModuleType):
            if is_user_module(value.__name__):
                self._refuse(f"it is given the module {value.__name__}, of which it may use anything")
        elif not _is_known(value) and self._is_plain(value):
            for name in self._facts_of(type(value)).decides:
                self._refuse(f"{type(value).__qualname__} decides by {name} how it is copied")
            self._add(type(value))
            yield from self._held(value)

    def _held(self, value: object) -> Iterator[object]:
        if isinstance(value, dict):
            yield from dict.keys(value)
            yield from dict.values(value)
        for kind in (list, tuple, set, frozenset, deque):
            if isinstance(value, kind):
                yield from kind.__iter__(value)  # type: ignore[arg-type]
        for name, each in _attributes_of(value).items():
            if name != "_flat_weight_refs":  # of recurrent modules of torch, which make these anew
                yield each
        for member in self._facts_of(type(value)).slots:
            try:
                yield member.__get__(value)
            except synchronous(AttributeError):
                continue

    def _is_plain(self, value: object) -> bool:
        """Return whether all state of an object is in attributes and items; refuse others."""
        cls = type(value)
        facts = self._facts_of(cls)
        if facts.goes_on:
            self.not_restored.setdefault(cls.__qualname__)
        elif facts.is_finalized:
            self._refuse(f"{cls.__qualname__} has a finalizer (__del__)")
        elif not facts.is_of_python:
            self._refuse(f"it can reach an object of {cls.__module__}.{cls.__qualname__}, which can't be restored")
        else:
            return True
        return False

    def _facts_of(self, cls: type) -> _ClassFacts:
        found = self._known_classes.get(cls)
        if found is None:
            found = self._known_classes[cls] = _ClassFacts(cls)
        return found

    # What is shared.

    def _add(self, value: object) -> None:
        if type(value) not in _HARMLESS and id(value) not in self._seen:
            self._seen[id(value)] = value
            self._todo.append(value)

    def _function(self, function: FunctionType, *, own: bool) -> None:
        self._functions.update(map(place_of, nested_codes(function.__code__)))
        super()._function(function, own=own)
        if not is_library(function.__code__.co_filename):
            return
        self._add(compiled_callables.unwrapped(function))
        for cell in function.__closure__ or ():
            try:
                held = cell.cell_contents
            except synchronous(ValueError):
                continue
            if "weakref" in type(held).__module__ or type(held).__name__ == "ReferenceType":
                self._refuse(f"{function.__qualname__} holds a weak reference")
            elif not str(function.__module__).startswith("torch.") and (
                isinstance(held, (FunctionType, MethodType, functools.partial)) or is_user_module(type(held).__module__)
            ):
                self._add(held)

    def _names(self, namespace: Dict[str, object], names: Set[str], *, own: bool) -> None:
        super()._names(namespace, names, own=own)
        if not names.isdisjoint(_ANYTHING):
            self._refuse(f"its code names {min(names & _ANYTHING)}, by which it may reach anything")
        for name in names - set(namespace):  # imported by the function itself
            module = sys.modules.get(name)
            if isinstance(module, ModuleType):
                self._module(module, names)
        for name in names & set(namespace) if own else ():
            if isinstance(namespace[name], self._kept):
                self._classes(namespace[name])

    def _value(self, value: object) -> None:
        torch = torch_names.module("torch")
        if self.refused:
            return
        if isinstance(value, (torch.Tensor, _numpy_array())):
            self._array(value)
        elif isinstance(value, functools.partial):
            self._all((value.func, *value.args, *value.keywords.values(), vars(value)))
        elif isinstance(value, (types.BuiltinFunctionType, types.MethodWrapperType)):
            if not isinstance(value.__self__, ModuleType):
                self._add(value.__self__)
        elif isinstance(value, (property, classmethod, staticmethod)):
            parts = (getattr(value, each, None) for each in ("fget", "fset", "fdel", "__func__"))
            self._all(parts)
        elif isinstance(value, (type, MethodType, random.Random, torch.Generator)) or _is_known(value):
            super()._value(value)
        elif self._is_plain(value):
            if isinstance(value, (list, set, dict, deque, bytearray)):
                super()._value(value)
            elif isinstance(value, (tuple, frozenset)):
                self._all(self._held(value))
            else:
                self._object(value)
            if isinstance(value, dict):
                self._all(dict.keys(value))
            if isinstance(value, defaultdict):
                self._add(value.default_factory)

    def _class(self, cls: type) -> None:
        if is_user_module(cls.__module__) and hasattr(cls, "__del__"):
            self._refuse(f"{cls.__qualname__} has a finalizer (__del__)")
        super()._class(cls)

    def _object(self, value: object) -> None:
        if _is_graph(value):
            self._all(_attributes_of(value).values())
            return
        inside = _dict_of(value)
        if inside:
            self._add(inside)
        self._add(type(value))
        self._slots(value)

    def _array(self, value: object) -> None:
        """Add a tensor or an array, whose values are copied: not more than the memory limit allows."""
        torch = torch_names.module("torch")
        if isinstance(value, torch.Tensor):
            if type(value).__name__ == "FakeTensor":
                return  # it stands for a tensor while code is compiled
            if type(value) not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) or value.layout != torch.strided:
                self._refuse(f"it can reach a {type(value).__name__} of another kind, which can't be restored")
                return
            self._all(vars(value).values())
        elif str(getattr(value, "dtype", "O")) == "object":
            self._refuse("it can reach an array of objects, which can't be restored")
            return
        self.size += int(getattr(value, "nbytes", 0))
        if self.size > self._memory:
            self._refuse(f"copies take more than memory= allows ({self._memory / 2**20:.0f} MiB)")
            return
        super()._value(value)


def _dict_of(value: object) -> Dict[str, object]:
    """Return the attributes of an object, without its own ways to look them up."""
    try:
        found: object = object.__getattribute__(value, "__dict__")
    except synchronous(AttributeError):
        return {}
    return found if isinstance(found, dict) else {}


def _stores(code: types.CodeType) -> Iterator[Tuple[types.CodeType, dis.Instruction]]:
    """Yield the instructions that bind a variable of an enclosing function, in code and the code nested in it."""
    for each in nested_codes(code):
        for instruction in dis.get_instructions(each) if each.co_freevars else ():
            if instruction.opname in ("STORE_DEREF", "DELETE_DEREF"):
                yield each, instruction


def _attributes_of(value: object) -> Dict[str, object]:
    """Return the attributes that hold what a run may change: of the code of a graph, what it has as a module."""
    found = _dict_of(value)
    if not _is_graph(value):
        return found
    own = vars(torch_names.module("torch").nn.Module())
    return {name: each for name, each in found.items() if name in own}


def _is_graph(value: object) -> bool:
    return isinstance(value, torch_names.module("torch").fx.GraphModule)


def _numpy_array() -> Tuple[type, ...]:
    found = getattr(sys.modules.get("numpy"), "ndarray", None)
    return (found,) if isinstance(found, type) else ()


def _is_known(value: object) -> bool:
    """Return whether an object has no state, or one that is restored as it is; its parts need no look."""
    cls = type(value)
    name = f"{cls.__module__}.{cls.__qualname__}"
    if cls in _HARMLESS or cls is object or name in _HARMLESS_NAMES or isinstance(value, ModuleType):
        return True
    if cls.__module__ == "torch" and cls.__name__ in _OF_TORCH:
        return True
    # The graph of compiled code is data of the compiler's; a module that runs it is no data.
    is_module = isinstance(value, torch_names.module("torch").nn.Module)
    is_operator = cls.__module__.startswith("torch.") and cls.__name__.startswith("OpOverload")
    return is_operator or (cls.__module__.startswith(("numpy", "torch.fx.")) and not is_module)


class _ClassFacts:
    """What the instances of a class hold, and which ways of its own it has."""

    def __init__(self, cls: type) -> None:
        self.slots = tuple(member for _, member in slots_of(cls))
        self.goes_on = hasattr(cls, "__next__")
        self.is_finalized = hasattr(cls, "__del__")
        self.is_of_python = _is_of_python(cls, len(self.slots))
        self.decides = tuple(name for name in _COPIES if _decides(cls, name))


def _is_of_python(cls: type, words: int) -> bool:
    """Return whether instances hold nothing but attributes, slots (so many ``words``), and the items of a builtin
    container."""
    # What a class defined in C adds makes instances larger than their slots, ``__dict__`` and ``__weakref__``.
    base = next(each for each in cls.__mro__ if each in _BASES)
    for name in ("__dict__", "__weakref__"):
        words += any(name in vars(each) for each in cls.__mro__)
    return cls.__basicsize__ - base.__basicsize__ <= words * _WORD


def _decides(cls: type, name: str) -> bool:
    """Return whether a class of the program or of a library other than torch has a method of this name."""
    owner = next((each for each in cls.__mro__ if name in vars(each)), object)
    return owner not in _BASES and not owner.__module__.startswith(("torch.", "builtins", "collections", "typing"))
