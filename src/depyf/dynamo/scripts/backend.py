"""The backend's name in a script, or why a script can't have it: it may exist only in the program that ran."""

from __future__ import annotations

import functools
from importlib import metadata
from typing import Any, Iterator, List, Optional, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import backends
from depyf.dynamo.hooks.loaded_modules import loaded_namespaces

NO_BACKEND = "none"
"""What the scripts take for a run without a compiler."""


@dataclass(frozen=True)
class BackendInScript:
    """``name`` is one that PyTorch has in each process, ``module:function``, or ``none``: then ``gap`` is the
    reason."""

    name: str
    gap: str = ""


def backend_in_script(backend: object, name: str) -> BackendInScript:
    """Return what a script calls ``backend``, which PyTorch calls ``name`` here."""
    registered = backends.registered_backend(name) if name in backends.names_of_backends() else None
    if type(backend).__module__ == "torch" and getattr(backend, "compiler_name", None) == name:
        backend = None  # what torch.compile wraps around a backend that was given by its name
    if (
        registered is not None
        and backend in (None, registered)
        and (name in _registered_by_packages() or _is_torch_backend(registered))
    ):
        return BackendInScript(name)
    wanted = registered if backend is None else backend
    found = None if wanted is None else _home_of(wanted)
    if found is not None:
        return BackendInScript(":".join(found))
    if wanted is None:
        why = "PyTorch does not know it by this name"
    elif getattr(wanted, "__module__", None) == "__main__" or "__main__" in _modules_of(wanted):
        why = "it is defined in the program that ran (__main__); in a module of its own it can be imported"
    else:
        why = "no module has it under a name"
    return BackendInScript(
        NO_BACKEND, f"the backend {name}: {why} (--backend MODULE:FUNCTION gives the script another)"
    )


def _home_of(backend: object) -> Optional[Tuple[str, str]]:
    """Return the module and the name by which another process can import the backend."""
    own = getattr(backend, "__module__", None), getattr(backend, "__name__", None)
    found: List[Tuple[str, str]] = []
    for module, namespace in loaded_namespaces():
        if module == "__main__" or namespace.get("__spec__") is None:
            continue
        for name, value in list(namespace.items()):
            if value is backend and isinstance(name, str) and name.isidentifier():
                found.append((module, name))
    return own if own in found else next(iter(found), None)


@functools.lru_cache(maxsize=None)
def _registered_by_packages() -> Tuple[str, ...]:
    """Return the names of backends that an installed package registers in each process."""
    found: Any = metadata.entry_points()
    group = "torch_dynamo_backends"
    chosen = found.select(group=group) if hasattr(found, "select") else found.get(group, ())
    return tuple(each.name for each in chosen)


def _is_torch_backend(backend: object) -> bool:
    """Return whether it is PyTorch's own, and not only built by PyTorch from compilers of the program."""
    return all(module.partition(".")[0] in ("torch", "functorch", "builtins", "") for module in _modules_of(backend))


def _modules_of(backend: object) -> List[str]:
    return [str(getattr(part, "__module__", None) or type(part).__module__) for part in _parts(backend, 3)]


def _parts(value: object, depth: int) -> Iterator[object]:
    """Yield a backend and the callables inside it: in a partial, and the compilers that AOTAutograd receives."""
    yield value
    inside = [getattr(value, "func", None), *dict(getattr(value, "kwargs", None) or {}).values()]
    inside += [*dict(getattr(value, "keywords", None) or {}).values(), *tuple(getattr(value, "args", None) or ())]
    if depth:
        for part in inside:
            if callable(part):
                yield from _parts(part, depth - 1)
