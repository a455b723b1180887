"""Who compiles the text of a decompilation again, where the code is of another Python than the running one.

A module of its own: the pipeline tries one compiler after the other, and no stage knows why.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Callable, List, Optional

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import dataclass
from depyf.decompiler.bytecode.code import Code, is_of_another_version, version_of
from depyf.decompiler.bytecode.opcode_table import running_version
from depyf.decompiler.errors import DecompilationError
from depyf.decompiler.result import Decompilation, Verdict

if TYPE_CHECKING:
    from depyf.decompiler.bytecode.other_pythons import Interpreter


@dataclass(frozen=True)
class Compiler:
    """The running Python, or an ``interpreter`` of the Python of the code. ``absent``: why neither can compile the
    text, which is then not compared."""

    interpreter: Optional[Interpreter] = None
    absent: str = ""


RUNNING = Compiler()


def with_compilers(code: Code, python: Optional[str], decompiled: Callable[[Compiler], Decompilation]) -> Decompilation:
    """Return the first proved result of ``decompiled``, else the first one; raise its error if all fail.

    Code of the running Python: that compiles the text. Code of another Python: an interpreter of that one, which
    ``python`` or PATH names; then the running one, if it is newer. A proof with the interpreter needs no rule about
    what compilers do differently. Without any compiler the text is unverified.
    """
    if not is_of_another_version(code) and python is None:
        return decompiled(RUNNING)
    found: List[Decompilation] = []
    failure: Optional[Exception] = None
    for compiler in _compilers(code, python):
        try:
            answer = decompiled(compiler)
        except synchronous(ValueError, NotImplementedError, DecompilationError) as error:
            failure = failure or error
            continue
        if answer.verdict.code_proved:
            return answer
        found.append(answer)
    if found:
        return _with_advice(found[0], python)
    assert failure is not None
    raise failure


def _compilers(code: Code, python: Optional[str]) -> List[Compiler]:
    from depyf.decompiler.bytecode.other_pythons import NONE, interpreter_of, version_named

    version, named = version_of(code), version_named(python)
    if named is not None and named != version:
        theirs, ours = (".".join(map(str, each)) for each in (named, version))
        raise DecompilationError(f"{code.co_name}: compiled by CPython {ours}, not by CPython {theirs}")
    same = version == running_version()
    interpreter = None if same and (named or python == NONE) else interpreter_of(version, python)
    found = [] if interpreter is None else [Compiler(interpreter)]
    if version <= running_version():
        found.append(RUNNING)
    elif interpreter is None:
        name = ".".join(map(str, version))
        found.append(
            Compiler(
                absent=f"not compared: it takes CPython {name} to compile the text ("
                f"as python{name} on PATH, or with depyf decompile --python PATH)"
            )
        )
    return found


def _with_advice(answer: Decompilation, python: Optional[str]) -> Decompilation:
    """Return ``answer`` with what may lead to a proof in its reason, if that is another interpreter."""
    version = version_of(answer.code)
    if answer.verdict is not Verdict.UNVERIFIED or python is not None or version >= running_version():
        return answer
    from depyf.decompiler.bytecode.other_pythons import interpreter_of

    if interpreter_of(version) is not None:
        return answer
    advice = f"CPython {version[0]}.{version[1]} may prove more (on PATH, or depyf decompile --python PATH)"
    return replace(answer, reason=f"{answer.reason}; {advice}")
