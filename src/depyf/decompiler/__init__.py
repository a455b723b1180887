"""The decompiler: CPython bytecode to source that is proved to behave like it. It needs only the standard library.

This package is its public face. The rest of depyf imports these names and the names of ``depyf.decompiler.syntax``, and
nothing from the modules inside (``tests/test_layers.py``). Imports only ``base/``, and never ``torch``. The stages are
folders: ``bytecode``, ``normal``, ``flow``, ``lift``, ``structure``, ``source``, ``verify``; ``pipeline`` runs them.
Start reading at ``api.py``, then at ``pipeline/decompiling.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, List

from depyf.base.lazy_names import lazy_names

if TYPE_CHECKING:
    from depyf.decompiler.api import Decompiler, code_of, decompile, decompile_pyc
    from depyf.decompiler.bytecode.code import flags_like, is_of_another_version
    from depyf.decompiler.bytecode.opcode_table import running_version
    from depyf.decompiler.bytecode.pyc import PycError, is_pyc, parse_pyc
    from depyf.decompiler.certificates.check import check_certificate
    from depyf.decompiler.certificates.machine import CertificateError
    from depyf.decompiler.code_facts import check_python, instruction_count, is_compiler_made, loaded_constants
    from depyf.decompiler.dynamo_code import RESUME_PREFIX, installed_globals, line_resumed_at, loaded_globals
    from depyf.decompiler.errors import DecompilationError
    from depyf.decompiler.hints import Hints
    from depyf.decompiler.normal.disassembly import disassembly
    from depyf.decompiler.pipeline.decompiling import decompile_code
    from depyf.decompiler.pipeline.reading import module_in
    from depyf.decompiler.result import Decompilation, Verdict
    from depyf.decompiler.source.line_map import LineMap
    from depyf.decompiler.verify.certificate import write_certificate
    from depyf.decompiler.verify.comparison import Finding
    from depyf.decompiler.verify.edited import EditedComparison, compare_edited

__all__ = [
    "RESUME_PREFIX",
    "CertificateError",
    "Decompilation",
    "DecompilationError",
    "Decompiler",
    "EditedComparison",
    "Finding",
    "Hints",
    "LineMap",
    "PycError",
    "Verdict",
    "check_certificate",
    "check_python",
    "code_of",
    "compare_edited",
    "decompile",
    "decompile_code",
    "decompile_pyc",
    "disassembly",
    "flags_like",
    "installed_globals",
    "instruction_count",
    "is_compiler_made",
    "is_of_another_version",
    "is_pyc",
    "line_resumed_at",
    "loaded_constants",
    "loaded_globals",
    "module_in",
    "parse_pyc",
    "running_version",
    "write_certificate",
]

_HOMES = {
    "RESUME_PREFIX": "depyf.decompiler.dynamo_code",
    "CertificateError": "depyf.decompiler.certificates.machine",
    "Decompilation": "depyf.decompiler.result",
    "DecompilationError": "depyf.decompiler.errors",
    "Decompiler": "depyf.decompiler.api",
    "EditedComparison": "depyf.decompiler.verify.edited",
    "Finding": "depyf.decompiler.verify.comparison",
    "Hints": "depyf.decompiler.hints",
    "LineMap": "depyf.decompiler.source.line_map",
    "PycError": "depyf.decompiler.bytecode.pyc",
    "Verdict": "depyf.decompiler.result",
    "check_certificate": "depyf.decompiler.certificates.check",
    "check_python": "depyf.decompiler.code_facts",
    "code_of": "depyf.decompiler.api",
    "compare_edited": "depyf.decompiler.verify.edited",
    "decompile": "depyf.decompiler.api",
    "decompile_code": "depyf.decompiler.pipeline.decompiling",
    "decompile_pyc": "depyf.decompiler.api",
    "disassembly": "depyf.decompiler.normal.disassembly",
    "flags_like": "depyf.decompiler.bytecode.code",
    "installed_globals": "depyf.decompiler.dynamo_code",
    "instruction_count": "depyf.decompiler.code_facts",
    "is_compiler_made": "depyf.decompiler.code_facts",
    "is_of_another_version": "depyf.decompiler.bytecode.code",
    "is_pyc": "depyf.decompiler.bytecode.pyc",
    "line_resumed_at": "depyf.decompiler.dynamo_code",
    "loaded_constants": "depyf.decompiler.code_facts",
    "loaded_globals": "depyf.decompiler.dynamo_code",
    "module_in": "depyf.decompiler.pipeline.reading",
    "parse_pyc": "depyf.decompiler.bytecode.pyc",
    "running_version": "depyf.decompiler.bytecode.opcode_table",
    "write_certificate": "depyf.decompiler.verify.certificate",
}

__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
