"""All that the outermost calls of a run compute, for ``depyf fix``: two runs must agree in it although other parts of
the program are compiled.

``depyf shadow --record`` records each module, and leaves out what compiled code calls no longer. Here only what the
program itself calls is recorded, so that the number of graphs does not matter; but all of that: numbers beside tensors,
the arguments as a call leaves them, the gradients of all leaves after ``backward()``, the results of ``autograd.grad``,
and the tensors and numbers that the globals of the program hold at its end. The time of each call is taken without that
of the recorder.
"""

from __future__ import annotations

import json
import os
import sys
import time
import types
import weakref
import zlib
from functools import partial
from typing import TYPE_CHECKING, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from depyf.answers.recorded import GRADIENT, INPUT, LEAF, OUTPUT, START, Digest
from depyf.base.asynchronous import suppressed
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.questions.shadow.module_names import inside, state_of, tensors_in
from depyf.dynamo.questions.shadow.record_file import RecordedRun
from depyf.dynamo.questions.shadow.recorder import _BACKWARD, _MODULE, Recorder, Values, _Open

if TYPE_CHECKING:
    import torch

Tensors = Iterable[Tuple[str, "torch.Tensor"]]

_GRAD = "autograd.grad"
TIMES = "times.json"
"""The file with the seconds of each outermost call, in a folder beside the recording."""

_MOST_ITEMS = 1000


class OuterCalls(Recorder):
    """Records outermost calls only, and all of them."""

    def __init__(self, write: Optional[Callable[[str], object]] = None) -> None:
        super().__init__(write)
        self.times: List[Tuple[str, float]] = []
        self._began = self._spent = 0.0
        """The time at which the outermost call began, and the seconds of it that were the recorder's."""
        self._given: Values = ()
        """The tensors that the outermost call was given."""
        self._leaves: List[Tuple[str, torch.Tensor]] = []
        self._roots: Dict[str, weakref.ref[torch.nn.Module]] = {}
        """The outermost modules that were called, by name."""
        self._passed: List[Tuple[str, weakref.ref[torch.Tensor]]] = []
        """Leaves that outermost calls were given since the last ``backward()``."""
        self._grad_depth: Optional[int] = None

    def install(self) -> bool:
        """Begin, and see calls of ``autograd.grad``, too."""
        import torch

        if not super().install():
            return False
        self.frames.watch(torch.autograd.grad.__code__, _GRAD)
        return True

    def parts_of(self, value: object, name: str) -> List[Tuple[str, torch.Tensor]]:
        """Return the tensors in a value, marked if they require gradients, and its numbers and texts as tensors."""
        found = [(f"{where}^" if each.requires_grad else where, each) for where, each in tensors_in(value, name)]
        return [*found, *_constants_in(value, name)]

    def _begin_call(self, depth: int, module: torch.nn.Module, args: object, kwargs: object) -> None:
        """Name a module only when the program itself calls it: which inner modules are called depends on what is
        compiled, and so would the names."""
        root = inside(module)
        if not self._open:
            super()._begin_call(depth, module, args, kwargs)
        elif self._open[-1].module is not root:
            self._begin(_Open(depth, _MODULE, module=root))

    def _parameters(self, optimizer: torch.optim.Optimizer) -> List[Tuple[str, torch.Tensor]]:
        """Return the parameters, named by their positions alone, which both runs have."""
        return [(f"{name.partition(' ')[0]} ", each) for name, each in super()._parameters(optimizer)]

    def _started(self, kind: str, frame: types.FrameType, depth: int) -> None:
        is_outermost, at = not self._open, time.perf_counter()
        if kind == _GRAD:
            return
        if kind == _BACKWARD and is_outermost and not self._is_off():
            if self._find_leaves(frame) is None:
                self._failed("finding the leaves of a backward()")
        super()._started(kind, frame, depth)
        call = self._open[-1] if self._open else None
        if is_outermost and call is not None and call.module is not None:
            self._roots[call.where] = weakref.ref(call.module)
        if self._open and is_outermost:
            self._began, self._spent = time.perf_counter(), 0.0
        else:
            self._spent += time.perf_counter() - at

    def _returned(self, kind: str, frame: types.FrameType, depth: int, value: object) -> None:
        at, open_before = time.perf_counter(), list(self._open)
        if kind == _GRAD:
            if not open_before and not self._is_off():
                self._note_safely(OUTPUT, "autograd.grad()", lambda: self.parts_of(value, ""))
            return
        super()._returned(kind, frame, depth, value)
        if not open_before or self._open:
            self._spent += time.perf_counter() - at
            return
        outermost = open_before[0]
        self.times.append((outermost.where or kind, at - self._began - self._spent))
        given, self._given = self._given, ()
        leaves, self._leaves = self._leaves, []
        if given:
            self._note_safely(INPUT, f"{outermost.where} when it has returned", lambda: [each[:2] for each in given])
        if kind == _BACKWARD:
            self._note_safely(
                GRADIENT, "backward()", lambda: [(n, each.grad) for n, each in leaves if each.grad is not None]
            )

    @safely("finding the leaves of a backward()")
    def _find_leaves(self, frame: types.FrameType) -> bool:
        """Name the leaves whose gradients may be there after a ``backward()``, which has the frame.

        A name is the same in two runs, whatever is compiled: the first one by which the program itself reaches the
        leaf. The order in the graph is another one where the number of compiled graphs is. A leaf that has no such name
        is ``LEAF``, and which one it is in the other run is not known. Named leaves count also if the graph does not
        reach them: that depends on what is compiled, too.
        """
        found: Dict[int, Tuple[str, torch.Tensor]] = {}
        for name, each in (*_held_by_frames(frame.f_back), *self._known_leaves()):
            if each.is_leaf and each.requires_grad:
                found.setdefault(id(each), (name, each))
        for each in _leaves_of(frame.f_locals.get("tensors")):
            found.setdefault(id(each), (LEAF, each))
        self._passed.clear()
        self._leaves = sorted(found.values(), key=lambda each: each[0])
        return True

    def _known_leaves(self) -> Iterator[Tuple[str, torch.Tensor]]:
        for where, module in self._roots.items():
            root = module()
            if root is not None:
                yield from state_of(root, where, private_names.PARAMETERS.name)
        for name, passed in self._passed:
            tensor = passed()
            if tensor is not None:
                yield name, tensor

    def _note_safely(self, kind: str, where: str, values: Callable[[], Tensors]) -> None:
        if self._noted(kind, where, values) is None:
            self._failed(f"recording the {kind} of {where}")

    @safely("recording what a call leaves")
    def _noted(self, kind: str, where: str, values: Callable[[], Tensors]) -> bool:
        self._note(kind, where, lambda: [(name, each, None) for name, each in values()])
        return True

    def _failed(self, doing: str) -> None:
        """Note a failure, which both of two runs have, so that what is missing in both would count as the same."""
        reason = f"{doing} failed"
        self.skipped[reason] = self.skipped.get(reason, 0) + 1

    def _note(self, kind: str, where: str, values: Callable[[], Values]) -> Sequence[Digest]:
        """Write an event of an outermost call."""
        # Inputs and gradients of a step are noted when the call has been opened, outputs when it has been closed.
        if len(self._open) > (kind in (INPUT, GRADIENT)):
            return ()
        found = values()
        if kind == INPUT and self._open:
            self._given = found
            self._passed += [
                (f"{where} (call {self.calls}) {name}", weakref.ref(each))
                for name, each, _ in found
                if each.requires_grad and each.is_leaf
            ]
        return super()._note(kind, where, lambda: found)

    @safely("recording what the program leaves")
    def note_end(self) -> None:
        """Record what the globals of the program hold."""
        self._open.clear()
        for name, value in sorted(vars(sys.modules["__main__"]).items()):
            if not name.startswith("__"):
                self._note_safely(START, f"global {name}", partial(self._held, value))

    def _held(self, value: object) -> Iterator[Tuple[str, torch.Tensor]]:
        import torch

        if isinstance(value, (types.ModuleType, type)):
            return
        found = self.parts_of(value, "")
        if issubclass(type(value), torch.nn.Module):
            kinds = private_names.PARAMETERS.name, private_names.BUFFERS.name
            found = [each for kind in kinds for each in state_of(value, "", kind)]  # type: ignore[arg-type]
        for name, each in found:
            yield name, each
            if each.is_leaf and each.grad is not None:
                yield f"{name}.grad", each.grad


class RecordedCalls(RecordedRun):
    """Records the outermost calls of a run into a folder, and their times."""

    recorder_class = OuterCalls

    def end(self) -> None:
        """Record what the program leaves, and end."""
        recorder = self._recorder
        if isinstance(recorder, OuterCalls) and self._path:
            recorder.note_end()
            with suppressed(OSError), open(os.path.join(self._folder, TIMES), "w", encoding="utf-8") as file:
                json.dump({"times": recorder.times, "skipped": sorted(recorder.skipped)}, file)
        super().end()


def _constants_in(value: object, name: str, depth: int = 4) -> Iterator[Tuple[str, torch.Tensor]]:
    """Yield the numbers, texts and the like in a value as tensors: the bits of a float, else a hash."""
    import torch

    kind = type(value)
    if kind is float:
        yield f"{name}:float", torch.tensor(value, dtype=torch.float64)
    elif kind in (bool, int, str, complex, type(None)):
        hashed = zlib.crc32(f"{kind.__name__}:{value!r}".encode("utf-8", "backslashreplace"))
        yield f"{name}:{kind.__name__}", torch.tensor(hashed, dtype=torch.int64)
    elif depth and kind in (list, tuple):
        for at, each in enumerate(value[:_MOST_ITEMS]):  # type: ignore[index]
            yield from _constants_in(each, f"{name}[{at}]", depth - 1)
    elif depth and kind is dict:
        items: Mapping[object, object] = value  # type: ignore[assignment]
        for at, (key, each) in enumerate(list(items.items())[:_MOST_ITEMS]):
            written = repr(key).replace(" ", "\\x20") if type(key) in (str, int) else str(at)
            yield from _constants_in(each, f"{name}[{written}]", depth - 1)


def _held_by_frames(frame: Optional[types.FrameType]) -> Iterator[Tuple[str, torch.Tensor]]:
    """Yield the tensors in variables of callers, up to the main file, and the parameters of modules there."""
    import torch

    main = vars(sys.modules["__main__"])
    while frame is not None:
        for name, value in sorted(frame.f_locals.items(), key=lambda each: str(each[0])):
            where = name if frame.f_code.co_name == "<module>" else f"{frame.f_code.co_name} {name}"
            if issubclass(type(value), torch.nn.Module):
                yield from state_of(inside(value), where, private_names.PARAMETERS.name)
            elif not (type(value) in (list, tuple, dict) and len(value) > _MOST_ITEMS):
                yield from tensors_in(value, where, depth=1)
        if frame.f_locals is main:
            return
        frame = frame.f_back


def _leaves_of(tensors: object) -> Iterator[torch.Tensor]:
    """Yield the leaves that the graph of ``backward()`` reaches, in the order of the graph."""
    seen = set()
    todo = [each.grad_fn for _, each in reversed(tensors_in(tensors, "")) if each.grad_fn is not None]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            yield leaf
        todo += [each for each, _ in reversed(node.next_functions) if each is not None]
