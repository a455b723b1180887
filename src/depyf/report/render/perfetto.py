"""The phases of compilations as a trace that Perfetto and ``chrome://tracing`` open.

The format is the JSON of "Trace Event Format" (Google, 2016): complete events (``"ph": "X"``) with times in
microseconds, a process for each run, a thread for each compile id. A module of its own, because no
other module knows this format.
"""

from __future__ import annotations

import json
import math
from typing import Dict, Iterator, List, Optional, Sequence, Tuple

from depyf.diagnosis.break_advice import called
from depyf.report.model.run import Run

Event = Dict[str, object]


def perfetto_trace(runs: Sequence[Tuple[str, Run]]) -> str:
    """Return the trace of runs with their names as JSON. Times count from the first phase of all runs, in µs."""
    starts = (_since(run, phase.start) for _, run in runs for phase in run.phases)
    first = min(filter(math.isfinite, starts), default=0.0)
    events: List[Event] = []
    for process, (name, run) in enumerate(runs):
        events.append({"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}})
        events += _events(process, run, first)
    # The mark of ``own_files.TRACE_MARK`` has to come first.
    whole = {"otherData": {"generator": "depyf"}, "displayTimeUnit": "ms", "traceEvents": events}
    return json.dumps(whole, allow_nan=False)


def _since(run: Run, start: float) -> float:
    return (run.started or 0.0) + start


def _events(process: int, run: Run, first: float) -> Iterator[Event]:
    threads: Dict[Tuple[Optional[str], bool], int] = {}
    titles = {each.compile_id: each.function for each in run.compilations}
    for phase in run.phases:
        start = _since(run, phase.start) - first
        if not (math.isfinite(start) and math.isfinite(phase.seconds)):
            continue
        # A thread for each compilation, and another one for its backward; its name comes once, before its first phase.
        lane = (phase.compile_id, phase.backward)
        if lane not in threads:
            threads[lane] = len(threads) + 1
            index = titles.get(phase.compile_id or "")
            function = "" if index is None else f" {run.functions[index].qualified_name}"
            name = f"{phase.compile_id or 'no compile id'}{function}{' (backward)' if phase.backward else ''}"
            yield {"ph": "M", "pid": process, "tid": threads[lane], "name": "thread_name", "args": {"name": name}}
        arguments = {"what": called(phase.name)}
        if phase.compile_id is not None:
            arguments["compile_id"] = phase.compile_id
        yield {
            "ph": "X",
            "pid": process,
            "tid": threads[lane],
            "name": phase.name,
            "cat": "torch.compile",
            "ts": round(start * 1e6, 3),
            "dur": round(phase.seconds * 1e6, 3),
            "args": arguments,
        }
