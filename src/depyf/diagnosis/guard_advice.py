"""What avoids a recompilation, by the kind of the failed guard and the origin of the guarded value."""

from __future__ import annotations

import enum
from typing import Mapping, Tuple

from depyf.diagnosis.guard_sources import is_on_stack
from depyf.quick_dataclass import dataclass


class GuardCause(enum.Enum):
    """What a guard is about. The value is stored in manifests."""

    UNKNOWN = ""
    SIZE = "size"
    SIZES = "relation of sizes"
    STRIDE = "stride"
    RANK = "number of dimensions"
    DTYPE = "dtype"
    REQUIRES_GRAD = "requires_grad"
    TENSOR_KIND = "device, layout or mode of a tensor"
    SAME_TENSOR = "the same tensor twice"
    SAME_OBJECT = "the same object twice"
    MARKS = "marked dimensions"
    STATE = "global state"
    MODES = "torch function modes"
    HOOKS = "saved-tensors hooks"
    LENGTH = "length"
    KEYS = "keys"
    MEMBERS = "keys and attributes"
    NUMBER = "number"
    CHOICE = "constant"
    NONE = "None or not"
    TRAINING = "train() or eval()"
    CLASS = "class"
    IDENTITY = "identity of an object"
    FUNCTION = "code of a function"
    BACKEND = "backend"
    GONE = "an object is gone"


class Origin(enum.Enum):
    """The origin of a guarded value; it decides what the user can do about it."""

    ARGUMENT = "argument"
    POSITIONAL = "the arguments in *args"
    KEYWORD = "the arguments in **kwargs"
    ATTRIBUTE = "attribute"
    GLOBAL = "global or closure variable"
    INTERMEDIATE = "value that goes from one graph to the next"


@dataclass(frozen=True)
class GuardedFrame:
    """The function whose guard failed: whether it is a resume function, and the names of its ``*`` and ``**``
    parameters, without the stars.
    """

    resumes: bool = False
    positional: str = ""
    keywords: str = ""


ANY_FRAME = GuardedFrame()


def origin_of(text: str, subject: str, frame: GuardedFrame) -> Origin:
    """Return where ``subject``, which a guard with this text is about, comes from."""
    root = subject.partition(".")[0].partition("[")[0]
    if "G['" in text or "__closure__" in text or "(closure variable" in subject:
        return Origin.GLOBAL
    if root and root in (frame.keywords, frame.positional) and "." not in subject:
        return Origin.KEYWORD if root == frame.keywords else Origin.POSITIONAL
    if "." in subject:
        return Origin.ATTRIBUTE
    return Origin.INTERMEDIATE if frame.resumes else Origin.ARGUMENT


_BETWEEN = "it goes over a graph break, from one graph to the next"
_MADE_ANEW = (
    f"{_BETWEEN}, and is made anew in each call (a bound method or a function is): remove the graph break, or call it "
    "on another line than what breaks the graph"
)
_ITS_SOURCE = "the arguments that it comes from"
_EACH = "each {0} is compiled for on its own"
_FEW = "each value is compiled for on its own, which is fine for a few"
_FILLED = "the length is a constant of the compiled code: fill it before the first call"
_ONCE = "set it once, before the first call"
_SAME_STATE = "it is compiled once for each such state; set it at one place around the calls"

_ADVICE: Mapping[GuardCause, str] = {
    GuardCause.SIZE: "mark that dimension before the first call, torch._dynamo.mark_dynamic({subject}, {detail}), or "
    "compile with dynamic=True; if it takes few values, pad to one of them",
    GuardCause.SIZES: "the code branches on, or is specialized to, a size: mark it before the first call "
    "(torch._dynamo.mark_dynamic), or take the branch on sizes out of the compiled function",
    GuardCause.STRIDE: "call {subject}.contiguous() before, so that the memory layout is always the same",
    GuardCause.RANK: "each number of dimensions is compiled for on its own; reshape before the call",
    GuardCause.DTYPE: f"{_EACH.format('dtype')}; convert before the call if one dtype is enough",
    GuardCause.REQUIRES_GRAD: (
        "two compilations are to be expected where a first layer gets the input and others get activations; else let "
        "it always require grad, or detach it where no gradient is needed"
    ),
    GuardCause.TENSOR_KIND: "pass tensors of the same device and layout each time",
    GuardCause.SAME_TENSOR: "pass a clone, or always pass the same tensor twice",
    GuardCause.SAME_OBJECT: "pass the same object twice each time, or never",
    GuardCause.MARKS: "mark the same dimensions on each tensor, before the first call",
    GuardCause.MODES: _SAME_STATE,
    GuardCause.HOOKS: _SAME_STATE,
    GuardCause.LENGTH: "the length is a constant of the compiled code: use the same length each time; tensors of one "
    "shape can be passed as one tensor (torch.stack)",
    GuardCause.KEYS: "build the dict with the same keys in the same order each time",
    GuardCause.MEMBERS: "keep the same keys and attributes each time",
    GuardCause.NUMBER: "its value is a constant of the compiled code: pass it as a tensor if it varies, or compile "
    "with "
    "dynamic=True",
    GuardCause.CHOICE: _FEW,
    GuardCause.NONE: "calls with it and without it are compiled on their own: two compilations are to be expected, "
    "and no "
    "more",
    GuardCause.TRAINING: "train() and eval() are compiled for on their own: two compilations are to be expected, and "
    "no "
    "more",
    GuardCause.CLASS: f"pass the same class each time; {_EACH.format('class')}",
    GuardCause.IDENTITY: "create that object once and reuse it: a new function, lambda, class or module for each "
    "call "
    "compiles anew",
    GuardCause.FUNCTION: "each function is compiled for on its own, by its code, which is fine for a few: what one "
    "def or lambda expression makes in each call can share an entry",
    GuardCause.BACKEND: "make the backend once and pass the same object to each torch.compile",
    GuardCause.GONE: "keep modules and functions alive as long as their compiled code is used",
}
"""The advice if the value is an argument, or for any origin."""

_BY_ORIGIN: Mapping[Tuple[GuardCause, Origin], str] = {
    (GuardCause.SIZE, Origin.INTERMEDIATE): f"{_BETWEEN}, and can't be marked: mark the sizes of {_ITS_SOURCE} "
    "(torch._dynamo.mark_dynamic), compile with dynamic=True, or remove the graph break",
    (
        GuardCause.SIZES,
        Origin.INTERMEDIATE,
    ): f"the code branches on, or is specialized to, a size of a value that {_BETWEEN[3:]}: "
    f"mark the sizes of {_ITS_SOURCE} (torch._dynamo.mark_dynamic), or remove the graph break",
    (GuardCause.STRIDE, Origin.INTERMEDIATE): f"{_BETWEEN}: call contiguous() on it in the function, before the break",
    (GuardCause.RANK, Origin.INTERMEDIATE): f"{_BETWEEN}: give {_ITS_SOURCE} the same number of dimensions each time",
    (GuardCause.DTYPE, Origin.INTERMEDIATE): f"{_BETWEEN}: convert it in the function before the break, or convert "
    f"{_ITS_SOURCE}",
    (GuardCause.DTYPE, Origin.ATTRIBUTE): f"{_EACH.format('dtype')}; convert it once, before the first call",
    (GuardCause.REQUIRES_GRAD, Origin.INTERMEDIATE): f"{_BETWEEN}: let {_ITS_SOURCE} require grad, or not, each time",
    (
        GuardCause.REQUIRES_GRAD,
        Origin.ATTRIBUTE,
    ): "freeze or unfreeze it before the first call; each state is compiled for on its own",
    (
        GuardCause.LENGTH,
        Origin.INTERMEDIATE,
    ): f"{_BETWEEN}: its length is a constant of the compiled code behind the break; "
    "remove the graph break, or keep the length the same",
    (
        GuardCause.LENGTH,
        Origin.ATTRIBUTE,
    ): f"{_FILLED}; if each input has its own, compile the function that works on one part of it",
    (GuardCause.LENGTH, Origin.GLOBAL): _FILLED,
    (
        GuardCause.LENGTH,
        Origin.POSITIONAL,
    ): "each number of positional arguments is compiled for on its own, which is fine "
    "for a few; pass the same number each time",
    (
        GuardCause.NUMBER,
        Origin.ATTRIBUTE,
    ): f"its value is a constant of the compiled code: {_ONCE}; if it has to vary, pass "
    "it to the function as a tensor (for an int that is an attribute of a module: "
    "torch._dynamo.config.allow_unspec_int_on_nn_module = True)",
    (
        GuardCause.NUMBER,
        Origin.GLOBAL,
    ): f"its value is a constant of the compiled code: {_ONCE}, or pass it as an argument",
    (
        GuardCause.NUMBER,
        Origin.INTERMEDIATE,
    ): f"{_BETWEEN}, and its value is a constant of the next: keep it a tensor until there (no "
    ".item(), no argument that is a number), or remove the graph break",
    (GuardCause.GONE, Origin.INTERMEDIATE): _MADE_ANEW,
    (GuardCause.CHOICE, Origin.ATTRIBUTE): f"{_FEW}; where one is enough, {_ONCE}",
    (GuardCause.CHOICE, Origin.GLOBAL): f"{_FEW}; where one is enough, {_ONCE}",
}

_KEYWORDS = (
    "each set of keyword arguments is compiled for on its own, which is fine for a few; pass the same ones in each call"
)


def advice_for_guard(cause: GuardCause, origin: Origin, subject: str = "", detail: str = "") -> str:
    """Return what avoids this recompilation, empty if nothing is known. ``detail`` is the dimension, for a size."""
    if origin is Origin.KEYWORD and cause in (GuardCause.LENGTH, GuardCause.KEYS, GuardCause.MEMBERS):
        return _KEYWORDS
    if cause is GuardCause.IDENTITY and is_on_stack(subject):  # not an argument that is passed on
        return _MADE_ANEW
    text = _BY_ORIGIN.get((cause, origin)) or _ADVICE.get(cause, "")
    return text.format(subject=subject, detail=detail)


def kind_of_guard(cause: GuardCause, origin: Origin, subject: str) -> str:
    """Return the cause in words, with the origin of the value where the advice depends on it."""
    if cause is GuardCause.STATE and subject:
        return f"{cause.value}: {subject}"
    return f"{cause.value} ({origin.value})" if (cause, origin) in _BY_ORIGIN else cause.value


SMALL_SIZE_ADVICE = (
    "sizes 0 and 1 are compiled for on their own, in dimensions that are marked, too: one more compilation for each is "
    "to be expected; pad to 2 or more to avoid it"
)

STATE_ADVICE: Mapping[str, str] = {
    "": _SAME_STATE,
    "autocast": "enter torch.autocast in the same way around each call (in evaluation, too), or inside of the compiled "
    "function; where it is called both with and without autocast, one compilation for each is to be expected",
    "grad_mode": f"call under the same torch.no_grad() or inference mode each time; {_SAME_STATE}",
    "num_threads": "call torch.set_num_threads once, before the first compilation",
}
"""What to do about a change of PyTorch's global state, by the start of its name."""
