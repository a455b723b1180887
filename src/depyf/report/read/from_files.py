"""Read a run from the files of a dump without a manifest: of a process that was killed, or of an older depyf. File
names and comments in the files identify them; facts that only torch's trace has (graph breaks, recompilations, times)
are missing, and a note says so.
"""

from __future__ import annotations

import os
import re
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from depyf.base.asynchronous import suppressed
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass, replace
from depyf.base.regular_files import read_text
from depyf.report.analysis.artifacts import ORDER, is_backward, side_in
from depyf.report.analysis.facts import Facts, Files, Recorder, TransformedFact
from depyf.report.analysis.from_events import build_run
from depyf.report.analysis.functions import Key
from depyf.report.analysis.sources import read_named_source
from depyf.report.model.run import Artifact, Run
from depyf.torch_trace import file_names
from depyf.torch_trace.file_names import FileKind, FileName
from depyf.torch_trace.stages import Stage

_BACKEND_ORDER = Stage.BACKEND.facts.order
_ORDER_OF_STAGE = {stage.value: stage.facts.order for stage in Stage}

_COMPILE_ID = regex(r"^# .*compile id ([^\s,;]+)$", re.MULTILINE)
_ORIGIN = regex(r"^# from (.{1,4096}) \((.{1,4096}):(\d{1,9})\), compile id (\S{1,99})$", re.MULTILINE)
_VERDICT = regex(r"^# (exact|equivalent|placeholders|unverified|failed)\b:? ?(.*)$", re.MULTILINE)
_CALLED_GRAPH = regex(r"\b__compiled_fn_\d+")
_CALLED_RESUME = regex(r"\b__resume_at_\w+")

NOTE = (
    "made from the files alone, there is no manifest: the process was killed, or an older depyf wrote them. "
    "Graph breaks, recompilations, guards and times are not known"
)


@dataclass(frozen=True)
class _File:
    name: str
    kind: FileKind
    parts: Mapping[str, Optional[str]]
    text: str

    @property
    def stage(self) -> str:
        return self.parts.get("stage") or ""

    @property
    def compile_id(self) -> Optional[str]:
        found = _COMPILE_ID.search(self.text)
        return None if found is None or found.group(1) == "None" else found.group(1)


def runs_of_files(directory: str, names: Optional[Iterable[str]] = None) -> Dict[str, Run]:
    """Return the runs of these files (all, without ``names``), by their marks (``rank_1``, empty for the plain names);
    empty if there are none of a dump.
    """
    by_mark: Dict[str, List[_File]] = {}
    for name in file_names.listed(directory) if names is None else sorted(names):
        found = _file(directory, name)
        if found is not None:
            by_mark.setdefault(found.parts.get("mark") or "", []).append(found)
    ranked = any(file_names.rank_of_mark(mark) is not None for mark in by_mark)
    return {mark: _run(files, _rank(mark, ranked=ranked)) for mark, files in sorted(by_mark.items())}


def _rank(mark: str, *, ranked: bool) -> Optional[int]:
    rank = file_names.rank_of_mark(mark)
    if rank is not None:
        return rank
    return 0 if ranked and not mark else None


def _file(directory: str, name: str) -> Optional[_File]:
    for kind, parsed in file_names.kinds_of(name).items():
        with suppressed(OSError):  # a link or a pipe by that name is not a file of a dump
            text = read_text(os.path.join(directory, name), follow=False)
            if kind != "graph" or parsed.parts["stage"] in _ORDER_OF_STAGE or text.startswith(_title(parsed)):
                return _File(name, kind, parsed.parts, text)
    return None


def _title(file: FileName) -> str:
    """Return the start of the file of a graph that a pass printed under its own name."""
    return f"# {file.parts['stage']} of {file.parts['graph']}"


def _run(files: Sequence[_File], rank: Optional[int]) -> Run:
    # Compile ids stand in graphs (``# ..., compile id 0/0``); else in the transformed code that calls a graph.
    ids = {file.parts["graph"] or "": file.compile_id for file in files if file.kind == "graph" and file.compile_id}
    facts = [fact for fact in (_fact(file) for file in files if file.kind == "transformed") if fact is not None]
    for fact in facts:
        for graph in fact.graphs:
            ids.setdefault(graph, fact.compile_id or "")
    facts = [_with_resumes(fact, facts, files) for fact in facts]
    return build_run(
        [],
        sorted((_artifact(file, ids) for file in files), key=lambda artifact: artifact.order),
        origin=Recorder("files", rank),
        files=Files(read=read_named_source),
        facts=Facts(
            graphs={compile_id: graph for graph, compile_id in ids.items() if compile_id and graph},
            transformed=facts,
            full_code=_full_code(files, facts),
            notes=[NOTE],
        ),
    )


def _artifact(file: _File, ids: Mapping[str, str]) -> Artifact:
    stage = file_names.wrapper_stage(file.stage) if file.kind == "wrapper" else file.stage
    origin = _ORIGIN.search(file.text)
    plain = file_names.without_folder(file.name)
    return Artifact(
        id=plain,
        kind=file.kind,
        title=plain,
        compile_id=origin.group(4) if origin and file.kind == "transformed" else ids.get(file.parts.get("graph") or ""),
        stage=stage,
        order=_ORDER_OF_STAGE.get(stage, _BACKEND_ORDER) if file.kind == "graph" else ORDER[file.kind],
        path=file.name,
        text=file.text,
        language="text" if file.kind in ("note", "passes") else "python",
        backward=is_backward(file.text) if file.kind == "kernels" else side_in(stage),
        runs=_runs(file),
    )


def _runs(file: _File) -> Optional[bool]:
    head = "\n".join(file.text.split("\n", 2)[:2])
    if "This file is what runs" in head:
        return True
    return False if "This file does not run" in head else None


def _fact(file: _File) -> Optional[TransformedFact]:
    """Parse the last lines of a transformed file; None for a file of the original depyf, which has no such lines."""
    origin = _ORIGIN.search(file.text)
    if origin is None:
        return None
    name, path, line, compile_id = origin.groups()
    verdict = _VERDICT.search(file.text, origin.end())
    return TransformedFact(
        compile_id=compile_id,
        function=(name.rsplit(".", 1)[-1], path, int(line)),
        qualified_name=name,
        artifact=file.name,
        verdict=verdict.group(1) if verdict else "",
        reason=verdict.group(2) if verdict and verdict.group(1) in ("unverified", "failed") else "",
        graphs=tuple(dict.fromkeys(_CALLED_GRAPH.findall(file.text))),
    )


def _with_resumes(fact: TransformedFact, facts: Sequence[TransformedFact], files: Sequence[_File]) -> TransformedFact:
    """Add the resume functions that transformed code calls, where there is only one candidate: they are named after an
    offset in bytecode, which files do not show.
    """
    text = next(file.text for file in files if file.name == fact.artifact)
    # The code calls ``__resume_at_30_2`` (an offset), while the other file is of ``torch_dynamo_resume_in_f_at_12`` (a
    # line): they are paired, in order, only if there are as many of both.
    called = list(dict.fromkeys(_CALLED_RESUME.findall(text)))
    resumes = f"resume_in_{fact.function[0].split('_at_')[0]}_at_"
    keys = {other.function: other.compile_id or "" for other in facts if resumes in other.function[0]}
    if len(called) != len(keys):
        return fact
    return replace(fact, resumes=dict(zip(called, keys.items())))


def _full_code(files: Iterable[_File], facts: Sequence[TransformedFact]) -> Dict[Key, str]:
    """Return the full_code file of each function, where the file name identifies the function."""
    stories = [(file.parts.get("function") or "", file.name) for file in files if file.kind == "full_code"]
    found: Dict[Key, str] = {}
    for function, name in stories:
        keys: List[Tuple[str, str, int]] = [fact.function for fact in facts if fact.function[0] == function]
        if keys and sum(other == function for other, _ in stories) == 1:
            found[keys[0]] = name
    return found
