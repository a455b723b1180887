"""One ``Compilation`` for each compile id, its graph breaks, and why it was recompiled."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.diagnosis.break_advice import advice_for_break
from depyf.diagnosis.changed_keys import keys_of, with_keys_read
from depyf.diagnosis.guard import Guard as ReadGuard
from depyf.diagnosis.guard_advice import ANY_FRAME
from depyf.diagnosis.guard_explanations import GuardExplanation, explain
from depyf.diagnosis.guard_sources import as_written
from depyf.diagnosis.guard_text import read
from depyf.report.analysis.anchors import from_cache
from depyf.report.analysis.compilation_events import caches_in, status_of, symbols_in, total_seconds
from depyf.report.analysis.facts import TransformedFact
from depyf.report.analysis.functions import Functions, Key
from depyf.report.analysis.graph_links import whole_stacks
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Call, Compilation, FailedGuard, GraphBreak, Guard, Place, Recompile
from depyf.torch_trace.breaks import Frame, break_report
from depyf.torch_trace.events import LATER, Event, resolve_frames
from depyf.torch_trace.generations import of_same_generation
from depyf.torch_trace.guards import guards_of
from depyf.torch_trace.metrics import started_at
from depyf.torch_trace.provenance import CAPTURED, NODE_STACKS, node_stacks
from depyf.torch_trace.recompiles import FailedGuardText, failed_guards

_UNINTERESTING = frozenset(
    {
        "dynamo_config",
        "inductor_config",
        "functorch_config",
        "fail_reason",
        "restart_reasons",
        "graph_node_shapes",
        "stack_trace",
    }
)
"""Metrics that are long and reported elsewhere, or the same for all."""


class Compilations:
    """The events of a run by compile id, and their contents."""

    def __init__(
        self,
        events: Sequence[Event],
        sources: Sources,
        functions: Functions,
        names: Mapping[object, str],
        started: float,
    ) -> None:
        self._sources = sources
        self._functions = functions
        self._names = names
        self._started = started
        self._events: Dict[str, List[Event]] = {}
        for event in events:
            if event.compile_id is not None and "/" in event.compile_id:
                self._events.setdefault(event.compile_id, []).append(event)
        self._guards: Dict[str, Tuple[Guard, ...]] = {}
        self._whole: Dict[str, Mapping[Tuple[str, int], Tuple[Frame, ...]]] = {}

    def ids(self) -> List[str]:
        return list(self._events)

    def function_of(self, compile_id: str) -> Optional[int]:
        """The function of this compilation."""
        key = self._key(compile_id)
        return None if key is None else self._functions.index(*key, frame=compile_id)

    def compilation(self, compile_id: str, fact: Optional[TransformedFact], graph: Optional[str]) -> Compilation:
        """Everything about one compile id; ``graph`` is the ``__compiled_fn_<id>`` that it made, where known."""
        events = self._events.get(compile_id, [])
        metrics = self._metrics(compile_id)
        status, failure = status_of(events, metrics, fact)
        restarts = tuple(str(reason).strip().split("\n")[0] for reason in metrics.get("restart_reasons") or ())
        latency = metrics.get("guard_latency_us")
        forward = (None if fact is None else fact.graph_times) or (None, None)
        backward = (None if fact is None else fact.backward_times) or (None, None)
        begun = started_at(metrics) or (events[0].created if events else None)
        return Compilation(
            compile_id=compile_id,
            function=self.function_of(compile_id)
            if fact is None
            else self._functions.index(*fact.function, fact.qualified_name, frame=compile_id),
            status=status,
            failure=failure,
            graph=graph,
            attempts=1 + max((event.attempt for event in events), default=0),
            restarts=restarts,
            verdict="" if fact is None else fact.verdict,
            verdict_reason="" if fact is None else fact.reason,
            transformed=None if fact is None else fact.artifact,
            guards=self.guards(compile_id),
            guard_latency=None if latency is None else float(latency) / 1e6,
            guard_failures=None if fact is None else fact.guard_failures,
            dynamic=tuple(symbols_in(events)),
            cache=caches_in(events),
            start=None if begun is None else begun - self._started,
            seconds=total_seconds(events, "compilation_metrics", LATER),
            backward_seconds=total_seconds(events, "bwd_compilation_metrics"),
            runs=None if fact is None else fact.runs,
            graph_runs=forward[0],
            graph_run_seconds=forward[1],
            backward_runs=backward[0],
            backward_run_seconds=backward[1],
            earlier=False if fact is None else fact.earlier,
            metrics={k: v for k, v in metrics.items() if v is not None and v != [] and k not in _UNINTERESTING},
        )

    def guards(self, compile_id: str) -> Tuple[Guard, ...]:
        """The guards of the cache entry that this compilation made."""
        if compile_id not in self._guards:
            named = self._named(compile_id, "dynamo_cpp_guards_str") or self._named(compile_id, "dynamo_guards")
            found = guards_of(named[-1]) if named else []
            places: Dict[Optional[Frame], Optional[Place]] = {}  # many guards come from one line
            guards = []
            for each in found:
                place = places.get(each.place)
                if place is None:  # the rest of a path may come to be known by the next guard
                    place = places[each.place] = self._users_place(compile_id, each.place)
                guards.append(Guard(each.kind, each.text, each.source, place))
            self._guards[compile_id] = tuple(guards)
        return self._guards[compile_id]

    def breaks(self) -> Tuple[GraphBreak, ...]:
        """The graph breaks, each once for each compilation that it happened in."""
        found: Dict[Tuple[object, ...], GraphBreak] = {}
        for compile_id in self._events:
            for event in self._named(compile_id, "dynamo_graph_break_reason"):
                report = break_report(event)
                place = self._sources.place(report.filename, report.line)
                found.setdefault(
                    (compile_id, place, report.title),
                    GraphBreak(
                        compile_id=compile_id,
                        place=place,
                        reason=report.title,
                        explanation=report.explanation,
                        hints=report.hints,
                        url=report.url,
                        stack=self._sources.places(report.stack),
                        advice=advice_for_break(report.title, report.explanation, report.hints),
                    ),
                )
        return tuple(found.values())

    def recompiles(self) -> Tuple[Recompile, ...]:
        """The recompilations, in order."""
        found: Dict[str, Recompile] = {}
        seen: Dict[int, Set[Tuple[str, str]]] = {}
        for compile_id in self._events:
            for event in self._named(compile_id, "recompile_reasons"):
                function = self.function_of(compile_id)
                values = self._values(compile_id)
                failed = [self._failed(compile_id, each, values) for each in failed_guards(event)]
                if function is None or not failed or compile_id in found or self._reached_limit(compile_id):
                    continue
                failed = _what_is_new_first(failed, seen.setdefault(function, set()))
                guards, words = tuple(guard for guard, _ in failed), failed[0][1]
                found[compile_id] = Recompile(
                    compile_id, function, guards, _sentence(words.advice), cause=words.cause.value
                )
        return tuple(found.values())

    def _reached_limit(self, compile_id: str) -> bool:
        """Return whether torch fell back before it compiled: this is not a recompilation."""
        reason = str(self._metrics(compile_id).get("fail_reason") or "")
        return "limit" in reason.split("\n")[0].lower()

    def _failed(
        self, compile_id: str, failed: FailedGuardText, values: Mapping[str, str]
    ) -> Tuple[FailedGuard, GuardExplanation]:
        text, entry = failed.text, failed.entry and of_same_generation(compile_id, failed.entry)
        key = self._key(compile_id)
        frame = ANY_FRAME if key is None else self._functions.guarded_frame(key)
        read_guard = read(text)
        words = explain(read_guard.with_actual(value_now(read_guard, values)), frame)
        if entry is not None and words.subject:
            sources = [[guard.source for guard in self.guards(each)] for each in (entry, compile_id)]
            keys_before, keys_now = (keys_of(words.subject, each) for each in sources)
            words = with_keys_read(words, keys_before, keys_now, frame)
        place = None
        for path, line, _ in failed.stack:  # the innermost that is the user's own, or else the innermost
            each = self._sources.known_place(path, line)
            if each is not None and (place is None or not self._sources.is_library(each[0])):
                place = each
        if place is None and entry is not None:
            place = self._place_of_value(entry, compile_id, words.subject)
        stack = self._sources.places(failed.stack) if len(failed.stack) > 1 else ()
        if not stack and place and key and not self._functions.holds(key, place):  # else no call leads there
            stack = next(filter(None, (self._stack_to(each, place) for each in (entry, compile_id) if each)), ())
        return FailedGuard(entry, text, words.words, words.before, words.now, place, words.checked, stack), words

    def _stack_to(self, compile_id: str, place: Place) -> Tuple[Place, ...]:
        """The calls, outermost first, by which a compilation came to a place, where there was one way only."""
        for stack in self._whole_stacks(compile_id).values():
            places = self._sources.places(stack)
            if places and places[-1] == place:
                return places
        return ()

    def _place_of_value(self, entry: str, compile_id: str, subject: str) -> Optional[Place]:
        """The line that made Dynamo guard this value, from the guards of the entry that failed, or of the next one: a
        user's line before one in a library.
        """
        guards = [*self.guards(entry), *self.guards(compile_id)] if subject else []
        places = [guard.place for guard in guards if guard.place and as_written(guard.source) == subject]
        own = [place for place in places if not self._sources.is_library(place[0])]
        return next(iter(own or places), None)

    def _values(self, compile_id: str) -> Dict[str, str]:
        """The values of this compilation, by torch's names, as far as its guards or symbols show them."""
        values: Dict[str, str] = {}
        for guard in self.guards(compile_id):
            left, equals, right = guard.text.partition(" == ")
            if equals:
                values[left.strip()] = right.strip()
            elif guard.text.endswith(" is None"):
                values[guard.text[: -len(" is None")]] = "None"
        for event in self._named(compile_id, "create_symbol"):
            if isinstance(event.meta, Mapping):
                values[str(event.meta.get("source"))] = str(event.meta.get("val"))
        return values

    def _users_place(self, compile_id: str, frame: Optional[Frame]) -> Optional[Place]:
        """The user's line that leads to this frame, which may be in a library; the frame itself if that is unknown or
        not unique.
        """
        place = None if frame is None else self._sources.known_place(*frame[:2])
        if frame is None or place is None or not self._sources.is_library(place[0]):
            return place
        stack = self._whole_stacks(compile_id).get((self._sources.full(frame[0]), frame[1]), ())
        own = [each for each in self._sources.places(stack) if not self._sources.is_library(each[0])]
        return own[-1] if own else place

    def _whole_stacks(self, compile_id: str) -> Mapping[Tuple[str, int], Tuple[Frame, ...]]:
        """The stacks of calls that a compilation recorded, by their innermost frames."""
        if compile_id not in self._whole:
            noted = [node_stacks(event) for event in self._named(compile_id, NODE_STACKS)]
            hit = compile_id in from_cache(self._events.get(compile_id, ()))  # then only this stage has today's lines
            stacks = [nodes for stage, nodes in noted if not hit or stage == CAPTURED]
            stacks += [{"": self._user_stack(event)} for event in self._named(compile_id, "create_symbol")]
            self._whole[compile_id] = whole_stacks(iter(stacks), self._sources)
        return self._whole[compile_id]

    def _user_stack(self, event: Event) -> Tuple[Frame, ...]:
        """The frames of the user that an event about a symbol comes with."""
        frames = resolve_frames(event.meta.get("user_stack"), self._names) if isinstance(event.meta, Mapping) else []
        return tuple((str(f.get("filename")), int(f.get("line") or 0), str(f.get("name"))) for f in frames)

    def _named(self, compile_id: str, name: str) -> List[Event]:
        return [event for event in self._events.get(compile_id, ()) if event.name == name]

    def _metrics(self, compile_id: str) -> Mapping[str, Any]:
        named = self._named(compile_id, "compilation_metrics")
        return named[-1].meta if named and isinstance(named[-1].meta, Mapping) else {}

    def _key(self, compile_id: str) -> Optional[Key]:
        metrics = self._metrics(compile_id)
        if metrics.get("co_name"):
            return str(metrics["co_name"]), str(metrics.get("co_filename")), int(metrics.get("co_firstlineno") or 0)
        for event in self._named(compile_id, "dynamo_start"):
            frames = resolve_frames(event.meta.get("stack"), self._names) if isinstance(event.meta, Mapping) else []
            if frames:  # the frame that is compiled is the innermost
                last = frames[-1]
                return str(last.get("name")), str(last.get("filename")), int(last.get("line") or 0)
        return self._key_of_frame(compile_id)

    def _key_of_frame(self, compile_id: str) -> Optional[Key]:
        """Return the function of the first compilation of the same frame: where the recompile limit is reached, torch
        reports nothing but the failure.
        """
        first = f"{compile_id.partition('/')[0]}/0{''.join(compile_id.partition('#')[1:])}"
        return self._key(first) if first != compile_id and first in self._events else None


def _what_is_new_first(
    failed: List[Tuple[FailedGuard, GuardExplanation]], seen: Set[Tuple[str, str]]
) -> List[Tuple[FailedGuard, GuardExplanation]]:
    """Sort the failed guards, of which torch reports one for each entry, latest first. Values that the function has
    already been compiled for are not the cause: the first guard with a new or unknown value is moved to the front.
    ``seen`` has the known values, and is updated.
    """

    news = [
        (guard, explained)
        for guard, explained in failed
        if guard.now is None or (explained.subject, guard.now) not in seen
    ]
    for guard, explained in failed:
        seen.update((explained.subject, value) for value in (guard.before, guard.now) if value is not None)
    return [*news, *(pair for pair in failed if pair not in news)]


def calls_in(text: str, fact: TransformedFact, functions: Functions) -> Tuple[Call, ...]:
    """What transformed code calls, line by line: compiled graphs and resume functions."""
    found: List[Call] = []
    seen: Set[Tuple[int, str]] = set()
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#"):
            continue
        for name in [*fact.graphs, *fact.resumes]:
            if name in line and (number, name) not in seen and _is_named(name, line):
                seen.add((number, name))
                resume = fact.resumes.get(name)
                found.append(
                    Call(graph=name, line=number)
                    if resume is None
                    else Call(function=functions.index(*resume[0], frame=resume[1]), line=number)
                )
    return tuple(found)


def _is_named(name: str, line: str) -> bool:
    """Return whether the line has this name, and not a longer one that starts with it."""
    start = line.find(name)
    while start >= 0:
        after = line[start + len(name) : start + len(name) + 1]
        if not (after.isalnum() or after == "_"):
            return True
        start = line.find(name, start + 1)
    return False


def value_now(guard: ReadGuard, values: Mapping[str, str]) -> Optional[str]:
    """Return the guarded value in the following compilation; ``values`` are by torch's names.

    torch writes ``x.n == 1`` in its reasons where its guards say ``L['x'].n``.
    """
    if not guard.operands:
        return None
    wanted, before = as_written(guard.operands[0]), guard.operands[1]
    found = [value for source, value in values.items() if as_written(source) == wanted and value != before]
    return found[-1] if found else None


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""
