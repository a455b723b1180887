"""One ``Compilation`` for each compile id, its graph breaks, why it was recompiled, and the stacks in its events."""

from __future__ import annotations

from typing import Any, Dict, Hashable, List, Mapping, Optional, Sequence, Set, Tuple

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import replace
from depyf.base.stored_text import identity_of
from depyf.diagnosis.break_advice import advice_for_break
from depyf.diagnosis.changed_keys import CHANGED_KEYS, keys_of, with_keys_read
from depyf.diagnosis.compiled_meanwhile import explain_meanwhile, fits_now, is_of_fitting_entry
from depyf.diagnosis.guard_advice import ANY_FRAME, GuardCause, GuardedFrame
from depyf.diagnosis.guard_explanations import GuardExplanation, explain
from depyf.diagnosis.guard_history import EntryHistory, under
from depyf.diagnosis.guard_sources import as_written, class_name
from depyf.diagnosis.guard_text import read_failed
from depyf.report.analysis.anchors import from_cache
from depyf.report.analysis.causes import (
    Failures,
    nearest,
    required_values,
    value_now,
    values_changed,
    what_is_new,
    with_all_sizes,
    with_others,
)
from depyf.report.analysis.compilation_events import (
    caches_in,
    error_stack,
    reached_limit,
    status_of,
    symbols_in,
    total_seconds,
)
from depyf.report.analysis.facts import TransformedFact
from depyf.report.analysis.functions import Functions, Key
from depyf.report.analysis.graph_links import whole_stacks
from depyf.report.analysis.in_parts import Parts
from depyf.report.analysis.sources import Sources
from depyf.report.model.run import Call, Compilation, EntryGuard, FailedEntryGuard, GraphBreak, Place, Recompile
from depyf.torch_trace.breaks import break_report
from depyf.torch_trace.events import (
    BACKWARD_METRICS,
    CALL_SITE,
    FORWARD_METRICS,
    GRAPH_BREAK,
    GUARDS,
    LATER,
    RECOMPILATION,
    START,
    Event,
    resolve_frames,
)
from depyf.torch_trace.generations import of_same_generation
from depyf.torch_trace.guards import GuardText, guards_of
from depyf.torch_trace.json_text import parsed
from depyf.torch_trace.metrics import UNREAD_METRICS, started_at
from depyf.torch_trace.provenance import CAPTURED, NODE_STACKS, Stack, input_stacks, node_stacks
from depyf.torch_trace.recompiles import FailedGuardText, failed_guards
from depyf.torch_trace.tracebacks import Frame
from depyf.torch_trace.user_code import innermost

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
            # ``0/0`` is a compilation of a frame; ids without ``/`` belong to no frame.
            if event.compile_id is not None and "/" in event.compile_id:
                self._events.setdefault(event.compile_id, []).append(event)
        self._guards: Dict[str, Tuple[EntryGuard, ...]] = {}
        self._required_values: Dict[str, Mapping[str, str]] = {}
        self._equal_guards: Dict[Tuple[str, str, str, Optional[Place]], EntryGuard] = {}
        self._last_guards: Tuple[EntryGuard, ...] = ()
        self._last_read: Optional[Hashable] = None
        """What ``_last_guards`` depend on."""
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
        # From the events: what torch reports at the end (metrics) and before. ``fact``: what only the process knows.
        status, failure = status_of(events, metrics, fact)
        restarts = tuple(str(reason).strip().split("\n")[0] for reason in metrics.get("restart_reasons") or ())
        latency = metrics.get("guard_latency_us")
        forward = (None if fact is None else fact.graph_times) or (None, None)
        backward = (None if fact is None else fact.backward_times) or (None, None)
        # Without an end the first event is the start.
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

    def guards(self, compile_id: str) -> Tuple[EntryGuard, ...]:
        """Return the guards of the cache entry that this compilation made."""
        if compile_id not in self._guards:
            self._guards[compile_id] = self._parts.part("guards of a cache entry", (), self._read_guards, compile_id)
        return self._guards[compile_id]

    def _read_guards(self, compile_id: str) -> Tuple[EntryGuard, ...]:
        # The last tree counts, if torch reports several. Up to 2.3 there is the list ``dynamo_guards`` instead.
        named = next(filter(None, (self._named(compile_id, name) for name in GUARDS)), [])
        if not named:
            return ()
        # What is found depends on the text of the guards, on the stacks of the compilation, and on the names of files
        # that are known. Layers that are compiled one by one have equal ones of all three.
        text, stacks, learned = identity_of(named[-1].text), self._stacks.identity(compile_id), self._sources.learned
        key = None if text is None or stacks is None else (text, stacks, learned)
        if key is None or key != self._last_read:
            guards = self._placed_guards(compile_id, guards_of(named[-1]))
            # Names that came to be known meanwhile would have placed the first guards better.
            self._last_read = key if self._sources.learned == learned else None
            if guards != self._last_guards:  # equal guards of the compilation before are not kept twice
                self._last_guards = guards
        return self._last_guards

    def _placed_guards(self, compile_id: str, found: Sequence[GuardText]) -> Tuple[EntryGuard, ...]:
        places: Dict[Tuple[Optional[Frame], str], Tuple[Optional[Place], int]] = {}  # many guards come from one line
        guards = []
        for each in found:
            # Places are looked up once for each line and value that a guard names.
            key = each.place, each.source
            place, known = places.get(key, (None, -1))
            if place is None and known != self._sources.learned:  # the rest of a path may have come to be known
                place = self._stacks.users_place(compile_id, *key)
                places[key] = place, self._sources.learned
            if len(self._equal_guards) > _MOST_SHARED:
                self._equal_guards.clear()
            # Equal guards of the entries of one function are one object: a manifest writes it once.
            guard = each.kind, each.text, each.source, place
            guards.append(self._equal_guards.get(guard) or self._equal_guards.setdefault(guard, EntryGuard(*guard)))
        return tuple(guards)

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
        parts = (report.title, report.explanation, report.hints, report.stack, report.unresumed)
        return GraphBreak(
            compile_id=compile_id,
            place=self._sources.place(report.filename, report.line),
            reason=report.title,
            explanation=report.explanation,
            hints=report.hints,
            url=report.url,
            stack=self._sources.places(report.stack),
            advice=advice_for_break(*parts, self._sources.text),
        )

    def error_stack(self, compile_id: str) -> Tuple[Frame, ...]:
        """Return the frames of the program that a failed compilation is due to, as far as the events say."""
        return error_stack(self._events.get(compile_id, ()))

    def recompiles(self) -> Tuple[Recompile, ...]:
        """Return the recompilations, in order."""
        what = "why a function was recompiled"
        events = [event for each in self._events for event in self._named(each, RECOMPILATION)]
        events = [event for event in events if not reached_limit(self._metrics(str(event.compile_id)))]
        none: Failures = []
        explained = [(event, self._parts.part(what, none, self._explained, event)) for event in events]
        history = self._history(explained)
        found: Dict[str, Recompile] = {}
        seen: Dict[int, Set[Tuple[str, str]]] = {}
        for event, failed in explained:
            compile_id = str(event.compile_id)
            if compile_id not in found:
                made = self._parts.part(what, None, self._recompile, event, failed, history, seen)
                if made is not None:
                    found[compile_id] = made
        return tuple(found.values())

    def _explained(self, event: Event) -> Failures:
        compile_id = str(event.compile_id)
        key, values = self.key_of(compile_id), self._values(compile_id)
        frame = self._frame_of(compile_id)
        return [self._failed(compile_id, each, values, key, frame) for each in failed_guards(event)]

    def _frame_of(self, compile_id: str) -> GuardedFrame:
        key = self.key_of(compile_id)
        frame = ANY_FRAME if key is None else self._functions.guarded_frame(key)
        try:
            settings = parsed(self._metrics(compile_id).get("dynamo_config") or "{}")
        except synchronous(ValueError, TypeError):
            settings = {}
        return under(settings, frame) if isinstance(settings, Mapping) else frame

    def _history(self, explained: Sequence[Tuple[Event, Failures]]) -> EntryHistory:
        """Return what the entries of each frame show together."""
        history = EntryHistory()
        for event, failed in explained:
            compile_id = str(event.compile_id)
            words, frame = [words for _, words in failed], self._frame_of(compile_id)
            history.add(_frame_id(compile_id), words, frame, self._required(compile_id))
        return history

    def _recompile(
        self,
        event: Event,
        failed: Failures,
        history: EntryHistory,
        seen: Dict[int, Set[Tuple[str, str]]],
    ) -> Optional[Recompile]:
        compile_id = str(event.compile_id)
        function, values = self.function_of(compile_id), self._values(compile_id)
        if function is None or not failed:
            return None
        frame = self._frame_of(compile_id)
        failed = [(guard, history.applied(_frame_id(compile_id), words, frame)) for guard, words in failed]
        # torch lists a failed guard for each entry. A value that was compiled for before is not why it recompiled now.
        news, rest = what_is_new(failed, seen.setdefault(function, set()))
        news = [(guard, self._with_others(guard.entry, words, values, frame)) for guard, words in news]
        # Entries that differ in nothing else come first: there it is enough to avoid this failure.
        news.sort(key=lambda pair: (bool(pair[1].others), values_changed(pair[1])))
        failed = nearest(news, rest)
        guards, words = tuple(guard for guard, _ in failed), failed[0][1]
        advice = _sentence(words.whole_advice)
        return Recompile(compile_id, function, guards, advice.strip(), cause=words.kind or words.cause.value)

    def _with_others(
        self, entry: Optional[str], words: GuardExplanation, values: Mapping[str, str], frame: GuardedFrame
    ) -> GuardExplanation:
        """Return the explanation with what else differs from the entry, by its guards, unless the running program has
        shown that, or the entry fits by now."""
        if words.guard.differences or entry is None or is_of_fitting_entry(words):
            return words
        return with_others(self._required(entry), words, values, frame)

    def _failed(
        self,
        compile_id: str,
        failed: FailedGuardText,
        values: Mapping[str, str],
        key: Optional[Key],
        frame: GuardedFrame,
    ) -> Tuple[FailedEntryGuard, GuardExplanation]:
        # torch says ``0/0: L['x'].size()[0] == 4``. The entry's id gets the suffix that ours has after a reset.
        text, entry = failed.text, failed.entry and of_same_generation(compile_id, failed.entry)
        read_guard = with_all_sizes(read_failed(failed), self._required(entry) if entry else {}, values)
        words = explain(read_guard.with_actual(value_now(read_guard, values)), frame)
        words = replace(words, others=tuple(explain(read_failed(each), frame) for each in failed.others or ()))
        # A dict with other keys: the guards of both entries say which keys the function reads.
        if entry is not None and words.subject and words.cause in CHANGED_KEYS:
            sources = [[guard.source for guard in self.guards(each)] for each in (entry, compile_id)]
            keys_before, keys_now = (keys_of(words.subject, each) for each in sources)
            words = with_keys_read(words, keys_before, keys_now, frame)
        # The line: the innermost one of the user in torch's stack, else the line in the guards of an entry.
        known = (self._sources.known_place(path, line) for path, line, _ in failed.stack)
        place = innermost([each for each in known if each is not None], self._sources.in_library)
        if place is None and entry is not None:
            place = self._place_of_value(entry, compile_id, words.subject)
        stack = self._sources.places(failed.stack) if len(failed.stack) > 1 else ()
        if not stack and place and key and not self._functions.holds(key, place):  # else no call leads there
            stack = next(filter(None, (self._stacks.to(each, place) for each in (entry, compile_id) if each)), ())
        if fits_now(text):
            words = explain_meanwhile(entry, self._thread_of(compile_id), self._thread_of(entry or ""))
            return FailedEntryGuard(entry, text, words.words, place=place, stack=stack), words
        now = None if words.cause is GuardCause.SIZES else words.now  # of a relation the sentence has the sizes
        return FailedEntryGuard(entry, text, words.words, words.before, now, place, words.checked, stack), words

    def _thread_of(self, compile_id: str) -> Optional[int]:
        """Return the identifier of the thread that compiled this, where a session has seen it."""
        found = (
            event.meta.get("thread") for event in self._named(compile_id, CALL_SITE) if isinstance(event.meta, dict)
        )
        return next((each for each in found if isinstance(each, int)), None)

    def _place_of_value(self, entry: str, compile_id: str, subject: str) -> Optional[Place]:
        """Return the line that made Dynamo guard this value, a user's line before one in a library. The guards of the
        entry that failed are searched, or of the next one."""
        guards = [*self.guards(entry), *self.guards(compile_id)] if subject else []
        places = [guard.place for guard in guards if guard.place and as_written(guard.source) == subject]
        return innermost(places[::-1], self._sources.in_library)

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
        # Without an end (the process was killed) the stack at the start says it.
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
        # ``__compiled_fn_1`` is also the start of ``__compiled_fn_10``: the name has to end there.
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


def _frame_id(compile_id: str) -> str:
    """Return ``0#1`` of ``0/2#1``: a frame, and how often Dynamo was reset before."""
    return compile_id.partition("/")[0] + "".join(compile_id.partition("#")[1:])


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}{'' if text.endswith('.') else '.'}" if text else ""


_WRAPPERS_FILE = regex(r"(?:^|[/\\])torch[/\\]_dynamo[/\\]external_utils\.py\Z")
_WRAPPER, _WRAPPED = "inner", "L['fn']"
_TYPE_OF_GUARD = regex(r"type=(<class '[^']*'>)")


def wrapped_names(known: Compilations) -> Dict[str, str]:
    """Return the qualified names of what is called (``Sequential.forward``) by compile id, as far as guards name
    the class. A failed compilation has the name that another compilation of its frame has."""
    names: Dict[str, str] = {}
    for compile_id in known.ids():
        key = known.key_of(compile_id)
        if key is not None and key[0] == _WRAPPER and _WRAPPERS_FILE.search(key[1]):
            frame = compile_id.partition("/")[0]
            name = _name_of_wrapped(known.guards(compile_id)) or names.get(frame)
            if name is not None:
                names[compile_id] = names[frame] = name
    return names


def _name_of_wrapped(guards: Sequence[EntryGuard]) -> Optional[str]:
    wrapped = (
        _TYPE_OF_GUARD.search(guard.text) for guard in guards if guard.kind == "TYPE_MATCH" and guard.source == _WRAPPED
    )
    found = next((class_name(match.group(1)) for match in wrapped if match is not None), None)
    is_module = any(f"'forward', {_WRAPPED}.__dict__" in guard.text for guard in guards)
    return found and f"{found.rpartition('.')[2]}.{'forward' if is_module else '__call__'}"


class CompilationStacks:
    """Reads the stacks of each compilation in ``events`` once; ``names`` are the file names in events about symbols."""

    def __init__(self, events: Mapping[str, List[Event]], sources: Sources, names: Mapping[object, str]) -> None:
        self._events = events
        self._sources = sources
        self._names = names
        self._whole: Dict[str, Mapping[Tuple[str, int], Tuple[Frame, ...]]] = {}
        self._of_inputs: Dict[str, Mapping[str, Stack]] = {}

    def to(self, compile_id: str, place: Place) -> Tuple[Place, ...]:
        """Return the calls, outermost first, by which a compilation reached a place, if they are unique."""
        for stack in self._whole_stacks(compile_id).values():
            places = self._sources.places(stack)
            if places and places[-1] == place:
                return places
        return ()

    def users_place(self, compile_id: str, frame: Optional[Frame], source: str) -> Optional[Place]:
        """Return the user's line that leads to the frame at which the value ``source`` was guarded. The frame may be in
        a library, which the user may call at several lines: of an input of the graph the line is known. The frame
        itself is returned if none is known.
        """
        # The frame that torch names is the user's: done.
        place = None if frame is None else self._sources.known_place(*frame[:2])
        if frame is None or (place is not None and not self._sources.in_library(place)):
            return place
        # Else it is in a library: the stack of the input that is guarded, or the only stack with this innermost frame.
        stack = self._stacks_of_inputs(compile_id).get(as_written(source), ())
        stack = stack or self._whole_stacks(compile_id).get((self._sources.full(frame[0]), frame[1]), ())
        known = [each for each in (place, *self._sources.places(stack)) if each is not None]
        return innermost(known, self._sources.in_library)

    def _stacks_of_inputs(self, compile_id: str) -> Mapping[str, Stack]:
        """Return the stacks of calls that came to the inputs of the graph, by the input as the user writes it."""
        if compile_id not in self._of_inputs:
            stacks = [input_stacks(event) for event in self._named(compile_id, NODE_STACKS)]
            self._of_inputs[compile_id] = {as_written(k): stack for each in stacks for k, stack in each.items()}
        return self._of_inputs[compile_id]

    def _whole_stacks(self, compile_id: str) -> Mapping[Tuple[str, int], Tuple[Frame, ...]]:
        """Return the stacks of calls that a compilation recorded, by their innermost frames."""
        if compile_id not in self._whole:
            # Stacks of graph nodes, and of the symbols of dynamic shapes (``create_symbol``).
            noted = [node_stacks(event) for event in self._named(compile_id, NODE_STACKS)]
            hit = compile_id in from_cache(self._events.get(compile_id, ()))  # then only this stage has today's lines
            stacks = [nodes for stage, nodes in noted if not hit or stage == CAPTURED]
            stacks += [{"": self._user_stack(event)} for event in self._named(compile_id, "create_symbol")]
            self._whole[compile_id] = whole_stacks(iter(stacks), self._sources)
        return self._whole[compile_id]

    def identity(self, compile_id: str) -> Optional[Hashable]:
        """Return what only compilations with equal stacks have in common; None if that is not known."""
        events = self._events.get(compile_id, ())
        texts = [identity_of(event.text) for event in events if event.name == NODE_STACKS]
        if None in texts or any(event.name == "create_symbol" for event in events):
            return None
        return compile_id in from_cache(events), *texts

    def _user_stack(self, event: Event) -> Tuple[Frame, ...]:
        """Return the frames of the user in an event about a symbol."""
        frames = resolve_frames(event.meta.get("user_stack"), self._names) if isinstance(event.meta, Mapping) else []
        return tuple((str(f.get("filename")), int(f.get("line") or 0), str(f.get("name"))) for f in frames)

    def _named(self, compile_id: str, name: str) -> List[Event]:
        return [event for event in self._events.get(compile_id, ()) if event.name == name]
