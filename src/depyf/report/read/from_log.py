"""Read a run from a log of torch's trace (``TORCH_TRACE``), which may have been recorded on another machine."""

from __future__ import annotations

import re
from typing import Dict, List, Mapping, Optional, Sequence

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import replace
from depyf.report.analysis.facts import Files, Recorder
from depyf.report.analysis.from_events import build_run
from depyf.report.analysis.sources import read_named_source
from depyf.report.model.run import Run
from depyf.torch_trace.events import FORWARD_METRICS, GRAPH_BREAK, START, Event
from depyf.torch_trace.generations import distinguished
from depyf.torch_trace.json_text import parsed
from depyf.torch_trace.log_file import TraceLog

_IN_GRAPH = regex(r"# File: (\S.*?):(\d{1,9}) in [^,]+, code: (.*)$", re.MULTILINE)
_IN_TRACEBACK = regex(r'^ *File "([^"\n]+)", line (\d{1,9})(?:, in [^\n]*)?\n +(\S[^\n]*)$', re.MULTILINE)


_MOST_LINES = 1 << 20
"""Larger line numbers are invalid: the page would get as many lines."""


def run_of_log(log: TraceLog) -> Run:
    """Return the run that one process logged. Its notes say what a log does not have."""
    quoted = quoted_lines(log.events)
    events = distinguished(log.events)
    texts = {path: _text(path, lines) for path, lines in quoted.items()}
    run = build_run(
        events,
        None,
        origin=Recorder("torch_trace", log.rank, started=log.started, torch=_torch_version(log.events)),
        files=Files(read=lambda path: texts[path] if path in texts else read_named_source(path)),
    )
    missing = [
        source.path
        for source in run.sources
        if source.path in texts and not source.library and source.text != read_named_source(source.path)
    ]
    return replace(run, notes=(*run.notes, *_notes(log, events, missing)))


def _notes(log: TraceLog, events: Sequence[Event], missing: Sequence[str]) -> List[str]:
    notes = [f"read from {log.path}: {each}" for each in log.notes]
    unfinished = _unfinished(events)
    if unfinished is not None:
        notes.append(
            f"the log does not have the end of compile id {unfinished}: it hangs, was stopped, goes on, or comes from "
            "a cache; its time is not known"
        )
    notes.append(
        "a log of torch's trace has no transformed code and no counts of runs: "
        "those come with depyf.prepare_debug or depyf run"
    )
    if missing:
        notes.append(
            f"source files that are missing, or have changed since the log was recorded: {', '.join(missing[:3])}"
            + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
            + "; of such a file only the lines that the log quotes are shown"
        )
    return notes


def _unfinished(events: Sequence[Event]) -> Optional[str]:
    """Return the id of the last compilation whose end PyTorch has not logged, if it logs ends at all."""
    # ``dynamo_start`` without ``compilation_metrics``. A log with several starts and no end at all has no metrics.
    started = [event.compile_id for event in events if event.name == START and event.compile_id]
    ended = {event.compile_id for event in events if event.name == FORWARD_METRICS}
    if len(set(started)) > 1 and not ended:
        return None
    return next((each for each in reversed(started) if each not in ended), None)


def _torch_version(events: Sequence[Event]) -> str:
    for event in events:
        if event.name == "torch_version":
            try:
                data = parsed(event.payload or "")
            except synchronous(ValueError):
                return (event.payload or "").strip()
            if not isinstance(data, dict):
                return str(data)
            return str(data.get("version") or data.get("pytorch_version") or "")
    return ""


def quoted_lines(events: Sequence[Event]) -> Dict[str, Dict[int, str]]:
    """Return the lines of source files that the log quotes, without their indentation: in stacks, graphs and
    tracebacks."""
    found: Dict[str, Dict[int, str]] = {}
    for event in events:
        for frame in _frames(event.meta):
            _note(found, frame.get("filename"), frame.get("line"), frame.get("loc"))
        if event.text and "# File: " in event.text:
            for path, line, code in _IN_GRAPH.findall(event.payload or ""):
                _note(found, path, int(line), code)
        elif event.name == GRAPH_BREAK:
            # ``... User code traceback:``, then ``  File "a.py", line 3, in f`` with the code of the line below it
            below = (event.payload or "").split("User code traceback:")[-1]
            user = below.split("\nTraceback")[0]  # not torch's own frames below it
            for path, line, code in _IN_TRACEBACK.findall(user):
                _note(found, path, int(line), code)
    return found


def _note(found: Dict[str, Dict[int, str]], path: object, line: object, code: object) -> None:
    if (
        isinstance(path, str)
        and isinstance(line, int)
        and 0 < line < _MOST_LINES
        and isinstance(code, str)
        and code.strip()
    ):
        found.setdefault(path, {}).setdefault(line, code.strip())


def _frames(value: object) -> List[Mapping[str, object]]:
    """Return all frames in the metadata of a record."""
    if isinstance(value, dict):
        here = [value] if "filename" in value and "line" in value else []
        return [*here, *(frame for item in value.values() for frame in _frames(item))]
    if isinstance(value, list):
        return [frame for item in value for frame in _frames(item)]
    return []


def _text(path: str, quoted: Mapping[int, str]) -> Optional[str]:
    """Return the local file, if it has the quoted lines; else only these, each at its line number."""
    text = read_named_source(path)
    here = (text or "").splitlines(keepends=True)
    if here and all(line <= len(here) and _same(here[line - 1], code) for line, code in quoted.items()):
        return text
    return "".join(f"{quoted.get(line, '')}\n" for line in range(1, max(quoted) + 1))


def _same(here: str, quoted: str) -> bool:
    """Return whether the lines are equal. Torch quotes a statement over several lines whole, or its first line."""
    here = here.strip()
    return here == quoted or (bool(here) and quoted.startswith(here)) or (bool(quoted) and here.startswith(quoted))
