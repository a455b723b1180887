"""Make code objects of the running Python from listings: code that no compiler writes."""

from __future__ import annotations

from types import CodeType
from typing import Any, Dict, Iterable, List, Sequence, Tuple, Union

from depyf.decompiler.bytecode.opcode_table import running_version, table_for

Line = Union[str, Tuple[str, Union[int, str]]]
"""``"OPCODE"``, ``("OPCODE", argument)``, ``("JUMP", "label")``, or in lower case ``"label"`` of what is behind it."""
Range = Tuple[str, str, str, int, bool]
"""Labels of start, end and handler; depth; whether the handler finds an offset on the stack."""


def hand_made(
    listing: Sequence[Line], arguments: Tuple[str, ...] = (), table: Iterable[Range] = (), **fields: Any
) -> CodeType:
    """The code object of ``listing``; ``fields`` are its other fields, without their ``co_``."""
    raw, labels = _assembled(listing)
    varnames = fields.pop("varnames", arguments)
    made = {
        "code": raw,
        "argcount": len(arguments),
        "varnames": varnames,
        "nlocals": len(varnames),
        "flags": 3,
        "stacksize": 20,
        "name": "f",
        "consts": (None,),
        **fields,
    }
    if running_version() >= (3, 11):
        made.update(exceptiontable=_exception_table(table, labels), qualname=made["name"], linetable=b"")
    return (lambda: None).__code__.replace(**{f"co_{field}": value for field, value in made.items()})


def _assembled(listing: Sequence[Line]) -> Tuple[bytes, Dict[str, int]]:
    opcodes = table_for(running_version())
    labels: Dict[str, int] = {}
    placed: List[Tuple[int, str, Union[int, str]]] = []
    position = 0
    for line in listing:
        if isinstance(line, str) and line.islower():
            labels[line] = position
            continue
        name, argument = (line, 0) if isinstance(line, str) else line
        position += 2 + 2 * opcodes.caches.get(name, 0)
        placed.append((position, name, argument))
    scale = 2 if running_version() >= (3, 10) else 1
    raw = bytearray()
    for end, name, argument in placed:
        if isinstance(argument, str):
            start = end if name in opcodes.relative_jumps else 0
            argument = abs(labels[argument] - start) // scale
        raw += bytes([opcodes.opcodes[name], argument])
        raw += bytes(end - len(raw))
    return bytes(raw), labels


def _exception_table(table: Iterable[Range], labels: Dict[str, int]) -> bytes:
    result = b""
    for start, end, target, depth, lasti in table:
        begin = labels[start] // 2
        numbers = (begin, labels[end] // 2 - begin, labels[target] // 2, depth << 1 | lasti)
        assert max(numbers) < 64
        result += bytes([numbers[0] | 128, *numbers[1:]])
    return result
