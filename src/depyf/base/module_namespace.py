"""Read the dictionary of whatever ``sys.modules`` contains, without running code of it."""

from __future__ import annotations

from types import GetSetDescriptorType, ModuleType
from typing import Any, Dict

from depyf.base.own_builtins import keep_builtins

keep_builtins(globals())

_MODULES_OWN: Any = vars(ModuleType)["__dict__"]
_CLASSES_OWN = type.__dict__["__dict__"]
_ORDER = type.__dict__["__mro__"]


def namespace_of(module: object) -> Dict[str, object]:
    """Return the dictionary of a module, or of the object that stands for it; empty without a plain dictionary.

    Neither attributes of the object nor of its class or metaclass are looked up: each may be computed by a program's
    code. Python's own descriptors read them.
    """
    kind = type(module)
    if kind is ModuleType:  # nearly all
        return module.__dict__
    if issubclass(kind, ModuleType):  # by the order of the classes alone, whatever ``__class__`` says
        found: object = _MODULES_OWN.__get__(module)
    else:
        namespaces = (_CLASSES_OWN.__get__(each) for each in _ORDER.__get__(kind))
        own = next((namespace["__dict__"] for namespace in namespaces if "__dict__" in namespace), None)
        if type(own) is not GetSetDescriptorType:  # a property, or no dictionary at all
            return {}
        found = own.__get__(module)
    return found if type(found) is dict else {}
