"""Write into the second line of every graph file which of the dumped files runs: a breakpoint in any other never stops.

That is known only after a graph has been compiled, so the line is rewritten then. Line numbers do not change.
"""

from __future__ import annotations

import os
from typing import List, Sequence

from depyf.base.quick_dataclass import replace
from depyf.dynamo.capture.records import GraphFile, KernelFile
from depyf.dynamo.capture.session import Session
from depyf.dynamo.hooks import backends
from depyf.torch_trace.events import BACKWARD_METRICS
from depyf.torch_trace.stages import Expected, NamedStage, Stage, is_boxed, with_status

RUNS = "This file is what runs: a breakpoint in it stops."
DOES_NOT_RUN = "This file does not run, a breakpoint in it never stops."

RUNS_ELSEWHERE = f"{DOES_NOT_RUN} The same code runs from where PyTorch has put it (stepping=False)."

_NOT_SURE = "Whether this file runs depends on the backend, and is not known."


def note_what_runs(session: Session, compile_id: str) -> None:
    """Update the status lines of this compilation's graph files, and their records."""
    files, kernels = session.graph_files(compile_id), session.records(KernelFile, compile_id)
    for file in files:
        if file.path is None or file.equals:
            continue
        status = _status(file, files, kernels, pending=backward_is_pending(session, file))
        if status is RUNS and not session.stepping:
            status = RUNS_ELSEWHERE
        text = with_status(file.text, status)
        if text != file.text and session.directory.write(session.directory.name_of(file.path), text) is not None:
            session.add(replace(file, text=text, runs=status in (RUNS, RUNS_ELSEWHERE)))


def backward_is_pending(session: Session, file: GraphFile) -> bool:
    """Return whether this is a backward graph that has not been compiled yet: that happens when it is first called."""
    if file.stage is not Stage.BACKWARD:
        return False
    kernels = [each for each in session.records(KernelFile, file.compile_id) if each.function == file.function]
    if kernels:
        return all(kernel.backward is False for kernel in kernels)
    if session.events(BACKWARD_METRICS, file.compile_id):
        return False
    # A backend that runs graphs boxes their arguments when it compiles them. aot_eager up to 2.7 interprets graphs.
    return not file.runs or not (backends.interprets_graphs() or is_boxed(file.text))


def _status(file: GraphFile, files: Sequence[GraphFile], kernels: Sequence[KernelFile], *, pending: bool) -> str:
    if pending:
        return f"{DOES_NOT_RUN} The backward had not been compiled when this was written."
    replaced = [f for f in files if _stands_for(f, file)]
    if file.runs and not replaced:
        lowered = [f for f in files if f.stage is Stage.FORWARD and f.function == file.function and f is not file]
        return _NOT_SURE if lowered and file.stage in (Stage.CAPTURED, Stage.BACKEND) else RUNS
    running = dict.fromkeys(
        os.path.basename(each.path) for each in _kernels_of(file, kernels) or replaced if each.path is not None
    )
    return f"{DOES_NOT_RUN} What runs: {', '.join(running) or 'nothing that has a file here'}"


def _kernels_of(file: GraphFile, kernels: Sequence[KernelFile]) -> List[KernelFile]:
    """Return the modules that Inductor made of this graph, or more if it is not known which."""
    kernels = [kernel for kernel in kernels if kernel.function == file.function]  # a reset reuses ids
    if file.piece:
        kernels = [kernel for kernel in kernels if kernel.piece == file.piece]
    if isinstance(file.stage, Stage) and file.stage.facts.expected is Expected.FOR_EACH_KERNEL:
        # Each graph has one of each stage, in the order of the kernels. If one was lost, the order does not tell which
        # kernel belongs to the graph.
        return [kernel for kernel in kernels if kernel.index == file.index] or kernels
    if file.stage is Stage.BACKWARD:
        return [kernel for kernel in kernels if kernel.backward is not False]
    if file.stage is Stage.JOINT:
        return kernels
    return [kernel for kernel in kernels if kernel.backward is not True]


def _stands_for(running: GraphFile, file: GraphFile) -> bool:
    """Return whether ``running`` was made from ``file``, where the backend runs graphs."""
    if not running.runs or running.function != file.function:
        return False
    if isinstance(file.stage, NamedStage):  # printed between two stages, at any point
        return running.stage is not Stage.CAPTURED
    if isinstance(running.stage, NamedStage) or running.stage.facts.level <= file.stage.facts.level:
        return False
    return file.stage is Stage.JOINT or (running.stage is Stage.BACKWARD) == (file.stage is Stage.BACKWARD)
