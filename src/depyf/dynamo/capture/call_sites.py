"""Find where each compilation comes from: the line that called ``torch.compile``, which PyTorch does not keep, and the
stack of the call that is compiled, whose innermost frames PyTorch's ``dynamo_start`` leaves out; and the settings that
are in force there, which belong to the thread.
"""

from __future__ import annotations

import sys
import threading
import weakref
from types import FrameType
from typing import Dict, Optional, Tuple

from depyf.base.own_builtins import keep_builtins
from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.frames import callers
from depyf.dynamo.hooks.patching import Undo, replace_attribute
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.hooks.torch_settings import settings_in_force
from depyf.torch_trace.events import CALL_SITE, START, Event

keep_builtins(globals())


class CallSites:
    """The lines of the calls of ``torch.compile`` that a session has seen, by the ``OptimizeContext`` of each call."""

    def __init__(self) -> None:
        self._lines: weakref.WeakKeyDictionary[object, Tuple[str, int]] = weakref.WeakKeyDictionary()

    def watch(self) -> Optional[Undo]:
        """Start to record the calls; return the function that stops it."""
        cls = private_names.OPTIMIZE_CONTEXT.find_or_report()
        if cls is None:
            return None
        original = cls.__init__

        # Each ``torch.compile`` makes an ``OptimizeContext``: at once if it is given the function, and as a decorator
        # with arguments (``@torch.compile(dynamic=True)``) when it gets the function. PyTorch keeps neither the line
        # nor the frame.
        def __init__(context: object, *args: object, **kwargs: object) -> None:  # noqa: N807 - it replaces one
            original(context, *args, **kwargs)
            self._note(context, sys._getframe(1))

        __init__.__doc__ = original.__doc__
        __init__.__wrapped__ = original  # type: ignore[attr-defined]
        return replace_attribute(cls, "__init__", __init__)

    @safely("noting where torch.compile was called")
    def _note(self, context: object, caller: Optional[FrameType]) -> None:
        # ``torch.compile`` itself, ``Module.compile`` and depyf's wrappers are between the user's line and this one.
        while caller is not None and _is_of_torch_or_depyf(caller):
            caller = caller.f_back
        if caller is not None:
            self._lines[context] = caller.f_code.co_filename, caller.f_lineno

    @safely("looking where torch.compile was called")
    def of(self, event: Event) -> Optional[Event]:
        """Return an event with both for the event with which a compilation starts, on the compiling thread; None for
        other events."""
        if event.name != START or event.compile_id is None:
            return None
        stack = [{"filename": path, "line": line, "name": name} for path, line, name in callers()]
        at = self._called_at()
        meta: Dict[str, object] = {"stack": stack, "thread": threading.get_ident(), "settings": settings_in_force()}
        if at is not None:
            meta.update(filename=at[0], line=at[1])
        return Event(CALL_SITE, event.compile_id, event.attempt, meta, None, event.created)

    def _called_at(self) -> Optional[Tuple[str, int]]:
        """Return the line that called ``torch.compile`` for what is compiled now, None if it is unknown."""
        cls = private_names.OPTIMIZE_CONTEXT.find()
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None:
            # ``OptimizeContext.__call__`` returns ``compile_wrapper``, a function of ``eval_frame`` that has the
            # context as ``self`` in its closure. It is among the callers of whatever Dynamo compiles. Contexts that
            # were made before the session are not known: then the search goes on, to a compiled function further out.
            if frame.f_globals.get("__name__") == private_names.OPTIMIZE_CONTEXT.module:
                context = frame.f_locals.get("self")
                line = self._lines.get(context) if cls is not None and isinstance(context, cls) else None
                if line is not None:
                    return line
            frame = frame.f_back
        return None


def _is_of_torch_or_depyf(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in ("torch", "depyf")
