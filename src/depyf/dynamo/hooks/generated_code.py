"""The modules that Inductor and AOTAutograd generate, and how they are loaded."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any, Iterator, List, Optional, Tuple

from depyf.dynamo.hooks.torch_names import find, find_or_report


def pycode_cache() -> Optional[Any]:
    """Inductor's loader of generated Python modules, or ``None`` where there is no Inductor."""
    return find_or_report("torch._inductor.codecache", "PyCodeCache", "Inductor's kernels can't be dumped")


def aot_codegen_modules() -> Iterator[ModuleType]:
    """The modules whose ``_compile_and_exec_source`` turns AOTAutograd's generated wrappers into functions.

    Older versions of PyTorch write these wrappers by hand and have none.
    """
    for name in ("codegen", "subclass_codegen"):
        try:
            module = importlib.import_module(f"torch._functorch._aot_autograd.{name}")
        except ImportError:
            continue
        if hasattr(module, "_compile_and_exec_source"):
            yield module


def compiles_elsewhere() -> bool:
    """Whether Inductor sends graphs to another process, or takes them through the form in which it would."""
    mode = find("torch._inductor.compile_fx", "fx_compile_mode")
    return getattr(mode, "name", "NORMAL") != "NORMAL"


def lines_of_generated(path: str) -> List[Tuple[int, str]]:
    """From which line of a module that Inductor generated on the code comes from which stack of the user."""
    known = getattr(find("torch._inductor.codecache", "PyCodeCache"), "linemaps", {}).get(path) or ()
    if len(known) != 2:
        return []
    return [(int(line), stack) for line, stack in zip(*known) if isinstance(stack, str)]
