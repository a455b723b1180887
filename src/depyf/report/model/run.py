"""The model of one run, as plain data: the page, ``index.md``, ``manifest.json`` and ``depyf diff`` read this.

``manifest.json`` is this model, field by field (``docs/manifest.md`` documents it); ``SCHEMA`` counts its versions.
Places in the user's source are pairs ``(source, line)``: an index into ``Run.sources``, and a line from 1. What belongs
to a compilation carries its compile id (``"frame/compile"``, as torch prints it). Times are in seconds; ``start``
counts from ``Run.started``.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any, Dict, Literal, Mapping, Optional, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.base.stored_text import HasText, Text
from depyf.diagnosis.recompile_limits import LimitStanding
from depyf.report.model.cache_lookup import CacheLookup
from depyf.report.model.memory import Memory
from depyf.report.model.timing import Timing
from depyf.torch_trace.file_names import FileKind

SCHEMA = 1

Place = Tuple[int, int]
"""An index into ``Run.sources`` and a line in that file, from 1."""

ArtifactKind = Literal[FileKind, "guards"]
"""What an artifact holds: a file of a dump, or the guards that a log has."""
Status = Literal["compiled", "failed", "limit", "skipped", "empty"]
"""The result of a compilation."""
RunOrigin = Literal["prepare_debug", "torch_trace", "files"]
"""Where a run was read from; ``files``: a dump without a manifest."""


STALE = "results may be stale:"
"""The start of a note about guards that were not checked. The terminal shows it, too."""


@dataclass(frozen=True)
class SourceFile:
    """One file of the user's program, or of a library that is compiled with it: ``library`` says that it is installed.
    ``text`` is None where it could not be read."""

    path: str
    text: Optional[str] = field(default=None, repr=False)
    library: bool = False


@dataclass(frozen=True)
class Link:
    """Lines ``first`` to ``last`` (from 1, inclusive) of an artifact come from ``places``, the innermost call last.

    ``names`` are what these lines compute (graph nodes, kernels): stages of one compilation are tied by them too.
    """

    first: int
    last: int
    places: Tuple[Place, ...]
    names: Tuple[str, ...] = ()


@dataclass(frozen=True)
class ModulePart:
    """The operations of a graph that were called in one module: ``name`` as the program writes it, and its class.

    ``parent`` is the index of the module around it. ``nodes`` are the nodes of this module, not of modules inside.
    """

    name: str
    type: str
    parent: Optional[int] = None
    nodes: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Artifact(HasText):
    """One file of the dump, or one text of a trace log.

    ``kind`` is ``transformed``, ``full_code``, ``graph``, ``wrapper``, ``kernels`` (a module that Inductor generated),
    ``passes``, ``guards`` or ``note``. ``stage`` is what stands in file names (``Forward_graph``), or empty;
    ``order`` sorts the stages of one compilation from Dynamo down. ``path`` is relative to the dump directory, None
    when there is no such file and ``text`` holds what it would say; with a path, ``text`` is None in the manifest.
    ``backward`` says whether it computes gradients, None where that is not known or makes no sense. ``piece`` names the
    part of the graph, if a backend has split the graph; empty for the whole. ``modules`` are the modules that the
    operations were called in, for the last graphs of a compilation only; empty where not known. ``memory`` is known for
    forward and backward graphs, and for the modules that Inductor generated for them. ``equals`` is the id of the graph
    of another stage with the same text, whose file ``path`` is; empty for an artifact with a file of its own.
    """

    id: str
    kind: ArtifactKind
    title: str
    compile_id: Optional[str] = None
    stage: str = ""
    order: int = 0
    path: Optional[str] = None
    text: Optional[Text] = field(default=None, repr=False)
    language: str = "python"
    backward: Optional[bool] = None
    runs: Optional[bool] = None
    piece: str = ""
    links: Tuple[Link, ...] = field(default=(), repr=False)
    modules: Tuple[ModulePart, ...] = field(default=(), repr=False)
    memory: Optional[Memory] = field(default=None, repr=False)
    equals: str = ""


@dataclass(frozen=True)
class ModuleKernel:
    """One kernel that Inductor generated or calls (``extern``), in the artifact ``artifact``.

    ``first`` and ``last`` are the lines of its code (0 where there is none, as for extern kernels), ``calls`` the lines
    that launch it. ``places`` are the lines of the user that it computes; empty where torch does not report it.
    ``nodes`` are the graph nodes that it computes. ``launch`` is how it is launched (threads, loops, grid, block
    sizes, warps), as far as that is known. ``unfused`` are pairs that Inductor has not fused, with a part
    of this kernel in each: the kernel and the graph nodes of both, and PyTorch's reason.
    """

    artifact: str
    name: str
    compile_id: Optional[str]
    backward: Optional[bool]
    extern: bool = False
    first: int = 0
    last: int = 0
    calls: Tuple[int, ...] = ()
    places: Tuple[Place, ...] = ()
    nodes: Tuple[str, ...] = ()
    launch: Mapping[str, str] = field(default_factory=dict)
    unfused: Tuple[Tuple[str, Tuple[str, ...], str, Tuple[str, ...], str], ...] = ()


@dataclass(frozen=True)
class EntryGuard:
    """One guard of a cache entry: torch's kind and text, what it reads, and the place that caused it, where known."""

    kind: str
    text: str
    source: str = ""
    place: Optional[Place] = None


@dataclass(frozen=True)
class GraphBreak:
    """A graph break: where, torch's reason, explanation and hints, a page about it, and the user's stack (outermost
    first). ``advice`` is what to do, in our words.
    """

    compile_id: Optional[str]
    place: Optional[Place]
    reason: str
    explanation: str = ""
    hints: Tuple[str, ...] = ()
    url: str = ""
    stack: Tuple[Place, ...] = ()
    advice: str = ""


@dataclass(frozen=True)
class FailedEntryGuard:
    """A guard of the cache entry ``entry`` (a compile id) that failed when another compilation was needed.

    ``text`` is PyTorch's message, ``words`` an explanation, ``checked`` the property that was compared, without its
    values (``size of x in dimension 0``). ``before`` is the value that the entry was compiled for, ``now`` the one of
    the call, both as texts, None where they are not known.
    ``place`` is the user's line that made Dynamo guard this, or that calls a compiled module of a library; ``stack``
    the calls that led to it, outermost first, and on into libraries, if it is in another function and they are known.
    """

    entry: Optional[str]
    text: str
    words: str
    before: Optional[str] = None
    now: Optional[str] = None
    place: Optional[Place] = None
    checked: str = ""
    stack: Tuple[Place, ...] = ()


@dataclass(frozen=True)
class Recompile:
    """A recompilation: the guards that failed, and what avoids it. ``place`` is the line that made Dynamo guard the
    first guard, or else the function's first line, or its call: the first of these in user code. ``cause`` is the
    subject of that guard (``size``), empty if its kind is unknown.
    """

    compile_id: str
    function: int
    failed: Tuple[FailedEntryGuard, ...]
    advice: str = ""
    place: Optional[Place] = None
    cause: str = ""


@dataclass(frozen=True)
class Fallback:
    """A frame that falls back to eager, by ``cause`` in words and torch's ``reason``; ``stack`` are the calls that led
    to ``place``, the user's line, outermost first, and on into libraries. ``calls`` is how many calls ran as plain
    Python after a recompile limit; None if that is not known."""

    function: Optional[int]
    compile_id: Optional[str]
    cause: str
    reason: str
    place: Optional[Place] = None
    advice: str = ""
    stack: Tuple[Place, ...] = ()
    calls: Optional[int] = None


@dataclass(frozen=True)
class Phase:
    """One span of a compilation. ``name`` is torch's; ``parent`` the index of the span around it in ``Run.phases``."""

    compile_id: Optional[str]
    name: str
    start: float
    seconds: float
    backward: bool = False
    parent: Optional[int] = None


ShapeEventKind = Literal["symbol", "unbacked", "specialised", "guard"]


@dataclass(frozen=True)
class ShapeEvent:
    """What Dynamo decided about dynamic shapes: a symbol that it made, a value that it specialised to, a guard.

    ``stack`` is the user's (outermost first), ``torch_stack`` the innermost frames of PyTorch's, as text.
    """

    compile_id: Optional[str]
    kind: ShapeEventKind
    text: str
    reason: str = ""
    stack: Tuple[Place, ...] = ()
    torch_stack: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Call:
    """Transformed code calls something: a compiled graph (``graph``: its ``__compiled_fn_<id>``) or a resume function
    (``function``: an index into ``Run.functions``), on line ``line`` of the transformed code's artifact. ``resumes_at``
    is the user's line at which the resume function goes on, None where it is not known or only one is called. (Both
    sides of a branch have resume functions that are named after the line of the branch.)
    """

    graph: Optional[str] = None
    function: Optional[int] = None
    line: int = 0
    resumes_at: Optional[int] = None


@dataclass(frozen=True)
class Compilation:
    """Everything about one compile id.

    ``status`` is ``compiled``, ``empty`` (no graph in it), ``skipped``, ``limit`` (a recompile limit is
    reached, so nothing was compiled) or ``failed``; ``failure`` says why. ``graph``
    is the ``__compiled_fn_<id>`` it made. ``verdict`` is how its decompiled transformed code was proved. ``dynamic``
    are the symbols of dynamic shapes with what they stand for (``s0: L['x'].size()[0]``). ``cache`` says of each of
    torch's caches whether it was hit. ``runs`` counts the calls of its transformed code, None where nobody counted.
    ``graph_runs`` and ``graph_run_seconds`` count the runs of its graph while traced, ``backward_runs`` and
    ``backward_run_seconds`` the runs of its backward; None without a trace.
    ``passes_ran`` counts Inductor's passes, those that changed nothing too; None where none was observed.
    ``guard_failures`` counts how often its guards did not hold. ``metrics`` are torch's own, under torch's names.
    ``callers`` is the user's stack at that time, outermost first, ``compiled_at`` the call of ``torch.compile``.
    ``settings`` is an index into ``Run.settings``, None where nobody looked. ``time_parts`` are its seconds, backward
    included, by the names of ``report/model/starts.py``; empty where PyTorch reports no phases.
    """

    compile_id: str
    function: Optional[int]
    status: Status = "compiled"
    failure: str = ""
    graph: Optional[str] = None
    attempts: int = 1
    restarts: Tuple[str, ...] = ()
    verdict: str = ""
    verdict_reason: str = ""
    transformed: Optional[str] = None
    calls: Tuple[Call, ...] = ()
    guards: Tuple[EntryGuard, ...] = field(default=(), repr=False)
    guard_latency: Optional[float] = None
    guard_failures: Optional[int] = None
    dynamic: Tuple[str, ...] = ()
    cache: Mapping[str, str] = field(default_factory=dict)
    start: Optional[float] = None
    seconds: Optional[float] = None
    backward_seconds: Optional[float] = None
    runs: Optional[int] = None
    graph_runs: Optional[int] = None
    graph_run_seconds: Optional[float] = None
    backward_runs: Optional[int] = None
    backward_run_seconds: Optional[float] = None
    earlier: bool = False
    passes_ran: Optional[int] = None
    metrics: Mapping[str, Any] = field(default_factory=dict, repr=False)
    callers: Tuple[Place, ...] = ()
    compiled_at: Optional[Place] = None
    settings: Optional[int] = None
    time_parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Function:
    """A function that Dynamo saw; of a resume function, ``resumes`` and ``resumes_at`` are where it goes on. ``limits``
    says where it stood with Dynamo's limits of recompilation when this was written; empty where that is not known."""

    name: str
    qualified_name: str
    source: int
    first_line: int
    last_line: int
    resumes: Optional[int] = None
    resumes_at: Optional[int] = None
    full_code: Optional[str] = None
    limits: Tuple[LimitStanding, ...] = ()


BREAK, RECOMPILATION, LIMIT, FALLBACK, ERROR = (
    "graph break",
    "recompilation",
    "recompile limit",
    "fallback to eager",
    "error",
)
CUDA_GRAPHS, EXPORT, COMPILE_TIME = "CUDA graphs", "export", "compile time"


@dataclass(frozen=True)
class Finding:
    """Something worth acting on. ``seconds`` is the compile time that it cost, as far as known: of a graph break what
    was compiled after it, of a recompilation the extra entries, of what runs uncompiled all of its function. ``kind``
    is one of the names above, or a kind of ``answers/shadowed.py``; empty in a manifest of an earlier depyf."""

    title: str
    text: str
    count: int = 1
    place: Optional[Place] = None
    compile_id: Optional[str] = None
    seconds: Optional[float] = None
    kind: str = ""


@dataclass(frozen=True)
class CudaGraphSkip:
    """CUDA graphs were requested and are not used: torch's reason, the user's line if it names one, what to do.

    ``compile_id`` is None for what was found while compiled code ran.
    """

    compile_id: Optional[str]
    reason: str
    place: Optional[Tuple[int, int]] = None
    advice: str = ""


@dataclass(frozen=True)
class CudaGraphRerecord:
    """The CUDA graph of a compiled graph was recorded again ``times`` times for this ``reason``.

    ``function`` is PyTorch's name of the graph, ``mode`` ``FORWARD``, ``BACKWARD`` or ``INFERENCE``.
    """

    compile_id: Optional[str]
    function: str
    mode: str
    reason: str
    times: int = 1
    place: Optional[Tuple[int, int]] = None
    advice: str = ""


@dataclass(frozen=True)
class ShadowedEntry:
    """A cache entry that computed something else than eager mode in a call, or whose dropped guard failed for it.

    ``kind`` is ``stale``, ``dropped guard`` or ``wrong``, ``function`` what was called. ``place`` is the line that
    reads the value, or where the function begins. ``values`` are the program's values that ``cause`` quotes.
    """

    compile_id: Optional[str]
    kind: str
    function: str
    cause: str
    place: Optional[Tuple[int, int]] = None
    difference: str = ""
    advice: str = ""
    values: Tuple[str, ...] = ()


@dataclass(frozen=True)
class NotShadowed:
    """Why ``calls`` sampled calls were not checked."""

    reason: str
    calls: int


@dataclass(frozen=True)
class Shadow:
    """What ``shadow`` did in a run: the calls of compiled functions, how many of them it has sampled and checked, why
    it has not checked the others, and what it has found."""

    calls: int
    sampled: int
    checked: int
    not_checked: Tuple[NotShadowed, ...] = ()
    found: Tuple[ShadowedEntry, ...] = ()


@dataclass(frozen=True)
class Pass:
    """A pass of Inductor, or a custom one, that changed a graph: lines ``first`` to ``last`` of ``artifact`` are the
    difference. ``group`` is Inductor's name of the stage, ``function`` the custom pass, ``within`` the passes that
    called it, the outermost first, ``sizes`` the symbols of the inputs with the ranges that they are compiled for,
    ``piece`` the part of a split graph.
    """

    compile_id: Optional[str]
    artifact: str
    group: str
    name: str
    function: str = ""
    within: Tuple[str, ...] = ()
    nodes_before: int = 0
    nodes_after: int = 0
    first: int = 0
    last: int = 0
    sizes: Tuple[str, ...] = ()
    piece: str = ""


@dataclass(frozen=True)
class Run:
    """The whole run.

    ``origin`` is ``prepare_debug``, ``torch_trace`` or ``files`` (a dump without a manifest). ``rank`` is None for a
    program that is not distributed. ``started`` is in seconds since the epoch. ``launch`` names the launch of a
    followed process (``launches.py``). ``shown_since`` is the time from which on sessions of a long-lived process are
    shown, None for all of them. ``settings`` are the sets of PyTorch's settings that were no defaults when something
    was compiled, as statements. ``notes`` say what is missing and why; ``failures`` what depyf failed to make.
    """

    schema: int = SCHEMA
    depyf: str = ""
    torch: str = ""
    python: str = ""
    origin: RunOrigin = "prepare_debug"
    rank: Optional[int] = None
    command: Tuple[str, ...] = ()
    started: Optional[float] = None
    launch: str = ""
    shown_since: Optional[float] = None
    sources: Tuple[SourceFile, ...] = ()
    functions: Tuple[Function, ...] = ()
    compilations: Tuple[Compilation, ...] = ()
    artifacts: Tuple[Artifact, ...] = ()
    kernels: Tuple[ModuleKernel, ...] = ()
    breaks: Tuple[GraphBreak, ...] = ()
    recompiles: Tuple[Recompile, ...] = ()
    fallbacks: Tuple[Fallback, ...] = ()
    cudagraph_skips: Tuple[CudaGraphSkip, ...] = ()
    cudagraph_rerecords: Tuple[CudaGraphRerecord, ...] = ()
    shadow: Optional[Shadow] = None
    cache_lookups: Tuple[CacheLookup, ...] = ()
    cache_settings: Tuple[Tuple[str, ...], ...] = ()
    settings: Tuple[Tuple[str, ...], ...] = ()
    passes: Tuple[Pass, ...] = ()
    phases: Tuple[Phase, ...] = ()
    shapes: Tuple[ShapeEvent, ...] = ()
    timings: Tuple[Timing, ...] = ()
    findings: Tuple[Finding, ...] = ()
    notes: Tuple[str, ...] = ()
    failures: Tuple[str, ...] = ()
    totals: Dict[str, float] = field(default_factory=dict)

    def root(self, function: int) -> int:
        """Return the index of the user's function that ``function`` is, or continues."""
        for _ in self.functions:
            onwards = self.functions[function].resumes
            if onwards is None or not 0 <= onwards < len(self.functions):
                break
            function = onwards
        return function
