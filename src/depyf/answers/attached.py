"""What ``depyf attach`` finds in a running process: what it compiles now and has compiled, as data and as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Optional, Tuple

from depyf.answers.watch import counted, shortened
from depyf.base.plain_data import Answer
from depyf.diagnosis.recompile_limits import LimitStanding, in_words

Line = Tuple[str, int, str]
"""File, line and function of a call."""

_SHOWN_LINES = 12
"""So many lines of a stack are shown, the innermost."""


@dataclass(frozen=True)
class Compiling:
    """A compilation that runs. ``stage`` is the step of PyTorch in words, ``seconds`` how long the compilation has run,
    None where PyTorch does not tell. ``compile_id`` and ``function`` are empty for a graph outside of Dynamo, such as a
    backward."""

    thread: str
    function: str
    place: Optional[Tuple[str, int]]
    compile_id: str
    stage: str
    seconds: Optional[float]

    def __str__(self) -> str:
        number = f" [{self.compile_id}]" if self.compile_id else ""
        where = "" if self.place is None else f" ({shortened(self.place[0])}:{self.place[1]})"
        since = "" if self.seconds is None else f", {self.seconds:.1f} s so far"
        return f"compiles {self.function or 'a graph'}{number}{where}: {self.stage}{since}"


@dataclass(frozen=True)
class AttachedEntry:
    """A cache entry. ``guards`` are PyTorch's own texts; ``code_bytes`` is the size of the transformed code,
    ``tensor_bytes`` the size of the tensors that the entry's graphs hold (constants, parameters that are no inputs)."""

    compile_id: Optional[str]
    backend: str
    guards: Tuple[str, ...]
    graphs: Tuple[str, ...]
    code_bytes: int
    tensor_bytes: int
    deleted: bool = False

    def __str__(self) -> str:
        gone = ", its code was thrown away by Dynamo" if self.deleted else ""
        graphs = f", {', '.join(self.graphs)}" if self.graphs else ""
        held = f", holds {self.tensor_bytes / 1e6:.1f} MB of tensors" if self.tensor_bytes >= 50_000 else ""
        return f"[{self.compile_id or '?'}] {counted(len(self.guards), 'guard')}{graphs}{held}{gone}"


@dataclass(frozen=True)
class AttachedFunction:
    """A function that has cache entries. ``limits`` says how many entries Dynamo allows. ``code`` is one
    file with the transformed code of all entries, decompiled, and their guards; empty if it was not asked for."""

    name: str
    filename: str
    first_line: int
    entries: Tuple[AttachedEntry, ...]
    limits: Tuple[LimitStanding, ...] = ()
    code: str = ""

    @property
    def title(self) -> str:
        """The function, and where it stands with Dynamo's limits."""
        of_limit = in_words(self.limits) or counted(len(self.entries), "entry", "entries")
        return f"{self.name} ({shortened(self.filename)}:{self.first_line}): {of_limit}"


@dataclass(frozen=True)
class FailedLately:
    """A recompilation: the entry, its guard that failed in words and as PyTorch's text, and what avoids the failure."""

    compile_id: str
    function: str
    place: Tuple[str, int]
    entry: str
    words: str
    guard: str
    advice: str = ""

    def __str__(self) -> str:
        where = f"{shortened(self.place[0])}:{self.place[1]}"
        said = f"{self.function} [{self.compile_id}] {where}: {self.words}"
        return f"{said}\n    {self.advice}" if self.advice else said


@dataclass(frozen=True)
class Attached(Answer):
    """What a process has. ``stack`` are the lines of its main thread, the outermost first, and ``compiling`` the
    compilations that run. ``compilations`` and ``seconds`` are of those that PyTorch remembers, ``failed`` the guards
    that made it compile again, the latest first. ``session`` says what records there."""

    pid: int
    command: Tuple[str, ...]
    rank: Optional[int]
    python: str
    torch: str
    phase: str
    stack: Tuple[Line, ...]
    compiling: Tuple[Compiling, ...] = ()
    compilations: int = 0
    seconds: float = 0.0
    functions: Tuple[AttachedFunction, ...] = ()
    failed: Tuple[FailedLately, ...] = ()
    counters: Dict[str, Dict[str, int]] = field(default_factory=dict)
    settings: Tuple[str, ...] = ()
    session: str = ""
    notes: Tuple[str, ...] = ()

    def __str__(self) -> str:
        rank = "" if self.rank is None else f" (rank {self.rank})"
        lines = [f"process {self.pid}{rank}: {' '.join(self.command)}"]
        lines.append(f"  Python {self.python}, PyTorch {self.torch}")
        lines.append(f"now: {self.phase}")
        lines += [f"  {shortened(path)}:{line} in {name}" for path, line, name in self.stack[-_SHOWN_LINES:]]
        lines += [f"a thread {each}" for each in self.compiling if each.thread]
        if self.compilations:
            lines.append(f"before: {counted(self.compilations, 'compilation')}, {self.seconds:.1f} s")
        return "\n".join([*lines, *self._of_functions(), *self._of_the_rest()])

    def _of_functions(self) -> Iterator[str]:
        yield f"compiled: {counted(len(self.functions), 'function')}"
        for function in self.functions:
            yield f"  {function.title}"
            yield from (f"    {entry}" for entry in function.entries)

    def _of_the_rest(self) -> Iterator[str]:
        for group, counts in self.counters.items():
            yield f"counters {group}: {', '.join(f'{name} {count}' for name, count in counts.items())}"
        yield from (f"setting: {each}" for each in self.settings)
        if self.failed:
            times = counted(len(self.failed), "time")
            yield f"compiled again: {times} that PyTorch remembers; depyf attach {self.pid} --why"
        yield self.session or "session: none"
        yield from (f"note: {each}" for each in self.notes)

    def why(self) -> str:
        """Return the guards that failed last, as text."""
        if not self.failed:
            return f"process {self.pid}: PyTorch remembers no guard that failed"
        lines: List[str] = [f"process {self.pid}: the guards that failed last, the latest first"]
        return "\n".join([*lines, *(f"  {each}" for each in self.failed)])


@dataclass(frozen=True)
class AttachedProcesses(Answer, kind="attach"):
    """The answer of ``depyf attach``: each process that has said what it has."""

    processes: Tuple[Attached, ...]
