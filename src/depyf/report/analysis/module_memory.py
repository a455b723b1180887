"""Read the Python of a module that Inductor generated as allocations and releases: its ``call`` names each buffer that
it allocates, reuses and deletes.
"""

from __future__ import annotations

from typing import AbstractSet, Dict, Iterable, List, Mapping, Optional, Set, Tuple

from depyf.base.late_regex import regex
from depyf.report.analysis.ledger import Ledger, stays_alive
from depyf.report.analysis.sizes import UnknownSizeError, bytes_of_strided
from depyf.report.model.memory import HeldTensor

_Line = Tuple[int, str]
"""A line with its number."""

_CALL = regex(r" *def call\((?:self, )?args\):")
_SHAPE = r"\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)"
_EMPTY = regex(rf"(\w+) = (?:torch\.)?empty(?:_strided\w*)?\({_SHAPE}, (?:{_SHAPE}, )?.*?(torch\.(?!device)\w+)")
"""An allocation. PyTorch 2.2 writes ``empty``, without strides, for those that are contiguous."""
_VIEW = regex(r"(\w+) = (?:reinterpret_tensor\((\w+),.*|(\w+))$")
_ELEMENT = regex(r"(buf\w*) = (\w+)\[(\d{1,9})\]$")
_RESULT = regex(r"(buf\w*) = [\w.]+\(")
_DELETE = regex(r"del (\w+(?:, \w+)*)$")
_STATEMENTS = regex(r";\s+(?=del )")
_NAME = regex(r"[A-Za-z_]\w*")
_PARTITION_ARGUMENTS = regex(r"partition\d+_args = \[(.*)\]$")
_PARTITION = regex(r"def partition_(\d+)\(args\):")
_PARTITION_RUNS = regex(r"= self\.partitions\[(\d+)\]\(")


def read_module(
    text: str, inputs: Mapping[str, HeldTensor], symbols: Mapping[str, int], *, backward: bool
) -> Optional[Ledger]:
    """Return what happens to memory in a generated module whose graph has these inputs; None for a text of another
    form."""
    lines = list(enumerate(text.split("\n"), 1))
    begin = next((at for at, (_, line) in enumerate(lines) if _CALL.match(line)), None)
    if begin is None:
        return None
    ledger = Ledger()
    partitions = _partitions(lines)
    passed: List[str] = []
    gone: Set[str] = set()
    for number, line in lines[begin + 1 :]:
        code = line.partition("  #")[0].strip()
        if code.startswith("return ") or (line and not line.startswith(" ")):
            ledger.note(number)
            return ledger
        partition, arguments = _PARTITION_RUNS.search(code), _PARTITION_ARGUMENTS.match(code)
        # ``primals_1, primals_2 = args``
        if code.endswith(" = args"):
            for name in code[: -len(" = args")].replace(",", " ").split():
                known = inputs.get(name)
                kept = stays_alive(name, backward=backward)
                if known is None:
                    ledger.add_input(name, None, number, kept=kept)
                else:
                    ledger.add_input(name, known.bytes, number, kept=kept, view_of=known.name)
        # ``partition0_args = [buf0, primals_2]``, then ``(buf3,) = self.partitions[0](partition0_args)``
        elif arguments is not None:
            passed, gone = _names(arguments[1]), set()
        elif partition is not None:
            part = partitions.pop(partition[1], None)  # each runs once
            if part is None or not _read_partition(ledger, part, set(passed) - gone, gone, symbols):
                return None
            passed = []
        elif "partition_" in code:
            return None
        elif passed and code.startswith("del "):
            gone |= set(passed).intersection(_names(code[4:]))  # the list of arguments still holds them
        elif code and not code.startswith("#"):
            for statement in _STATEMENTS.split(code):
                _read(ledger, statement, symbols, number)
    return None


def _names(code: str) -> List[str]:
    return _NAME.findall(code)


def _partitions(lines: Iterable[_Line]) -> Dict[str, List[_Line]]:
    """Return the lines of the functions of partitions, by number."""
    found: Dict[str, List[_Line]] = {}
    inside: List[_Line] = []
    for number, line in lines:
        begins = _PARTITION.match(line)
        if begins is not None:
            inside = found[begins[1]] = []
        elif line.startswith(" ") or not line:
            inside.append((number, line))
        else:
            inside = []
    return found


def _read_partition(
    ledger: Ledger, lines: Iterable[_Line], held: AbstractSet[str], gone: AbstractSet[str], symbols: Mapping[str, int]
) -> bool:
    """Read the function of a partition where the wrapper calls it; return whether it ends as one does.

    A module for CUDA graphs has its buffers in such functions, in which a buffer has the same name as in the wrapper.
    Of the arguments, the wrapper itself has those that are ``held``, and no longer those that are ``gone``.
    """
    # ``own``: the names that this function holds alone; all but the returned ones are freed at its end.
    own = set(gone)
    for number, line in lines:
        code = line.partition("  #")[0].strip()
        if code.startswith("return "):
            ledger.note(number)
            for name in own.difference(_names(code)):
                ledger.release(name)
            return True
        if code and not code.startswith(("#", "args.")) and not code.endswith(" = args"):
            for statement in _STATEMENTS.split(code):
                # A name that the wrapper still holds is not freed by a ``del`` in here.
                deleted = _DELETE.match(statement)
                if deleted is None:
                    own.add(statement.partition(" = ")[0])
                    _read(ledger, statement, symbols, number)
                else:
                    for name in set(_names(deleted[1])) - held:
                        ledger.release(name)
    return False


def _read(ledger: Ledger, statement: str, symbols: Mapping[str, int], number: int) -> None:
    delete = _DELETE.match(statement)
    if delete is not None:
        for name in delete[1].split(", "):
            ledger.release(name)
        return
    # ``buf0 = empty_strided_cpu((4, 8), (8, 1), torch.float32)``, ``buf1 = reinterpret_tensor(buf0, ...)`` or
    # ``buf1 = buf0``, ``buf3 = buf2[0]``
    empty, view, element = _EMPTY.match(statement), _VIEW.match(statement), _ELEMENT.match(statement)
    if empty is not None:
        size: Optional[int]
        try:
            size = bytes_of_strided(empty[2], empty[3], empty[4], symbols)
        except UnknownSizeError:
            size = None
        ledger.allocate(empty[1], [(empty[1], size)], number)
        return
    if view is not None:
        ledger.share(view[1], view[2] or view[3])
        return
    if element is not None:
        ledger.share(element[1], element[2], int(element[3]))
        return
    # ``buf2 = torch.ops.aten.sort.stable(buf1)``: its size is not known.
    result = _RESULT.match(statement)
    if result is not None:
        ledger.allocate(result[1], [(result[1], None)], number)
    if "(" in statement and not statement.startswith(("assert_", "args.")):
        ledger.note(number)
