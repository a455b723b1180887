"""Install the hooks of ``prepare_debug`` in PyTorch, and give what they report to all open sessions.

Hooks are installed when the first session starts and removed when the last one ends. Files about a whole session (its
``full_code`` files, notes, page and manifest) are written by ``dump/``, which registers its ``Writer`` here.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import weakref
from collections import deque
from types import CodeType
from typing import Callable, Deque, Dict, Iterator, List, Optional, Sequence, Tuple

from depyf.base.asynchronous import is_asynchronous
from depyf.base.locks import Lock
from depyf.base.messages import warn
from depyf.base.own_builtins import keep_builtins
from depyf.base.without_collector import without_collector
from depyf.dynamo.capture.cache_keys import CacheKeys
from depyf.dynamo.capture.call_sites import CallSites
from depyf.dynamo.capture.cudagraphs import watch_cudagraphs, watch_rerecords
from depyf.dynamo.capture.fallbacks import Fallbacks
from depyf.dynamo.capture.graphs import GraphModules, dump_graph, run_from_files
from depyf.dynamo.capture.kernels import watch_kernels
from depyf.dynamo.capture.passes import event_of_pass, note_custom_passes, write_passes
from depyf.dynamo.capture.persisted import watch_persisting
from depyf.dynamo.capture.plain_calls import note_settings, watch_plain_calls, why_empty
from depyf.dynamo.capture.provenance import Provenance
from depyf.dynamo.capture.recompile_facts import with_live_facts
from depyf.dynamo.capture.records import CompiledFunction
from depyf.dynamo.capture.session import Session
from depyf.dynamo.capture.shadow_looks import Count, ShadowLook
from depyf.dynamo.capture.trace_by_hooks import supplement
from depyf.dynamo.capture.transformed import bytecode_hook
from depyf.dynamo.capture.warm_caches import WarmCaches
from depyf.dynamo.capture.wrappers import watch_wrappers
from depyf.dynamo.hooks import compile_ids, frame_evaluation, private_names
from depyf.dynamo.hooks.attribution import Attribution, GraphOwners, standalone_name
from depyf.dynamo.hooks.compiled_names import watch_compiled_names
from depyf.dynamo.hooks.debuggers import end_tracing_at_exit, keep_dynamo_out_of_stops, watch_autograd_threads
from depyf.dynamo.hooks.graph_passes import GraphPasses
from depyf.dynamo.hooks.hooked_context import install, uninstall
from depyf.dynamo.hooks.late_modules import when_imported
from depyf.dynamo.hooks.loaded_modules import one_reading
from depyf.dynamo.hooks.patching import Undo, put_back_uncovered
from depyf.dynamo.hooks.run_callback import watch_runs
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.hooks.structured_trace_listener import listen
from depyf.dynamo.hooks.torch_names import PrivateName
from depyf.dynamo.store.names import compiled_fn_number
from depyf.dynamo.store.process_end import at_process_end
from depyf.torch_trace.events import METRICS, PHASE, STANDALONE, START, Event

keep_builtins(globals())

_DEBUGGERS = ("debugpy", "pydevd", "_pydevd_bundle")
"""Before PyTorch 2.6 Dynamo would compile the functions that lead to a stop. (At the stop it is switched off.)"""

_RUNS = 1 << 21
"""Keep at most this many runs until they are counted, at each compilation and at the end."""


class Writer:
    """What writes the files about whole sessions. This one writes none; ``dump/session_files.py`` has the real one."""

    def begin(self, session: Session) -> None:
        """Note that ``session`` receives from now on."""

    def flush(self, session: Session) -> None:
        """Write the files that need the whole session, for all that was compiled since the last call."""

    def finish(self, session: Session) -> None:
        """Write what can be written only when ``session`` has stopped, after ``flush``."""

    def write_page(self, session: Session) -> None:
        """Write the page, the index and the manifest now: the process ends."""

    def keep(self, session: Session) -> None:
        """Keep the records of ``session``, which has ended, for the files of a later session."""

    def write_postponed(self) -> None:
        """Write at process exit what was postponed."""

    def reset_after_fork(self) -> None:
        """Drop, in a forked child, what the parent reports."""


class Capture:
    """The sessions that are open, and the hooks that feed them."""

    def __init__(self) -> None:
        self.writer = Writer()
        self._lock = Lock()
        self._sessions: Tuple[Session, ...] = ()
        self._apart: Dict[int, Tuple[Session, ...]] = {}
        """The sessions of threads that compile for a question."""
        self._undo: List[Undo] = []
        self._owners = GraphOwners()
        self._modules = GraphModules(self._owners)
        self._attribution = Attribution(self._owners, self._name_compiled, self._inductor_ended, self._receive)
        self._names: Dict[str, Tuple[str, int]] = {}
        self._provenance = Provenance(self._modules.alive)
        self._call_sites = CallSites()
        self._caches = WarmCaches(self.receivers, self._receive)
        self._cache_keys = CacheKeys(self._start_of)
        self._fallbacks = Fallbacks(self.receivers)
        self._passes = GraphPasses(lambda observed: self._receive(event_of_pass(observed)))
        self._is_registered_at_exit = False
        self._runs: Deque[CodeType] = deque(maxlen=_RUNS)
        """The transformed code that has run and is not counted yet. C code appends to it (``run_callback``)."""
        self.last_directory: Optional[str] = None
        self._shadows: List[Count] = []

    def current(self) -> Optional[Session]:
        """Return the innermost session, or None."""
        sessions = self._sessions
        return sessions[-1] if sessions else None

    def receivers(self, compile_id: Optional[str] = None) -> Sequence[Session]:
        """Return the sessions that receive now, the innermost last. One directory gets everything once.

        ``compile_id`` is the compilation that is reported, if it is not the compilation that runs now.
        """
        if self._apart:
            own = self._apart.get(threading.get_ident())
            if own is not None:
                return own
        found: Sequence[Session] = self._sessions
        # Of several sessions into one directory only the innermost receives.
        if len(found) > 1:
            by_directory = {id(session.directory): session for session in found}
            found = [session for session in found if by_directory[id(session.directory)] is session]
        if all(session.only is None for session in found):
            return found
        compile_id = compile_ids.current_compile_id() if compile_id is None else compile_id
        return [session for session in found if session.wants(compile_id)]

    @contextlib.contextmanager
    def apart(self, *sessions: Session) -> Iterator[None]:
        """Report what this thread compiles in the block to ``sessions`` alone: a question compiles copies, which are no
        part of the program that other sessions record. Within such a block, another one changes nothing."""
        thread = threading.get_ident()
        if thread in self._apart:
            yield
            return
        self._apart[thread] = sessions
        try:
            yield
        finally:
            self._apart.pop(thread, None)

    @safely("starting to capture")
    def start(self, session: Session) -> None:
        """Start ``session``. After an asynchronous exception it is not started."""
        try:
            with self._lock:
                self.count_runs()
                session.looks = [ShadowLook(each) for each in self._shadows]
                self._sessions = (*self._sessions, session)
                self.last_directory = session.directory.path
                self.writer.begin(session)
                safely("noting what keeps Dynamo from compiling")(note_settings)(session)
                self._register_at_exit()
                if not self._undo:  # the first session, or the next one after a first that failed before this line
                    self._install()
                self._caches.follow(self._sessions)
        except BaseException as error:
            if not isinstance(error, Exception) or is_asynchronous(error):
                self.drop(session)
            raise

    @safely("ending the capture")
    def stop(self, session: Session) -> None:
        """End this session, at whatever level of nesting, and write what can be written only now."""
        has_received = any(each is session for each in self._sessions)
        # A full pass of the garbage collector, over all objects of the program, takes longer than the manifest.
        with without_collector():
            self._detach(session)
            self._write_the_rest(session, has_received=has_received)

    def drop(self, session: Session) -> None:
        """End this session after an asynchronous exception, without reports and however far ending it came."""
        safely("ending the capture")(self._detach)(session)
        safely("keeping what a session has seen")(self.writer.keep)(session)

    @contextlib.contextmanager
    def set_aside(self, session: Session) -> Iterator[None]:
        """Let ``session`` receive nothing in the block, and take the hooks out if no other session is open: calls in it
        are timed as they are without depyf. The block must compile nothing that ``session`` is to have."""
        was_open = any(each is session for each in self._sessions)
        self._detach(session)
        try:
            yield
        finally:
            with self._lock:
                if was_open:
                    self._sessions = (*self._sessions, session)
                    if not self._undo:
                        self._install()
                    self._caches.follow(self._sessions)

    def begin_shadow(self, count: Count) -> None:
        """Note in the sessions that are open, and in those that start meanwhile, how far a ``shadow`` looks."""
        with self._lock:
            self._shadows.append(count)
            for session in self._sessions:
                session.looks.append(ShadowLook(count))

    def end_shadow(self, count: Count) -> None:
        """End what ``begin_shadow`` has begun. May be called again."""
        with self._lock:
            self._shadows = [each for each in self._shadows if each != count]
            for session in self._sessions:
                for look in session.looks:
                    if look.count == count:
                        look.end()

    def _detach(self, session: Session) -> None:
        """Stop ``session``. May be called again if it was interrupted."""
        with self._lock:
            self.count_runs()
            self._sessions = tuple(each for each in self._sessions if each is not session)
            for look in session.looks:
                look.end()
            self._caches.follow(self._sessions)
            if not self._sessions:
                self._uninstall()

    def _write_the_rest(self, session: Session, *, has_received: bool) -> None:
        safely("noting what keeps Dynamo from compiling")(note_settings)(session)
        self.writer.flush(session)
        self.writer.finish(session)
        nothing = safely("looking why nothing was compiled")(why_empty)(session)
        if nothing and has_received:
            warn("%s. The dump in %s has no graphs", nothing, session.directory.path)
        safely("keeping what a session has seen")(self.writer.keep)(session)

    def flush_so_far(self) -> None:
        """Write the full_code files of everything compiled so far, before the cache entries that they are read from are
        removed.
        """
        for session in self._sessions:
            with without_collector():
                safely("writing what was compiled so far")(self.writer.flush)(session)
            session.wanted.clear()

    def _register_at_exit(self) -> None:
        """Register what flushes open sessions when the process ends. Forked children flush what they compiled."""
        if self._is_registered_at_exit:
            return
        end_tracing_at_exit()
        at_process_end(self._flush_all, priority=0)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._reset_after_fork)
        self._is_registered_at_exit = True

    def _flush_all(self) -> None:
        for session in self._sessions:
            with without_collector():
                safely("writing what was compiled so far")(self.writer.flush)(session)
                safely("writing the manifest")(self.writer.write_page)(session)
        safely("writing the page")(self.writer.write_postponed)()

    def _reset_after_fork(self) -> None:
        self._runs.clear()
        for session in self._sessions:
            session.unreported()
            session.held.clear()  # another thread of the parent was compiling
        self.writer.reset_after_fork()

    @one_reading()
    def _install(self) -> None:
        # 1. What Dynamo is not to compile: depyf's own functions, and a debugger's.
        for package in ("depyf", *(each for each in _DEBUGGERS if each in sys.modules)):
            self._add(functools.partial(frame_evaluation.keep_dynamo_out, package))
        self._add(keep_dynamo_out_of_stops)
        # 2. Events: the structured trace, and what an older PyTorch's trace lacks.
        self._add(lambda: listen(self._receive))
        self._add(lambda: supplement(self._receive, self._passes.printed))
        # 3. What the events do not say: live graph modules, call sites, the compilation of later work, names, cache
        # keys.
        self._add(self._modules.watch)
        self._add(self._call_sites.watch)
        self._add(self._attribution.watch)
        self._add_late(private_names.COMPILE_FX, self._attribution.watch_inductor)
        self._add(lambda: watch_compiled_names(self._note_name))
        self._add_late(private_names.GUARDED_CACHE, self._caches.watch)
        self._add(self._watch_reset)
        # 4. Code that is to run from files. Inductor's modules are hooked when the program imports Inductor.
        self._add(watch_persisting)
        self._add(self._watch_bytecode)
        self._add_late(private_names.PY_CODE_CACHE, lambda: watch_kernels(self.receivers))
        self._add(lambda: watch_wrappers(self.receivers))
        # 5. The rest: debuggers in autograd's threads, what runs eagerly, passes, launches, runs, CUDA graphs.
        self._add(watch_autograd_threads)
        self._add(lambda: watch_plain_calls(self.receivers))
        self._add(self._fallbacks.watch)
        self._add_late(private_names.GRAPH_TRANSFORM_OBSERVER, self._passes.watch)
        self._add_late(private_names.LAUNCH_TRACER, self._provenance.launches.watch)
        self._add_late(private_names.WHY_NO_FUSE, lambda: self._provenance.fusions.watch_scheduler())
        self._add_late(private_names.CPP_FUSES_VERTICALLY, lambda: self._provenance.fusions.watch_cpp())
        self._add(lambda: watch_runs(self._runs.append))
        self._add(lambda: watch_cudagraphs(self.receivers))
        self._add_late(private_names.CUDAGRAPH_MANAGER, lambda: watch_rerecords(self.receivers))

    def _add(self, hook: Callable[[], object]) -> None:
        install(self._undo, "hooking into torch", hook)

    def _add_late(self, name: PrivateName, hook: Callable[[], object]) -> None:
        """Install a hook that replaces ``name`` when the program imports the module that has it."""
        self._add(functools.partial(when_imported, name.module, hook))

    @one_reading()
    def _uninstall(self) -> None:
        uninstall(self._undo, "taking a hook out of torch")

    def _watch_reset(self) -> Optional[Undo]:
        """Flush the sessions before ``torch._dynamo.reset`` deletes the cache entries."""
        original = private_names.DYNAMO_RESET.find()
        if original is None:
            return None

        @functools.wraps(original)
        def reset(*args: object, **kwargs: object) -> object:
            self.flush_so_far()
            if not self._sessions:  # left over, as the program had replaced ``reset`` when the session ended
                put_back_uncovered()
            return original(*args, **kwargs)

        return private_names.DYNAMO_RESET.replace(reset)

    def _watch_bytecode(self) -> Optional[Undo]:
        return frame_evaluation.watch_bytecode(bytecode_hook(self.receivers, self._graphs_are_complete))

    def count_runs(self) -> None:
        """Count in the open sessions what transformed code has run since the last time."""
        # A full deque has dropped its oldest runs: from now on no count is right.
        overflown = len(self._runs) == self._runs.maxlen
        while self._runs:
            with contextlib.suppress(IndexError):  # another thread counts, too
                code = self._runs.popleft()
                for session in self._sessions:
                    session.runs_are_known = session.runs_are_known and not overflown
                    # By id, as equal code objects of two functions run; the id of a deleted one may be used again.
                    known = session.ran.get(id(code))
                    if known is None or known[0]() is not code:
                        session.ran[id(code)] = [weakref.ref(code), 1]
                    else:
                        known[1] += 1

    @safely("noting the name of a compiled function")
    def _note_name(self, name: str) -> None:
        number = compiled_fn_number(name)
        if number is None:
            return
        compile_id = compile_ids.current_compile_id()
        self._attribution.captured(compile_id)
        if compile_id is not None:
            self._names[compile_id] = name, number
        for session in self.receivers():
            session.add(CompiledFunction(compile_id, name, number))

    def _name_compiled(self, compile_id: str) -> None:
        """Record that Inductor starts to work for this compilation, which may be another session's, or depyf's own."""
        named = standalone_name(compile_id) if compile_id.startswith(STANDALONE) else self._names.get(compile_id)
        for session in self.receivers(compile_id):
            if named is not None and session.compiled_function(compile_id) is None:
                session.add(CompiledFunction(compile_id, *named))

    def _inductor_ended(self, compile_id: str, *, outermost: bool) -> None:
        self._caches.forget(compile_id)
        if outermost:
            self._run_from_files(compile_id)

    @safely("reading a graph from torch's trace")
    def _receive(self, event: Event) -> None:
        event = self._attribution.attributed(event)
        # Phases are many, and nothing else wants them.
        if event.name == PHASE:
            for session in self.receivers(event.compile_id):
                session.add(event)
            return
        self.count_runs()
        event = with_live_facts(self._cache_keys.of(event))
        for session in self.receivers(event.compile_id):
            session.add(event)
            _write_graph_file(session, event)
            note_custom_passes(session, event)
        self._caches.event(event)
        # depyf's own events follow the event that they are about, and are stored beside warm caches as well.
        for more in (self._provenance.of(event), self._call_sites.of(event)):
            if more is not None:
                self._receive(more)
        # The end of a compilation, or of a backward that was compiled when it was first called: all files are written.
        if event.name in METRICS:
            if event.compile_id is not None:
                self._run_from_files(event.compile_id)
                self._caches.forget(event.compile_id)

    def _start_of(self, compile_id: str) -> Optional[Event]:
        """Return the last event with which a compilation of this id started."""
        sessions = self.receivers(compile_id)
        return next(iter((sessions[-1].events(START, compile_id) if sessions else [])[-1:]), None)

    def _graphs_are_complete(self) -> None:
        compile_id = compile_ids.current_compile_id()
        if compile_id is not None:
            self._run_from_files(compile_id)

    @safely("making graphs run from their files")
    def _run_from_files(self, compile_id: str) -> None:
        modules = self._modules.take(compile_id)
        ran = self._passes.take_count(compile_id)
        with without_collector():
            for session in self.receivers(compile_id):
                safely(f"listing the passes of compile id {compile_id}")(write_passes)(session, compile_id, ran)
                safely(f"making the graphs of compile id {compile_id} run from their files")(run_from_files)(
                    session, compile_id, modules
                )


@safely("writing a graph file")
def _write_graph_file(session: Session, event: Event) -> None:
    with without_collector():
        dump_graph(session, event)


capture = Capture()
"""The process's capture: hooks are global to the process, and so is this."""
