"""``depyf shadow --record``: write a digest of each output, loss, gradient and parameter of a run, step by step.

Nothing is installed in PyTorch: calls of modules, ``backward()``, ``Optimizer.step`` and compiled functions are seen as
frames (``watched_frames.py``), and their arguments and results are read where these start and end. So the program
compiles and computes what it would without the recorder. The digests are computed without gradients, modes and
autocast, from the values as they are at that time.

A step ends with ``Optimizer.step``. What an inner module of compiled code computes is not seen, as it is not called:
two runs are compared by what both have.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import sys
import weakref
import zlib
from types import FrameType
from typing import TYPE_CHECKING, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.recorded import GRADIENT, INPUT, LOSS, OUTPUT, PARAMETER, START, WEIGHTED, Digest, Event, unit_of
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.hooks import compile_ids, private_names
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.hooks.watched_frames import WatchedFrames, inner_code
from depyf.dynamo.observe.random_state import is_capturing
from depyf.dynamo.questions.shadow.digests import Weights, bits_of, digest
from depyf.dynamo.questions.shadow.module_names import ModuleNames, inside, state_of, tensors_in

if TYPE_CHECKING:
    import torch

_MODULE, _BACKWARD, _STEP, _COMPILED = "module", "backward", "step", "compiled"

Values = Sequence[Tuple[str, "torch.Tensor", Optional[Weights]]]
"""The arguments of ``digest``."""

_SMALL = 1e-3
"""A gradient so small, relative to the others of its parameter (root mean square), may be rounding."""

_ROUNDING, _MOST_SHARE = 1000.0, 0.1
"""A gradient of so many units of rounding, relative to the largest of all parameters, may be rounding; at most that
share of the largest."""


@dataclass
class _Open:
    """A call that is watched and has not ended. ``where`` is empty for calls that are not recorded."""

    depth: int
    kind: str
    where: str = ""
    module: Optional[torch.nn.Module] = None
    """The module that is called; of what ``torch.compile`` returned, the one inside."""
    optimizer: Optional[torch.optim.Optimizer] = None


class Recorder:
    """Writes the events of a run with ``write``; without it, only ``steps`` and ``calls`` are counted."""

    def __init__(self, write: Optional[Callable[[str], object]] = None) -> None:
        self._write = write
        self.frames = WatchedFrames(self._started, self._returned)
        self._names = ModuleNames()
        self._open: List[_Open] = []
        self._seen: Dict[int, Tuple[weakref.ref[object], str]] = {}
        """The optimizers that have made a step, and their names, by ``id``; the program may drop them."""
        self._numbers: Dict[str, int] = {}
        """How many optimizers of each class have made a step."""
        self._sizes: Dict[str, float] = {}
        """By parameter, the size of the gradient of this step: root mean square."""
        self._unit = unit_of("float64")
        """The unit of rounding of the coarsest type so far."""
        self.busy = False
        """Whether what happens now is depyf's own work."""
        self._may_compile = False
        self._process = os.getpid()
        self.steps = 0
        """The number of calls of ``Optimizer.step`` that have ended."""
        self.calls = 0
        """The number of calls of outermost modules and compiled functions that have begun."""
        self.skipped: Dict[str, int] = {}
        """Why events were not recorded."""

    def install(self) -> bool:
        """Begin, as soon as torch is imported, until what it registers (``patching.collecting``) is undone."""
        import torch

        if not self.frames.begin():
            return False
        called = private_names.WRAPPED_CALL_OF_MODULE.find() or torch.nn.Module.__call__
        self.frames.watch(called.__code__, _MODULE)
        self.frames.watch(torch.autograd.backward.__code__, _BACKWARD)
        step = inner_code(torch.optim.Optimizer.profile_hook_step, "wrapper")
        if step is not None:
            self.frames.watch(step, _STEP)
        return True

    def install_compiler(self) -> None:
        """Watch compiled functions, too, as soon as torch's compiler is imported."""
        self._may_compile = True
        for made in getattr(private_names.OPTIMIZE_CONTEXT.find(), "__mro__", ()):
            for name in (private_names.COMPILE_WRAPPER.name, private_names.FN.name):
                code = inner_code(vars(made).get("__call__"), name)
                if code is not None:
                    self.frames.watch(code, _COMPILED)

    def _is_off(self) -> bool:
        """Return whether what happens now is depyf's own work, a forked child's, or a part of a compilation."""
        if self.busy or os.getpid() != self._process:
            return True
        return self._may_compile and compile_ids.current_compile_id() is not None

    @safely("recording the start of a call")
    def _started(self, kind: str, frame: FrameType, depth: int) -> None:
        import torch

        if self._is_off():
            return
        self._forget_what_an_exception_ended(frame, depth)
        known: Mapping[str, object] = frame.f_locals
        if kind == _BACKWARD:
            self._note(LOSS, "backward()", lambda: _plain(tensors_in(known.get("tensors"), "loss")))
            self._open.append(_Open(depth, _BACKWARD))
            return
        if kind == _STEP:
            args = known.get("args")
            optimizer = args[0] if isinstance(args, tuple) and args else None
            if isinstance(optimizer, torch.optim.Optimizer):
                self._begin_step(depth, optimizer)
        elif kind == _MODULE:
            module = known.get("self")
            if isinstance(module, torch.nn.Module):
                self._begin_call(depth, module, known.get("args"), known.get("kwargs"))
        else:
            self._begin_compiled(depth, known.get(private_names.COMPILED_FUNCTION.name), known)

    def _forget_what_an_exception_ended(self, frame: FrameType, depth: int) -> None:
        """Drop calls that are no longer running: from Python 3.12 on, an end by an exception is not reported."""
        while self._open:
            call = self._open[-1]
            if call.depth < depth:
                below: Optional[FrameType] = frame
                for _ in range(depth - call.depth):
                    below = None if below is None else below.f_back
                # A later call of watched code at that depth would have dropped it already.
                if below is not None and self.frames.kind_of(below.f_code) == call.kind:
                    return
            self._open.pop()

    def _begin_compiled(self, depth: int, function: object, known: Mapping[str, object]) -> None:
        """Begin a call of a compiled function; that of a compiled module is seen as a call of a module."""
        import torch

        owner = getattr(function, "__self__", None)
        if isinstance(owner, torch.optim.Optimizer):
            self._begin_step(depth, owner)
            return
        file = getattr(getattr(function, "__code__", None), "co_filename", "").replace(os.sep, "/")
        if isinstance(owner, torch.nn.Module) or function is None or "/torch/_dynamo/" in file:
            return
        call = _Open(depth, _COMPILED, f"{getattr(function, '__qualname__', type(function).__name__)}()")
        self._begin(call)
        self._note(INPUT, call.where, lambda: self._arguments(known.get("args"), known.get("kwargs")))

    def _begin_call(self, depth: int, module: torch.nn.Module, args: object, kwargs: object) -> None:
        above = self._open[-1] if self._open else None
        root = inside(module)
        if above is not None and above.module is root:  # what torch.compile returned calls the module inside
            return
        where = self._names.of(module)
        if not where:
            if type(module).__name__ == "GraphModule" and self._open:  # made by a compiler
                return
            outermost = next((each for each in self._open if each.module is not None), None)
            if outermost is None or outermost.module is None:
                where = self._names.add(module)
                kinds = private_names.PARAMETERS.name, private_names.BUFFERS.name
                state = [found for kind in kinds for found in state_of(root, "", kind)]
                self._note(
                    START, where, lambda: _plain([got for name, each in state for got in tensors_in(each, name)])
                )
            else:
                self._names.look_again(outermost.module, outermost.where)
                where = self._names.of(module) or type(module).__name__  # made by the call itself
        self._begin(_Open(depth, _MODULE, where, root))
        self._note(INPUT, where, lambda: self._arguments(args, kwargs))

    def parts_of(self, value: object, name: str) -> List[Tuple[str, torch.Tensor]]:
        """Return what is recorded of an argument or a result, with names."""
        return tensors_in(value, name)

    def _arguments(self, args: object, kwargs: object) -> Values:
        return _plain([*self.parts_of(args, "args"), *self.parts_of(kwargs, "kwargs")])

    def _begin(self, call: _Open) -> None:
        if not self._open:
            self.calls += 1
        self._open.append(call)

    def _begin_step(self, depth: int, optimizer: torch.optim.Optimizer) -> None:
        if any(each.kind == _STEP for each in self._open):  # an optimizer around another one
            return
        known, where = self._seen.get(id(optimizer), (None, ""))
        if known is None or known() is not optimizer:
            name = type(optimizer).__name__
            number = self._numbers[name] = self._numbers.get(name, 0) + 1
            where = name if number == 1 else f"{name}#{number}"
            self._seen[id(optimizer)] = weakref.ref(optimizer), where
            self._note(START, where, lambda: _plain(self._parameters(optimizer)))
        self._open.append(_Open(depth, _STEP, where, optimizer=optimizer))
        found = self._note(GRADIENT, where, lambda: _plain(self._gradients(optimizer)))
        self._sizes = {each.name: each.norm / math.sqrt(max(each.count, 1)) for each in found}

    @safely("recording the end of a call")
    def _returned(self, kind: str, frame: FrameType, depth: int, value: object) -> None:
        if self._is_off():
            return
        while self._open and self._open[-1].depth > depth:
            self._open.pop()
        if not self._open or self._open[-1].depth != depth:
            return
        call = self._open.pop()
        if call.kind == _BACKWARD:
            return
        optimizer = call.optimizer
        if optimizer is None:
            self._note(OUTPUT, call.where, lambda: _plain(self.parts_of(value, "")))
            return
        self._note(PARAMETER, call.where, lambda: self._weighted(optimizer))
        self.steps += 1

    def _parameters(self, optimizer: torch.optim.Optimizer) -> List[Tuple[str, torch.Tensor]]:
        """Return the parameters. A name is the position in the optimizer, which both runs have, and the module's."""
        found = []
        for group, known in enumerate(optimizer.param_groups):
            for at, each in enumerate(known["params"]):
                found += tensors_in(each, f"{group}.{at} {self._names.of_parameter(each)}")
        return found

    def _gradients(self, optimizer: torch.optim.Optimizer) -> List[Tuple[str, torch.Tensor]]:
        return [found for name, each in self._parameters(optimizer) for found in tensors_in(each.grad, name)]

    def _weighted(self, optimizer: torch.optim.Optimizer) -> Values:
        """Return the parameters, and once more with weights by their gradients."""
        gradients = dict(self._gradients(optimizer))
        least = min(_MOST_SHARE, _ROUNDING * self._unit) * max(self._sizes.values(), default=0.0)
        found: List[Tuple[str, torch.Tensor, Optional[Weights]]] = []
        for name, each in self._parameters(optimizer):
            found.append((name, each, None))
            if name in gradients and each.is_floating_point():
                border = max(least, _SMALL * self._sizes.get(name, 0.0))
                found.append((name.replace(" ", f"{WEIGHTED} ", 1), each, Weights(gradients[name], border)))
        return found

    def _note(self, kind: str, where: str, values: Callable[[], Values]) -> Sequence[Digest]:
        """Write an event, if there is anything to record; return its digests."""
        if self._write is None:
            return ()
        reason = _why_not()
        if reason:
            self.skipped[reason] = self.skipped.get(reason, 0) + 1
            return ()
        self.busy = True
        try:
            precision = _precision()
            with _unseen():
                digests = tuple(digest(*each) for each in values())
                if digests:
                    event = Event(self.steps, self.calls, kind, where, digests, random_states(), precision)
                    self._write(event.to_line())
            self._unit = max([self._unit, *(unit_of(each) for each in (precision, *(each.dtype for each in digests)))])
            return digests
        finally:
            self.busy = False


def _plain(values: Sequence[Tuple[str, torch.Tensor]]) -> Values:
    return [(name, each, None) for name, each in values]


def _why_not() -> str:
    """Return, in words, why values can't be read now; empty if they can."""
    import torch

    transforms = private_names.TRANSFORMS.find()
    if transforms is not None and transforms() is not None:
        return "inside of torch.func"
    if private_names.PROFILER_IS_ON.find():
        return "PyTorch's profiler records each operation"
    if torch.jit.is_tracing():  # type: ignore[attr-defined,no-untyped-call]
        return "torch.jit.trace records each operation"
    return "a CUDA graph is being captured" if is_capturing() else ""


@contextlib.contextmanager
def _unseen() -> Iterator[None]:
    """Compute in the block without gradients, without modes of the program, in full precision."""
    import torch

    with contextlib.ExitStack() as stack:
        for name in (private_names.DISABLE_MODES, private_names.DISABLE_TORCH_FUNCTION):
            disable = name.find()
            if disable is not None:
                stack.enter_context(disable())
        stack.enter_context(torch.no_grad())
        for device in ("cpu", "cuda"):
            stack.enter_context(torch.autocast(device, enabled=False))
        yield


def _precision() -> str:
    """Return the dtype that autocast computes in; empty where it is off."""
    import torch

    if not hasattr(torch, "get_autocast_dtype"):  # before PyTorch 2.4
        return ""
    devices = ("cpu", "cuda") if torch.cuda.is_initialized() else ("cpu",)
    found = [str(torch.get_autocast_dtype(each)) for each in devices if torch.is_autocast_enabled(each)]
    return found[-1].replace("torch.", "") if found else ""


def random_states() -> str:
    """Return a short hash of the state of each random number generator: ``torch:1a2b3c4d python:...``."""
    import torch

    found = {"torch": bits_of(torch.get_rng_state()), "python": f"{hash(random.getstate()[1]) % 2**64:016x}"}
    if torch.cuda.is_initialized():
        found["cuda"] = bits_of(torch.cuda.get_rng_state())
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        state = numpy.random.get_state()
        found["numpy"] = f"{zlib.crc32(state[1].tobytes(), state[2]):08x}"
    return " ".join(f"{name}:{value[-8:]}" for name, value in found.items())
