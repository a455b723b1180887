"""The simulation proof: explore the product of the two flow graphs, from observable event to observable event.

This is translation validation (Necula, PLDI 2000). Each side runs silently to its next stop. Two events must be the
same with corresponding operands; then both sides continue with the same new symbols. An unknown truth value splits the
path. Every event may also raise; then both sides continue at their handlers.
``merge`` joins the states where paths meet.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Dict, FrozenSet, Hashable, List, Mapping, Sequence, Set, Tuple

from depyf.decompiler.verify.comparison import Finding, MismatchError, OffsetPair, Overdue
from depyf.decompiler.verify.constants import FOLDABLE
from depyf.decompiler.verify.joint import CompareCodes, Joint, Matcher
from depyf.decompiler.verify.machine import Machine
from depyf.decompiler.verify.merge import join, settle
from depyf.decompiler.verify.operations import RULES
from depyf.decompiler.verify.program import Program, cell_name, live_flags
from depyf.decompiler.verify.reasons import (
    different_event,
    lifetimes,
    local_differs,
    offsets_of,
    operand_differs,
    where,
)
from depyf.decompiler.verify.settings import Settings
from depyf.decompiler.verify.side import Fresh, Side
from depyf.decompiler.verify.stops import Event, Exit, Split
from depyf.decompiler.verify.values import OUTER, Const, Maybe, Sym, Value, ValueTable

Key = Tuple[Hashable, ...]

EFFORT = 60
"""The limit on executed operations per operation of the programs; beyond it the proof is abandoned."""

VARIANTS = 16
"""The number of flag values that are kept apart at one join point before they are merged."""


class Product:
    """One proof. ``prove`` returns pairs of offsets of corresponding events, or raises ``MismatchError``."""

    def __init__(
        self,
        original: Program,
        candidate: Program,
        compare_codes: CompareCodes,
        arguments: List[str],
        settings: Settings,
    ) -> None:
        self._compare_codes = compare_codes
        self._renamed = settings.renamed
        self._programs = (original, candidate)
        values = ValueTable()
        # A global keeps its value alive itself (see ``compare``), so how long the frame does so matters only if the
        # code rebinds or deletes globals.
        counted_globals = original.changes_globals or candidate.changes_globals
        self._machine = Machine(RULES, values, counted_globals=counted_globals, stable_globals=settings.stable_globals)
        self._tuples: Dict[Value, int] = {
            values.named("global", name): count for name, count in settings.tuple_results.items()
        }
        self._start = _start(original, candidate, arguments, values)
        self._common = (original.locals & candidate.locals) | frozenset(arguments)
        # Flags are variables that only one program has, as ``done`` here:
        #     for i in a:                      done = True
        #         if i: break                  for i in a:
        #     else:                                if i: done = False; break
        #         g()                          if done: g()
        # The candidate's states after the loop differ in ``done`` alone; merged, both paths would call g().
        self._flags = tuple(live_flags(program, program.locals - self._common) for program in self._programs)
        self._limit = 5000 + EFFORT * (len(original.ops) + len(candidate.ops))
        self._nodes: Dict[Key, Joint] = {}
        self._variants: Dict[Tuple[int, int], Set[Key]] = {}
        self._queue: List[Tuple[int, int, int, Key]] = []
        self._overdue: Set[Overdue] = set()
        self._droppable = settings.droppable
        self._silent = _SilentSteps()
        self._tickets = itertools.count()
        self._queued: Set[Key] = set()
        self._raised: Set[Key] = set()
        self._pairs: Set[OffsetPair] = set()
        # A variable that the candidate lacks is visible in tracebacks, debuggers and locals(). One that only
        # unreachable operations use is never bound.
        missing = original.locals - self._common - settings.droppable
        if missing:
            missing &= original.used
        self._doubt = f"locals: the candidate has no {', '.join(sorted(missing))}" if missing else None

    def prove(self) -> Set[OffsetPair]:
        try:
            # A worklist algorithm: explore from the start to where paths meet, then from each of these points whose
            # state is new or has become more general. ``join`` generalises a state finitely often, so this terminates.
            self._explore(self._start)
            while self._queue:
                key = heapq.heappop(self._queue)[-1]
                self._queued.discard(key)
                self._explore(self._resumed(key))
        except IndexError:
            raise MismatchError(Finding.UNVERIFIED, "malformed bytecode: the stack underflows") from None
        # Every pair of events corresponds. That is a proof only if no side can stay silent for ever: the original ``if
        # a is None: while True: pass`` before ``return a`` is refused against ``return a`` here.
        if self._silent.waits_for_ever():
            raise MismatchError(Finding.UNVERIFIED, "one side may loop silently for ever while the other continues")
        if self._doubt is not None:
            raise MismatchError(Finding.UNVERIFIED, self._doubt, frozenset(self._overdue))
        return self._pairs

    def states(self) -> List[Joint]:
        """Return the states where paths meet: with those on the way to them, the simulation relation."""
        return list(self._nodes.values())

    def _resumed(self, key: Key) -> Joint:
        joint = self._nodes[key].clone()
        joint.origin = key
        joint.left.moved = joint.right.moved = False
        return joint

    def _explore(self, start: Joint) -> None:
        todo = [start]
        while todo:
            joint = todo.pop()
            while self._step(joint, todo):
                if self._machine.steps > self._limit:
                    raise MismatchError(Finding.UNVERIFIED, f"no proof within {self._limit} steps")

    def _step(self, joint: Joint, todo: List[Joint]) -> bool:
        """Run both sides past their stops; return whether ``joint`` continues. Add other paths to ``todo``."""
        machine = self._machine
        machine.facts = joint.facts
        left, right = joint.left, joint.right
        mine, theirs = machine.run(left), machine.run(right)
        # ``while True: pass`` and ``while True: x = 1``: after this, nothing can be observed but which values are
        # alive.
        if isinstance(mine, Exit) and isinstance(theirs, Exit) and mine.kind == theirs.kind == "diverge":
            self._check_lifetimes(joint)
            return False
        # A side has passed a join point since the last stop, so another path may come to this pair of stops: store the
        # state under the pair. Exploration resumes here if the state is new or more general.
        if left.crossed or right.crossed:
            left.crossed = right.crossed = False
            self._arrive(joint)
            return False
        # A branch on ``a is None`` is silent: the other side may take it later, or not at all. So it is no step of
        # both; each path assumes one truth, with which ``run`` passes the branch on either side.
        for stop in (mine, theirs):
            if isinstance(stop, Split):
                self._split(joint, stop.truth, todo)
                return True
        # ``a(); b()`` is refused against ``b(); a()`` by the first event of each.
        if isinstance(mine, Event) and isinstance(theirs, Event):
            return self._event(joint, mine, theirs, todo)
        if isinstance(mine, Exit) and isinstance(theirs, Exit) and mine.kind == theirs.kind:
            self._exit(joint, mine, theirs)
            return False
        raise different_event(joint, mine, theirs)

    def _split(self, joint: Joint, truth: Value, todo: List[Joint]) -> None:
        values = self._machine.values
        other = joint.clone()
        # Both a truth and its negation are keys: ``resolve`` looks up either.
        joint.facts[truth], other.facts[truth] = values.true, values.false
        opposite = values.negate(truth)
        joint.facts[opposite], other.facts[opposite] = values.false, values.true
        joint.renew()
        # A merged symbol represents values of several paths, and perhaps none has this truth here: a difference that is
        # found from here on need not be real.
        if isinstance(truth, Sym) and truth.loose:
            joint.doubtful = other.doubtful = True
        todo.append(other)

    def _exit(self, joint: Joint, mine: Exit, theirs: Exit) -> None:
        matcher = self._matcher(joint)
        if not matcher.same(mine.value, theirs.value):
            raise operand_differs(joint, matcher, mine, mine.value, theirs.value)
        self._check_handled(joint)
        if mine.kind == "raise":  # the traceback keeps the frame and its variables alive
            self._check_ways_out(joint, joint.left.position, joint.right.position)
            self._check_locals(joint, matcher)
        self._pair(joint)

    # --- events

    def _event(self, joint: Joint, mine: Event, theirs: Event, todo: List[Joint]) -> bool:
        # 1. The same operation on corresponding values: ``g(x, x)`` is refused against ``g(x, y)`` for two new lists.
        if (mine.kind, mine.arg, len(mine.operands)) != (theirs.kind, theirs.arg, len(theirs.operands)):
            raise different_event(joint, mine, theirs)
        matcher = self._matcher(joint)
        for one, other in zip(mine.operands, theirs.operands):
            if one is not other and not matcher.same(one, other):
                raise operand_differs(joint, matcher, mine, one, other)
        left, right = joint.left, joint.right
        # 2. What foreign code that runs now can observe: sys.exc_info, which objects are alive, the frame's variables.
        self._check_handled(joint)
        self._check_lifetimes(joint)
        self._check_locals(joint, matcher)
        joint.origin = None
        offsets = self._pair(joint)
        left.drop(mine.pops)
        right.drop(theirs.pops)
        # 3. New objects among the operands escape: from now on any code may change them, so each pair becomes a symbol.
        #     x = [a]; g(x); return x[0]       is refused against           x = [a]; g(x); return a
        matcher.escape(offsets[0])
        # 4. The successors: the exception, the end of the loop, and the next operation.
        if mine.outcome != "safe":
            self._exception(joint, offsets[0])
        if mine.outcome == "raise":
            return False
        if mine.outcome == "for":
            todo.append(self._exhausted(joint))
        self._complete(joint, mine, theirs, offsets[0])
        return True

    def _complete(self, joint: Joint, mine: Event, theirs: Event, offset: int) -> None:
        """Complete the event: both sides get the same results."""
        values = self._machine.values
        results: List[Value] = [
            Sym(f"{mine.kind} at {offset}", counted=letter == "v", is_bool=letter == "b") for letter in mine.results
        ]
        # A call that returns a tuple of known length (``Hints.tuple_results``): unpacking it later is silent.
        count = self._tuples.get(mine.operands[0]) if mine.kind == "call" else None
        if count is not None:
            results = [Sym(f"item {index} of the call at {offset}") for index in range(count)]
        # The part of a group that an ``except*`` matches, or what was handled before if it matches nothing.
        handled = Sym(f"handled at {offset}") if mine.outcome == "handles" else None
        for side, event in ((joint.left, mine), (joint.right, theirs)):
            if handled is not None:
                side.set_handled(handled)
            # What the event has shown holds from now on on this path: that values are cells, or that a local is bound.
            if event.outcome == "cells":
                joint.facts.update((values.fits_closures(each), values.true) for each in event.operands)
            if event.outcome == "bound":
                side.bind(str(event.arg))
            if count is not None:
                side.push(side.allocate(Fresh("tuple", tuple(results))))
            else:
                for result in results:
                    side.push(values.negate(result) if event.negated else result)
            if event.advance:
                side.position += 1
                if side.position in side.program.joins:
                    side.crossed = True

    def _check_handled(self, joint: Joint) -> None:
        """Compare ``sys.exc_info``; the difference is certain if one side is outside of all handlers."""
        if joint.left.handled is not joint.right.handled:
            outside = OUTER in (joint.left.handled, joint.right.handled)
            raise MismatchError(
                Finding.DIFFERENT if outside else Finding.UNVERIFIED,
                f"different exceptions are being handled {where(joint)}",
            )

    def _check_lifetimes(self, joint: Joint) -> None:
        """Compare the values that the frames keep alive."""
        if not joint.onesided:
            return
        held = joint.onesided - self._excused(joint)
        if not held:
            return
        self._doubt = self._doubt or lifetimes(joint, held, where(joint))
        right = joint.right
        # The reason names the first difference; ``_overdue`` collects all variables of the candidate that the
        # decompiler might delete earlier, as in ``x = g(); del x; h()`` against ``x = g(); h()``.
        offset = offsets_of(joint)[1]
        for name, value in right.locals.items():
            value = value.inner if isinstance(value, Maybe) else value
            if value in held and value in right.counts:
                self._overdue.add((name, offset))

    def _excused(self, joint: Joint) -> Set[Value]:
        """Return the one-sided values that may be alive on one side only: those in the original's droppable
        variables (the candidate releases them earlier), and those in the candidate's own variables while an exception
        unwinds (the original's stack was cut, but a variable lives as long as the frame)."""
        left, right = joint.left, joint.right
        excused = {value for value in joint.onesided if value not in right.counts}
        if excused:
            excused &= left.reached([left.locals[name] for name in self._droppable if name in left.locals])
        if right.handled is not OUTER:
            # After an exception: in ``h(g())`` the result of g() is on the stack, which unwinding has cut; the
            # candidate's ``t = g(); h(t)`` still has it in ``t`` while the handler runs.
            names = left.program.locals
            own = [value for name, value in right.locals.items() if name not in names]
            own += [value.inner for value in own if isinstance(value, Maybe)]
            excused |= {value for value in own if value not in left.counts}
        return excused

    def _check_locals(self, joint: Joint, matcher: Matcher) -> None:
        """Compare the variables of both programs that changed since the last event: they are observable now."""
        left, right = joint.left, joint.right
        if not (left.stored or right.stored):
            return
        for name in {**left.stored, **right.stored}:
            if name not in self._common:
                continue
            mine, theirs = left.locals.get(name), right.locals.get(name)
            # ``x = 1; g()`` against ``x = 2; g()``: g may read the variable through the frame.
            if mine is not theirs and (mine is None or theirs is None or not matcher.same(mine, theirs)):
                self._doubt = self._doubt or local_differs(name, mine, theirs, matcher, where(joint))
            elif name in left.stored and name in right.stored:
                self._pairs.add((left.stored[name], right.stored[name]))
        left.stored.clear()
        right.stored.clear()

    def _exception(self, joint: Joint, offset: int) -> None:
        """Let the event raise: both sides continue at their handlers, or leave the function."""
        handlers = [side.program.ops[side.position].handler for side in joint.sides()]
        if handlers == [None, None]:
            # It leaves both functions. Their variables, which the traceback shows, were compared with the event.
            self._check_ways_out(joint, joint.left.outside, joint.right.outside)
            return
        # In ``try: a; b; c; ...`` each operation may raise to the same handler. If nothing that the handler can see has
        # changed since the last one on this path, that state is explored already.
        key = (joint.path, *(side.seen_by(handler) for side, handler in zip(joint.sides(), handlers)))
        if key in self._raised:
            return
        self._raised.add(key)
        # A side without a handler unwinds everything; the other one may still catch the exception.
        raised = joint.trimmed([0 if handler is None else handler.depth for handler in handlers])
        exception = Sym(f"exception at {offset}")
        for side, handler in zip(raised.sides(), handlers):
            side.unwind(handler, exception)
            side.crossed = False
        self._arrive(raised)

    def _exhausted(self, joint: Joint) -> Joint:
        other = joint.clone()
        for side in other.sides():
            target = side.program.ops[side.position].target
            assert target is not None
            side.pop()
            side.position = target
            side.crossed = target in side.program.joins
        return other

    def _check_ways_out(self, joint: Joint, left: int, right: int) -> None:
        """Compare how an exception leaves both sides: as it is, or as a RuntimeError if it is a StopIteration.

        Only events raise, both sides do the same ones, and this depends on the last operation that raised the
        exception: that of the event, or the RERAISE of a handler. So the sides are compared wherever one of them has no
        handler: at the event if neither has, else at the exits, as the position remembers the operation.
        """
        if left != right and self._doubt is None:
            self._doubt = f"a StopIteration may leave only one of both generators as it is, {where(joint)}"

    # --- where paths meet

    def _arrive(self, joint: Joint) -> None:
        left, right = joint.left, joint.right
        # 1. Bring the state into the form in which states are compared.
        settle(joint, self._machine, self._matcher(joint), self._common)
        stops = (left.position, right.position)
        # 2. Find the states that it may be joined with: those at the same pair of positions with the same live flags.
        # The values of a flag are kept apart up to a limit: a counter that is tested would have a state for each
        # number.
        key: Key = (*stops, *_flags(left, self._flags[0]), *_flags(right, self._flags[1]))
        variants = self._variants.setdefault(stops, set())
        if key not in variants and len(variants) >= VARIANTS:
            key = stops
        variants.add(key)
        # 3. No event since the last stored state: an edge of the graphs of ``_SilentSteps``.
        if joint.origin is not None:
            self._silent.step(joint.origin, key, (left.moved, right.moved))
        # 4. Explore from here (again) unless the stored state already represents this one.
        stored = self._nodes.get(key)
        if stored is not None:
            joined = join(stored, joint, self._machine.values)
            if joined is None:
                return
            joint = joined
        self._nodes[key] = joint
        if key not in self._queued:
            self._queued.add(key)
            heapq.heappush(self._queue, (*stops, next(self._tickets), key))

    # --- small helpers

    def _matcher(self, joint: Joint) -> Matcher:
        return Matcher(joint, self._machine, self._compare_codes, self._renamed)

    def _pair(self, joint: Joint) -> OffsetPair:
        left, right = offsets = offsets_of(joint)
        if left >= 0 and right >= 0:
            self._pairs.add(offsets)
        return offsets


def _flags(side: Side, live: Mapping[int, FrozenSet[str]]) -> List[Hashable]:
    """Return the constants in live flags of one side: part of the key of a join point."""
    found: List[Hashable] = []
    for name in sorted(live.get(side.position, ())):
        value = side.locals.get(name)
        if isinstance(value, Const) and type(value.value) in FOLDABLE:
            found.append((name, value))
    return found


def _start(original: Program, candidate: Program, arguments: Sequence[str], values: ValueTable) -> Joint:
    """Return the first state: both sides have the same arguments, and the cells that the interpreter has made."""
    joint = Joint.start(original, candidate)
    for name in arguments:
        argument = Sym(f"argument {name}")
        for side in joint.sides():
            side.locals[name] = argument
            side.hold(argument)
    for name in original.changing_cells | candidate.changing_cells:
        for side in joint.sides():
            side.locals[cell_name(name)] = values.named("cell", name)
    return joint


# --- divergence


class _SilentSteps:
    """The steps between join points without an event, apart for those in which the left or the right side is idle.

    A coinductive proof may assume its own goal only after a step of both sides. Between two join points without an
    event, one side may move and the other not. A cycle of such steps in which one side never moves would accept a
    function that diverges silently in place of one that continues.
    """

    def __init__(self) -> None:
        self._idle: Tuple[Dict[Key, Set[Key]], Dict[Key, Set[Key]]] = ({}, {})

    def step(self, start: Key, end: Key, moved: Tuple[bool, bool]) -> None:
        """Record a step without an event from ``start`` to ``end``; ``moved`` is whether each side moved."""
        for graph, has_moved in zip(self._idle, moved):
            if not has_moved:
                graph.setdefault(start, set()).add(end)

    def waits_for_ever(self) -> bool:
        """Return whether there is a cycle in which one side does not move."""
        return any(_has_cycle(graph) for graph in self._idle)


def _has_cycle(graph: Dict[Key, Set[Key]]) -> bool:
    done: Set[Key] = set()
    for root in graph:
        on_path: Set[Key] = set()
        todo: List[Tuple[Key, bool]] = [(root, False)]
        while todo:
            key, leaving = todo.pop()
            if leaving:
                on_path.discard(key)
                done.add(key)
            elif key in on_path:  # an edge back into the current path closes a cycle
                return True
            elif key not in done:
                on_path.add(key)
                todo.append((key, True))
                todo.extend((after, False) for after in graph.get(key, ()))
    return False
