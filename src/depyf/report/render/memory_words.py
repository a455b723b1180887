"""The memory of graphs in words, for the index, the page and the terminal."""

from __future__ import annotations

from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.base.plain_data import Answer
from depyf.base.quick_dataclass import dataclass
from depyf.report.model.memory import HeldTensor, in_words
from depyf.report.model.places import innermost_place, place_text
from depyf.report.model.run import Artifact, Place, Run

_SHOWN = 5
"""The number of tensors that the terminal shows of each list."""

INCOMPLETE = "at least: the sizes of some results are not known"


def place_of_line(run: Run, artifact: Artifact, line: int) -> Optional[Place]:
    """Return the innermost line of the user, or else of a library, that a line of an artifact comes from."""
    places = [place for link in artifact.links if link.first <= line <= link.last for place in link.places]
    return innermost_place(run, places)


def side_of(artifact: Artifact) -> str:
    """Return ``forward``, ``backward of submod_0``, ``forward as generated``."""
    side = "backward" if artifact.backward else "forward"
    side += f" of {artifact.piece}" if artifact.piece else ""
    return f"{side} as generated" if artifact.kind == "kernels" else side


def with_memory(run: Run) -> List[Artifact]:
    """Return the artifacts whose memory is known: of each compilation the graphs before the generated modules."""
    order: Dict[Optional[str], int] = {}
    for each in run.artifacts:
        order.setdefault(each.compile_id, len(order))
    known = [each for each in run.artifacts if each.memory is not None]
    return sorted(known, key=lambda each: (order[each.compile_id], each.piece, each.kind == "kernels", each.order))


@dataclass(frozen=True)
class TensorInMemory:
    """A tensor: its variable, its size in bytes, and the user's line that makes it, None for an input, and where it is
    not known."""

    name: str
    bytes: int
    file: Optional[str]
    line: Optional[int]
    input: bool


@dataclass(frozen=True)
class GraphInMemory:
    """The memory of a graph in bytes, as ``depyf.report.model.memory.Memory`` has it: ``side`` says whether it is a
    forward or a backward graph, ``file`` and ``line`` are the user's line at which the peak is."""

    compile_id: Optional[str]
    side: str
    artifact: str
    peak: int
    file: Optional[str]
    line: Optional[int]
    inputs: int
    saved_bytes: int
    uncounted: int
    largest: Tuple[TensorInMemory, ...]
    saved: Tuple[TensorInMemory, ...]
    sizes: Mapping[str, int]


@dataclass(frozen=True)
class MemoryOfGraphs(Answer, kind="memory"):
    """The answer of ``depyf memory``."""

    graphs: Tuple[GraphInMemory, ...]


def memory_of(run: Run, artifacts: Sequence[Artifact]) -> MemoryOfGraphs:
    """Return the memory of these artifacts as data."""

    def tensors(artifact: Artifact, held: Sequence[HeldTensor]) -> Tuple[TensorInMemory, ...]:
        places = ((each, (None, None) if each.input else _file_and_line(run, artifact, each.line)) for each in held)
        return tuple(TensorInMemory(each.name, each.bytes, *place, each.input) for each, place in places)

    known = [(each, each.memory) for each in artifacts]
    return MemoryOfGraphs(
        tuple(
            GraphInMemory(
                artifact.compile_id,
                side_of(artifact),
                artifact.id,
                memory.peak,
                *_file_and_line(run, artifact, memory.line),
                memory.inputs,
                memory.saved_bytes,
                memory.uncounted,
                tensors(artifact, memory.largest),
                tensors(artifact, memory.saved),
                memory.sizes,
            )
            for artifact, memory in known
            if memory is not None
        )
    )


def _file_and_line(run: Run, artifact: Artifact, line: int) -> Tuple[Optional[str], Optional[int]]:
    place = place_of_line(run, artifact, line)
    return (None, None) if place is None else (run.sources[place[0]].path, place[1])


def short_line(run: Run, artifact: Artifact) -> str:
    """Return the memory of an artifact on one line; empty if it is not known."""
    memory = artifact.memory
    if memory is None:
        return ""
    place = place_of_line(run, artifact, memory.line)
    where = f" at {place_text(run, place)}" if place is not None else ""
    parts = [f"{in_words(memory.peak)} at most{where}", f"inputs {in_words(memory.inputs)}"]
    if memory.saved:
        parts.append(f"{in_words(memory.saved_bytes)} saved for the backward")
    if memory.uncounted:
        parts.append(INCOMPLETE)
    return f"{artifact.compile_id or '-'} {side_of(artifact)}: {', '.join(parts)}"


def whole_lines(run: Run, artifact: Artifact) -> Iterator[str]:
    """Yield the memory of an artifact, with the largest tensors at its peak and those that are saved."""
    memory = artifact.memory
    if memory is None:
        return
    yield short_line(run, artifact)
    if memory.sizes:
        yield f"  with {', '.join(f'{name} = {size}' for name, size in sorted(memory.sizes.items()))}"
    yield from _table(run, artifact, f"alive at line {memory.line} of {artifact.id}", memory.largest, memory.peak)
    yield from _table(run, artifact, "saved for the backward", memory.saved, sum(each.bytes for each in memory.saved))


def _table(run: Run, artifact: Artifact, title: str, tensors: Sequence[HeldTensor], total: int) -> Iterator[str]:
    if not tensors:
        return
    yield f"  {title}:"
    for each in tensors[:_SHOWN]:
        place = place_of_line(run, artifact, each.line)
        where = "an input" if each.input else "" if place is None else place_text(run, place)
        yield f"    {in_words(each.bytes):>10}  {each.name:<24}  {where}".rstrip()
    # The table ends with what is not listed, so that its sum is the total.
    rest = total - sum(each.bytes for each in tensors[:_SHOWN])
    if rest > 0:
        yield f"    {in_words(rest):>10}  all others"


Row = Tuple[str, str, int, Optional[Place], bool]
"""A tensor on the page: its name, its size, the line of the artifact, the user's line, whether it is an input."""


def for_page(run: Run) -> List[Dict[str, object]]:
    """Return the memory of all artifacts, ready to be shown."""
    found: List[Dict[str, object]] = []
    for artifact in with_memory(run):
        memory = artifact.memory
        if memory is None:
            continue
        found.append(
            {
                "artifact": artifact.id,
                "peak": in_words(memory.peak),
                "line": memory.line,
                "place": place_of_line(run, artifact, memory.line),
                "inputs": in_words(memory.inputs),
                "saved": in_words(memory.saved_bytes) if memory.saved else "",
                "note": INCOMPLETE if memory.uncounted else "",
                "largest": [_row(run, artifact, each) for each in memory.largest],
                "kept": [_row(run, artifact, each) for each in memory.saved],
            }
        )
    return found


def _row(run: Run, artifact: Artifact, tensor: HeldTensor) -> Row:
    place = place_of_line(run, artifact, tensor.line)
    return tensor.name, in_words(tensor.bytes), tensor.line, place, tensor.input
