"""What this PyTorch is and has: its modules and names, looked up by attribute and never by version number.

A name that a torch does not have is answered with ``None`` and reported once, in words that say what is lost.
"""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType
from typing import Any, Dict, Optional, Set

from depyf.asynchronous import synchronous
from depyf.messages import warn

_reported: Set[str] = set()

NO_TORCH = "depyf.{name} looks into torch.compile and needs PyTorch: install it with `pip install 'depyf[torch]'`"


def require_torch(name: str) -> None:
    """Raise an ``ImportError`` that says what to install when ``depyf.<name>`` is used without PyTorch."""
    try:
        importlib.import_module("torch._dynamo")
    except ImportError as error:
        raise ImportError(NO_TORCH.format(name=name)) from error


def report_once(key: str, message: str) -> None:
    """Log one warning for each ``key`` and stay silent after that."""
    if key not in _reported:
        _reported.add(key)
        warn("%s", message)


def find(module_name: str, attribute: str) -> Optional[Any]:
    """The attribute of that module as it is now, or ``None`` where this torch lacks one of them.

    It is looked up each time: two that wrap one function must find each other's wrapper, not both the original.
    """
    return getattr(_module_or_none(module_name), attribute, None)


_modules: Dict[str, Optional[ModuleType]] = {}


def _module_or_none(name: str) -> Optional[ModuleType]:
    """The module of that name, or ``None`` where this torch has none, or one that can't be imported here."""
    if name not in _modules:
        try:
            _modules[name] = importlib.import_module(name)
        except synchronous(ImportError):
            _modules[name] = _in_its_parent(name)
        except synchronous() as error:  # it may be possible later on: descriptors or memory were short, say
            report_once(
                f"importing {name}",
                f"PyTorch's {name} can't be imported here ({type(error).__name__}: {error}). Your program goes on; "
                "what depyf learns from it will be missing in the dump",
            )
            return None
    return _modules[name]


def _in_its_parent(name: str) -> Optional[ModuleType]:
    """A module of C++ that is an attribute of the one above it and can't be imported: those of Dynamo up to 2.6."""
    above, _, last = name.rpartition(".")
    found = getattr(_modules.get(above) or sys.modules.get(above), last, None)
    return found if isinstance(found, ModuleType) else None


def find_or_report(module_name: str, attribute: str, lost: str) -> Optional[Any]:
    """Like ``find``, and says once what is ``lost`` when the name is missing."""
    found = find(module_name, attribute)
    if found is None:
        report_once(f"{module_name}.{attribute}", f"this PyTorch has no {module_name}.{attribute}: {lost}")
    return found


def module(name: str) -> Any:
    """The module of that name; raises ``ImportError`` where this torch has none."""
    return importlib.import_module(name)


def distributed_rank() -> Optional[int]:
    """The rank of this process among those of a distributed program; ``None`` where there is only one."""
    distributed: Any = sys.modules.get("torch.distributed")  # if it is not imported, nobody has initialized it
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()) if distributed.get_world_size() > 1 else None
    rank, size = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")  # as torchrun sets them
    return int(rank) if rank.isdigit() and size.isdigit() and int(size) > 1 else None


def torch_version() -> str:
    """What this torch calls its version."""
    return str(getattr(sys.modules.get("torch"), "__version__", ""))
