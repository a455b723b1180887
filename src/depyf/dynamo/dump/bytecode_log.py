"""``install``: decompiled source in torch's bytecode log (``TORCH_LOGS="+bytecode"``)."""

from __future__ import annotations

import logging
from types import CodeType
from typing import Optional

from depyf.base.locks import Lock
from depyf.decompiler import DecompilationError, decompile_code
from depyf.dynamo.entries.hints import hints_for
from depyf.dynamo.hooks import frame_evaluation, frames, private_names, torch_names
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.hooks.torch_types import Removable
from depyf.dynamo.store.names import file_stem

_lock = Lock()
_handle: Optional[Removable] = None


def install() -> None:
    """Add the decompiled source of transformed code to the bytecode log of PyTorch (``TORCH_LOGS="+bytecode"``).

    It applies to what is compiled from now on. What runs does not change. A second call does nothing. Raises
    ``ImportError`` without PyTorch.
    """
    global _handle
    torch_names.require_torch("install")
    with _lock:
        if _handle is None:
            _handle = frame_evaluation.register_bytecode_hook(_log_source)


def uninstall() -> None:
    """Undo ``install``. Does nothing when it was not called."""
    global _handle
    with _lock:
        if _handle is not None:
            _handle.remove()
            _handle = None


@safely("adding source to the bytecode log")
def _log_source(original: CodeType, transformed: CodeType) -> Optional[CodeType]:
    log = private_names.BYTECODE_LOG.find_or_report()
    if log is not None and log.isEnabledFor(logging.DEBUG):
        place = f"{original.co_name} ({original.co_filename}:{original.co_firstlineno})"
        log.debug("%s", f"DECOMPILED {place}\n{_source(transformed, original)}")
    return None


def _source(code: CodeType, original: CodeType) -> str:
    name = file_stem(original.co_name)
    hints = hints_for(code, original, {}, frames.frame_globals(original), {})
    try:
        decompilation = decompile_code(code.replace(co_name=name), name=name, hints=hints)
    except DecompilationError as error:
        return f"# no source: {error}"
    return f"{decompilation.source.rstrip()}\n# {decompilation.verdict.value} {decompilation.reason}".rstrip()
