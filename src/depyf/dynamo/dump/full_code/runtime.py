"""The helpers of ``full_code_*.py`` besides guards: placeholders for objects that no file can contain.

Dumped files import this module by its name, so its path is public.
"""

from __future__ import annotations

from types import CellType, FunctionType
from typing import Any, Dict, Iterable, Mapping, NoReturn, Tuple

from depyf.base.asynchronous import synchronous
from depyf.dynamo.guards.live_values import LiveTable, NotLiveError


class ___placeholder:  # noqa: N801 - a name that no user's variable has
    """A placeholder for an object of the user's program; using it raises an error that names the object."""

    def __init__(self, what: str) -> None:
        self._what = what

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise NotLiveError(f"{self._what}: it exists only in the process that compiled")

    __call__ = __getitem__ = __iter__ = __len__ = __bool__ = __enter__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __mod__ = __floordiv__ = __neg__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refuse()

    def __repr__(self) -> str:
        return f"<{self._what}>"


def ___contents(cells: Iterable[CellType]) -> Tuple[object, ...]:
    """Return the contents of closure cells, a placeholder for an empty one."""
    values = []
    for cell in cells:
        try:
            values.append(cell.cell_contents)
        except synchronous(ValueError):
            values.append(___placeholder("an empty closure cell"))
    return tuple(values)


def ___call_global(live: LiveTable, name: str, *args: object) -> object:
    """Call a global of the user's module that Dynamo put there, ``name`` being its stable name."""
    scope = live.global_scope()
    real = live.names[name]
    if real not in scope:
        raise NotLiveError(f"{name} can be called only in the process that compiled, while its cache entry exists")
    function: Any = scope[real]
    return function(*args)


def ___run_bytecode(
    live: LiveTable, name: str, args: Tuple[object, ...], kwargs: Dict[str, object], closed: Mapping[str, object]
) -> object:
    """Run Dynamo's own code object of that name, for which there is no source; ``closed`` are its free variables.

    What it assigns to a free variable is lost.
    """
    code = live.code(name)
    if code is None:
        raise NotLiveError(f"{name} has no source; its bytecode can be run only in the process that compiled")
    cells = tuple(CellType(closed[variable]) for variable in code.co_freevars)
    return FunctionType(code, live.global_scope(), name, None, cells)(*args, **kwargs)


def ___bind_globals(live: LiveTable, namespace: Dict[str, object], names: Iterable[str]) -> None:
    """Replace the file's placeholders by the user's own objects, in the process that compiled."""
    scope = live.global_scope()
    for name in names:
        real = live.names[name]
        is_constant, constant = live.constant(name)
        if is_constant:
            namespace[name] = constant
        elif real in scope:
            namespace[name] = scope[real]
