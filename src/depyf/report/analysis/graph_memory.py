"""Read the text of a graph of AOTAutograd as allocations and releases.

PyTorch prints the type of each result, and sets variables to None after their last use, as the graph does when it runs.
"""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.report.analysis.ledger import Ledger, stays_alive
from depyf.report.analysis.sizes import UnknownSizeError, bytes_of_type
from depyf.report.model.memory import HeldTensor

_HEAD = regex(r" *def forward\(")
_INPUT = regex(r'(\w+): "([^"]*)"')
_STATEMENT = regex(r'(\w+)(?:: "([^"]*)")? = (.*)')
_ELEMENT = regex(r"(\w+)\[(\d+)\]$")
_OPERATION = regex(r"torch\.ops\.(\w+\.\w+)")
_NAME = regex(r"[^\W\d]\w*")
_COMMENT = regex(r"#.*")

_ATEN = """
    _conj _fw_primal _indices _make_dual _neg_view _nested_get_values _nested_view_from_buffer
    _nested_view_from_jagged _reshape_alias _unsafe_view _values adjoint alias as_strided broadcast_to ccol_indices
    chunk col_indices conj crow_indices detach diagonal dsplit expand expand_as hsplit imag indices lift_fresh
    linalg_diagonal mH mT matrix_H moveaxis movedim narrow numpy_T permute real row_indices select slice split
    split_with_sizes squeeze swapaxes swapdims t tensor_split transpose unbind unflatten unfold unsqueeze values
    view view_as view_as_complex view_as_real vsplit
"""
_PRIMS = "broadcast_in_dim collapse_view conj imag real split_dim squeeze transpose view_of view_of_dtype"

_MOST_RESULTS = 10_000
"""Of one operation; the text may be a stranger's."""

VIEWS = frozenset([*(f"aten.{name}" for name in _ATEN.split()), *(f"prims.{name}" for name in _PRIMS.split())])
"""Operations whose results share the memory of their first tensor. The test compares them with PyTorch's schemas."""


@dataclass(frozen=True)
class GraphReading:
    """What happens to memory in a graph. ``inputs`` is the memory of its inputs by their names, ``outputs`` of what it
    returns."""

    ledger: Ledger
    inputs: Mapping[str, HeldTensor]
    outputs: Mapping[str, HeldTensor]


def read_graph(
    text: str, symbols: Mapping[str, int], forward: Optional[GraphReading] = None, *, backward: bool
) -> Optional[GraphReading]:
    """Return what happens to memory in a graph; None for a text of another form. Inputs stay alive, except gradients
    and what the ``forward`` of a backward made and saved for it."""
    lines = text.split("\n")
    at = next((number for number, line in enumerate(lines) if _HEAD.match(line)), None)
    if at is None:
        return None
    margin = " " * (len(lines[at]) - len(lines[at].lstrip(" ")) + 4)
    reader = _GraphReader(symbols, forward, backward=backward)
    # The head goes on to ``):``, over several lines where there are many inputs.
    while True:
        for name, printed in _INPUT.findall(lines[at]):
            reader.add_input(name, printed, at + 1)
        if _COMMENT.sub("", lines[at]).rstrip().endswith("):") or at + 1 >= len(lines):
            break
        at += 1
    body = [(number, line[len(margin) :]) for number, line in enumerate(lines[at + 1 :], at + 2)]
    reader.elements = _elements(line for _, line in body)
    for number, line in body:
        if line.startswith("return"):
            return reader.returned(number, _returned(lines[number - 1 :], margin))
        reader.read(line, number)
    return None


class _GraphReader:
    """Reads a graph statement by statement. ``elements`` are the types of the parts of several results."""

    def __init__(self, symbols: Mapping[str, int], forward: Optional[GraphReading], *, backward: bool) -> None:
        self.elements: Mapping[str, Mapping[int, Tuple[str, str]]] = {}
        self._symbols = symbols
        self._forward = forward
        self._backward = backward
        self._ledger = Ledger()
        self._inputs: Dict[str, HeldTensor] = {}
        self._sizes: Dict[str, Optional[int]] = {}

    def add_input(self, name: str, printed: str, line: int) -> None:
        saved = None if self._forward is None else self._forward.outputs.get(name)
        if saved is None:
            kept = stays_alive(name, backward=self._backward)
            held = self._ledger.add_input(name, self._size(printed), line, kept=kept)
        else:  # it may be a view of something larger
            held = self._ledger.add_input(name, saved.bytes, line, kept=saved.input, view_of=saved.name)
        self._inputs[name] = held

    def read(self, line: str, number: int) -> None:
        # ``add: "f32[4]" = torch.ops.aten.add.Tensor(x, y);  x = y = None``
        statement, _, releases = line.partition(";  ")
        match = _STATEMENT.match(statement)
        if match is not None:
            name, printed, expression = match.groups("")
            if expression.startswith("torch.ops."):
                self._assign(name, printed, expression, number)
                if not printed.startswith("Sym("):
                    self._ledger.note(number)
            elif expression.startswith("next("):
                self.add_input(name, printed, number)
            elif expression.startswith("self."):
                self._ledger.add_input(name, self._size(printed), number, kept=True)
            else:
                self._assign(name, printed, expression, number)
        if releases:
            for name in _NAME.findall(releases):
                self._ledger.release(name)

    def returned(self, number: int, names: Sequence[str]) -> GraphReading:
        self._ledger.note(number)
        storages = self._ledger.storages()
        return GraphReading(self._ledger, self._inputs, {name: storages[name] for name in names if name in storages})

    def _assign(self, name: str, printed: str, expression: str, number: int) -> None:
        # ``getitem: "f32[4]" = max_1[0]`` shares the memory of one result.
        element = _ELEMENT.match(expression) if expression.endswith("]") else None
        if element is not None and element[1] in self._ledger:
            self._ledger.share(name, element[1], int(element[2]))
            return
        operation = _OPERATION.match(expression)
        called = operation[1] if operation is not None else ""
        # A view, or an operation in place (``aten.add_.Tensor``): the memory of the first tensor.
        if called in VIEWS or (called.endswith("_") and not called.endswith("__")):
            arguments = _NAME.findall(expression.partition("(")[2])
            self._ledger.share(name, next((each for each in arguments if each in self._ledger), ""))
            return
        # Several results: the sizes of those that are used, as later lines print them.
        types = self.elements.get(name)
        if types is None:
            if printed:
                self._ledger.allocate_one(name, self._size(printed), number)
            else:
                self._ledger.allocate(name, (), number)
            return
        sizes = {index: (part, self._size(each)) for index, (part, each) in types.items()}
        self._ledger.uncounted += len(sizes) > 0 and not _is_complete(name, sizes)
        count = min(max(sizes, default=-1) + 1, _MOST_RESULTS)
        self._ledger.allocate(name, [sizes.get(index, (name, 0)) for index in range(count)], number)

    def _size(self, printed: str) -> Optional[int]:
        if printed not in self._sizes:  # a graph of a thousand operations has a few dozen types
            try:
                self._sizes[printed] = bytes_of_type(printed, self._symbols) or 0
            except UnknownSizeError:
                self._sizes[printed] = None
        return self._sizes[printed]


def _is_complete(name: str, sizes: Mapping[int, Tuple[str, Optional[int]]]) -> bool:
    """Return whether no result is missing, as far as the text shows: only those that are used are printed."""
    return len(sizes) == max(sizes) + 1 and (len(sizes) > 1 or sizes[0][0] == name)


def _elements(lines: Iterator[str]) -> Dict[str, Dict[int, Tuple[str, str]]]:
    """Return, by the variable of several results, the name and the type of each that is used."""
    found: Dict[str, Dict[int, Tuple[str, str]]] = {}
    for line in lines:
        statement = line.partition(";  ")[0]
        match = _STATEMENT.match(statement) if statement.endswith("]") else None
        element = None if match is None else _ELEMENT.match(match[3])
        if match is not None and element is not None:
            found.setdefault(element[1], {}).setdefault(int(element[2]), (match[1], match[2] or ""))
    return found


def _returned(lines: List[str], margin: str) -> List[str]:
    """Return the names in the ``return`` that the lines begin with."""
    found: List[str] = []
    for number, line in enumerate(lines):
        if number and not line.startswith(f"{margin} "):
            break
        found += _NAME.findall(_COMMENT.sub("", line))
    return [name for name in found if name not in ("return", "None")]
