"""depyf makes ``torch.compile`` readable; for that it decompiles Python bytecode, verified.

Modules are imported when they are first used: ``import depyf`` needs no PyTorch and does not load it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, List

from depyf.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from depyf.answers.expectation import ExpectationError
    from depyf.decompiler import (
        Decompilation,
        DecompilationError,
        Decompiler,
        Hints,
        Verdict,
        decompile,
        decompile_code,
        decompile_pyc,
    )
    from depyf.dynamo.dump.bytecode_log import install, uninstall
    from depyf.dynamo.dump.pausing import debug
    from depyf.dynamo.dump.prepare import prepare_debug
    from depyf.dynamo.questions.compare.question import compare
    from depyf.dynamo.questions.expect import expect
    from depyf.dynamo.questions.extract.question import extract
    from depyf.dynamo.questions.nonfinite.question import find_nonfinite
    from depyf.dynamo.questions.probe.question import probe
    from depyf.dynamo.questions.profile.question import profile
    from depyf.dynamo.questions.shadow.question import shadow
    from depyf.dynamo.questions.trace.question import trace
    from depyf.dynamo.questions.watch import watch
    from depyf.dynamo.questions.why import why

__version__ = "1.0.0"

__all__ = [
    "Decompilation",
    "DecompilationError",
    "Decompiler",
    "ExpectationError",
    "Hints",
    "Verdict",
    "compare",
    "debug",
    "decompile",
    "decompile_code",
    "decompile_pyc",
    "expect",
    "extract",
    "find_nonfinite",
    "install",
    "prepare_debug",
    "probe",
    "profile",
    "shadow",
    "trace",
    "uninstall",
    "watch",
    "why",
]

_HOMES = {
    "Decompilation": "depyf.decompiler",
    "DecompilationError": "depyf.decompiler",
    "Decompiler": "depyf.decompiler",
    "ExpectationError": "depyf.answers.expectation",
    "Hints": "depyf.decompiler",
    "Verdict": "depyf.decompiler",
    "compare": "depyf.dynamo.questions.compare.question",
    "debug": "depyf.dynamo.dump.pausing",
    "decompile": "depyf.decompiler",
    "decompile_code": "depyf.decompiler",
    "decompile_pyc": "depyf.decompiler",
    "expect": "depyf.dynamo.questions.expect",
    "extract": "depyf.dynamo.questions.extract.question",
    "find_nonfinite": "depyf.dynamo.questions.nonfinite.question",
    "install": "depyf.dynamo.dump.bytecode_log",
    "prepare_debug": "depyf.dynamo.dump.prepare",
    "probe": "depyf.dynamo.questions.probe.question",
    "profile": "depyf.dynamo.questions.profile.question",
    "shadow": "depyf.dynamo.questions.shadow.question",
    "trace": "depyf.dynamo.questions.trace.question",
    "uninstall": "depyf.dynamo.dump.bytecode_log",
    "watch": "depyf.dynamo.questions.watch",
    "why": "depyf.dynamo.questions.why",
}


__getattr__ = lazy_names(__name__, _HOMES)


def load_ipython_extension(ipython: object) -> None:
    """Add the magics ``%%depyf`` and ``%depyf why f(x)``: what ``%load_ext depyf`` calls with IPython's shell. Raises
    ``ImportError`` without PyTorch."""
    importlib.import_module("depyf.dynamo.questions.magics").load(ipython)


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
