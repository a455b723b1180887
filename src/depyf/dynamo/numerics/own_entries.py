"""Cache entries of our own: what is called inside is compiled once more, for our backend, and forgotten at the end.

Dynamo looks up a cache entry by its backend, too. So a callback with another backend in it never hits the entries that
are there, which are neither used nor moved. Where Dynamo has regions of entries (2.13), ours get their own, so that
they don't count for the recompile limit of the others; elsewhere the limit is raised by as many as there are of ours.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from depyf.dynamo import compat
from depyf.dynamo.locks import Lock
from depyf.dynamo.patching import Undo, replace_attribute
from depyf.dynamo.safely import safely

_LIMITS = ("recompile_limit", "accumulated_recompile_limit")
_NOT_SUPPORTED = (
    "this PyTorch has no torch._dynamo.eval_frame._callback_from_stance (2.6 and later have it): "
    "depyf can't observe compiled graphs with it"
)


class OwnEntries:
    """Hands Dynamo callbacks that compile with ``backend_for(the user's compiler, its backend)``, while installed."""

    def __init__(self, backend_for: Callable[[Any, Any], Any]) -> None:
        self._backend_for = backend_for
        self._lock = Lock()
        self._callbacks: Dict[int, Tuple[Any, _Callback]] = {}
        self._backends: List[Tuple[Any, Any]] = []
        self._regions: Dict[int, int] = {}
        self._made: List[Any] = []
        """The guards of the cache entries that we made."""

    def install(self) -> Undo:
        """Raises ``RuntimeError`` where this torch can't be observed."""
        original = compat.find("torch._dynamo.eval_frame", "_callback_from_stance")
        if original is None:
            raise RuntimeError(_NOT_SUPPORTED)

        def and_ours(callback: Any) -> Any:
            answer = original(callback)
            caller = sys._getframe(1).f_code.co_name
            if answer is False and caller == "compile_wrapper":
                self._run_ours()
            if answer is None or answer is False:
                return answer
            return self._ours(answer, caller) or answer

        undo = replace_attribute(compat.module("torch._dynamo.eval_frame"), "_callback_from_stance", and_ours)

        def close() -> None:
            undo()
            self._forget()

        return close

    @safely("observing a compiled function")
    def _ours(self, callback: Any, caller: str) -> Optional[Any]:
        """The callback that stands in for this one; None where it can't be replaced."""
        if isinstance(callback, _Callback):
            return callback
        known = self._callbacks.get(id(callback))
        if known is None:
            with self._lock:
                made = self._make(callback)
                if made is None:
                    return None
                known = self._callbacks.setdefault(id(callback), (callback, made))
        if caller == "compile_wrapper":  # which has set the region of entries, and puts it back
            self._enter_region()
        return known[1]

    @safely("observing a compiled function")
    def _run_ours(self) -> None:
        """Nothing is compiled now (``debug()``): what has been compiled for us is run before the user's own."""
        if self._regions:
            self._enter_region()

    def _make(self, callback: Any) -> Optional[_Callback]:
        convert = _inside(callback)
        clone = getattr(convert, "_clone_with_backend", None)
        hooks = getattr(callback, "hooks", None)
        if clone is None or hooks is None:
            return None  # of a stance that decides itself what is compiled and when
        compiler = _inside(convert)
        user_backend = compat.innermost_backend(compiler)
        backend = next(
            (ours for theirs, ours in self._backends if theirs is user_backend or theirs == user_backend), None
        )
        if backend is None:
            backend = self._backend_for(compiler, user_backend)
            self._backends.append((user_backend, backend))
        return _Callback(type(callback)(clone(backend), hooks), self._made)

    def _enter_region(self) -> None:
        read = compat.find("torch._C._dynamo.eval_frame", "get_eval_frame_isolate_recompiles_id")
        write = compat.find("torch._C._dynamo.eval_frame", "set_eval_frame_isolate_recompiles_id")
        numbers = compat.find("torch._dynamo.eval_frame", "_next_isolate_recompiles_id")
        if read is None or write is None or numbers is None:
            return
        region = read()
        if region in self._regions.values():
            return
        if region not in self._regions:
            with self._lock:
                self._regions.setdefault(region, next(numbers))
        write(self._regions[region])

    @safely("removing the cache entries of what was observed")
    def _forget(self) -> None:
        for guards in self._made:
            compat.forget_entry(guards)
        self._made.clear()
        self._callbacks.clear()


class OwnBackend:
    """A backend that calls ``compiler``. It stands for one of the user's: Dynamo compares backends by ``==``."""

    def __init__(self, compiler: Any, user_backend: Any) -> None:
        self._compiler = compiler
        self.__name__ = str(getattr(user_backend, "compiler_name", getattr(user_backend, "__name__", "backend")))
        for name in ("get_compiler_config", "reset"):
            if hasattr(user_backend, name):
                setattr(self, name, getattr(user_backend, name))


class _Callback:
    """What Dynamo calls to compile a frame. The attributes are how Dynamo finds the backend in it."""

    def __init__(self, callback: Any, made: List[Any]) -> None:
        self._torchdynamo_orig_backend = callback
        self._torchdynamo_orig_callable = callback  # up to 2.7
        self.hooks = getattr(callback, "hooks", None)
        self._made = made

    def __call__(self, frame: Any, cache_entry: Any, *args: Any, **kwargs: Any) -> Any:
        with _limits_for_ours(frame):
            answer = self._torchdynamo_orig_backend(frame, cache_entry, *args, **kwargs)
        code = getattr(answer, "guarded_code", answer)
        guards = None if code is None else compat.guards_of(code)
        if guards is not None:
            self._made.append(guards)
        return answer


@contextlib.contextmanager
def _limits_for_ours(frame: Any) -> Iterator[None]:
    """Raise Dynamo's limits by the entries that are not ours, where they count together."""
    with contextlib.ExitStack() as stack:
        if compat.find("torch._C._dynamo.eval_frame", "set_eval_frame_isolate_recompiles_id") is None:
            there = len(compat.cache_entries(frame.f_code))
            config: Any = compat.find("torch._dynamo", "config")
            limits = {name: getattr(config, name) + there for name in _LIMITS if hasattr(config, name)}
            stack.enter_context(config.patch(limits))
        yield


def _inside(callback: Any) -> Any:
    names = ("_torchdynamo_orig_backend", "_torchdynamo_orig_callable")
    return next((getattr(callback, name) for name in names if hasattr(callback, name)), None)
