"""The imports (or source) that the code of a graph needs in a script."""

from __future__ import annotations

import importlib.util
import os
import sys
import textwrap
from types import ModuleType
from typing import Dict, List, Optional

from depyf.base.asynchronous import synchronous
from depyf.dynamo.hooks import private_names, torch_names
from depyf.dynamo.hooks.loaded_modules import file_of, loaded_namespace, loaded_namespaces
from depyf.dynamo.scripts.operators import (
    NoSourceError,
    definition,
    needed_by,
    registered_at,
    runs_on_import,
    source,
    variable_of,
)
from depyf.torch_trace.user_code import is_library

_BY_NAME = {
    "device": "from torch import device",
    "inf": "from torch import inf",
    "nan": "from torch import nan",
}

_REGISTERED_BY = {
    "rngprims": f"import {private_names.RANDOM_PRIMS.whole}",
    "inductor": f"import {private_names.INDUCTOR_PRIMS.whole}",
    "inductor_prims": f"import {private_names.INDUCTOR_PRIMS.whole}",
    "quantized_decomposed": f"import {private_names.QUANTIZED_DECOMPOSED.whole}",
    "_c10d_functional": f"import {private_names.FUNCTIONAL_COLLECTIVES.whole}",
}
"""What registers the operators of PyTorch's own that ``import torch`` does not."""

_BUILT_IN = frozenset({"aten", "prims", "prim", "higher_order", "profiler", "_inductor_test", "mkldnn", "quantized"})

_OF_DISTRIBUTED = ("c10d", "symm_mem", "fsdp", "_dtensor", "dtensor")
"""Libraries of torch.distributed, which registers them when it is imported."""

_SMALL = 100
"""Tensors of so many elements are written out."""

_IN_EVERY_SCRIPT = frozenset(
    "Graph NAMES BACKEND EXPECTED ALLOWED LOWEST TOLERANCE load inputs tensor with_state run same compare main".split()  # noqa: SIM905 - a list of them is three times as long
)


def is_own_library(name: str) -> bool:
    """Return whether an operator (``aten::add``) is none that PyTorch itself registers."""
    return name.partition("::")[0] not in (*_BUILT_IN, *_REGISTERED_BY, *_OF_DISTRIBUTED)


class Imports:
    """Collects statements, each once; ``notes`` lists what can't be imported."""

    def __init__(self, *, inside: bool = False) -> None:
        self._inside = inside
        """Whether the names belong to a function, and can't clash with names of the script."""
        self._operators: Optional[Imports] = None
        """Imports and definitions of the user's operators, which a function of the script holds."""
        self._known: Dict[str, List[object]] = {}
        self._lines: Dict[str, None] = {}
        self._sources: Dict[str, None] = {}
        self._late: Dict[str, None] = {}
        self._paths: Dict[str, None] = {}
        self.notes: List[str] = []

    def lines(self) -> List[str]:
        """Return the import statements that may stand together, ``import torch`` not among them."""
        return sorted(line for line in self._lines if line != "import torch")

    def paths(self) -> List[str]:
        """Return the statements that add the folders of the user's modules to the path."""
        inside = self._operators._paths if self._operators is not None else {}
        return [f"sys.path.append({path!r})" for path in {**self._paths, **inside}]

    def late(self) -> List[str]:
        """Return imports of the user's modules, and statements that need the imports before them."""
        return list(self._late)

    def sources(self) -> str:
        """Return functions, classes and operators of the user's that can't be imported."""
        parts = list(self._sources)
        if self._operators is not None:
            body = ['"""Define the operators of the program that are used here."""', *self._operators._statements()]
            text = textwrap.indent("\n\n".join(body), "    ", lambda line: bool(line.strip()))
            parts.insert(0, f"def define_operators():\n{text}\n\n\ndefine_operators()")
        return "\n\n\n".join(parts)

    def _statements(self) -> List[str]:
        imports = "\n".join([*self.lines(), *self.late()])
        return [*([imports] if imports else []), *self._sources]

    def add(self, name: str, value: object) -> None:
        """Add what binds ``name`` to ``value`` in the script."""
        known = self._known.setdefault(name, [])
        if known and known[0] is not value and name not in _BY_NAME:
            self.notes.append(f"{name} is the name of several objects, of which this script has one")
        if known:
            return
        known.append(value)
        # In the order of preference: the definition of an operator, an import, the source of a function or class that
        # can't be imported (it is in ``__main__`` or in a function), a literal.
        operator = private_names.CUSTOM_OPERATOR.find()
        if operator is not None and isinstance(value, operator):
            self._sources.update(dict.fromkeys(self._defined(value)))
            self._sources[f"{name} = {variable_of(value)}"] = None
        elif name in _BY_NAME:
            self._lines[_BY_NAME[name]] = None
        elif name == "NoneType":
            self._late["NoneType = type(None)"] = None
        elif isinstance(value, ModuleType):
            module = value.__name__
            if module.startswith("torch.") and not _in_a_fresh_process(module):  # an attribute: torch.ops.aten
                self._late[f"{name} = {module}"] = None
                return
            self._import(module, f"import {module}" if module == name else f"import {module} as {name}")
        elif not self.from_module(name, value) and not self._from_source(name, value):
            text = self.literal(value)
            if text is None:
                self.notes.append(f"{name} is {_described(value)}, which this script can't make")
                text = "None"
            self._sources[f"{name} = {text}"] = None

    def literal(self, value: object) -> Optional[str]:
        """Return an expression for a value that has one: numbers, texts, containers of them, ``torch.float32``."""
        import torch

        if value is None or isinstance(value, (bool, int, str, bytes)):
            return repr(value)
        if isinstance(value, float):
            return repr(value) if abs(value) < float("inf") else f"float({str(value)!r})"
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return str(value)
        if isinstance(value, torch.device):
            return f"torch.{value!r}"
        if type(value) is torch.Tensor and value.numel() <= _SMALL and value.layout == torch.strided:
            return f"torch.tensor({self.literal(value.tolist())}, dtype={value.dtype})"
        if type(value) is dict:
            pairs = [(self.literal(key), self.literal(each)) for key, each in value.items()]
            whole = all(key is not None and each is not None for key, each in pairs)
            return f"{{{', '.join(f'{key}: {each}' for key, each in pairs)}}}" if whole else None
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple, torch.Size):
            inside = [self.literal(each) for each in value]
            if any(each is None for each in inside):
                return None
            text = ", ".join(str(each) for each in inside)
            return f"[{text}]" if isinstance(value, list) else f"({text}{',' * (len(inside) == 1)})"
        return None

    def define(self, text: str) -> None:
        """Add a definition, or a statement that needs the ones before it."""
        self._sources[text] = None

    def module(self, name: str) -> None:
        """Import a module of PyTorch's by its whole name."""
        self._lines[f"import {name}"] = None

    def for_operator(self, target: object) -> None:
        """Import what registers an operator: a library of the user's, or the module of a higher order operator."""
        operators = private_names.OPERATORS.holder()
        if isinstance(target, operators.HigherOrderOperator):
            self._lines[f"import {type(target).__module__}"] = None
        elif isinstance(target, (operators.OpOverload, operators.OpOverloadPacket)):
            overload = getattr(target, "overloadpacket", target)
            self.for_library(private_names.QUALIFIED_NAME.of(overload))

    def for_library(self, name: str) -> None:
        """Import what registers the operator of this qualified name (``aten::add``)."""
        namespace, _, operator = name.partition("::")
        if namespace == "prims" and torch_names.find(private_names.PRIMS.module, operator) is None:
            namespace = "inductor_prims"
        if namespace in _BUILT_IN:
            return
        if namespace in _REGISTERED_BY:
            self._lines[_REGISTERED_BY[namespace]] = None
            if namespace == "rngprims":
                self._late[f"{private_names.REGISTER_RANDOM_PRIMS.whole}()"] = None
            return
        defined = (private_names.CUSTOM_OPERATORS.find() or {}).get(name)
        if defined is not None:
            self._custom_operator(defined)
        else:
            self._by_library(namespace, name)

    def _by_library(self, namespace: str, name: str) -> None:
        """Add an operator made by ``torch.library.Library``, or in another language."""
        # Where Python code registered it: an import of that module does it again, unless the line is inside a function.
        # Without such code it is a C++ library, which an imported package or ``load_library`` has loaded.
        locations = registered_at(name)
        modules = [_module_of(location.rpartition(":")[0]) for location in locations]
        libraries = sorted(torch_names.module("torch").ops.loaded_libraries)
        known = all(module is not None and _in_a_fresh_process(module) for module in modules)
        if locations and known and all(map(runs_on_import, locations)):
            for module in dict.fromkeys(modules):
                self._import(str(module), f"import {module}")
        elif locations:
            where = ", ".join(locations)
            self.notes.append(
                f"the operator {name} has to be registered first, as {where} does: put that into the script"
            )
        elif namespace in sys.modules and _in_a_fresh_process(namespace):
            self._import(namespace, f"import {namespace}")
        elif libraries:
            for path in libraries:
                self._sources[f"torch.ops.load_library({path!r})"] = None
        else:
            self.notes.append(f"the operator {name} has to be registered first: import what does that in the script")

    def _custom_operator(self, defined: object) -> None:
        """Add an operator made by ``torch.library.custom_op``: an import of its module, or its definition."""
        function = private_names.INIT_FN.of(defined)
        if _in_a_fresh_process(function.__module__) and "<locals>" not in function.__qualname__:
            self._import(function.__module__, f"import {function.__module__}")
            return
        self._operators = self._operators or Imports(inside=True)
        self._operators.notes = self.notes
        self._operators._sources.update(dict.fromkeys(self._operators._defined(defined)))

    def _defined(self, defined: object) -> List[str]:
        """Return the statements that define an operator. What they need is added first."""
        statements = []
        try:
            for function, text in definition(defined):
                for name, value in () if function is None else needed_by(function, text):
                    if value is not defined:
                        self.add(name, value)
                    elif name != variable_of(defined):
                        statements.append(f"{name} = {variable_of(defined)}")
                statements.append(text)
        except NoSourceError as error:
            self.notes.append(
                f"the operator {private_names.QUALNAME_OF_OPERATOR.of(defined)} has to be registered first: {error}"
            )
        return statements

    def from_module(self, name: str, value: object) -> bool:
        """Add the import that binds ``name`` to a value that an importable module has; return whether one does."""
        module, path = getattr(value, "__module__", None), getattr(value, "__qualname__", name)
        if module is None or path is None or not _in_a_fresh_process(module):
            return False
        first, _, rest = path.partition(".")
        found: object = loaded_namespace(module).get(first)
        for part in rest.split(".") if rest else ():
            found = getattr(found, part, None)
        if found is not value:
            return False
        if rest:
            self._import(module, f"import {module}")
            self._late[f"{name} = {module}.{path}"] = None
        else:
            self._import(module, f"from {module} import {first}" + (f" as {name}" if name != first else ""))
        return True

    def _from_source(self, name: str, value: object) -> bool:
        own = getattr(value, "__name__", None)
        text = None if own is None else source(value)
        if text is None or (name in _IN_EVERY_SCRIPT and not self._inside):
            return False
        for needed, each in needed_by(value, text):
            self.add(needed, each)
        self._sources[text] = None
        if own != name:
            self._sources[f"{name} = {own}"] = None
        return True

    def _import(self, module: str, statement: str) -> None:
        """Import from a module; one of the user's own from a folder which need not be the script's."""
        if self.find(module):
            self._late[statement] = None
        else:
            self._lines[statement] = None

    def find(self, module: str) -> bool:
        """Make the folder of a module known, if it is one of the user's own; return whether it is."""
        path = file_of(loaded_namespace(module))
        if not path or is_library(path):
            return False
        folder = os.path.dirname(os.path.abspath(path))
        for _ in range(module.count(".") + (os.path.basename(path) == "__init__.py")):
            folder = os.path.dirname(folder)
        self._paths[folder] = None
        for other in sys.path:  # what it imports itself may be there
            if other and os.path.isdir(other) and not is_library(os.path.join(other, "x.py")):
                self._paths[os.path.abspath(other)] = None
        return True


def _in_a_fresh_process(module: str) -> bool:
    """Return whether another process finds a module of this name."""
    if module == "__main__":
        return False
    try:
        return importlib.util.find_spec(module) is not None
    except synchronous(ImportError, ValueError, AttributeError):
        return False


def _module_of(path: str) -> Optional[str]:
    """Return the name of the imported module that is this file, other than the program itself."""
    for name, namespace in loaded_namespaces():
        if name != "__main__" and file_of(namespace) == path:
            return name
    return None


def _described(value: object) -> str:
    try:
        return f"{type(value).__name__} {value!r}"[:120]
    except synchronous():
        return f"an object of class {type(value).__name__}"
