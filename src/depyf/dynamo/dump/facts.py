"""Convert the records of a session for the model of the run: its files as artifacts, and facts that events lack."""

from __future__ import annotations

import os
from typing import Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from depyf.base.asynchronous import synchronous
from depyf.base.quick_dataclass import replace
from depyf.base.regular_files import read_text
from depyf.diagnosis.recompile_limits import LimitStanding
from depyf.dynamo.capture.fallbacks import fallbacks
from depyf.dynamo.capture.records import (
    Cause,
    CompiledFunction,
    FrameSkipped,
    FullCodeFile,
    GraphFile,
    KernelFile,
    NoteFile,
    PassesFile,
    PassesRan,
    Record,
    TransformedCode,
    WrapperFile,
)
from depyf.dynamo.capture.session import Session
from depyf.dynamo.capture.what_runs import RUNS_ELSEWHERE
from depyf.dynamo.entries.limits import standings
from depyf.report.analysis.artifacts import (
    ORDER,
    after_the_whole,
    order_of,
)
from depyf.report.analysis.facts import FallbackFact, TransformedFact
from depyf.report.analysis.functions import UNCOMPILED, Key
from depyf.report.model.run import Artifact, Run
from depyf.torch_trace import file_names
from depyf.torch_trace.stages import Stage


def artifacts_of(records: Sequence[Record], name_of: Callable[[str], str]) -> List[Artifact]:
    """Return the files, each once, with their current content. ``name_of`` returns the name of a path in the dump."""
    found: Dict[str, Artifact] = {}
    before: Dict[Tuple[Optional[str], str], int] = {}
    for record in records:
        key = getattr(record, "compile_id", None), getattr(record, "piece", "")
        artifact = _artifact(record, before.get(key, 0), name_of)
        if artifact is not None:
            known = found.get(artifact.id)  # a file that was written anew stays where it was
            found[artifact.id] = artifact if known is None else replace(artifact, order=known.order)
            if artifact.kind == "graph" and known is None:
                before[key] = artifact.order
    # The file that equal stages share may have been written anew since.
    shared = (replace(each, text=found[each.equals].text) if each.equals in found else each for each in found.values())
    return after_the_whole(list(shared))


def _artifact(record: Record, before: int, name_of: Callable[[str], str]) -> Optional[Artifact]:
    """Return the file of a record, if it has one; ``before`` is the order of the graph before it."""
    path: Optional[str] = getattr(record, "path", None)
    if path is None:
        return None
    name = os.path.basename(path)
    text = getattr(record, "text", "") or _content(path)
    if isinstance(record, FullCodeFile):
        return Artifact(
            name, "full_code", f"full code of {record.function[0]}", None, "", ORDER["full_code"], name, text
        )
    if isinstance(record, NoteFile):
        title = name.partition(".")[0].replace("_", " ")
        return Artifact(name, "note", title, None, "", ORDER["note"], name, text, "text")
    if isinstance(record, TransformedCode):
        title = f"transformed code of {record.function}"
        of_kind = Artifact(name, "transformed", title, order=ORDER["transformed"], runs=record.runs)
    elif isinstance(record, GraphFile):
        of_kind = Artifact(
            _own_name(record, name),
            "graph",
            f"{record.stage.value} of {record.function}{_which(record)}",
            stage=record.stage.value,
            order=order_of(record.stage, before),
            backward=record.stage.facts.side if isinstance(record.stage, Stage) else None,
            runs=record.runs and RUNS_ELSEWHERE not in record.text,
            equals=record.equals,
        )
    elif isinstance(record, KernelFile):
        title = f"kernels of {record.function}{_which(record)}"
        of_kind = Artifact(name, "kernels", title, order=ORDER["kernels"], backward=record.backward, runs=record.runs)
    elif isinstance(record, PassesFile):
        title = f"passes over {record.function}{_which(record)}"
        of_kind = Artifact(name, "passes", title, order=ORDER["passes"], language="text")
    elif isinstance(record, WrapperFile):
        title, backward = f"{record.artifact} of {record.function}", "backward" in record.artifact or None
        of_kind = Artifact(name, "wrapper", title, stage=record.artifact, order=ORDER["wrapper"], backward=backward)
    else:
        return None
    piece = getattr(record, "piece", "")
    return replace(of_kind, compile_id=record.compile_id, path=name_of(path), text=text, piece=piece)


def _own_name(record: GraphFile, name: str) -> str:
    """Return the name of a stage, with the mark of the process that has the file ``name``, which may be another
    stage's."""
    if not record.equals:
        return name
    parsed = file_names.kinds_of(name).get("graph")
    mark = None if parsed is None else parsed.parts["mark"]
    return record.name if mark is None else file_names.marked(record.name, mark)


def _which(record: Union[GraphFile, KernelFile, PassesFile]) -> str:
    if record.piece:
        return f", piece {record.piece}"
    return f" ({record.index + 1})" if record.index else ""


def with_passes(run: Run, records: Sequence[Record]) -> Run:
    """Return the run with the passes that changed a graph, in order, and how many ran in each compilation."""
    files = {record.path: record for record in records if isinstance(record, PassesFile)}  # the last of each
    # The compile id is the file's: ids that were reused after a reset have been made unique. So is the name: a process
    # beside this one may have had the plain one.
    passes = tuple(
        replace(each, compile_id=file.compile_id, artifact=os.path.basename(path))
        for path, file in files.items()
        if path is not None
        for each in file.entries
    )
    ran: Dict[Optional[str], int] = {}
    for record in records:
        if isinstance(record, PassesRan):
            ran[record.compile_id] = ran.get(record.compile_id, 0) + record.count
    if not ran and not passes:
        return run
    compilations = tuple(replace(each, passes_ran=ran.get(each.compile_id)) for each in run.compilations)
    return replace(run, passes=passes, compilations=compilations)


def _content(path: str) -> str:
    try:
        return read_text(path)
    except synchronous(OSError):  # the directory has been removed meanwhile
        return ""


def graph_names(records: Iterable[Record]) -> Dict[str, str]:
    """Return the name of the compiled graph of each compilation, as files have it."""
    found = [record for record in records if isinstance(record, CompiledFunction) and record.compile_id is not None]
    return {str(record.compile_id): record.stable_name for record in found}


def transformed_facts(
    records: Iterable[Record],
    runs: Mapping[Tuple[Optional[str], str, int], int],
    times: Mapping[Tuple[str, bool], Tuple[int, float]],
) -> List[TransformedFact]:
    """Return the facts about transformed code.

    ``runs`` are by compile id (as torch has it), function and number. ``times`` are how often graphs have run and how
    long, by name, and whether it is the backward.
    """
    codes = [record for record in records if isinstance(record, TransformedCode)]
    ids = {(r.identity, r.function, r.filename, r.first_line): r.compile_id or "" for r in reversed(codes)}
    limits = _standings(codes)
    return [replace(_transformed(each, ids, runs, times), limits=limits.get(id(each), ())) for each in codes]


def _standings(records: Sequence[TransformedCode]) -> Dict[int, Tuple[LimitStanding, ...]]:
    """Return where the function of each record stands now with Dynamo's limits, by the id of the record, as far as the
    function exists."""
    of_code: Dict[int, List[TransformedCode]] = {}
    for record in records:
        of_code.setdefault(id(record.original_code()), []).append(record)
    found: Dict[int, Tuple[LimitStanding, ...]] = {}
    for alike in of_code.values():
        code = alike[0].original_code()
        # The last compilation tells the limit of its region: it may be an argument of torch.compile.
        of_regions = {each.region: each.limits for each in alike if each.limits}
        now = () if code is None else standings(code, of_regions)
        found.update((id(each), now) for each in alike)
    return found


def _transformed(
    record: TransformedCode,
    ids: Mapping[Tuple[int, str, str, int], str],
    runs: Mapping[Tuple[Optional[str], str, int], int],
    times: Mapping[Tuple[str, bool], Tuple[int, float]],
) -> TransformedFact:
    graph = record.graphs[0] if record.graphs else ""
    torch_id = None if record.compile_id is None else record.compile_id.partition("#")[0]
    return TransformedFact(
        compile_id=record.compile_id,
        function=(record.function, record.filename, record.first_line),
        qualified_name=record.qualified_name,
        artifact=None if record.path is None else os.path.basename(record.path),
        verdict=record.verdict,
        reason=record.reason,
        graphs=record.graphs,
        resumes={
            called: ((name, path, line), ids.get((identity, name, path, line)) or f"{UNCOMPILED}{identity}")
            for called, (name, path, line, identity) in record.resumes.items()
        },
        resume_lines=record.resume_lines,
        runs=runs.get((torch_id, record.function, record.index)),
        graph_times=times.get((graph, False)),
        backward_times=times.get((graph, True)),
        earlier=record.earlier,
        lines=record.lines,
    )


def fallback_facts(session: Session, records: Sequence[Record]) -> List[FallbackFact]:
    """Return the frames that run eagerly, and those that Dynamo skipped because there is nothing to compile."""
    view = session.of_records(records)
    return [
        FallbackFact(
            compile_id=frame.compile_id,
            function=(frame.function, frame.filename, frame.first_line),
            qualified_name=frame.qualified_name,
            cause=frame.cause.value,
            reason=_reason(frame),
            place=frame.place,
            stack=frame.stack,
            calls=session.plain_after_limit(frame.original_code() if frame.original_code else None),
        )
        for frame in fallbacks(view)
    ]


def _reason(frame: FrameSkipped) -> str:
    if frame.cause is Cause.LIMIT and frame.limit is not None:
        return f"torch._dynamo.config.{frame.limit[0]} is {frame.limit[1]}. {frame.reason}"
    return frame.reason


def full_code_of(records: Iterable[Record]) -> Dict[Key, str]:
    """Return the artifact with full code of each function, by name, file and first line."""
    return {r.function: os.path.basename(r.path) for r in records if isinstance(r, FullCodeFile)}
