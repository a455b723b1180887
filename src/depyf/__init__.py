"""depyf opens up ``torch.compile``, and decompiles Python bytecode on the way.

Nothing is imported before it is used: ``import depyf`` needs no PyTorch and does not load it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from depyf.decompiler import DecompilationError, Decompiler, decompile, decompile_code, decompile_pyc
    from depyf.dynamo.bytecode_log import install, uninstall
    from depyf.dynamo.numerics.compare import compare
    from depyf.dynamo.numerics.extract import extract
    from depyf.dynamo.numerics.nonfinite import find_nonfinite
    from depyf.dynamo.numerics.probe import probe
    from depyf.dynamo.pausing import debug
    from depyf.dynamo.prepare import prepare_debug
    from depyf.dynamo.run_trace import trace
    from depyf.dynamo.watch import watch
    from depyf.dynamo.why import why
    from depyf.result import Decompilation, Hints, Verdict

__version__ = "1.0.0.dev0"

__all__ = [
    "Decompilation",
    "DecompilationError",
    "Decompiler",
    "Hints",
    "Verdict",
    "compare",
    "debug",
    "decompile",
    "decompile_code",
    "decompile_pyc",
    "extract",
    "find_nonfinite",
    "install",
    "prepare_debug",
    "probe",
    "trace",
    "uninstall",
    "watch",
    "why",
]

_HOMES = {
    "Decompilation": "depyf.result",
    "DecompilationError": "depyf.result",
    "Decompiler": "depyf.decompiler",
    "Hints": "depyf.result",
    "Verdict": "depyf.result",
    "compare": "depyf.dynamo.numerics.compare",
    "debug": "depyf.dynamo.pausing",
    "decompile": "depyf.decompiler",
    "decompile_code": "depyf.decompiler",
    "decompile_pyc": "depyf.decompiler",
    "extract": "depyf.dynamo.numerics.extract",
    "find_nonfinite": "depyf.dynamo.numerics.nonfinite",
    "install": "depyf.dynamo.bytecode_log",
    "prepare_debug": "depyf.dynamo.prepare",
    "probe": "depyf.dynamo.numerics.probe",
    "trace": "depyf.dynamo.run_trace",
    "uninstall": "depyf.dynamo.bytecode_log",
    "watch": "depyf.dynamo.watch",
    "why": "depyf.dynamo.why",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
