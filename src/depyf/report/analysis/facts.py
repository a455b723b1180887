"""Facts that only the compiling process has, beyond the events; a log lacks them."""

from __future__ import annotations

from dataclasses import field
from typing import Mapping, Optional, Sequence, Tuple

from depyf.answers.shadowed import ShadowCounts, ShadowFinding
from depyf.base.quick_dataclass import dataclass
from depyf.diagnosis.recompile_limits import LimitStanding
from depyf.report.analysis.functions import Key
from depyf.report.analysis.sources import ReadText, read_source
from depyf.report.model.run import RunOrigin
from depyf.torch_trace.provenance import ModuleChain, Unfused
from depyf.torch_trace.tracebacks import Frame


@dataclass(frozen=True)
class TransformedFact:
    """Transformed code: its function, its artifact, how it was proved, and what it calls.

    ``resumes`` are resume functions by the name by which the code calls them, each with the compile id of one of its
    compilations, or ``UNCOMPILED`` and a number of its own; ``resume_lines`` are the user's lines at which they
    continue. ``lines`` pairs lines of the artifact with the lines of the user's file that they come from. ``runs``
    counts calls, None if nothing counted them. ``graph_times`` is how often its graph has run and how many seconds in
    all, ``backward_times`` the same for its backward. ``limits`` says where the function stands with Dynamo's limits.
    """

    compile_id: Optional[str]
    function: Key
    qualified_name: str
    artifact: Optional[str]
    verdict: str = ""
    reason: str = ""
    graphs: Tuple[str, ...] = ()
    resumes: Mapping[str, Tuple[Key, str]] = field(default_factory=dict)
    resume_lines: Mapping[str, int] = field(default_factory=dict)
    runs: Optional[int] = None
    graph_times: Optional[Tuple[int, float]] = None
    backward_times: Optional[Tuple[int, float]] = None
    guard_failures: Optional[int] = None
    earlier: bool = False
    lines: Mapping[int, int] = field(default_factory=dict)
    limits: Tuple[LimitStanding, ...] = ()


@dataclass(frozen=True)
class FallbackFact:
    """A frame that falls back to eager; ``place`` is a file and a line, ``stack`` has the outermost frame first.
    ``calls`` is how many calls ran as plain Python after a limit, if that is known."""

    compile_id: Optional[str]
    function: Key
    qualified_name: str
    cause: str
    reason: str
    place: Optional[Tuple[str, int]] = None
    advice: str = ""
    stack: Tuple[Frame, ...] = ()
    calls: Optional[int] = None


@dataclass(frozen=True)
class KernelFact:
    """One launch that Inductor generated, in their order: kernel, the graph nodes that it computes, their stacks, and
    the pairs with other kernels that were not fused."""

    name: str
    nodes: Tuple[str, ...]
    stacks: Tuple[Tuple[Frame, ...], ...]
    unfused: Tuple[Unfused, ...] = ()


@dataclass(frozen=True)
class LineStack:
    """The stack of the code from line ``line`` of a generated module up to the next one."""

    line: int
    stack: Tuple[Frame, ...]


@dataclass(frozen=True)
class LineOrigins:
    """The origins of the lines of one artifact, as far as the process has them and its text does not.

    ``nodes`` are stacks of graph nodes by name, ``lines`` stacks of the lines of a generated module, ``kernels`` what
    each launch in it computes. ``code`` is the text of the lines of frames, if it was noted with them. ``modules`` are
    the modules that graph nodes were called in, by name.
    """

    nodes: Mapping[str, Tuple[Frame, ...]] = field(default_factory=dict)
    lines: Sequence[LineStack] = ()
    kernels: Sequence[KernelFact] = ()
    code: Mapping[Frame, str] = field(default_factory=dict)
    modules: Mapping[str, ModuleChain] = field(default_factory=dict)


@dataclass(frozen=True)
class Recorder:
    """What recorded a run: ``origin`` is its name; the process, its start (seconds since the epoch), and versions."""

    origin: RunOrigin = "prepare_debug"
    rank: Optional[int] = None
    command: Sequence[str] = ()
    started: Optional[float] = None
    depyf: str = ""
    torch: str = ""
    python: str = ""
    launch: str = ""


@dataclass(frozen=True)
class Files:
    """How source files are found: ``names`` are torch's numbers for file names (``str`` records of a log),
    ``directory`` is where the program ran, ``read`` returns the text of a source file.
    """

    names: Mapping[object, str] = field(default_factory=dict)
    directory: str = ""
    read: ReadText = read_source


@dataclass(frozen=True)
class ShadowFact:
    """How far ``shadow`` has looked, and what it has found, by the compile id of the entry."""

    counts: ShadowCounts
    found: Sequence[Tuple[Optional[str], ShadowFinding]] = ()


@dataclass(frozen=True)
class Facts:
    """What the process knew beyond the events.

    ``graphs`` are the names of compiled graphs by compile id, ``full_code`` the artifacts that have all of a function.
    ``fallbacks`` are those that the process saw; with None they come from the metrics.
    """

    graphs: Mapping[str, str] = field(default_factory=dict)
    transformed: Sequence[TransformedFact] = ()
    fallbacks: Optional[Sequence[FallbackFact]] = None
    full_code: Mapping[Key, str] = field(default_factory=dict)
    shadowed: Optional[ShadowFact] = None
    notes: Sequence[str] = ()
