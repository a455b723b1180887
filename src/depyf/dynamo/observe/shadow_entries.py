"""Shadow cache entries: functions called in the block are compiled again for depyf's backend, and these entries are
removed at the end. Dynamo looks up a cache entry by its backend, too. So a callback with another backend never hits the
existing entries, which are neither used nor reordered. Where Dynamo has regions of entries (2.13), shadow entries get
their own, so that they don't count towards the recompile limit of the others; elsewhere the limit is raised by their
number.
"""

from __future__ import annotations

import contextlib
import sys
from types import FrameType
from typing import Any, Callable, Dict, Iterator, List, Literal, NamedTuple, Optional, Tuple, Union

from depyf.base.locks import Lock
from depyf.dynamo.capture.fallbacks import Fallbacks
from depyf.dynamo.capture.hub import capture
from depyf.dynamo.dump.pausing import compiles_nothing
from depyf.dynamo.entries.entry_check import would_hit
from depyf.dynamo.hooks import cache_entries, compiled_callables, frame_evaluation, private_names
from depyf.dynamo.hooks.patching import registered
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.hooks.torch_types import DynamoFrame
from depyf.dynamo.observe.tally import RUNS_AS_PLAIN, Tally, why_not_observed
from depyf.torch_trace.user_code import is_library

_LIMITS = ("recompile_limit", "accumulated_recompile_limit")
_NOT_SUPPORTED = (
    f"this PyTorch has no {private_names.CALLBACK_FROM_STANCE.whole} "
    f"({private_names.CALLBACK_FROM_STANCE.since} and later have it): depyf can't observe compiled graphs with it"
)

_Otherwise = Union[Literal[False], Callable[..., object]]
"""Callback for code without a cache entry while compilation is forbidden; False: none."""


class ShadowEntries:
    """While installed, gives Dynamo callbacks that compile with ``backend_for(the user's compiler, its backend)``."""

    def __init__(self, backend_for: Callable[[Callable[..., object], object], ShadowBackend], tally: Tally) -> None:
        self._backend_for = backend_for
        self._tally = tally
        self._lock = Lock()
        self._callbacks: Dict[int, Tuple[object, _ShadowCallback]] = {}
        self._backends: List[Tuple[object, ShadowBackend]] = []
        self._regions: Dict[int, int] = {}
        self._made: List[object] = []
        """The guards of the shadow cache entries."""

    def install(self) -> None:
        """Install until what it registers (``patching.collecting``) is undone.

        Raises ``RuntimeError`` where this torch can't be observed.
        """
        original = private_names.CALLBACK_FROM_STANCE.find()
        if original is None:
            raise RuntimeError(_NOT_SUPPORTED)

        def and_ours(callback: object) -> object:
            # The wrapper of a compiled function asks for the callback of the stance (``is_call``); other functions of
            # Dynamo do so as well.
            answer = original(callback)
            caller = compiled_callables.caller_of_hook(sys._getframe(1))
            is_call = callable(callback) and compiled_callables.enters(caller)
            ours: Optional[Callable[..., object]] = None
            # A stance that compiles nothing new: shadow entries are compiled only for code that the program has
            # compiled. ``debug()`` compiles nothing at all (False): run the shadow entries that exist. Else replace the
            # callback, if it compiles.
            if is_call and _compiles_nothing_new():
                ours = self._only_known(callback, answer)
            elif is_call and answer is False:
                self._run_ours()
            elif callable(answer):
                ours = self._ours(answer, is_call=is_call)
            if is_call:
                self._count(caller, answer, ours)
            return answer if ours is None else ours

        self._tally.begin()
        registered(self._forget)
        private_names.CALLBACK_FROM_STANCE.replace(and_ours)
        safely("noting the frames that Dynamo skips")(Fallbacks(lambda: [self._tally]).watch)()

    @safely("counting the calls of compiled functions")
    def _count(self, caller: FrameType, answer: object, ours: object) -> None:
        self._tally.called(caller, why_not_observed(answer, ours))

    @safely("observing a compiled function")
    def _ours(self, callback: object, *, is_call: bool) -> Optional[_ShadowCallback]:
        """Return the callback that replaces this one, ``None`` if it can't be replaced."""
        if isinstance(callback, _ShadowCallback) and callback.made is self._made:
            return callback
        known = self._callbacks.get(id(callback))
        if known is None:
            with self._lock:
                made = self._make(callback)
                if made is None:
                    return None
                known = self._callbacks.setdefault(id(callback), (callback, made))
        if is_call:  # Dynamo has set the region of entries for it, and restores it
            self._enter_region()
        return known[1]

    @safely("observing a compiled function")
    def _only_known(self, callback: object, otherwise: _Otherwise) -> Optional[_OnlyKnownCallback]:
        """Return the callback for a stance that forbids new compilations."""
        if otherwise is False and frame_evaluation.run_this_once() is None:
            return None
        if isinstance(otherwise, _OnlyKnownCallback):  # another observes, too
            known, callback = otherwise.known, otherwise.callback
            otherwise = otherwise.otherwise
        else:
            known = _KnownCode(compiled_callables.innermost_backend(callback), self._current_region())
        ours = self._ours(callback, is_call=True)
        return None if ours is None else _OnlyKnownCallback(ours, known, otherwise, self._tally)

    @safely("observing a compiled function")
    def _run_ours(self) -> None:
        """Select the shadow cache entries where nothing may be compiled (in ``debug()``)."""
        if self._regions:
            self._enter_region()

    def _make(self, callback: Any) -> Optional[_ShadowCallback]:
        if isinstance(callback, _ShadowCallback):  # another observes, too: its backend is the one that ours calls
            callback = callback.callback
        # A callback is ``CatchErrorsWrapper(ConvertFrame(compiler))``: the inner one can be cloned with another
        # backend, and keeps all other settings.
        convert = _inside(callback)
        clone = private_names.CLONE_WITH_BACKEND.of(convert)
        hooks = getattr(callback, "hooks", None)
        if clone is None or hooks is None:
            return None  # the callback of a stance that selects itself what is compiled and when
        compiler = _inside(convert)
        user_backend = compiled_callables.innermost_backend(compiler)
        backend = next(
            (ours for theirs, ours in self._backends if theirs is user_backend or theirs == user_backend), None
        )
        if backend is None:
            backend = self._backend_for(compiler, user_backend)
            self._backends.append((user_backend, backend))
        return _ShadowCallback(type(callback)(clone(backend), hooks), self._made)

    def _current_region(self) -> int:
        """Return the user's current region of entries, -1 if there is none."""
        read = private_names.GET_REGION.find()
        region = -1 if read is None else int(read())
        return next((users for users, ours in self._regions.items() if ours == region), region)

    def _enter_region(self) -> None:
        read = private_names.GET_REGION.find()
        write = private_names.SET_REGION.find()
        numbers = private_names.NEXT_REGION.find()
        if read is None or write is None or numbers is None:
            return
        # Each of the user's regions has one of ours: entries of several callables of one code stay apart.
        region = read()
        if region in self._regions.values():
            return
        if region not in self._regions:
            with self._lock:
                self._regions.setdefault(region, next(numbers))
        write(self._regions[region])

    @safely("removing the cache entries of what was observed")
    def _forget(self) -> None:
        if self._made:
            capture.flush_so_far()  # sessions read the entries
        for guards in self._made:
            cache_entries.forget_entry(guards)
        self._made.clear()
        self._callbacks.clear()


class ShadowBackend:
    """A backend that calls ``compiler``, equal to one of the user's: Dynamo compares backends by ``==``."""

    def __init__(self, compiler: Callable[..., object], user_backend: object) -> None:
        self._compiler = compiler
        self.__name__ = str(getattr(user_backend, "compiler_name", getattr(user_backend, "__name__", "backend")))
        for name in ("get_compiler_config", "reset"):
            if hasattr(user_backend, name):
                setattr(self, name, getattr(user_backend, name))


class _ShadowCallback:
    """The callback that Dynamo calls to compile a frame. Dynamo finds the backend in it by these attributes."""

    def __init__(self, callback: Callable[..., object], made: List[object]) -> None:
        self._torchdynamo_orig_backend = callback
        self._torchdynamo_orig_callable = callback  # up to 2.7
        self.hooks = getattr(callback, "hooks", None)
        self.callback = callback
        self.made = made

    def __call__(self, frame: DynamoFrame, cache_entry: object, *args: object, **kwargs: object) -> object:
        with _limits_for_ours(frame):
            answer = self.callback(frame, cache_entry, *args, **kwargs)
        code = getattr(answer, "guarded_code", answer)
        guards = None if code is None else cache_entries.guards_of(code)
        if guards is not None:
            self.made.append(guards)
        return answer


class _KnownCode(NamedTuple):
    """The entries that the program has compiled before: their backend and their region."""

    backend: object
    region: int


class _OnlyKnownCallback:
    """Compiles code for observers that the program has compiled before. All other code is left to the program's stance:
    it calls ``otherwise``, or nothing is compiled (``otherwise`` is False).
    """

    def __init__(self, callback: _ShadowCallback, known: _KnownCode, otherwise: _Otherwise, tally: Tally) -> None:
        self._torchdynamo_orig_backend = callback
        self._torchdynamo_orig_callable = callback  # up to 2.7
        self.callback = callback
        self.known = known
        self.otherwise = otherwise
        self._tally = tally
        self._has_missed = False

    def __call__(self, frame: DynamoFrame, cache_entry: object, *args: object, **kwargs: object) -> object:
        if self._is_known(frame):
            return self.callback(frame, cache_entry, *args, **kwargs)
        if self.otherwise is False:
            self._note_missed(frame)
            return frame_evaluation.run_this_once()
        return self.otherwise(frame, cache_entry, *args, **kwargs)

    @safely("looking for what has been compiled before")
    def _is_known(self, frame: DynamoFrame) -> bool:
        return would_hit(frame.f_code, frame.f_locals, *self.known)

    @safely("counting what is not observed")
    def _note_missed(self, frame: DynamoFrame) -> None:
        if not self._has_missed and not is_library(frame.f_code.co_filename):
            self._has_missed = True
            self._tally.missed_here(RUNS_AS_PLAIN.format(frame_evaluation.stance()))


def _compiles_nothing_new() -> bool:
    """Return whether the program's stance, rather than ``debug()``, forbids new compilations in a call."""
    return frame_evaluation.stance().endswith("_on_recompile") and not compiles_nothing()


@contextlib.contextmanager
def _limits_for_ours(frame: DynamoFrame) -> Iterator[None]:
    """Raise Dynamo's limits by the number of other entries, where these and shadow entries count together."""
    with contextlib.ExitStack() as stack:
        if private_names.SET_REGION.find() is None:
            there = len(cache_entries.cache_entries(frame.f_code))
            config = private_names.DYNAMO_CONFIG.find()
            limits = {name: getattr(config, name) + there for name in _LIMITS if hasattr(config, name)}
            stack.enter_context(config.patch(limits))
        yield


def _inside(callback: object) -> Any:
    return compiled_callables.inside_of_callback(callback)
