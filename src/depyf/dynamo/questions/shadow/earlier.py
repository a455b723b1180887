"""What the code of an entry read by name when the entry was compiled: what a stale entry has in it.

The values are read when Dynamo has generated the code of the entry, from the frame that it compiles and from the
functions and modules that this frame calls; of an entry that was there before, in the first check in which it is right.
Numbers, texts and
small tensors are kept as copies. Of other objects only a weak reference is kept, so that they do not live longer.
"""

from __future__ import annotations

import weakref
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from depyf.base.asynchronous import suppressed, synchronous
from depyf.base.messages import cut
from depyf.base.quick_dataclass import dataclass
from depyf.dynamo.capture.fallbacks import is_users_file
from depyf.dynamo.entries.callables import module_classes, plain_function
from depyf.dynamo.hooks import cache_entries, compile_ids, frame_evaluation, frames
from depyf.dynamo.hooks.nested_code import closure_of
from depyf.dynamo.hooks.patching import Undo
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.questions.compare.observed_reads import ATTRIBUTE, Read, ReadObserver, StartedFrame
from depyf.dynamo.questions.compare.stale_reads import KnownBefore

_ATOMS = (bool, int, float, complex, str, bytes, type(None))
_LARGEST = 4096
"""So many elements of a tensor are copied."""

_MOST_FUNCTIONS = 300
_LONGEST = 60

_Key = Tuple[str, str, str]


@dataclass(frozen=True)
class _Value:
    """A value as it was. ``is_now`` returns whether an object still is that value, ``get`` what it was, ``None`` if
    that is gone."""

    words: str
    is_now: Callable[[object], bool]
    get: Callable[[], object]


class EarlierValues:
    """The values that entries were compiled with, by the original code and the compile id."""

    def __init__(self) -> None:
        self._known: Dict[Tuple[CodeType, str], Dict[_Key, _Value]] = {}

    def install(self) -> Optional[Undo]:
        """Read values whenever Dynamo has generated code, until what it returns is called."""
        return frame_evaluation.watch_bytecode(self._compiled)

    @safely("noting the values that code is compiled with")
    def _compiled(self, original: CodeType, _: CodeType) -> None:
        known, namespace = frames.frame_locals(original), frames.frame_globals(original)
        compile_id = compile_ids.current_compile_id()
        if known is None or namespace is None or compile_id is None:
            return
        observer = ReadObserver(original)
        todo: List[StartedFrame] = [SimpleNamespace(f_code=original, f_locals=dict(known), f_globals=namespace)]
        done = 0
        while todo and done < _MOST_FUNCTIONS:
            count = len(observer.reads)
            observer.enter(todo.pop(0))
            done += 1
            for read in observer.reads[count:]:
                todo += _frames_of(read)
        self._known.pop((original, compile_id), None)  # after torch.compiler.reset() the same id comes again
        self.note(original, compile_id, observer.reads, lambda each: each)

    def knows(self, code: CodeType, compile_id: str) -> bool:
        """Return whether values of an entry are known."""
        return (code, compile_id) in self._known

    def note(self, code: CodeType, compile_id: str, reads: List[Read], original_of: Callable[[object], object]) -> None:
        """Keep what was read in a run that was right; ``original_of`` gives the program's object of a copy."""
        found = self._known.setdefault((code, compile_id), {})
        for read in reads:
            value = original_of(read.value)
            kept = None if _key(read) in found else _kept(value)
            if kept is not None:
                found[_key(read)] = kept

    def before(
        self, code: CodeType, entry: cache_entries.CacheEntry
    ) -> Callable[[Read, object], Optional[KnownBefore]]:
        """Return what tells what a read gave when the entry was right, if it gives something else now."""
        known: Mapping[_Key, _Value] = self._known.get((code, entry.compile_id or ""), {})

        def before(read: Read, now: object) -> Optional[KnownBefore]:
            value = known.get(_key(read))
            if value is None or _holds(value, now):
                return None
            was = value.get()
            return None if was is None and value.words != "None" else KnownBefore(value.words, was)

        return before


def _key(read: Read) -> _Key:
    return read.kind, read.function, read.text


def _holds(known: _Value, value: object) -> bool:
    try:
        return known.is_now(value)
    except synchronous():  # objects of the program may raise when they are compared
        return True


def in_words(value: object) -> str:
    """Return a value as a message names it."""
    import torch

    if isinstance(value, torch.Tensor):
        size = "x".join(map(str, value.shape))
        shown = f" {value.tolist()}" if 0 < value.numel() <= 4 and value.device.type != "meta" else ""
        return f"a tensor{shown or f' of size {size}'}"
    if isinstance(value, FunctionType):
        return f"{value.__qualname__} of line {value.__code__.co_firstlineno}"
    if isinstance(value, _ATOMS) or (type(value) in (list, tuple) and all(type(e) in _ATOMS for e in value)):  # type: ignore[attr-defined]
        return cut(repr(value), _LONGEST)
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    return f"<{type(value).__qualname__} at {id(value):#x}>"


def _kept(value: object) -> Optional[_Value]:
    import torch

    words = in_words(value)
    if type(value) in _ATOMS:
        return _Value(words, lambda now: type(now) is type(value) and repr(now) == repr(value), lambda: value)
    if type(value) in (list, tuple) and all(type(each) in _ATOMS for each in value):  # type: ignore[attr-defined]
        copied = value[:]  # type: ignore[index]
        return _Value(words, lambda now: type(now) is type(copied) and repr(now) == repr(copied), lambda: copied)
    if isinstance(value, torch.Tensor):
        if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.numel() > _LARGEST:
            return None
        tensor = value.detach().clone()
        return _Value(words, lambda now: _is_equal(now, tensor), lambda: tensor)
    if isinstance(value, FunctionType):
        code = value.__code__
        return _function_with(words, value, code)
    if isinstance(value, ModuleType):
        return None
    if type(value) is object:  # it has no weak references, and holds nothing
        return _Value(words, lambda now: now is value, lambda: value)
    with suppressed(TypeError):  # its class has no weak references
        reference = weakref.ref(value)
        return _Value(words, lambda now: now is reference(), reference)
    return None


def _function_with(words: str, function: FunctionType, code: CodeType) -> _Value:
    reference = weakref.ref(function)

    def get() -> object:
        known = reference()
        if known is None or known.__code__ is code:
            return known
        made = FunctionType(code, known.__globals__, known.__name__, known.__defaults__, known.__closure__)
        made.__kwdefaults__ = known.__kwdefaults__
        return made

    return _Value(words, lambda now: now is reference() and getattr(now, "__code__", None) is code, get)


def _is_equal(now: object, before: object) -> bool:
    import torch

    if not isinstance(now, torch.Tensor) or not isinstance(before, torch.Tensor):
        return False
    if now.shape != before.shape or now.dtype != before.dtype or now.device != before.device:
        return False
    return bool(((now == before) | ((now != now) & (before != before))).all())


def _frames_of(read: Read) -> Iterator[StartedFrame]:
    """Yield the frames that a call of a value that is read would start: of a function, or a module's ``forward``."""
    value = read.value
    owner = read.owner
    if isinstance(value, module_classes()):
        owner, value = value, plain_function(value.forward)
    function = plain_function(value)
    if not isinstance(function, FunctionType) or not (
        is_users_file(function.__code__.co_filename) or owner is read.value
    ):
        return
    code = function.__code__
    known: Dict[str, object] = dict(closure_of(function))
    is_method = owner is read.value or (read.kind == ATTRIBUTE and not isinstance(owner, (ModuleType, type)))
    if is_method and code.co_argcount:
        known[code.co_varnames[0]] = owner
    yield SimpleNamespace(f_code=code, f_locals=known, f_globals=function.__globals__)
