"""What the code of a graph needs from elsewhere, as the import statements (or the source) that a script gets it by."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import textwrap
from types import ModuleType
from typing import Any, Dict, List, Optional

from depyf.dynamo import compat
from depyf.report.sources import is_library

_BY_NAME = {
    "device": "from torch import device",
    "inf": "from torch import inf",
    "nan": "from torch import nan",
}

_REGISTERED_BY = {
    "rngprims": "import torch._prims.rng_prims",
    "inductor": "import torch._inductor.inductor_prims",
    "inductor_prims": "import torch._inductor.inductor_prims",
    "quantized_decomposed": "import torch.ao.quantization.fx._decomposed",
    "_c10d_functional": "import torch.distributed._functional_collectives",
}
"""What registers the operators of PyTorch's own that ``import torch`` does not."""

_BUILT_IN = frozenset({"aten", "prims", "prim", "higher_order", "profiler", "_inductor_test", "mkldnn", "quantized"})


class Imports:
    """Collects statements, each once; ``notes`` says what there is no way to import."""

    def __init__(self) -> None:
        self._lines: Dict[str, None] = {}
        self._sources: Dict[str, None] = {}
        self._late: Dict[str, None] = {}
        self._paths: Dict[str, None] = {}
        self.notes: List[str] = []

    def lines(self) -> List[str]:
        """The import statements that may stand together, ``import torch`` not among them."""
        return sorted(line for line in self._lines if line != "import torch")

    def paths(self) -> List[str]:
        """What makes the folders of the user's modules known."""
        return [f"sys.path.append({path!r})" for path in self._paths]

    def late(self) -> List[str]:
        """Imports of the user's modules, and statements that need the imports before them."""
        return list(self._late)

    def sources(self) -> str:
        """Functions and classes of the user's that can't be imported."""
        return "\n\n\n".join(self._sources)

    def add(self, name: str, value: Any) -> None:
        """Make ``name`` stand for ``value`` in the script."""
        if name in _BY_NAME:
            self._lines[_BY_NAME[name]] = None
        elif name == "NoneType":
            self._late["NoneType = type(None)"] = None
        elif isinstance(value, ModuleType):
            module = value.__name__
            self._lines[f"import {module}" if module == name else f"import {module} as {name}"] = None
        elif not self._from_module(name, value) and not self._from_source(name, value):
            text = self.literal(value)
            if text is None:
                self.notes.append(f"{name} stands for {_described(value)}, which this script has no way to make")
                text = "None"
            self._sources[f"{name} = {text}"] = None

    def literal(self, value: Any) -> Optional[str]:
        """An expression for a value that has one: numbers, texts, containers of them, ``torch.float32``."""
        torch = compat.module("torch")
        if value is None or isinstance(value, (bool, int, str, bytes)):
            return repr(value)
        if isinstance(value, float):
            return repr(value) if abs(value) < float("inf") else f"float({str(value)!r})"
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return str(value)
        if isinstance(value, torch.device):
            return f"torch.{value!r}"
        if isinstance(value, (list, tuple)) and type(value) in (list, tuple, torch.Size):
            inside = [self.literal(each) for each in value]
            if any(each is None for each in inside):
                return None
            text = ", ".join(str(each) for each in inside)
            return f"[{text}]" if isinstance(value, list) else f"({text}{',' * (len(inside) == 1)})"
        return None

    def for_operator(self, target: Any) -> None:
        """Import what registers an operator: a library of the user's, or the module of a higher order operator."""
        operators = compat.module("torch._ops")
        if isinstance(target, operators.HigherOrderOperator):
            self._lines[f"import {type(target).__module__}"] = None
        elif isinstance(target, (operators.OpOverload, operators.OpOverloadPacket)):
            overload = getattr(target, "overloadpacket", target)
            self.for_library(overload._qualified_op_name)

    def for_library(self, name: str) -> None:
        """Import what registers the operator of this qualified name (``aten::add``)."""
        namespace, _, operator = name.partition("::")
        if namespace == "prims" and compat.find("torch._prims", operator) is None:
            namespace = "inductor_prims"
        if namespace in _BUILT_IN:
            return
        if namespace in _REGISTERED_BY:
            self._lines[_REGISTERED_BY[namespace]] = None
            if namespace == "rngprims":
                self._late["torch._prims.rng_prims.register_rng_prims()"] = None
            return
        defined = (compat.find("torch._library.custom_ops", "OPDEFS") or {}).get(name)
        if defined is not None:
            self._custom_operator(name, defined)
        elif _in_a_fresh_process(namespace):
            self._lines[f"import {namespace}"] = None
        else:
            libraries = sorted(compat.module("torch").ops.loaded_libraries)
            for path in libraries:
                self._sources[f"torch.ops.load_library({path!r})"] = None
            if not libraries:
                self.notes.append(f"the operator {name} has to be registered first: import here what does it")

    def _custom_operator(self, name: str, defined: Any) -> None:
        """An operator made by ``torch.library.custom_op``: its module is imported, or its source is put in."""
        module = defined._init_fn.__module__
        if _in_a_fresh_process(module):
            self._import(module, f"import {module}")
            return
        source = _source(defined._init_fn)
        if source is None:
            self.notes.append(f"the operator {name} has to be registered first: its source was not found")
            return
        self._sources[source] = None
        fake = getattr(defined, "_abstract_fn", None)
        text = None if fake is None else _source(fake)
        if text is not None:
            self._sources[text] = None

    def _from_module(self, name: str, value: Any) -> bool:
        module, path = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if module is None or path is None or not _in_a_fresh_process(module):
            return False
        found: Any = sys.modules.get(module)
        for part in path.split("."):
            found = getattr(found, part, None)
        if found is not value:
            return False
        first, _, rest = path.partition(".")
        if rest:
            self._import(module, f"import {module}")
            self._late[f"{name} = {module}.{path}"] = None
        else:
            self._import(module, f"from {module} import {first}" + (f" as {name}" if name != first else ""))
        return True

    def _from_source(self, name: str, value: Any) -> bool:
        own = getattr(value, "__name__", None)
        source = None if own is None or getattr(value, "__closure__", None) else _source(value)
        if source is None:
            return False
        self._sources[source] = None
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
        """Make the folder of a module known, if it is one of the user's own; answers whether it is."""
        path = getattr(sys.modules.get(module), "__file__", None)
        if not path or is_library(path):
            return False
        folder = os.path.dirname(os.path.abspath(path))
        for _ in range(module.count(".") + (os.path.basename(path) == "__init__.py")):
            folder = os.path.dirname(folder)
        self._paths[folder] = None
        return True


def _in_a_fresh_process(module: str) -> bool:
    """Whether another process finds a module of this name."""
    if module == "__main__":
        return False
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _source(value: Any) -> Optional[str]:
    try:
        return textwrap.dedent(inspect.getsource(value)).rstrip()
    except (OSError, TypeError):
        return None


def _described(value: Any) -> str:
    try:
        return f"{type(value).__name__} {value!r}"[:120]
    except Exception:
        return f"an object of class {type(value).__name__}"
