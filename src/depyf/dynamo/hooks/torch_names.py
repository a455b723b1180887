"""Look up the modules and names of the installed PyTorch, by attribute and never by version number. A missing name
gives ``None`` and is reported once, with what is lost.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType
from typing import Any, Callable, Dict, Optional, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.messages import warn
from depyf.base.own_builtins import keep_builtins
from depyf.base.quick_dataclass import dataclass, replace
from depyf.dynamo.hooks.patching import Undo, replace_attribute

keep_builtins(globals())

_reported: Set[str] = set()

NO_TORCH = "depyf.{name} looks into torch.compile and needs PyTorch: install it with `pip install torch`"


def require_torch(name: str) -> None:
    """Raise an ``ImportError`` that names what to install when ``depyf.<name>`` is used without PyTorch."""
    try:
        importlib.import_module("torch._dynamo")
    except ImportError as error:
        raise ImportError(NO_TORCH.format(name=name)) from error


def report_once(key: str, message: str) -> None:
    """Log one warning for each ``key``."""
    if key not in _reported:
        _reported.add(key)
        warn("%s", message)


def find(module_name: str, attribute: str) -> Optional[Any]:
    """Return the current attribute of that module, or ``None`` if either is missing. It is looked up each time: two
    hooks that wrap one function must find each other's wrapper, not both the original.
    """
    return getattr(module_or_none(module_name), attribute, None)


_modules: Dict[str, Optional[ModuleType]] = {}


def module_or_none(name: str) -> Optional[ModuleType]:
    """Return the module of that name, or ``None`` if this torch has none or it can't be imported."""
    if name not in _modules:
        try:
            _modules[name] = importlib.import_module(name)
        except synchronous(ImportError):
            _modules[name] = _in_its_parent(name)
        except synchronous() as error:  # it may be possible later on: descriptors or memory were short, say
            report_once(
                f"importing {name}",
                f"PyTorch's {name} can't be imported here ({type(error).__name__}: {error}). Your program continues; "
                "what depyf learns from it will be missing in the dump",
            )
            return None
    return _modules[name]


def _in_its_parent(name: str) -> Optional[ModuleType]:
    """Return a C++ module that is an attribute of its parent and can't be imported: Dynamo's up to 2.6."""
    above, _, last = name.rpartition(".")
    found = getattr(_modules.get(above) or sys.modules.get(above), last, None)
    return found if isinstance(found, ModuleType) else None


def module(name: str) -> Any:
    """Return the module of that name; raises ``ImportError`` where this torch has none."""
    return importlib.import_module(name)


def distributed_rank() -> Optional[int]:
    """Return the rank of this process in a distributed program; ``None`` if there is only one process."""
    distributed: Any = sys.modules.get("torch.distributed")  # if it is not imported, it is not initialized
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()) if distributed.get_world_size() > 1 else None
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")  # as torchrun sets them
    return int(rank) if rank.isdecimal() and size.isdecimal() and int(size) > 1 else None


def torch_version() -> str:
    """Return torch's version string."""
    return str(getattr(sys.modules.get("torch"), "__version__", ""))


FIRST = "2.2"
"""The first release that depyf supports."""


@dataclass(frozen=True)
class PrivateName:
    """A name in a module of PyTorch: of the module, of a class in it (``Class.method``), or ``in_text`` only.

    Attributes that are set on objects, and local variables of functions, are ``in_text``: the module's source has the
    word. Those of objects that are written in C++ are looked up on their class.
    """

    module: str
    attribute: str
    lost: str
    since: str = FIRST
    until: str = ""
    in_text: bool = False

    @property
    def name(self) -> str:
        """The last part of the name: what an attribute or variable is called."""
        return self.attribute.rpartition(".")[2]

    @property
    def whole(self) -> str:
        """The dotted name, from ``torch`` on."""
        return f"{self.module}.{self.attribute}".rstrip(".")

    def find(self) -> Any:
        """Return the current object of that name, or None if this torch lacks it."""
        found: object = _modules.get(self.module) or module_or_none(self.module)
        if "." not in self.attribute:
            return getattr(found, self.attribute, None)
        for part in self.attribute.split("."):
            found = getattr(found, part, None)
        return found

    def owner(self) -> Any:
        """Return the class or other object of the module that has the attribute, or the module, ``None`` if it is
        missing."""
        above, _, _ = self.attribute.rpartition(".")
        return replace(self, attribute=above).find() if above else module_or_none(self.module)

    def find_or_report(self) -> Any:
        """Do what ``find`` does, and report once what is lost if the name is missing."""
        found = self.find()
        if found is None:
            report_once(self.whole, f"this PyTorch has no {self.whole}: {self.lost}")
        return found

    def require(self) -> Any:
        """Return the current object of that name. Raises ``ImportError`` or ``AttributeError`` if this torch lacks
        it.
        """
        found = self.find()
        if found is None:
            raise AttributeError(f"this PyTorch has no {self.whole}: {self.lost}")
        return found

    def holder(self) -> ModuleType:
        """Return the module that the name is in. Raises ``ImportError`` if this torch has none."""
        found: ModuleType = module(self.module)
        return found

    def replace(self, replacement: Callable[..., object]) -> Undo:
        """Replace the object; return the undo function."""
        return replace_attribute(self.holder(), self.name, replacement)

    def of(self, owner: object, default: object = None) -> Any:
        """Return the attribute of that name of an object."""
        return getattr(owner, self.name, default)

    def is_on(self, owner: object) -> bool:
        """Return whether an object has an attribute of that name."""
        return hasattr(owner, self.name)

    def in_frame(self, frame: FrameType) -> object:
        """Return the local variable of that name if the frame is of a function of the module, else ``None``."""
        return frame.f_locals.get(self.name) if frame.f_globals.get("__name__") == self.module else None

    def resolves(self) -> bool:
        """Return whether the installed torch has the name."""
        if self.in_text:
            spec = _spec_of(self.module)
            if spec is None or spec.origin is None:
                return False
            with open(spec.origin, encoding="utf-8") as file:
                return re.search(rf"\b{re.escape(self.name)}\b", file.read()) is not None
        if not self.attribute:
            return _spec_of(self.module) is not None
        owner = self.owner()
        return owner is not None and self.is_on(owner)

    def is_expected(self, version: str) -> bool:
        """Return whether a torch of that version should have it."""
        return release_of(self.since) <= release_of(version) and (
            not self.until or release_of(version)[:2] <= release_of(self.until)
        )


def _spec_of(module: str) -> Optional[ModuleSpec]:
    try:
        return importlib.util.find_spec(module)
    except ImportError:  # its package is missing
        return None


def release_of(version: str) -> Tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:2])


def first_row_of(*names: PrivateName) -> Optional[PrivateName]:
    """Return the first row whose name this torch has, for replacing it; None if it has none."""
    return next((name for name in names if name.find() is not None), None)


def first_of(*names: PrivateName) -> Any:
    """Return the object of the first name that this torch has; None if it has none."""
    name = first_row_of(*names)
    return None if name is None else name.find()
