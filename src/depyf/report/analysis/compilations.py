"""One ``Compilation`` for each compile id, its graph breaks, and why it was recompiled."""

from __future__ import annotations

from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.diagnosis.break_advice import advice_for_break
from depyf.diagnosis.changed_keys import CHANGED_KEYS, keys_of, with_keys_read
from depyf.diagnosis.guard_advice import ANY_FRAME, GuardCause, GuardedFrame
from depyf.diagnosis.guard_explanations import GuardExplanation, explain
from depyf.diagnosis.guard_sources import as_written
from depyf.diagnosis.guard_text import read
from depyf.messages import listed
from depyf.report.analysis.causes import also_fail, required_values, settings_changed, value_now, what_is_new
from depyf.report.analysis.compilation_events import (
    caches_in,
    error_stack,
    reached_limit,
    status_of,
    symbols_in,
    total_seconds,
)
from depyf.report.analysis.compilation_stacks import CompilationStacks
from depyf.report.analysis.facts import TransformedFact
from depyf.report.analysis.functions import Functions, Key
from depyf.report.analysis.in_parts import Parts
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Call, Compilation, FailedGuard, GraphBreak, Guard, Place, Recompile
from depyf.torch_trace.breaks import break_report
from depyf.torch_trace.events import (
    BACKWARD_METRICS,
    FORWARD_METRICS,
    GRAPH_BREAK,
    LATER,
    RECOMPILATION,
    START,
    Event,
    resolve_frames,
)
from depyf.torch_trace.generations import of_same_generation
from depyf.torch_trace.guards import guards_of
from depyf.torch_trace.metrics import UNREAD_METRICS, started_at
from depyf.torch_trace.recompiles import FailedGuardText, failed_guards
from depyf.torch_trace.tracebacks import Frame
from depyf.user_code import innermost

_UNINTERESTING = UNREAD_METRICS | {"fail_reason", "restart_reasons"}
"""Metrics that are not listed, or reported elsewhere."""


_MOST_SHARED = 1 << 14
"""Of so many guards, the last ones, equal ones are one object."""


class Compilations:
    """The events of a run by compile id, and their contents."""

    def __init__(
        self,
        events: Sequence[Event],
        sources: Sources,
        functions: Functions,
        names: Mapping[object, str],
        started: float,
        parts: Parts,
    ) -> None:
        self._parts = parts
        self._sources = sources
        self._functions = functions
        self._names = names
        self._started = started
        self._events: Dict[str, List[Event]] = {}
        for event in events:
            if event.compile_id is not None and "/" in event.compile_id:
                self._events.setdefault(event.compile_id, []).append(event)
        self._guards: Dict[str, Tuple[Guard, ...]] = {}
        self._required_values: Dict[str, Mapping[str, str]] = {}
        self._equal_guards: Dict[Tuple[str, str, str, Optional[Place]], Guard] = {}
        self._last_guards: Tuple[Guard, ...] = ()
        self._stacks = CompilationStacks(self._events, sources, names)

    def ids(self) -> List[str]:
        return list(self._events)

    def function_of(self, compile_id: str) -> Optional[int]:
        """Return the number of the function of this compilation."""
        key = self.key_of(compile_id)
        return None if key is None else self._functions.index(*key, frame=compile_id)

    def compilation(self, compile_id: str, fact: Optional[TransformedFact], graph: Optional[str]) -> Compilation:
        """Return everything about one compile id; ``graph`` is the ``__compiled_fn_<id>`` that it made, if known."""
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
            seconds=total_seconds(events, FORWARD_METRICS, LATER),
            backward_seconds=total_seconds(events, BACKWARD_METRICS),
            runs=None if fact is None else fact.runs,
            graph_runs=forward[0],
            graph_run_seconds=forward[1],
            backward_runs=backward[0],
            backward_run_seconds=backward[1],
            earlier=False if fact is None else fact.earlier,
            metrics={k: v for k, v in metrics.items() if v is not None and v != [] and k not in _UNINTERESTING},
        )

    def guards(self, compile_id: str) -> Tuple[Guard, ...]:
        """Return the guards of the cache entry that this compilation made."""
        if compile_id not in self._guards:
            self._guards[compile_id] = self._parts.part("guards of a cache entry", (), self._read_guards, compile_id)
        return self._guards[compile_id]

    def _read_guards(self, compile_id: str) -> Tuple[Guard, ...]:
        named = self._named(compile_id, "dynamo_cpp_guards_str") or self._named(compile_id, "dynamo_guards")
        found = guards_of(named[-1]) if named else []
        places: Dict[Tuple[Optional[Frame], str], Tuple[Optional[Place], int]] = {}  # many guards come from one line
        guards = []
        for each in found:
            key = each.place, each.source
            place, known = places.get(key, (None, -1))
            if place is None and known != self._sources.learned:  # the rest of a path may have come to be known
                place = self._stacks.users_place(compile_id, *key)
                places[key] = place, self._sources.learned
            if len(self._equal_guards) > _MOST_SHARED:
                self._equal_guards.clear()
            guard = each.kind, each.text, each.source, place
            guards.append(self._equal_guards.get(guard) or self._equal_guards.setdefault(guard, Guard(*guard)))
        if tuple(guards) != self._last_guards:  # those of the compilation before are not kept twice
            self._last_guards = tuple(guards)
        return self._last_guards

    def breaks(self) -> Tuple[GraphBreak, ...]:
        """Return the graph breaks, each once for each compilation in which it happened."""
        found: Dict[Tuple[object, ...], GraphBreak] = {}
        for compile_id in self._events:
            for event in self._named(compile_id, GRAPH_BREAK):
                broken = self._parts.part("a graph break", None, self._break, compile_id, event)
                if broken is not None:
                    found.setdefault((compile_id, broken.place, broken.reason), broken)
        return tuple(found.values())

    def _break(self, compile_id: str, event: Event) -> GraphBreak:
        report = break_report(event)
        return GraphBreak(
            compile_id=compile_id,
            place=self._sources.place(report.filename, report.line),
            reason=report.title,
            explanation=report.explanation,
            hints=report.hints,
            url=report.url,
            stack=self._sources.places(report.stack),
            advice=advice_for_break(report.title, report.explanation, report.hints, report.stack),
        )

    def error_stack(self, compile_id: str) -> Tuple[Frame, ...]:
        """Return the frames of the program that a failed compilation is due to, as far as the events say."""
        return error_stack(self._events.get(compile_id, ()))

    def recompiles(self) -> Tuple[Recompile, ...]:
        """Return the recompilations, in order."""
        found: Dict[str, Recompile] = {}
        seen: Dict[int, Set[Tuple[str, str]]] = {}
        for compile_id in self._events:
            for event in self._named(compile_id, RECOMPILATION):
                if compile_id not in found and not reached_limit(self._metrics(compile_id)):
                    made = self._parts.part("why a function was recompiled", None, self._recompile, event, seen)
                    if made is not None:
                        found[compile_id] = made
        return tuple(found.values())

    def _recompile(self, event: Event, seen: Dict[int, Set[Tuple[str, str]]]) -> Optional[Recompile]:
        compile_id = str(event.compile_id)
        function, values = self.function_of(compile_id), self._values(compile_id)
        key = self.key_of(compile_id)
        frame = ANY_FRAME if key is None else self._functions.guarded_frame(key)
        failed = [self._failed(compile_id, each, values, key, frame) for each in failed_guards(event)]
        if function is None or not failed:
            return None
        news, rest = what_is_new(failed, seen.setdefault(function, set()))
        others = {
            guard.entry: also_fail(self._required(guard.entry) if guard.entry else {}, explained, values)
            for guard, explained in news
        }
        failed = [*sorted(news, key=lambda pair: (bool(others[pair[0].entry]), settings_changed(pair[1]))), *rest]
        guards, words = tuple(guard for guard, _ in failed), failed[0][1]
        also = others.get(guards[0].entry, ())
        too = f" The entry was compiled for other values of {listed(also, 3)}, too." if also else ""
        advice = _sentence(words.advice) + too
        return Recompile(compile_id, function, guards, advice.strip(), cause=words.kind or words.cause.value)

    def _failed(
        self,
        compile_id: str,
        failed: FailedGuardText,
        values: Mapping[str, str],
        key: Optional[Key],
        frame: GuardedFrame,
    ) -> Tuple[FailedGuard, GuardExplanation]:
        text, entry = failed.text, failed.entry and of_same_generation(compile_id, failed.entry)
        read_guard = read(text)
        words = explain(read_guard.with_actual(value_now(read_guard, values)), frame)
        if entry is not None and words.subject and words.cause in CHANGED_KEYS:
            sources = [[guard.source for guard in self.guards(each)] for each in (entry, compile_id)]
            keys_before, keys_now = (keys_of(words.subject, each) for each in sources)
            words = with_keys_read(words, keys_before, keys_now, frame)
        known = (self._sources.known_place(path, line) for path, line, _ in failed.stack)
        place = innermost([each for each in known if each is not None], self._is_of_a_library)
        if place is None and entry is not None:
            place = self._place_of_value(entry, compile_id, words.subject)
        stack = self._sources.places(failed.stack) if len(failed.stack) > 1 else ()
        if not stack and place and key and not self._functions.holds(key, place):  # else no call leads there
            stack = next(filter(None, (self._stacks.to(each, place) for each in (entry, compile_id) if each)), ())
        now = None if words.cause is GuardCause.SIZES else words.now  # of a relation the sentence has the sizes
        return FailedGuard(entry, text, words.words, words.before, now, place, words.checked, stack), words

    def _place_of_value(self, entry: str, compile_id: str, subject: str) -> Optional[Place]:
        """Return the line that made Dynamo guard this value, a user's line before one in a library. The guards of the
        entry that failed are searched, or of the next one."""
        guards = [*self.guards(entry), *self.guards(compile_id)] if subject else []
        places = [guard.place for guard in guards if guard.place and as_written(guard.source) == subject]
        return innermost(places[::-1], self._is_of_a_library)

    def _values(self, compile_id: str) -> Dict[str, str]:
        """Return the values of this compilation, by torch's names, that its guards or symbols show."""
        values = dict(self._required(compile_id))
        for event in self._named(compile_id, "create_symbol"):
            if isinstance(event.meta, Mapping):
                values[str(event.meta.get("source"))] = str(event.meta.get("val"))
        return values

    def _required(self, compile_id: str) -> Mapping[str, str]:
        """Return the values that the guards of a cache entry require."""
        if compile_id not in self._required_values:
            self._required_values[compile_id] = required_values(self.guards(compile_id))
        return self._required_values[compile_id]

    def _is_of_a_library(self, place: Place) -> bool:
        return self._sources.is_library(place[0])

    def _named(self, compile_id: str, name: str) -> List[Event]:
        return [event for event in self._events.get(compile_id, ()) if event.name == name]

    def _metrics(self, compile_id: str) -> Mapping[str, Any]:
        named = self._named(compile_id, FORWARD_METRICS)
        return named[-1].meta if named and isinstance(named[-1].meta, Mapping) else {}

    def key_of(self, compile_id: str) -> Optional[Key]:
        """Return name, file and first line of what was compiled, as far as the events say."""
        metrics = self._metrics(compile_id)
        if metrics.get("co_name"):
            return str(metrics["co_name"]), str(metrics.get("co_filename")), int(metrics.get("co_firstlineno") or 0)
        for event in self._named(compile_id, START):
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
        return self.key_of(first) if first != compile_id and first in self._events else None


def calls_in(text: str, fact: TransformedFact, functions: Functions) -> Tuple[Call, ...]:
    """Return the calls in transformed code, line by line: compiled graphs and resume functions."""
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
                    else Call(
                        function=functions.index(*resume[0], frame=resume[1]),
                        line=number,
                        resumes_at=fact.resume_lines.get(name),
                    )
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


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""
