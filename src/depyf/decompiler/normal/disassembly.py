"""A readable listing of bytecode: each instruction beside its operations in the normal form.

A module of its own since it is public: ``depyf.decompiler.disassembly`` is imported from here on demand.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional

from depyf.base.asynchronous import synchronous
from depyf.base.messages import cut
from depyf.decompiler.bytecode.code import Code, is_code, version_of
from depyf.decompiler.bytecode.instructions import decode
from depyf.decompiler.normal.lowering import lower


def disassembly(code: Code) -> Iterator[str]:
    """Yield the lines of the listing, for code of any version; nested code objects are named, not listed.

    Raises ``ValueError`` when the bytecode is malformed; bytecode without a normal form is listed alone.
    """
    decoded = decode(code)
    major, minor = version_of(code)
    yield f"# {code.co_name}, line {code.co_firstlineno}, CPython {major}.{minor}"
    # The operations by the offset of their instruction; an instruction may have none.
    meanings: Dict[int, List[str]] = {}
    try:
        for instr in lower(code).ops:
            argument = "" if instr.arg is None else _shown(instr.arg)
            meanings.setdefault(instr.offset, []).append(f"{instr.op.name} {argument}".rstrip())
    except synchronous(ValueError, NotImplementedError) as error:
        yield f"# no normal form: {error}"
    targets = {instruction.target for instruction in decoded.instructions}
    targets.update(entry.target for entry in decoded.exceptions)
    line: Optional[int] = None
    # line  >>  offset  NAME  argument  OPERATIONS: the line where it changes, >> at targets
    for instruction in decoded.instructions:
        shown = "" if instruction.line in (None, line) else str(instruction.line)
        line = instruction.line or line
        mark = ">>" if instruction.offset in targets else ""
        argument = str(instruction.arg) if instruction.target is None else f"to {instruction.target}"
        row = f"{shown:>5} {mark:2} {instruction.offset:5} {instruction.name:<26} {argument:<8}"
        yield f"{row} {'; '.join(meanings.get(instruction.offset, ()))}".rstrip()
    for entry in decoded.exceptions:
        yield f"# {entry.start} to {entry.end}: handler {entry.target}, depth {entry.depth}{', lasti' * entry.lasti}"


def _shown(argument: object, limit: int = 80) -> str:
    """Return ``argument`` on one short line; ``repr`` of constants of foreign classes is not called."""
    if is_code(argument):
        return f"<code {argument.co_name}>"
    if isinstance(argument, (tuple, frozenset)):
        text = f"({', '.join(_shown(item, limit // 2) for item in list(argument)[:20])})"
    elif argument is None or type(argument) in (bool, int, float, complex, str, bytes, type(...)):
        text = repr(argument)
    else:
        text = f"<a {type(argument).__name__}>"
    return cut(text, limit)
