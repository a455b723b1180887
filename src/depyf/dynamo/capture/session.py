"""All records of a session. They are only ever added: hooks add here, and readers install no hooks."""

from __future__ import annotations

import weakref
from types import CodeType
from typing import TYPE_CHECKING, Any, Callable, ClassVar, Dict, List, Optional, Sequence, Tuple, Type

from depyf.base.locks import Lock
from depyf.dynamo.capture.records import CompiledFunction, GraphFile, KernelFile, R, Record, TransformedCode
from depyf.dynamo.capture.shadow_looks import ShadowLook
from depyf.dynamo.hooks import frame_evaluation, frames
from depyf.dynamo.store.directory import DumpDirectory
from depyf.dynamo.store.names import StableNames
from depyf.report.render.hidden_values import ALL, TYPES, HiddenValues
from depyf.torch_trace import file_names
from depyf.torch_trace.events import Event, without_bulk
from depyf.torch_trace.stages import AnyStage, GraphText

if TYPE_CHECKING:
    import torch

    from depyf.answers.profiled import Profiled

NO_NAME = "__compiled_fn_-1"
"""The prefix of files that belong to no compilation, and the result of ``get_current_compiled_fn_name`` then."""


class Session:
    """All records of one ``prepare_debug``. Threads may add and read at the same time."""

    reached_limits: ClassVar[bool] = False
    """Whether any session has seen a recompile limit: calls are counted from then on."""

    def __init__(
        self,
        directory: DumpDirectory,
        *,
        clean_wild_fx_code: bool,
        log_bytecode: bool,
        force_recompile: bool = False,
        stepping: bool = True,
        values: str = ALL,
        everything: bool = False,
    ) -> None:
        self.directory = directory
        self.clean_wild_fx_code = clean_wild_fx_code
        self.log_bytecode = log_bytecode
        self.force_recompile = force_recompile
        self._stepping = stepping
        self.everything = everything  # each stage has a file of its own, beside the others (``dump="all"``)
        self.unmoved: weakref.WeakSet[torch.fx.GraphModule] = weakref.WeakSet()  # have a file, do not run from it
        self.graph_texts: Dict[str, GraphText] = {}  # what files compile to, by path, until the compilation ends
        self.stable = StableNames(HiddenValues() if values == TYPES else None)
        self._lock = Lock()
        self._records: List[Record] = []
        self._by_compile_id: Dict[Optional[str], List[Record]] = {}
        self._by_kind: Dict[type, List[Any]] = {}
        self._graphs: Dict[str, Dict[Tuple[AnyStage, int], GraphFile]] = {}
        self._kernels: Dict[str, List[KernelFile]] = {}
        self._names: Dict[Optional[str], CompiledFunction] = {}
        self._reported = 0
        self._watchers: List[Callable[[Event], object]] = []
        self.only: Optional[Callable[[CodeType], bool]] = None
        """A predicate for the functions that are recorded; None: all."""
        self.notes: List[str] = []  # about the whole dump, for the index, the page and the manifest
        self.wanted: Dict[str, bool] = {}
        """The compilations that were checked, until Dynamo is reset and reuses their ids."""
        self.runs_are_known = True
        self.ran: Dict[int, List[Any]] = {}
        """The transformed code that has run, by its id: a weak reference to it and how often (a list, because whoever
        counts does it while Dynamo is on, which would trace the methods of a class)."""
        self.plain_calls: Dict[str, Dict[str, None]] = {}
        """The functions that the program ran eagerly, by the reason."""
        self.unguarded_calls: Dict[str, Dict[str, int]] = {}
        """How many calls of each function had guards that were not checked, by what left the guards out."""
        self.limited: Dict[int, Tuple[weakref.ref[CodeType], Optional[int]]] = {}
        """Code whose recompile limit was reached, by its id: a reference to it, and the runs of its entries before."""
        self.limited_calls: Dict[int, int] = {}  # the calls of this code, from the one on that reached the limit
        self.profiled: List[Profiled] = []  # what was measured while the session was open
        self.held: Dict[Optional[str], Tuple[GraphFile, GraphText]] = {}  # written if the next graph differs
        self.looks: List[ShadowLook] = []  # how far each ``shadow`` has looked meanwhile
        self.graph_times: Dict[Tuple[str, bool], Tuple[int, float]] = {}
        """How often graphs have run in traces and how long, by name, and whether it is the backward."""

    @property
    def stepping(self) -> bool:
        """Whether code runs from the files of the dump; False leaves compiled code where PyTorch has put it.

        Dynamo traces a frame whose file it does not know, so code that runs from a file must be skipped explicitly.
        """
        return self._stepping and self.directory.may_run_code and frame_evaluation.can_skip_code()

    def message(self, text: str) -> str:
        """Return a text for people as the files of the dump have it: without hidden values."""
        return text if self.stable.hidden is None else self.stable.hidden.message(text)

    def in_stages(self, name: str) -> str:
        """Return the name, relative to the directory, of a file that is rarely read: in the folder of stages, unless
        all are to be beside each other, or an earlier run has left the file there."""
        return name if self.everything or self.directory.has(name) else file_names.in_stages(name)

    def add(self, record: Record) -> None:
        if isinstance(record, Event):
            kept = record if record.text is None else without_bulk(record)
            with self._lock:
                self._append(kept)
            for watch in self._watchers:
                watch(record)
            return
        with self._lock:
            self._append(record)
            if isinstance(record, CompiledFunction):
                self._names[record.compile_id] = record

    def wants(self, compile_id: Optional[str]) -> bool:
        """Return whether this compilation is to be recorded. A new compilation is checked while it runs."""
        if self.only is None or compile_id is None:
            return True
        wanted = self.wanted.get(compile_id)
        if wanted is None:
            code = frames.code_being_compiled()
            if code is None:
                return True
            wanted = self.wanted[compile_id] = self.only(code)
        return wanted

    def watch(self, watch: Callable[[Event], object]) -> None:
        """Start to call ``watch`` with every torch event, on the thread that compiles; it must not raise."""
        self._watchers.append(watch)

    def _append(self, record: Record) -> None:
        self._records.append(record)
        self._by_compile_id.setdefault(record.compile_id, []).append(record)
        self._by_kind.setdefault(type(record), []).append(record)
        if isinstance(record, GraphFile):
            self._graphs.setdefault(record.function, {})[record.stage, record.index] = record
        elif isinstance(record, KernelFile):
            self._kernels.setdefault(record.function, []).append(record)

    def records(self, kind: Type[R], compile_id: Optional[str] = None) -> List[R]:
        """Return the records of one kind in the order of their arrival, optionally those of one compile id."""
        with self._lock:
            if compile_id is None:
                return list(self._by_kind.get(kind, ()))
            return [record for record in self._by_compile_id.get(compile_id, ()) if isinstance(record, kind)]

    def all_records(self) -> List[Record]:
        """Return all records in the order of their arrival."""
        with self._lock:
            return list(self._records)

    def count(self) -> int:
        """Return the number of all records."""
        return len(self._records)

    def times_run(self, record: TransformedCode) -> Optional[int]:
        """Return how often this transformed code has run in the session, ``None`` if it was deleted."""
        code = record.running_code()
        ran = None if code is None else self.ran.get(id(code))
        if not self.runs_are_known:  # too many between two compilations for all of them to be counted
            return None
        if ran is None:
            return None if code is None else 0
        return int(ran[1])

    def note_limit(self, code: CodeType) -> None:
        """Count the calls of this code from now on, if the current call is one that can be counted: of the compiled
        function itself, and not of a function that it calls."""
        if frames.code_that_runs(frames.called_function()) is code:
            # The count first: another thread counts what it finds in ``limited``.
            self.limited_calls.setdefault(id(code), 1)
            self.limited.setdefault(id(code), (weakref.ref(code), self._runs_of(code)))
            Session.reached_limits = True

    def count_call(self, code: Optional[CodeType]) -> None:
        """Count a call of a compiled function with this code, if its limit has been reached."""
        if id(code) in self.limited:
            self.limited_calls[id(code)] += 1

    def plain_after_limit(self, code: Optional[CodeType]) -> Optional[int]:
        """Return how many calls of this code ran as plain Python since its limit was reached; None if unknown."""
        known = None if code is None else self.limited.get(id(code))
        if code is None or known is None or known[0]() is not code:
            return None
        before, after, calls = known[1], self._runs_of(code), self.limited_calls[id(code)]
        # With calls that do not come through the compiled function (recursion), more entries run than calls come.
        return None if before is None or after is None or after - before > calls else calls - (after - before)

    def _runs_of(self, code: CodeType) -> Optional[int]:
        """Return how often the entries of this code have run; None if it is not known of each."""
        made = [each for each in self.records(TransformedCode) if each.original_code() is code]
        runs = [self.times_run(each) for each in made]
        known = [each for each in runs if each is not None]
        return sum(known) if len(known) == len(runs) and frame_evaluation.reports_runs() else None

    def compiled_function(self, compile_id: Optional[str]) -> Optional[CompiledFunction]:
        """Return the compiled function whose graph this compilation is making or made last."""
        with self._lock:
            return self._names.get(compile_id)

    def function_name(self, compile_id: Optional[str]) -> str:
        """Return the prefix of this compilation's files: ``__compiled_fn_<id>``, or words if there is no name."""
        named = self.compiled_function(compile_id)
        if named is not None:
            return named.stable_name
        return NO_NAME if compile_id is None else "compile_" + compile_id.replace("/", "_").replace("!", "a")

    def codes_that_ran(self) -> List[CodeType]:
        """Return the transformed code that has run and still exists, in the order of the first runs."""
        return [code for code in (ran[0]() for ran in list(self.ran.values())) if code is not None]

    def compile_ids(self) -> List[str]:
        """Return the ids of all compilations seen, in the order in which they appeared."""
        with self._lock:
            return [compile_id for compile_id in self._by_compile_id if compile_id is not None]

    def unreported(self) -> Session:
        """Return a session of the records that were added since the last call, and count them as reported."""
        rest = self.of_records(())
        with self._lock:
            rest._names = dict(self._names)
            for record in self._records[self._reported :]:
                rest._append(record)
            self._reported = len(self._records)
        return rest

    def of_records(self, records: Sequence[Record]) -> Session:
        """Return a session of other records, with the settings of this one."""
        other = Session(
            self.directory,
            clean_wild_fx_code=self.clean_wild_fx_code,
            log_bytecode=self.log_bytecode,
            force_recompile=self.force_recompile,
            stepping=self._stepping,
            everything=self.everything,
        )
        other.stable = self.stable
        for record in records:
            other.add(record)
        return other

    def original_codes(self) -> List[CodeType]:
        """Return the user's code objects (resume functions too) that have transformed code and are still alive."""
        alive = (record.original_code() for record in self.records(TransformedCode))
        unique = {id(code): code for code in alive if code is not None}
        return list(unique.values())

    def graph_files(self, compile_id: Optional[str] = None) -> List[GraphFile]:
        """Return the graph files as they are now: a file that was rewritten is listed once, with its last text."""
        latest = {(r.function, r.stage, r.index): r for r in self.records(GraphFile, compile_id)}
        return list(latest.values())

    def files_of(self, function: str) -> Tuple[List[GraphFile], List[KernelFile]]:
        """Return the graph files, as ``graph_files`` does, and the kernels of the compiled function of that name."""
        with self._lock:
            return list(self._graphs.get(function, {}).values()), list(self._kernels.get(function, ()))

    def events(self, name: str, compile_id: Optional[str] = None) -> List[Event]:
        """Return the trace's events of that name."""
        return [event for event in self.records(Event, compile_id) if event.name == name]


Receivers = Callable[[], Sequence[Session]]
"""How a hook asks which sessions to add to: of nested ones, which dump into directories of their own, all, the
innermost last. Code runs from the files of the innermost; the others get the same files to read.
"""
