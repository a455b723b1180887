"""The phases of compilations, and profiled calls, as a trace that Perfetto and ``chrome://tracing`` open.

The format is the JSON of "Trace Event Format" (Google, 2016): complete events (``"ph": "X"``) with times in
microseconds, a process for each run with a thread for each compile id, and a process for each profiled call with a
thread for the source lines, for each thread and for the device. ``time.js`` writes the same from the page.
"""

from __future__ import annotations

import itertools
import json
import math
from typing import Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.diagnosis.break_advice import called
from depyf.report.model.run import Place, Run
from depyf.report.model.timing import Timing

Event = Dict[str, object]


def perfetto_trace(runs: Sequence[Tuple[str, Run]]) -> str:
    """Return the trace of runs with their names as JSON. Times count from the first phase of all runs, in µs."""
    starts = (_since(run, phase.start) for _, run in runs for phase in run.phases)
    first = min(filter(math.isfinite, starts), default=0.0)
    events: List[Event] = []
    processes = itertools.count()
    for name, run in runs:
        process = next(processes)
        events.append({"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}})
        events += _events(process, run, first)
    for name, run in runs:
        for timing in run.timings:
            if timing.timeline:
                events += _call(next(processes), name, run, timing)
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
        # A thread for each compilation, and another one for its backward; its name comes once, before its first phase.
        lane = (phase.compile_id, phase.backward)
        if lane not in threads:
            threads[lane] = len(threads) + 1
            index = titles.get(phase.compile_id or "")
            function = "" if index is None else f" {run.functions[index].qualified_name}"
            name = f"{phase.compile_id or 'no compile id'}{function}{' (backward)' if phase.backward else ''}"
            yield _thread(process, threads[lane], name)
        arguments = {"what": called(phase.name)}
        if phase.compile_id is not None:
            arguments["compile_id"] = phase.compile_id
        yield from _span(process, threads[lane], phase.name, start, phase.seconds, arguments)


def _thread(process: int, thread: int, name: str) -> Event:
    return {"ph": "M", "pid": process, "tid": thread, "name": "thread_name", "args": {"name": name}}


def _span(
    process: int, thread: int, name: str, start: float, seconds: float, arguments: Mapping[str, object]
) -> Iterator[Event]:
    """Yield a span, but for one of a stranger's manifest whose times are no numbers in microseconds."""
    ts, dur = round(start * 1e6, 3), round(max(0.0, seconds) * 1e6, 3)
    if math.isfinite(ts) and math.isfinite(dur):
        span = {"ph": "X", "pid": process, "tid": thread, "name": name, "cat": "torch.compile", "ts": ts, "dur": dur}
        yield {**span, "args": arguments}


_SOURCE_LINES = "source lines"


def _call(process: int, name: str, run: Run, timing: Timing) -> Iterator[Event]:
    """Yield one profiled call, in microseconds since it began: its source lines, and what ran where."""
    title = f"{name}: one call of {timing.function}, profiled"
    yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": title}}
    named, threads = _Places(run), {_SOURCE_LINES: 1}
    yield _thread(process, 1, _SOURCE_LINES)
    for each in timing.timeline:
        if each.where not in threads:
            threads[each.where] = len(threads) + 1
            yield _thread(process, threads[each.where], each.where)
    for places, start, end in _lines_in_time(timing):
        texts = [named.with_text(each) for each in places]
        label = texts[0] if len(texts) == 1 else ", ".join(map(named.at, places))
        yield from _span(process, 1, label, start, end - start, {"lines": texts})
    for each in timing.timeline:
        arguments: Dict[str, object] = {"what": each.what}
        if each.graph:
            arguments["graph"] = f"{each.graph}, backward" if each.backward else each.graph
        if each.places:
            arguments["lines"] = [named.with_text(place) for place in each.places]
        yield from _span(process, threads[each.where], each.name, each.start, each.seconds, arguments)


def _lines_in_time(timing: Timing) -> Iterator[Tuple[Sequence[Place], float, float]]:
    """Yield the lines that compute, with begin and end. Neighbours in time with the same lines are one. Where kernels
    ran on a device, only the lines of device kernels count."""
    ran = [each for each in timing.timeline if each.places or each.kernel]
    of_device = [each for each in ran if each.where == timing.device]
    open_places: Sequence[Place] = ()
    begin = end = 0.0
    for each in of_device or ran:
        if each.places == open_places:
            end = max(end, each.start + each.seconds)
            continue
        if open_places:
            yield open_places, begin, min(end, each.start)
        open_places, begin, end = each.places, each.start, each.start + each.seconds
    if open_places:
        yield open_places, begin, end


class _Places:
    """Lines as a reader is shown them; each source is divided into lines once."""

    def __init__(self, run: Run) -> None:
        self._sources = run.sources
        self._lines: Dict[int, List[str]] = {}

    def at(self, place: Place) -> str:
        """Return ``train.py:12``; of a package's file ``package/__init__.py:12``, as the page has it."""
        parts = self._sources[place[0]].path.replace("\\", "/").split("/")
        return f"{'/'.join(parts[-2:] if parts[-1] == '__init__.py' else parts[-1:])}:{place[1]}"

    def with_text(self, place: Place) -> str:
        """Return the same with the text of the line, if the run has it."""
        index, number = place
        if index not in self._lines:
            self._lines[index] = (self._sources[index].text or "").split("\n")
        lines = self._lines[index]
        code = lines[number - 1].strip() if 0 < number <= len(lines) else ""
        return f"{self.at(place)}: {code}" if code else self.at(place)
