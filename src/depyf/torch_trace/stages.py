"""The stages of a compilation that have a graph: their names in the trace, their file names, their text."""

from __future__ import annotations

import enum
import functools
import re
from types import CodeType
from typing import Mapping, Optional, Union

from depyf.base.asynchronous import synchronous
from depyf.base.late_regex import regex
from depyf.base.quick_dataclass import dataclass
from depyf.base.stored_text import Text


class Expected(enum.Enum):
    """How many graphs of a stage Inductor makes of one captured graph."""

    NEVER = "not at all, or not in every compilation"
    ONCE = "one"
    WITH_GRADIENTS = "one, where a backward is compiled"
    FOR_EACH_KERNEL = "one for each module of kernels"


@dataclass(frozen=True)
class StageFacts:
    """All facts about a stage; all code that handles stages reads them here."""

    order: int
    """The order of its artifacts in a compilation; 90 and above are kernels and wrappers."""
    level: int
    """A graph made from another has a higher level; after passes it keeps the level."""
    records: Mapping[str, str]
    """The names of its graph in the trace, with torch's next step; the first is the default."""
    phrase: str
    """Its name in sentences."""
    expected: Expected
    may_run: bool = False
    """Whether some backend runs this graph itself (the others only feed the next stage)."""
    side: Optional[bool] = None
    """Whether it computes gradients; None if that differs or is unknown."""
    printed_as: str = ""
    """The title under which torch prints the graph in its logs."""
    lost_when_warm: bool = False
    """Whether torch omits it on a cache hit; the others are reported with the cached graph."""
    between: bool = False
    """Whether it is only the state before or after passes, beside a graph that is read."""


class Stage(enum.Enum):
    """A graph of one compiled function on its way down; the value is its part of the file name."""

    CAPTURED = (
        "Captured_Graph",
        StageFacts(10, 0, {"dynamo_output_graph": "graph captured"}, "captured graph", Expected.ONCE, may_run=True),
    )
    BACKEND = (
        "Backend_graph",
        StageFacts(15, 1, {}, "graph after a backend of one's own has changed it", Expected.NEVER),
    )
    BEFORE_PRE_GRAD = (
        "BEFORE_PRE_GRAD",
        StageFacts(
            20,
            1,
            {"before_pre_grad_graph": "first passes"},
            "captured graph before the backend's passes",
            Expected.ONCE,
            printed_as="BEFORE PRE GRAD",
            lost_when_warm=True,
            between=True,
        ),
    )
    AFTER_PRE_GRAD = (
        "AFTER_PRE_GRAD",
        StageFacts(
            30,
            1,
            {"after_pre_grad_graph": "AOTAutograd traces"},
            "captured graph after the backend's passes",
            Expected.ONCE,
            printed_as="AFTER PRE GRAD",
            lost_when_warm=True,
            between=True,
        ),
    )
    JOINT = (
        "Joint_graph",
        StageFacts(
            40,
            2,
            {"aot_joint_graph": "forward and backward are split"},
            "joint graph",
            Expected.WITH_GRADIENTS,
            printed_as="Joint graph",
        ),
    )
    FORWARD = (
        "Forward_graph",
        StageFacts(
            50,
            3,
            {
                "aot_forward_graph": "forward graph goes to the backend",
                "aot_inference_graph": "graph goes to the backend",
            },
            "forward graph",
            Expected.ONCE,
            may_run=True,
            side=False,
            printed_as="Forward graph",
        ),
    )
    BACKWARD = (
        "Backward_graph",
        StageFacts(
            60,
            3,
            {"aot_backward_graph": "graphs go to the backend"},
            "backward graph",
            Expected.WITH_GRADIENTS,
            may_run=True,
            side=True,
            printed_as="Backward graph",
        ),
    )
    BEFORE_POST_GRAD = (
        "BEFORE_POST_GRAD",
        StageFacts(
            70,
            4,
            {"before_post_grad_graph": "last passes"},
            "graph before the last passes",
            Expected.FOR_EACH_KERNEL,
            lost_when_warm=True,
            between=True,
        ),
    )
    AFTER_POST_GRAD = (
        "AFTER_POST_GRAD",
        StageFacts(
            80,
            4,
            {"inductor_post_grad_graph": "Inductor generates code", "after_post_grad_graph": ""},
            "graph after the last passes",
            Expected.FOR_EACH_KERNEL,
            printed_as="AFTER POST GRAD",
        ),
    )
    WILD = (
        "Wild_graph",
        StageFacts(200, 0, {}, "graph that was made on the way and is none of the others", Expected.NEVER),
    )

    _value_: str
    facts: StageFacts

    def __new__(cls, value: str, facts: StageFacts) -> Stage:
        stage = object.__new__(cls)
        stage._value_ = value
        stage.facts = facts
        return stage

    @property
    def record(self) -> str:
        """The name that the trace gives its graph; raises ``StopIteration`` where it has none."""
        return next(iter(self.facts.records))


@dataclass(frozen=True)
class NamedStage:
    """A graph that a pass or a backend printed, under the name given there (``before_split``).

    ``value`` is the part of the file name, as in ``Stage``.
    """

    value: str


AnyStage = Union[Stage, NamedStage]


def place_in_order(stage: AnyStage) -> int:
    """Sort stages by this to have them as a graph goes through them; those that passes have named come last."""
    return _PLACES[stage] if isinstance(stage, Stage) else len(_PLACES)


_BEFORE_ASSERTS = NamedStage("pre_insert_deferred_runtime_asserts")

_BETWEEN = frozenset(
    {
        _BEFORE_ASSERTS.value,
        "tensorify_python_scalars",
        "before_joint_graph",
        "after_joint_graph",
        "before_activation_quantization_fwd_aten_pass",
        "after_activation_quantization_fwd_aten_pass",
        "before_activation_quantization_bwd_aten_pass",
        "after_activation_quantization_bwd_aten_pass",
        "aot_inference_graph_after_hop_passes",
        "overlap_scheduling_graph_before",
        "overlap_scheduling_graph_after",
        "pre_split_module",
        "post_split_module",
        "Forward_graph_before_unlifting_tokens",
        "Backward_graph_before_unlifting_tokens",
    }
)
"""The names under which PyTorch (2.2 to 2.15) itself prints the graph around its passes; a graph that somebody else
prints is one that somebody wants to read."""


def is_between(stage: AnyStage) -> bool:
    """Return whether the graph is a state between two graphs that are read: its file is in the folder of stages."""
    return stage.facts.between if isinstance(stage, Stage) else stage.value in _BETWEEN


def is_rarely_changed(stage: AnyStage) -> bool:
    """Return whether the next graph of the same compilation is nearly always equal: Dynamo adds what it has to assert
    about sizes (``torch._check``) in between, and removes arguments that nothing uses."""
    return stage == _BEFORE_ASSERTS


_PLACES = {stage: number for number, stage in enumerate(Stage)}

_BY_TRACE_NAME = {name: stage for stage in Stage for name in stage.facts.records}

_CLASS_LINE = regex(r"^(\s*)class\s+(.*?)\(torch\.nn\.Module\):", re.MULTILINE)

_A_GRAPH = regex(r"(?:\s*#.*\n)*\s*(?:class [^\n]*\(torch\.nn\.Module\):|graph\(\):\n)")

_COMMENTS = regex(r"(?:\s*#.*\n)*\s*")

_FIRST_LINES = 1 << 12
"""In bytes."""

_IMPORT_LINE = regex(r"^(?:import|from) .*$", re.MULTILINE)

_BOXED_INPUT = regex(r"^[ ]+\w+(?:: \"[^\"]*\")? = next\(", re.MULTILINE)

_IMPORTS = {
    "torch": "import torch",
    "device": "from torch import device",
    "inf": "from torch import inf",
    "nan": "from torch import nan",
    "fx_pytree": "import torch.fx._pytree as fx_pytree",
    "pytree": "import torch.utils._pytree as pytree",
    "math": "import math",
    "operator": "import operator",
}


def stage_of(trace_name: str, payload: Optional[Text]) -> Optional[AnyStage]:
    """Return the stage whose graph is the payload of a record of this name; None if the payload is not a graph."""
    if payload is None:
        return None
    known = _BY_TRACE_NAME.get(trace_name)
    return known if known is not None else NamedStage(trace_name) if _is_graph(payload) else None


def _is_graph(text: Text) -> bool:
    """Return ``is_graph`` of a text. Only its first lines are read, if they decide."""
    if isinstance(text, str):
        return is_graph(text)
    head = text.head(_FIRST_LINES)
    first = _COMMENTS.match(head)
    return is_graph(head if first is not None and "\n" in head[first.end() :] else str(text))


def is_graph(text: str) -> bool:
    """Return whether this is exactly a graph as ``GraphModule.print_readable`` or ``str(Graph)`` writes it."""
    return _A_GRAPH.match(text) is not None


_NOT_KNOWN_YET = "Written before it was compiled: what runs was not known yet."


@dataclass(frozen=True)
class GraphText:
    """The text of a graph file; what it compiles to without its first lines, and how many these are.

    ``code`` is None for a text that is not valid Python.
    """

    text: str
    code: Optional[CodeType] = None
    above: int = 0


def graph_file(readable: str, title: str) -> GraphText:
    """Return the file for a graph as ``GraphModule.print_readable`` shows it: ``title`` as a comment, imports, the
    class. Its second line is whether it runs, and can be replaced by ``with_status``. The result always parses. A text
    that can't be parsed is kept as comments, with a note.

    The imports are not in what it compiles to: ``torch.sin(x)`` compiles differently (3.11: LOAD_ATTR, not LOAD_METHOD)
    where the module says ``import torch``.
    """
    # ``class <lambda>(torch.nn.Module):`` is no Python.
    body = _CLASS_LINE.sub(_with_identifier, readable).strip("\n") + "\n"
    try:
        code = compiled_graph(body)
    except synchronous(SyntaxError, ValueError, RecursionError) as error:
        # A text that is no Python (a repr in it, say) is kept, and the file still parses.
        lines = "".join(f"# {line}\n" for line in body.splitlines())
        why = f"# This graph's text is not valid Python ({error}), so here it is as comments."
        return GraphText(f"# {title}\n# {_NOT_KNOWN_YET}\n{why}\n{lines}")
    imports = "".join(f"{line}\n" for name, line in _IMPORTS.items() if _uses(body, name))
    head = f"# {title}\n# {_NOT_KNOWN_YET}\n{imports}\n\n"
    return GraphText(head + body, code, head.count("\n"))


@functools.lru_cache(maxsize=1)
def compiled_graph(text: str) -> CodeType:
    """Return what the text of a graph compiles to. The last is kept: the same graph comes under several names."""
    return compile(text, "<graph>", "exec", dont_inherit=True)  # half the time of making an unused tree


def _uses(text: str, name: str) -> bool:
    """Return whether ``name`` is in ``text`` as a word. Most graphs lack most names, which is checked first."""
    return name in text and re.search(rf"\b{name}\b[.(,)\]\s]", text) is not None


def graph_of(text: str) -> str:
    """Return the text of a graph file without its first two lines, which are about the file."""
    return text.split("\n", 2)[-1]


def with_status(text: str, status: str) -> str:
    """Return the text of a graph file with another second line; all other lines keep their numbers."""
    title, _, rest = text.split("\n", 2)
    return f"{title}\n# {status}\n{rest}"


def without_imports(text: str) -> str:
    """Return the text of a graph file as torch compiled it: its import lines are blank, all other lines where they
    were. ``torch.sin(x)`` compiles differently (3.11: LOAD_ATTR, not LOAD_METHOD) where the module says ``import
    torch``."""
    return _IMPORT_LINE.sub("", text)


def is_boxed(text: str) -> bool:
    """Return whether the graph takes its inputs out of one list, as graphs of AOTAutograd do."""
    return _BOXED_INPUT.search(text) is not None


def _with_identifier(match: re.Match[str]) -> str:
    name = match.group(2)
    return match.group(0) if name.isidentifier() else f"{match.group(1)}class GraphModule(torch.nn.Module):"
