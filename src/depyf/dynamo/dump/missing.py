"""``missing_stages_<n>.txt``: what a reader may look for in the dump and can't find, why, and how to get it."""

from __future__ import annotations

from collections import Counter
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.capture.records import EarlierFunction, GraphFile, KernelFile
from depyf.dynamo.capture.session import Session
from depyf.dynamo.capture.warm_caches import sees_look_ups
from depyf.dynamo.capture.what_runs import backward_is_pending
from depyf.dynamo.hooks import generated_code
from depyf.torch_trace.events import CACHE_HITS, STANDALONE
from depyf.torch_trace.stages import Expected, Stage

_FROM_CACHE = "PyTorch took the compiled graph from its caches, which do not keep this."
_ELSEWHERE = "Inductor compiled in another process, or as if in one (TORCHINDUCTOR_FX_COMPILE_MODE)."
_NOT_REPORTED = "This PyTorch did not report it."
_LATE = "Its backward was not called under prepare_debug, and PyTorch compiles it when it is first called."

_PRINTED = "graphs that passes print"
"""Stages whose names are unknown in advance: ``NamedStage``."""

_EARLIER = "Compiled before prepare_debug was entered: here is what the compiled function still held."

_RESET = "Enter prepare_debug before, or call torch._dynamo.reset() inside: then everything is recompiled."
_RECOMPILE = "prepare_debug(..., force_recompile=True) recompiles everything."
_CALL_IT = "Call backward() before prepare_debug is left."
_HERE = "Run once without TORCHINDUCTOR_FX_COMPILE_MODE."
_NOT_AT_ALL = "Not from this PyTorch, as far as is known."


@dataclass(frozen=True)
class Missing:
    """What is missing of one compiled function: ``what`` in words, ``why``, and ``how`` to get it."""

    compile_id: Optional[str]
    function: str
    what: str
    why: str
    how: str


def missing(session: Session) -> List[Missing]:
    """Return all that is missing in this session's dump, in the order of the compilations."""
    compiled: Dict[Tuple[str, Optional[str]], Tuple[List[GraphFile], List[KernelFile]]] = {}
    for file in session.graph_files():
        compiled.setdefault((file.function, file.compile_id), ([], []))[0].append(file)
    for kernel in session.records(KernelFile):
        compiled.setdefault((kernel.function, kernel.compile_id), ([], []))[1].append(kernel)
    earlier = {record.function for record in session.records(EarlierFunction)}
    found = [each for record in session.records(EarlierFunction) for each in _of_earlier(record, compiled)]
    for (function, compile_id), (files, kernels) in compiled.items():
        if function in earlier:
            continue
        if kernels:
            why, how = _reason(session, compile_id)
            if _from_cache(session, compile_id) and not sees_look_ups():
                found.append(Missing(compile_id, function, _PRINTED, why, how))
            standalone = compile_id is None or compile_id.startswith(STANDALONE)
            for stage, number in _lacking(files, kernels):
                if standalone and stage is Stage.CAPTURED:
                    continue  # Dynamo was not asked
                times = "" if number == 1 else f" ({number} of them)"
                found.append(Missing(compile_id, function, f"{stage.value}{times}", why, how))
        if any(backward_is_pending(session, file) for file in files):
            found.append(Missing(compile_id, function, "the compiled backward", _LATE, _CALL_IT))
    return found


def _of_earlier(
    record: EarlierFunction, compiled: Mapping[Tuple[str, Optional[str]], Tuple[List[GraphFile], List[KernelFile]]]
) -> Iterator[Missing]:
    files, kernels = compiled.get((record.function, record.compile_id), ([], []))
    present = {file.stage for file in files}
    lacking = [stage.value for stage, _ in _lacking(files, kernels)] if kernels else []
    if not kernels and Stage.BACKWARD in present:
        lacking = [stage.value for stage in (Stage.JOINT, Stage.FORWARD) if stage not in present]
    if kernels or present & {Stage.FORWARD, Stage.BACKWARD}:
        lacking.append("AOTAutograd's wrappers")
    if not kernels and not files:
        lacking = ["all graphs"]
    for what in lacking:
        yield Missing(record.compile_id, record.function, what, _EARLIER, _RESET)
    if record.pending:
        yield Missing(record.compile_id, record.function, "the compiled backward", _LATE, _CALL_IT)


def _reason(session: Session, compile_id: Optional[str]) -> Tuple[str, str]:
    """Return why stages of this compilation are missing, and how to get them."""
    if _from_cache(session, compile_id):
        return _FROM_CACHE, _RECOMPILE
    return (_ELSEWHERE, _HERE) if generated_code.compiles_elsewhere() else (_NOT_REPORTED, _NOT_AT_ALL)


def _from_cache(session: Session, compile_id: Optional[str]) -> bool:
    return compile_id is not None and any(session.events(name, compile_id) for name in CACHE_HITS)


def _lacking(files: Sequence[GraphFile], kernels: Sequence[KernelFile]) -> Iterator[Tuple[Stage, int]]:
    """Yield the stages of Inductor before these kernels that have no file, and how many of each are missing."""
    expected = {
        Expected.NEVER: 0,
        Expected.ONCE: 1,
        Expected.WITH_GRADIENTS: int(any(kernel.backward for kernel in kernels)),
        Expected.FOR_EACH_KERNEL: len(kernels),
    }
    present = Counter(file.stage for file in files)
    for stage in Stage:
        number = expected[stage.facts.expected] - present[stage]
        if number > 0:
            yield stage, number


def missing_text(session: Session) -> str:
    """Return the text of the file: a paragraph for each reason. Empty if nothing is missing."""
    reasons: Dict[Tuple[str, str], List[Missing]] = {}
    for each in missing(session):
        reasons.setdefault((each.why, each.how), []).append(each)
    if not reasons:
        return ""
    lines = ["What is not in this dump, why, and how to get it."]
    for (why, how), group in reasons.items():
        lines += ["", why, f"How to get it: {how}"]
        for each in group:
            where = "" if each.compile_id is None else f", compile id {each.compile_id}"
            lines.append(f"   {each.function}: {each.what}{where}")
    return "\n".join([*lines, ""])
