"""Names of modules and parameters that two runs of a program share: ``Net.layers.0``, from the outermost module on.

An outermost module is one that the program calls itself. Its name is the name of its class, with a number from the
second one on, so that the order of the calls names it. What ``torch.compile`` returned has the name of the module
inside. Modules are known by their ``id``, and a weak reference tells that the ``id`` has not been given away: a class
may define equality in its own way.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.compiled_callables import is_compiled_module

if TYPE_CHECKING:
    import torch


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
        for path, each in root.named_modules():
            if not _known(self._modules, each):
                self._modules[id(each)] = weakref.ref(each), f"{name}.{path}".rstrip(".")
        for path, parameter in root.named_parameters():
            if not _known(self._parameters, parameter):
                self._parameters[id(parameter)] = weakref.ref(parameter), f"{name}.{path}"


def _known(names: Dict[int, Tuple[weakref.ref[object], str]], value: object) -> str:
    found = names.get(id(value))
    return found[1] if found is not None and found[0]() is value else ""


def inside(module: torch.nn.Module) -> torch.nn.Module:
    """Return the module that ``torch.compile`` was given; the module itself if it is none of its results."""
    inner: Optional[torch.nn.Module] = None
    if is_compiled_module(module):
        inner = private_names.ORIGINAL_MODULE.of(module)
    return module if inner is None else inner


def tensors_in(value: object, name: str, *, depth: int = 4) -> List[Tuple[str, torch.Tensor]]:
    """Return the tensors in a value, with names that say where: ``[0]``, ``.logits``. Only plain containers and
    dataclasses are entered, so that no code of the program runs."""
    from dataclasses import fields, is_dataclass

    from depyf.dynamo.scripts.tensors import is_real

    if is_real(value):
        return [(name, value)]
    if not depth:
        return []
    parts: List[Tuple[str, object]] = []
    if isinstance(value, (list, tuple)):
        parts = [(f"{name}[{at}]", each) for at, each in enumerate(value)]
    elif isinstance(value, dict):
        parts = [(f"{name}[{key!r}]" if isinstance(key, (str, int)) else f"{name}[?]", value[key]) for key in value]
    elif is_dataclass(value):
        own = getattr(value, "__dict__", {})
        parts = [(f"{name}.{each.name}", own.get(each.name)) for each in fields(value)]
    return [found for part, each in parts for found in tensors_in(each, part, depth=depth - 1)]
