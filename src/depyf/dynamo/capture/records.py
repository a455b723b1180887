"""The records of a session: what was captured, as text and numbers.

Everything is keyed by compile id (``"frame/compile"``, as torch prints it). Code objects are held weakly, because
Dynamo frees compiled graphs (and their memory) when a code object dies.
"""

from __future__ import annotations

import enum
import weakref
from dataclasses import field
from types import CodeType
from typing import Mapping, Optional, Tuple, TypeVar, Union

from depyf.answers.shadowed import ShadowFinding
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.entries.limits import Limits
from depyf.report.model import counts
from depyf.report.model.run import Pass
from depyf.torch_trace import file_names
from depyf.torch_trace.events import Event
from depyf.torch_trace.stages import AnyStage
from depyf.torch_trace.tracebacks import Frame

CodeRef = weakref.ref  # of a code object


@dataclass(frozen=True)
class CompiledFunction:
    """Dynamo gave the graph of this compilation a name; ``number`` is the ``<id>`` in ``__compiled_fn_<id>``."""

    compile_id: Optional[str]
    name: str
    number: int

    @property
    def stable_name(self) -> str:
        return f"__compiled_fn_{self.number}"


@dataclass(frozen=True)
class GraphFile:
    """The graph of one stage, dumped (``path`` is None when it could not be written).

    ``runs`` says whether the graph runs from this file. ``piece`` is the name of a part of a split graph; empty for a
    whole graph. ``equals`` is the name of the file at ``path`` if that is another stage's, with the same text; empty
    where this stage has a file of its own.
    """

    compile_id: Optional[str]
    function: str
    stage: AnyStage
    index: int
    path: Optional[str]
    text: str = field(repr=False)
    runs: bool = False
    piece: str = ""
    equals: str = ""

    @property
    def name(self) -> str:
        """The name of this stage's own file, whether there is one or not."""
        return file_names.graph_file(self.function, self.stage.value, self.index)


@dataclass(frozen=True)
class WrapperFile:
    """Python that AOTAutograd generated around the compiled graphs; ``artifact`` is torch's name for it."""

    compile_id: Optional[str]
    function: str
    artifact: str
    path: str
    piece: str = ""


@dataclass(frozen=True)
class KernelFile:
    """A module that Inductor generated: ``call`` with its kernels. ``generated`` is its path in Inductor's cache.

    ``backward`` says whether it computes gradients; None where that is not known. ``runs`` is False for a mere copy.
    """

    compile_id: Optional[str]
    function: str
    index: int
    path: str
    generated: str
    text: str = field(repr=False)
    backward: Optional[bool] = None
    runs: bool = True
    piece: str = ""


@dataclass(frozen=True)
class PassesFile:
    """What the passes over the graphs of one compilation changed, in order."""

    compile_id: Optional[str]
    function: str
    index: int
    path: Optional[str]
    text: str = field(repr=False)
    entries: Tuple[Pass, ...] = ()
    piece: str = ""


@dataclass(frozen=True)
class PassesRan:
    """How many passes ran over the graphs of a compilation, whether they changed something or not."""

    compile_id: Optional[str]
    count: int


@dataclass(frozen=True)
class TransformedCode:
    """One code object that Dynamo produced.

    - ``function``: the name of the user's function (or of the resume function) that the code replaces. ``index`` counts
      the transformed codes of functions of that name. ``identity`` is the id of the original code.
    - ``text``: the content of the file at ``path``. ``runs`` says whether the code runs from that file.
    - ``source``: the decompiled source, None without one. ``replaced`` says whether code compiled from ``source`` runs
      instead of Dynamo's.
    - ``verdict``: the verdict of the decompilation, or ``failed``; ``reason`` explains it.
    - ``graphs``: the stable names of the compiled functions that the code calls.
    - ``resumes``: the resume functions that the code calls, by their stable names: name, file, first line and id of
      their code. ``resume_lines`` are the user's lines at which they continue; each side of a branch has its own.
    - ``earlier``: the code was compiled before the session began, and called in it.
    - ``limits``: Dynamo's limits when the code was compiled, in the ``region`` (``isolate_recompiles=True``).
    - ``lines``: lines of ``text`` that are still lines of the user's function, with these lines.
    """

    compile_id: Optional[str]
    function: str
    qualified_name: str
    filename: str
    first_line: int
    index: int
    path: Optional[str]
    text: str = field(repr=False)
    source: Optional[str] = field(repr=False)
    verdict: str
    reason: str
    replaced: bool
    graphs: Tuple[str, ...]
    original_code: CodeRef[CodeType] = field(repr=False)
    running_code: CodeRef[CodeType] = field(repr=False)
    earlier: bool = False
    resumes: Mapping[str, Tuple[str, str, int, int]] = field(default_factory=dict)
    identity: int = 0
    lines: Mapping[int, int] = field(default_factory=dict, repr=False)
    resume_lines: Mapping[str, int] = field(default_factory=dict, repr=False)
    runs: bool = True
    limits: Limits = ()
    region: int = -1


@dataclass(frozen=True)
class EarlierFunction:
    """A compiled function from before the session. Its graphs and kernels are the ones that it still references.

    ``pending`` says that its backward has not been compiled.
    """

    compile_id: Optional[str]
    function: str
    pending: bool


class Cause(enum.Enum):
    """Why a frame runs as plain Python; the value is the words for it."""

    LIMIT = counts.LIMIT
    GRAPH_BREAK = counts.GRAPH_BREAK
    ERROR = counts.SUPPRESSED
    RAISED = counts.RAISED
    SKIPPED = counts.SKIPPED


@dataclass(frozen=True)
class FrameSkipped:
    """A fallback: calls of a frame run eagerly (after a limit: those without a valid cache entry).

    ``reason`` is torch's. ``place`` is the user's file and line, if torch reports them. ``stack`` has the frames that
    led there and on into libraries, the outermost first. ``limit`` is the name and value of the setting that was
    reached. ``compile_id`` is None if the compilation had no id yet.
    """

    compile_id: Optional[str]
    cause: Cause
    reason: str = field(repr=False)
    function: str
    qualified_name: str
    filename: str
    first_line: int
    place: Optional[Tuple[str, int]]
    limit: Optional[Tuple[str, object]]
    original_code: Optional[CodeRef[CodeType]] = field(repr=False)
    stack: Tuple[Frame, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class FullCodeFile:
    """The story of a user function (its name, file and first line), written at ``path``."""

    compile_id: Optional[str]
    path: str
    function: Tuple[str, str, int]


@dataclass(frozen=True)
class NoteFile:
    """A text about the dump as a whole: what is missing, what runs as plain Python."""

    compile_id: Optional[str]
    path: str


@dataclass(frozen=True)
class Incomplete:
    """A part of the dump could not be made: what failed, and why, in one line."""

    compile_id: Optional[str]
    failure: str


@dataclass(frozen=True)
class CachedWithPasses:
    """A compiled graph from PyTorch's caches, and the custom passes that therefore did not run."""

    compile_id: Optional[str]
    passes: Tuple[str, ...]


@dataclass(frozen=True)
class ShadowFound:
    """What ``shadow`` found in a call: the entry that it hits has this compile id."""

    compile_id: Optional[str]
    found: ShadowFinding


Record = Union[
    Event,
    CompiledFunction,
    GraphFile,
    WrapperFile,
    KernelFile,
    PassesFile,
    PassesRan,
    TransformedCode,
    EarlierFunction,
    FrameSkipped,
    FullCodeFile,
    NoteFile,
    Incomplete,
    CachedWithPasses,
    ShadowFound,
]
R = TypeVar("R", bound=Record)
