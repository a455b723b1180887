"""The modules that Inductor and AOTAutograd generate, and how they are loaded."""

from __future__ import annotations

import sys
from typing import Iterator, List, Optional, Tuple

from depyf.dynamo.hooks import private_names, torch_names


def pycode_cache() -> Optional[type]:
    """Return Inductor's loader of generated Python modules, ``None`` without Inductor."""
    found: Optional[type] = private_names.PY_CODE_CACHE.find_or_report()
    return found


def wrapper_makers() -> Iterator[torch_names.PrivateName]:
    """Return the names of what makes functions of AOTAutograd's generated wrappers; older versions generate none."""
    names = (private_names.EXEC_WRAPPER, private_names.EXEC_SUBCLASS_WRAPPER)
    return (name for name in names if name.find() is not None)


def compiles_elsewhere() -> bool:
    """Return whether Inductor sends graphs to another process, or serializes them as for one."""
    mode = private_names.COMPILE_MODE.find()
    return getattr(mode, "name", "NORMAL") != "NORMAL"


def kernel_builders() -> List[int]:
    """Return the threads in which Inductor has kernels built. They wait for more as long as the process runs."""
    if private_names.KERNEL_POOL.module not in sys.modules:
        return []
    pool = private_names.KERNEL_POOL.find()
    made = getattr(pool, "cache_info", None)
    if pool is None or made is None or not made().currsize:  # a call would make one
        return []
    return [each.ident for each in list(getattr(pool(), "_threads", ()))]


def lines_of_generated(path: str) -> List[Tuple[int, str]]:
    """Return the lines of an Inductor module from which the code comes from each user stack."""
    known = (private_names.LINE_MAPS.find() or {}).get(path) or ()
    if len(known) != 2:
        return []
    return [(int(line), stack) for line, stack in zip(*known) if isinstance(stack, str)]
