"""Read the code of a module from a ``.pyc`` file that may not say which Python wrote it.

A module of its own: the reader of files knows no stage, and whether bytecode is well-formed is known after lowering.
"""

from __future__ import annotations

import inspect
from typing import Optional

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import replace
from depyf.decompiler.bytecode.code import PortableCode, nested_codes
from depyf.decompiler.bytecode.opcode_table import Version
from depyf.decompiler.bytecode.pyc import Pyc, PycError, UnknownVersionError, parse_pyc
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.normal.lowering import lower

MODULE = "<module>"


def module_in(data: bytes, name: str, python: Optional[str] = None) -> Pyc:
    """Return the contents of a ``.pyc`` file. ``python``: the Python that wrote it, a version such as ``3.8`` or the
    path of an interpreter. Without it, the version of a file that does not say it is the only one in which the whole
    bytecode is well-formed. Raises ``PycError``, also where ``python`` is another version than the file says."""
    wanted = _version_of(python)
    try:
        pyc = parse_pyc(data, name, wanted)
        if wanted not in (None, pyc.version):
            theirs, ours = (".".join(map(str, each)) for each in (pyc.version, wanted))
            raise PycError(f"{name}: compiled by CPython {theirs}, not by CPython {ours} (--python)")
        return _as_module(pyc)
    except UnknownVersionError as error:
        fitting = [code for code in error.fitting if _is_well_formed(code)]
        if len(fitting) == 1:
            code = fitting[0]
            named = "{}.{}".format(*code.version)
            remark = f"{error.why}; read as CPython {named}, the only one in which its bytecode is well-formed"
            return _as_module(Pyc(code.version, code, None, None, None, False, (remark,)))
        raise UnknownVersionError(name, error.why, tuple(fitting) or error.fitting) from None


def _as_module(pyc: Pyc) -> Pyc:
    """Return ``pyc`` with the name of a module for code that is no function: only tracebacks show another name."""
    name = pyc.code.co_name
    if name == MODULE or pyc.code.co_flags & inspect.CO_OPTIMIZED:
        return pyc
    code = pyc.code.replace(co_name=MODULE, co_qualname=MODULE)
    return replace(pyc, code=code, remarks=(*pyc.remarks, f"its code is called {name!r}, and was read as {MODULE}"))


def _version_of(python: Optional[str]) -> Optional[Version]:
    if python is None:
        return None
    from depyf.decompiler.bytecode.other_pythons import NONE, interpreter_at, version_named

    named = version_named(python)
    if named is not None or python == NONE:
        return named
    try:
        return interpreter_at(python).version
    except synchronous(DecompilationError) as error:
        raise PycError(str(error)) from error


def _is_well_formed(code: PortableCode) -> bool:
    try:
        for each in nested_codes(code):
            lower(each)
    except synchronous(ValueError, NotImplementedError):
        return False
    return True
