"""The passes that changed the graphs of a compilation, as one file: each with its difference, in order.

A pass is an event, so that it is kept beside PyTorch's caches as the graphs are: with warm caches no pass runs. Custom
passes that did not run for that reason are recorded too.
"""

from __future__ import annotations

import difflib
import json
import time
from dataclasses import asdict
from typing import Dict, List, Sequence, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.capture.records import CachedWithPasses, PassesFile, PassesRan
from depyf.dynamo.capture.session import Session
from depyf.dynamo.hooks import torch_settings
from depyf.dynamo.hooks.graph_passes import ObservedPass
from depyf.report.model.manifest import from_data
from depyf.report.model.run import Pass
from depyf.torch_trace import file_names
from depyf.torch_trace.events import AOTAUTOGRAD_HIT, FX_GRAPH_HIT, GRAPH_PASS, Event

_WHOLE, _CONTEXT = 200, 8
"""Graphs of at most so many lines are shown whole in each difference; longer ones with so many lines around a
change.
"""

_ALIGNED = 2000
"""Longer graphs are not aligned, which takes quadratic time: the lines that only one of two graphs has are listed."""


@dataclass(frozen=True)
class _Shown:
    """What an event says of a pass, as ``ObservedPass`` does; ``before`` and ``after`` are numbers of nodes."""

    group: str
    name: str
    function: str
    within: Tuple[str, ...]
    before: int
    after: int
    difference: Tuple[str, ...]
    sizes: Tuple[str, ...] = ()
    failed: bool = False


def event_of_pass(observed: ObservedPass) -> Event:
    """Return the event of a pass that changed a graph, with everything that the file shows, as JSON."""
    before, after = observed.before, observed.after
    lines = _difference(before, after)
    data = {**asdict(observed), "before": len(before), "after": len(after), "difference": lines}
    return Event(GRAPH_PASS, observed.compile_id, 0, {}, json.dumps(data), time.time())


def _difference(before: Sequence[str], after: Sequence[str]) -> List[str]:
    """Return the difference of two graphs as lines of a unified diff. Linear in the lines of long graphs."""
    if max(len(before), len(after)) > _ALIGNED:
        old, new = set(before), set(after)
        removed = [f"-{line}" for line in before if line not in new]
        added = [f"+{line}" for line in after if line not in old]
        changed = removed + added
        what = "the lines that only one of the two graphs has" if changed else "the same lines in another order"
        return ["--- before", "+++ after", f"@@ {what} @@", *changed]
    context = _CONTEXT if max(len(before), len(after)) > _WHOLE else _WHOLE
    return list(difflib.unified_diff(before, after, "before", "after", lineterm="", n=context))


def write_passes(session: Session, compile_id: str, ran: int) -> None:
    """Write the file of the passes that have changed a graph in this compilation, if there are any.

    It is written again when a backward was compiled later: with warm caches both come at once, and files are the same.
    """
    if ran:
        session.add(PassesRan(compile_id, ran))
    written = session.records(PassesFile, compile_id)[-1:]
    events = [event for event in session.records(Event, compile_id) if event.name == GRAPH_PASS]
    if len(events) <= sum(len(file.entries) for file in written):
        return  # nothing is new since the file was written
    passes = [from_data(_Shown, json.loads(event.payload or "")) for event in events]
    pieces = [str(event.meta.get("piece", "")) for event in events]
    function = session.function_name(compile_id)
    index = written[0].index if written else session.directory.take_number(file_names.passes_stem(function))
    # First the table of contents, then the difference of each pass; an entry names the lines of its difference.
    lines = [f"# Passes that changed the graphs of {function}, compile id {compile_id}", ""]
    for number, (each, piece) in enumerate(zip(passes, pieces), 1):
        lines.append(f"{number}. {_title(each)}: {_nodes(each)}{f', of {piece}' if piece else ''}")
    name = file_names.passes_file(function, index)
    entries: List[Pass] = []
    for number, (each, piece) in enumerate(zip(passes, pieces), 1):
        difference = [session.stable.text(line) for line in each.difference]
        lines += ["", f"## {number}. {_title(each)}", "", f"{_about(each, piece)}.", "", "```diff"]
        entries.append(
            Pass(
                compile_id,
                name,
                each.group,
                each.name,
                each.function,
                each.within,
                each.before,
                each.after,
                len(lines) + 1,
                len(lines) + len(difference),
                each.sizes,
                piece,
            )
        )
        lines += [*difference, "```"]
    text = "\n".join(lines) + "\n"
    path = session.directory.write(session.in_stages(name), text)
    only = pieces[0] if len(set(pieces)) == 1 else ""
    session.add(PassesFile(compile_id, function, index, path, text, tuple(entries), only))


def _title(observed: _Shown) -> str:
    custom = f" ({observed.function})" if "custom" in observed.name and observed.function else ""
    group = f"{observed.group}: " if observed.group else ""
    return f"{group}{' / '.join([*observed.within, observed.name])}{custom}"


def _nodes(observed: _Shown) -> str:
    failed = ", and failed" if observed.failed else ""
    return f"{observed.before} nodes before, {observed.after} after{failed}"


def _about(observed: _Shown, piece: str) -> str:
    sizes = f"; compiled for sizes {', '.join(observed.sizes)}" if observed.sizes else ""
    return _nodes(observed) + sizes + (f"; piece {piece}" if piece else "")


_OF_INDUCTOR = (
    "post_grad_custom_pre_pass",
    "post_grad_custom_post_pass",
    "_pre_fusion_custom_pass",
    "_post_fusion_custom_pass",
)
_BEFORE_PARTITIONING = ("joint_custom_pre_pass", "joint_custom_post_pass")

_NOT_RUN_AFTER = {FX_GRAPH_HIT: _OF_INDUCTOR, AOTAUTOGRAD_HIT: (*_BEFORE_PARTITIONING, *_OF_INDUCTOR)}
"""Settings of ``torch._inductor.config`` whose passes run after the cache look-up."""


def note_custom_passes(session: Session, event: Event) -> None:
    """Record the custom passes that are set and do not run, if ``event`` says that the graph comes from a cache."""
    settings = _NOT_RUN_AFTER.get(event.name)
    passes = torch_settings.custom_passes(settings) if settings is not None else ()
    if passes:
        session.add(CachedWithPasses(event.compile_id, passes))


def cached_passes_text(session: Session) -> List[str]:
    """Return a note for each group of passes that did not run, with the compile ids."""
    passes_of: Dict[str, Dict[str, None]] = {}
    for record in session.records(CachedWithPasses):
        passes_of.setdefault(record.compile_id or "?", {}).update(dict.fromkeys(record.passes))
    groups: Dict[Tuple[str, ...], List[str]] = {}
    for compile_id, passes in passes_of.items():
        groups.setdefault(tuple(passes), []).append(compile_id)
    return [
        f"{', '.join(passes)} did not run for compile id {', '.join(ids)}: PyTorch took the compiled graph from its "
        "caches. If the pass has changed since it was compiled, its uuid() must return another value; "
        "prepare_debug(..., force_recompile=True) recompiles"
        for passes, ids in groups.items()
    ]
