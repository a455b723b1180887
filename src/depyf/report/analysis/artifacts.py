"""The artifacts of a run that is known only from its trace: every stage with text, under torch's name."""

from __future__ import annotations

import re
from collections import Counter
from typing import Counter as CounterType
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import replace
from depyf.base.stored_text import StoredText
from depyf.report.model.run import Artifact, ArtifactKind
from depyf.torch_trace.events import KERNELS, PHASE, Event
from depyf.torch_trace.stages import AnyStage, Stage, stage_of

ORDER: Mapping[ArtifactKind, int] = {
    "full_code": 1,
    "guards": 3,
    "transformed": 5,
    "passes": 85,
    "wrapper": 90,
    "kernels": 100,
    "note": 300,
}
"""``Artifact.order`` by kind; a graph has the order of its stage (``StageFacts.order``)."""

_ONE_PIECE = 1000
"""More than any order of a stage."""

_AOT_ID = regex(r"AOT ID: \[?'?\d+_(forward|backward|inference)")

_MUCH_OF_A_LINE = 4096
"""In bytes; more than the part of a module that ``is_backward`` reads."""

_NO_TEXT = frozenset({PHASE, "torch_version"})
_PYTHON = frozenset({"fx_graph_runnable", "exported_program", "min_cut_failed_fx_graph"})

_WRAPPERS = frozenset(
    {
        "backward_prologue",
        "backward_epilogue",
        "compiled_function_forward",
        "compiled_function_backward",
        "compiled_fn_wrapper",
        "runtime_wrapper_orchestration",
        "aot_autograd_runtime_wrappers",
    }
)


def artifacts_of(events: Sequence[Event]) -> List[Artifact]:
    """Return an artifact for each event that carries a graph, generated code or guards."""
    numbers: CounterType[Tuple[str, str]] = Counter()
    before: Dict[Optional[str], int] = {}
    found: List[Artifact] = []
    for event in events:
        described = _described(event, before.get(event.compile_id, 0))
        if described is None or event.text is None:
            continue
        kind, stage, order, language = described
        if kind == "graph":
            before[event.compile_id] = order
        # The second ``Forward_graph`` of ``0/0`` is ``0/0:Forward_graph:1``, called ``Forward_graph of 0/0 (2)``.
        where = event.compile_id or "no compile id"
        number = numbers[where, stage or kind]
        numbers[where, stage or kind] += 1
        title = f"{stage or kind} of {where}" + (f" ({number + 1})" if number else "")
        found.append(
            Artifact(
                id=f"{where}:{stage or kind}:{number}",
                kind=kind,
                title=title,
                compile_id=event.compile_id,
                stage=stage,
                order=order,
                text=event.text,
                language=language,
                backward=side_in(stage) if kind in ("graph", "wrapper") else None,
            )
        )
    return [_with_side(artifact) for artifact in found]


def after_the_whole(artifacts: Sequence[Artifact]) -> List[Artifact]:
    """Return the artifacts with their ``order`` such that the pieces of a split graph come one after the other, in the
    order in which they were reported, and after the stages of the whole graph.
    """
    pieces: Dict[Optional[str], Dict[str, int]] = {}
    found: List[Artifact] = []
    for artifact in artifacts:
        if artifact.piece:
            of_whole = pieces.setdefault(artifact.compile_id, {})
            number = of_whole.setdefault(artifact.piece, len(of_whole))
            artifact = replace(artifact, order=_ONE_PIECE * (1 + number) + artifact.order)
        found.append(artifact)
    return found


def side_in(stage: str) -> Optional[bool]:
    """Return whether a stage computes gradients, by the words forward and backward in its name; None without them."""
    found = re.search("forward|backward", stage, re.IGNORECASE)
    return "backward" in stage.lower() if found else None


def order_of(stage: AnyStage, before: int) -> int:
    """Return a graph's order in its compilation; ``before`` is the order of the previous one. A graph that a pass
    printed follows the graphs before it.
    """
    return stage.facts.order if isinstance(stage, Stage) else before or Stage.CAPTURED.facts.order - 1


def _described(event: Event, before: int) -> Optional[Tuple[ArtifactKind, str, int, str]]:
    """Return kind, stage, order and language of the artifact that an event carries; None for other events.

    ``before`` is the order of the graph before it.
    """
    stage = stage_of(event.name, event.text)
    if stage is not None:
        return "graph", stage.value, order_of(stage, before), "python"
    if event.name == KERNELS:
        return "kernels", "", ORDER["kernels"], "python"
    if event.name in _WRAPPERS:
        return "wrapper", event.name, ORDER["wrapper"], "python"
    if event.name == "dynamo_cpp_guards_str":
        return "guards", "", ORDER["guards"], "text"
    if event.text and event.name not in _NO_TEXT:
        return "note", event.name, ORDER["note"], "python" if event.name in _PYTHON else "text"
    return None


def _with_side(artifact: Artifact) -> Artifact:
    """Note whether a generated module computes gradients, by its first line (``# AOT ID: ['0_backward']``)."""
    if artifact.kind != "kernels":
        return artifact
    text = artifact.text.head(_MUCH_OF_A_LINE) if isinstance(artifact.text, StoredText) else artifact.text
    return replace(artifact, backward=is_backward(text or ""))


def is_backward(generated: str) -> Optional[bool]:
    """Return whether an Inductor module computes gradients, by its first line; None if that does not say it."""
    side = _AOT_ID.search(generated[:400])
    return None if side is None else side.group(1) == "backward"
