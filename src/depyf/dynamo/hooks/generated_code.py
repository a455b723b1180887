"""The modules that Inductor and AOTAutograd generate, and how they are loaded."""

from __future__ import annotations

from typing import Iterator, List, Optional, Tuple

from depyf.dynamo.hooks import private_names, torch_names


def pycode_cache() -> Optional[type]:
    """Inductor's loader of generated Python modules, or ``None`` where there is no Inductor."""
    found: Optional[type] = private_names.PY_CODE_CACHE.find_or_report()
    return found


def wrapper_makers() -> Iterator[torch_names.PrivateName]:
    """What turns AOTAutograd's generated wrappers into functions; older versions of PyTorch write these by hand."""
    names = (private_names.EXEC_WRAPPER, private_names.EXEC_SUBCLASS_WRAPPER)
    return (name for name in names if name.find() is not None)


def compiles_elsewhere() -> bool:
    """Whether Inductor sends graphs to another process, or takes them through the form in which it would."""
    mode = private_names.COMPILE_MODE.find()
    return getattr(mode, "name", "NORMAL") != "NORMAL"


def lines_of_generated(path: str) -> List[Tuple[int, str]]:
    """The lines of an Inductor module from which the code comes from each user stack."""
    known = (private_names.LINE_MAPS.find() or {}).get(path) or ()
    if len(known) != 2:
        return []
    return [(int(line), stack) for line, stack in zip(*known) if isinstance(stack, str)]
