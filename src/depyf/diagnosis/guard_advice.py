"""What avoids a recompilation, by the kind of the failed guard and the origin of the guarded value."""

from __future__ import annotations

import enum
from typing import Mapping, Optional, Sequence, Tuple

from depyf.base.quick_dataclass import dataclass
from depyf.diagnosis.guard_sources import is_of_optimizers_state, is_on_stack


class GuardCause(enum.Enum):
    """What a guard is about. The value is stored in manifests."""

    UNKNOWN = ""
    SIZE = "size"
    PARAMETER_SIZE = "size of a parameter"
    MARKED_SIZE = "size that is marked static"
    CONSTANT_SIZE = "size that is a constant"
    STATIC_SIZE = "size, while dynamic shapes are off"
    SIZES = "relation of sizes"
    EQUAL_SIZES = "sizes that were equal"
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
    OVERLAP = "overlap in memory"
    MODULE_HOOKS = "hooks of a module"
    LENGTH = "length"
    KEYS = "keys"
    MEMBERS = "a key"
    ATTRIBUTES = "an attribute"
    MOVED = "registration of an attribute"
    ITEMS = "items of a set"
    NUMBER = "number"
    FLOAT = "float"
    COMPLEX = "complex number"
    MODULE_NUMBER = "int of a module"
    CONSTANT_NUMBER = "number that is a constant"
    STATIC_NUMBER = "number, while dynamic shapes are off"
    TESTED = "number that the code tests"
    BRANCH = "branch on a number"
    CHOICE = "constant"
    NONE = "None or not"
    TRAINING = "train() or eval()"
    CLASS = "class"
    IDENTITY = "identity of an object"
    MEMBER = "member of an enum"
    NAMED = "class or function of a module"
    METADATA = "metadata of a tensor subclass"
    FUNCTION = "code of a function"
    BACKEND = "backend"
    GONE = "an object is gone"


class ValueOrigin(enum.Enum):
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
    parameters, without the stars. ``dynamic`` is True where it is compiled with dynamic=True, False where dynamic
    shapes are off, and None where sizes are dynamic when they vary, or where that is not known. ``module_ints`` is
    whether ints of modules are no constants in general (``allow_unspec_int_on_nn_module``).
    """

    resumes: bool = False
    positional: str = ""
    keywords: str = ""
    dynamic: Optional[bool] = None
    module_ints: bool = False


ANY_FRAME = GuardedFrame()


def origin_of(text: str, subject: str, frame: GuardedFrame) -> ValueOrigin:
    """Return where ``subject``, which a guard with this text is about, comes from."""
    root = subject.partition(".")[0].partition("[")[0]
    if "G['" in text or "__closure__" in text or "(closure variable" in subject:
        return ValueOrigin.GLOBAL
    if root and root in (frame.keywords, frame.positional) and "." not in subject:
        return ValueOrigin.KEYWORD if root == frame.keywords else ValueOrigin.POSITIONAL
    if "." in subject:
        return ValueOrigin.ATTRIBUTE
    return ValueOrigin.INTERMEDIATE if frame.resumes else ValueOrigin.ARGUMENT


_BETWEEN = "it crosses a graph break, from one graph to the next"
_MADE_ANEW = (
    f"{_BETWEEN}, and each call makes a new one (as of a bound method or a function): remove the graph break, or call "
    "it on a line that does not break the graph"
)
_ITS_SOURCE = "the arguments that it comes from"
_EACH = "each {0} needs a compilation of its own"
_FEW = f"{_EACH.format('value')}, which is fine for a few"
_SELECTED = (
    f"{_FEW}; where it only selects something, as the key of a dict does, look that up before the call and pass the "
    "result (which is guarded, too: of another class or size it needs a compilation of its own)"
)
_FILLED_ONCE = "fill it before the first call"
_FILLED = (
    f"the length is a constant of the compiled code: {_FILLED_ONCE}; if each call adds to it, write into a tensor of "
    "fixed size instead"
)
_ONCE = "set it once, before the first call"
_SAME_STATE = "each such state needs a compilation of its own; set it once, around all calls"

_DYNAMIC = "compile with dynamic=True"
_NEEDED = "neither helps where the code needs a Python number (a loop over range, an index, an f-string)"
_OFF = "as dynamic shapes are off here (dynamic=False, or torch._dynamo.config.automatic_dynamic_shapes = False)"
_AS_TENSOR = "pass it as a tensor"
_ADVICE: Mapping[GuardCause, str] = {
    GuardCause.SIZE: "mark what varies before the first call, {marks}, "
    "which raises an error where the code makes a constant of it; or compile with dynamic=True; or pad to one size, if "
    "it takes few values",
    GuardCause.PARAMETER_SIZE: "sizes of parameters and buffers are static whatever is marked: set "
    "torch._dynamo.config.force_parameter_static_shapes = False (for modules of torch.nn "
    "force_nn_module_property_static_shapes = False, too) and compile with dynamic=True; without dynamic=True the "
    "second size is compiled once more, and further ones are not",
    GuardCause.MARKED_SIZE: "the program marks that size as static (torch._dynamo.mark_static), so each needs a "
    "compilation of its own: remove the mark, which changes nothing where the code makes a constant of the size (a "
    "loop over range, int())",
    GuardCause.CONSTANT_SIZE: "it was compiled for several of these sizes, one each: dynamic shapes are off "
    "(dynamic=False, torch._dynamo.config.automatic_dynamic_shapes = False), or the code makes a constant of the size "
    "(a loop over range, a key, an f-string, int()); then each size needs a compilation of its own, and mark_dynamic "
    "would raise an error: pad to a few sizes",
    GuardCause.STATIC_SIZE: f"{_DYNAMIC}, {_OFF}, so each size needs a compilation of its own (dynamic=True changes "
    "nothing where the code makes a constant of the size, as a loop over range and int() do); or pad to a few sizes",
    GuardCause.SIZES: "the code branches on, or is specialized to, a size: each side needs a compilation of its own, "
    "which is fine for a few; mark what varies before the first call (torch._dynamo.mark_dynamic), so that no other "
    "compilation is made",
    GuardCause.EQUAL_SIZES: "two sizes were equal when this was compiled, and Dynamo takes such sizes for one, so that "
    "sizes that differ need a compilation of their own: set torch.fx.experimental._config.use_duck_shape = False "
    "before the first call, or make the first call with sizes that differ",
    GuardCause.STRIDE: "call {subject}.contiguous() before, so that the memory layout is always the same",
    GuardCause.RANK: f"{_EACH.format('number of dimensions')}; if one is enough, reshape before the call",
    GuardCause.DTYPE: f"{_EACH.format('dtype')}; if one is enough, convert before the call",
    GuardCause.REQUIRES_GRAD: (
        "expect two compilations where a first layer gets the input and others get activations; otherwise let it "
        "always require grad, or detach it where no gradient is needed"
    ),
    GuardCause.TENSOR_KIND: "each device, layout and lazy view needs a compilation of its own: pass tensors of the "
    "same device and layout each time, and resolve lazy views (resolve_conj(), resolve_neg()) before",
    GuardCause.SAME_TENSOR: "pass a clone, or always pass the same tensor twice",
    GuardCause.SAME_OBJECT: "pass the same object twice each time, or never",
    GuardCause.OVERLAP: "pass tensors that overlap in memory in the same way each time, or clones of them",
    GuardCause.MODULE_HOOKS: "register and remove hooks before the first call; each set of hooks needs a compilation "
    "of its own",
    GuardCause.MARKS: "mark the same dimensions on each tensor, before the first call",
    GuardCause.MODES: _SAME_STATE,
    GuardCause.HOOKS: _SAME_STATE,
    GuardCause.LENGTH: "the length is a constant of the compiled code: use the same length each time; tensors of one "
    "shape can be passed as one tensor (torch.stack), with operations on that in place of a loop over it",
    GuardCause.KEYS: "build the dict with the same keys in the same order each time, or pass a list of its values if "
    "the function does not need the keys",
    GuardCause.MEMBERS: "keep the same keys each time; what they hold is guarded, too: of another class, size or "
    "number it needs a compilation of its own",
    GuardCause.ATTRIBUTES: "keep the same attributes each time: set them once, before the first call",
    GuardCause.MOVED: "calls with it and without it need a compilation each: set it in __init__, or expect one more; "
    "if it is None at first, register it as None in __init__ (register_module, register_parameter or "
    "register_buffer), so that None again needs no third one",
    GuardCause.ITEMS: "whether the item is there is a constant of the compiled code: calls with it and without it need "
    "a compilation each, which is fine for a few; to avoid it, pass the same items each time",
    GuardCause.NUMBER: f"its value is a constant of the compiled code: {_DYNAMIC}, or {_AS_TENSOR} if it varies; "
    f"{_NEEDED}",
    GuardCause.FLOAT: f"its value is a constant of the compiled code: {_AS_TENSOR} if it varies, or {_DYNAMIC} "
    f"(PyTorch 2.6 and later, unless torch._dynamo.config.specialize_float is set); {_NEEDED}",
    GuardCause.COMPLEX: f"{_EACH.format('complex number')}: {_AS_TENSOR} if it varies",
    GuardCause.MODULE_NUMBER: "PyTorch takes ints that are attributes of a module as constants: convert it into a "
    f"tensor, or set torch._dynamo.config.allow_unspec_int_on_nn_module = True, if it varies; {_NEEDED}",
    GuardCause.CONSTANT_NUMBER: "it was compiled for several values, one each: the code uses it as a Python number (in "
    "a loop over range, as an index), or torch._dynamo.config.specialize_int (of floats specialize_float) is set; each "
    "value needs a compilation of its own, which is fine for a few; dynamic=True does not change it",
    GuardCause.STATIC_NUMBER: f"{_DYNAMIC}, {_OFF}, so each value needs a compilation of its own; or {_AS_TENSOR}; "
    f"{_NEEDED}, and dynamic=True does not where torch._dynamo.config.specialize_int (of floats "
    "specialize_float) is set",
    GuardCause.TESTED: "the code branches on it, and its value is a constant of the compiled code: pass it as a "
    "tensor and choose with torch.where (a branch on a tensor breaks the graph); or pass the result of the test, a "
    "bool, or compile with dynamic=True, one compilation for each side",
    GuardCause.BRANCH: "the code branches on, or is specialized to, this number: each side needs a compilation of its "
    f"own, which is fine for a few; for one compilation {_AS_TENSOR} and choose with torch.where",
    GuardCause.CHOICE: _SELECTED,
    GuardCause.NONE: "calls with it and without it need a compilation each: expect two compilations, and no more",
    GuardCause.TRAINING: "train() and eval() need a compilation each: expect two compilations, and no more",
    GuardCause.CLASS: f"pass the same class each time; {_EACH.format('class')}",
    GuardCause.IDENTITY: f"{_EACH.format('object')}: if the program creates a new one for each call, create it once "
    "and reuse it; a few are fine",
    GuardCause.MEMBER: f"{_EACH.format('member')}, which is fine for a few",
    GuardCause.NAMED: f"{_EACH.format('class or function')}, which is fine for a few",
    GuardCause.METADATA: f"{_EACH.format('value of the metadata')}, which is fine for a few; a number that varies can "
    "be kept in a tensor of the subclass, and __metadata_guard__ of its class can accept other values where no "
    "result depends on them",
    GuardCause.FUNCTION: "each function, by its code, needs a compilation of its own, which is fine for a few: "
    "functions that one def or lambda expression makes can share an entry",
    GuardCause.BACKEND: "make the backend once and pass the same object to each torch.compile; under "
    "set_stance(force_backend=...) expect one more compilation",
    GuardCause.GONE: "create it once, keep it alive as long as its compiled code is used, and pass the same object in "
    "each call",
}
"""The advice if the value is an argument, or for any origin."""

_BETWEEN_NUMBERS = (
    f"{_BETWEEN}, and its value is a constant of the next: keep it a tensor until there (no .item(), no argument that "
    "is a number), or remove the graph break"
)
_BY_ORIGIN: Mapping[ValueOrigin, Mapping[GuardCause, str]] = {
    ValueOrigin.INTERMEDIATE: {
        GuardCause.SIZE: f"{_BETWEEN}, and can't be marked (marks of {_ITS_SOURCE} end at the break): remove the "
        "graph break and mark them, or compile with dynamic=True",
        GuardCause.SIZES: f"the code branches on, or is specialized to, a size of a value that {_BETWEEN[3:]}: each "
        "side needs a compilation of its own, which is fine for a few; compile with dynamic=True, or remove the graph "
        "break, so that no other compilation is made",
        GuardCause.STRIDE: f"{_BETWEEN}: call contiguous() on it in the function, before the break",
        GuardCause.RANK: f"{_BETWEEN}: give {_ITS_SOURCE} the same number of dimensions each time",
        GuardCause.DTYPE: f"{_BETWEEN}: convert {_ITS_SOURCE}, or convert it in the function before the break",
        GuardCause.REQUIRES_GRAD: f"{_BETWEEN}: let {_ITS_SOURCE} require grad, or not, each time",
        GuardCause.LENGTH: f"{_BETWEEN}: its length is a constant of the compiled code after the break; "
        "remove the graph break, or keep the length the same",
        GuardCause.NUMBER: _BETWEEN_NUMBERS,
        GuardCause.FLOAT: _BETWEEN_NUMBERS,
        GuardCause.GONE: _MADE_ANEW,
    },
    ValueOrigin.ATTRIBUTE: {
        GuardCause.DTYPE: f"{_EACH.format('dtype')}; convert it once, before the first call",
        GuardCause.REQUIRES_GRAD: f"freeze or unfreeze it before the first call; {_EACH.format('state')}",
        GuardCause.LENGTH: f"{_FILLED}; if each input has its own, compile the function that works on one part of it",
        GuardCause.KEYS: f"{_EACH.format('set of keys')}; {_FILLED_ONCE}",
        GuardCause.NUMBER: f"its value is a constant of the compiled code: {_ONCE}; if it has to vary, {_DYNAMIC}, or "
        f"make it a tensor; {_NEEDED}",
        GuardCause.FLOAT: f"its value is a constant of the compiled code: {_ONCE}; if it has to vary, make it a "
        f"tensor, or {_DYNAMIC} (PyTorch 2.6 and later, unless torch._dynamo.config.specialize_float is set)",
        GuardCause.CHOICE: f"{_FEW}; where one is enough, {_ONCE}",
    },
    ValueOrigin.GLOBAL: {
        GuardCause.LENGTH: _FILLED,
        GuardCause.KEYS: f"{_EACH.format('set of keys')}; {_FILLED_ONCE}",
        GuardCause.NUMBER: f"its value is a constant of the compiled code: {_ONCE}; if it has to vary, make it a "
        "tensor, or pass it as an argument",
        GuardCause.FLOAT: f"its value is a constant of the compiled code: {_ONCE}; if it has to vary, make it a "
        "tensor, or pass it as an argument",
        GuardCause.CHOICE: f"{_FEW}; where one is enough, {_ONCE}",
    },
    ValueOrigin.POSITIONAL: {
        GuardCause.LENGTH: "each number of positional arguments needs a compilation of its own, which is fine "
        "for a few; pass the same number each time",
    },
}

_KEYWORDS = (
    "each set of keyword arguments needs a compilation of its own, which is fine for a few; pass the same set in each "
    "call"
)


def advice_for_guard(
    cause: GuardCause,
    origin: ValueOrigin,
    subject: str = "",
    detail: str = "",
    sizes: Sequence[Tuple[str, str]] = (),
) -> str:
    """Return what avoids this recompilation, empty if nothing is known. ``detail`` is the dimension, for a size; of
    several, with ", " between them. ``sizes`` are all tensors whose sizes have changed, each with its dimensions: to
    mark one of several tensors that must have the same size raises an error."""
    if origin is ValueOrigin.KEYWORD and cause in (GuardCause.LENGTH, GuardCause.KEYS, GuardCause.MEMBERS):
        return _KEYWORDS
    if cause is GuardCause.KEYS and is_of_optimizers_state(subject):
        return OPTIMIZER_ADVICE
    if cause is GuardCause.IDENTITY and is_on_stack(subject):  # not an argument that is passed on
        return _MADE_ANEW
    text = _BY_ORIGIN.get(origin, {}).get(cause) or _ADVICE.get(cause, "")
    listed = [(name, f"[{at}]" if "," in at else at) for name, at in sizes or [(subject, detail)]]
    marks = [f"torch._dynamo.mark_dynamic({name}, {dimensions})" for name, dimensions in listed]
    more = f" and so on for {len(marks) - _MOST_MARKS} more" if len(marks) > _MOST_MARKS else ""
    return text.format(subject=subject, marks=" and ".join(marks[:_MOST_MARKS]) + more)


_MOST_MARKS = 3


def kind_of_guard(cause: GuardCause, origin: ValueOrigin, subject: str) -> str:
    """Return the cause in words, with the origin of the value where the advice depends on it."""
    if cause is GuardCause.STATE and subject:
        return f"{cause.value}: {subject}"
    return f"{cause.value} ({origin.value})" if cause in _BY_ORIGIN.get(origin, {}) else cause.value


SMALL_SIZE_ADVICE = (
    "sizes 0 and 1 need a compilation of their own, even in marked dimensions: expect one more compilation for each; "
    "pad to 2 or more to avoid it"
)

OPTIMIZER_ADVICE = (
    "the first step of an optimizer fills its state, which the entry was compiled without: expect one more "
    "compilation, and no more"
)

STATE_ADVICE: Mapping[str, str] = {
    "": _SAME_STATE,
    "autocast": "enter torch.autocast in the same way around each call (in evaluation, too), or inside of the compiled "
    "function; where it is called both with and without autocast, expect one compilation for each",
    "transform": "compile the function that applies the transform (torch.vmap, torch.func.grad), and not the function "
    "that is transformed",
    "grad_mode": f"call under the same torch.no_grad() or inference mode each time; {_SAME_STATE}, in each "
    "thread (a new thread begins with gradients)",
    "num_threads": "call torch.set_num_threads once, before the first compilation",
}
"""What to do about a change of PyTorch's global state, by the start of its name."""
