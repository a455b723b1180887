"""Names of modules and parameters that two runs of a program share: ``Net.layers.0``, from the outermost module on.

An outermost module is one that the program calls itself. Its name is the name of its class, with a number from the
second one on, so that the order of the calls names it. What ``torch.compile`` returned has the name of the module
inside. Modules are known by their ``id``, and a weak reference tells that the ``id`` has not been given away: a class
may define equality in its own way.

Modules, containers and dataclasses are read as Python and PyTorch define them, so that no code of the program runs: a
class may have its own ``named_modules``, ``__iter__`` or ``__getattribute__``.
"""

from __future__ import annotations

import types
import weakref
from typing import TYPE_CHECKING, Dict, Iterator, List, Optional, Set, Tuple

from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.compiled_callables import is_compiled_module

if TYPE_CHECKING:
    import torch
    from typing_extensions import TypeGuard


class ModuleNames:
    """The names of all modules and parameters that have been reached from outermost modules so far."""

    def __init__(self) -> None:
        self._modules: Dict[int, Tuple[weakref.ref[object], str]] = {}
        self._parameters: Dict[int, Tuple[weakref.ref[object], str]] = {}
        self._numbers: Dict[str, int] = {}

    def of(self, module: torch.nn.Module) -> str:
        """Return the name of a module; empty if no outermost module was seen that contains it."""
        return _known(self._modules, inside(module))

    def of_parameter(self, parameter: object) -> str:
        """Return the name of a parameter; empty if no module was seen that has it."""
        return _known(self._parameters, parameter)

    def add(self, module: torch.nn.Module) -> str:
        """Name a module that is called and not known: it is an outermost one. Return its name."""
        root = inside(module)
        kind = type(root).__name__
        number = self._numbers[kind] = self._numbers.get(kind, 0) + 1
        name = kind if number == 1 else f"{kind}#{number}"
        self._modules[id(root)] = weakref.ref(root), name
        self.look_again(root, name)
        return name

    def look_again(self, root: torch.nn.Module, name: str) -> None:
        """Name what a module contains and has no name yet."""
        for path, each in modules_in(root, name):
            if not _known(self._modules, each):
                self._modules[id(each)] = weakref.ref(each), path
        for path, parameter in state_of(root, name, private_names.PARAMETERS.name):
            if not _known(self._parameters, parameter):
                self._parameters[id(parameter)] = weakref.ref(parameter), path


def _known(names: Dict[int, Tuple[weakref.ref[object], str]], value: object) -> str:
    found = names.get(id(value))
    return found[1] if found is not None and found[0]() is value else ""


def inside(module: torch.nn.Module) -> torch.nn.Module:
    """Return the module that ``torch.compile`` was given; the module itself if it is none of its results."""
    inner: Optional[torch.nn.Module] = None
    if is_compiled_module(module):
        inner = private_names.ORIGINAL_MODULE.of(module)
    return module if inner is None else inner


def modules_in(root: torch.nn.Module, name: str) -> Iterator[Tuple[str, torch.nn.Module]]:
    """Yield a module and those that it contains, each once, with names that begin with ``name``."""
    import torch

    todo = [(name, root)]
    seen: Set[int] = set()
    while todo:
        path, module = todo.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield path, module
        children = [
            (f"{path}.{key}", each) for key, each in _items(_attributes(module).get(private_names.MODULES.name))
        ]
        for each, child in reversed(children):
            if issubclass(type(child), torch.nn.Module):
                todo.append((each, child))  # type: ignore[arg-type]


def state_of(root: torch.nn.Module, name: str, kind: str) -> List[Tuple[str, torch.Tensor]]:
    """Return the parameters of a module and of those in it, each once; the buffers if ``kind`` is their name."""
    found: Dict[int, Tuple[str, torch.Tensor]] = {}
    for path, module in modules_in(root, name):
        for key, each in _items(_attributes(module).get(kind)):
            if _is_tensor(each):
                found.setdefault(id(each), (f"{path}.{_joined(key)[1:-1]}".lstrip("."), each))
    return list(found.values())


def tensors_in(value: object, name: str, *, depth: int = 4) -> List[Tuple[str, torch.Tensor]]:
    """Return the tensors in a value, with names that say where: ``[0]``, ``.logits``. Only lists, tuples, dicts and
    dataclasses are entered."""
    from dataclasses import fields, is_dataclass

    from depyf.dynamo.scripts.tensors import is_real

    if _is_tensor(value):
        return [(name, value)] if is_real(value) and _has_plain_values(value) else []
    if not depth:
        return []
    kind = type(value)
    parts: List[Tuple[str, object]] = []
    if issubclass(kind, (list, tuple)):
        plain = list if issubclass(kind, list) else tuple
        each_of: Iterator[object] = plain.__iter__(value)  # type: ignore[arg-type]
        parts = [(f"{name}[{at}]", each) for at, each in enumerate(each_of)]
    elif issubclass(kind, dict):
        parts = [(f"{name}[{_joined(key)}]", each) for key, each in _items(value)]
    elif is_dataclass(kind):
        own = _attributes(value)
        parts = [(f"{name}.{each.name}", own.get(each.name)) for each in fields(kind)]
    return [found for part, each in parts for found in tensors_in(each, part, depth=depth - 1)]


def _is_tensor(value: object) -> TypeGuard[torch.Tensor]:
    """Return whether the type is that of a tensor: what ``isinstance`` asks may be a property of the program."""
    import torch

    return issubclass(type(value), torch.Tensor)


def _has_plain_values(tensor: torch.Tensor) -> bool:
    """Return whether each value is a number in memory. Quantised and nested tensors have none (PyTorch ends the process
    where the bits of the former are viewed), and neither has a parameter whose memory is given back (FSDP)."""
    if tensor.is_quantized or tensor.is_nested:
        return False
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride())) + tensor.storage_offset()
    return not tensor.numel() or (last + 1) * tensor.element_size() <= tensor.untyped_storage().nbytes()


def _items(value: object) -> List[Tuple[object, object]]:
    return list(dict.items(value)) if issubclass(type(value), dict) else []  # type: ignore[arg-type]


def _joined(key: object) -> str:
    """Return a key as text without spaces, as two names of a recording are told apart up to the first one."""
    return repr(key).replace(" ", "\\x20") if type(key) in (str, int) else "?"


def _attributes(value: object) -> Dict[str, object]:
    """Return the attributes of an object without what its class defines in the place of ``__dict__``."""
    for kind in type(value).__mro__:
        own = vars(kind).get("__dict__")
        if type(own) is types.GetSetDescriptorType:
            found: object = own.__get__(value)
            return found if type(found) is dict else {}
    return {}
