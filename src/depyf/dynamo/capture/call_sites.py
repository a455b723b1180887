"""Where each compilation comes from: the line at which ``torch.compile`` was called, which PyTorch does not keep, and
the calls that led to it, of which it leaves out the innermost.
"""

from __future__ import annotations

import sys
import weakref
from types import FrameType
from typing import Optional, Tuple

from depyf.dynamo.hooks import private_names
from depyf.dynamo.hooks.frames import callers
from depyf.dynamo.hooks.patching import Undo, replace_attribute
from depyf.dynamo.hooks.safely import safely
from depyf.torch_trace.events import CALL_SITE, START, Event


class CallSites:
    """The lines of the calls of ``torch.compile`` that a session has seen, by PyTorch's object for each."""

    def __init__(self) -> None:
        self._lines: weakref.WeakKeyDictionary[object, Tuple[str, int]] = weakref.WeakKeyDictionary()

    def watch(self) -> Optional[Undo]:
        """Start to record the calls; return the function that stops it."""
        cls = private_names.OPTIMIZE_CONTEXT.find_or_report()
        if cls is None:
            return None
        original = cls.__init__

        def __init__(context: object, *args: object, **kwargs: object) -> None:  # noqa: N807 - it replaces one
            original(context, *args, **kwargs)
            self._note(context, sys._getframe(1))

        __init__.__doc__ = original.__doc__
        __init__.__wrapped__ = original  # type: ignore[attr-defined]
        return replace_attribute(cls, "__init__", __init__)

    @safely("noting where torch.compile was called")
    def _note(self, context: object, caller: Optional[FrameType]) -> None:
        while caller is not None and _is_not_the_programs(caller):
            caller = caller.f_back
        if caller is not None:
            self._lines[context] = caller.f_code.co_filename, caller.f_lineno

    @safely("looking where torch.compile was called")
    def of(self, event: Event) -> Optional[Event]:
        """Return an event with both for the event with which a compilation starts, on the thread that compiles; None
        for other events."""
        if event.name != START or event.compile_id is None:
            return None
        stack = [{"filename": path, "line": line, "name": name} for path, line, name in callers()]
        at = self._called_at()
        meta = {"stack": stack} if at is None else {"stack": stack, "filename": at[0], "line": at[1]}
        return Event(CALL_SITE, event.compile_id, event.attempt, meta, None, event.created)

    def _called_at(self) -> Optional[Tuple[str, int]]:
        """Return the line at which ``torch.compile`` was called for what is compiled now, None where it is unknown."""
        cls = private_names.OPTIMIZE_CONTEXT.find()
        frame: Optional[FrameType] = sys._getframe(1)
        while frame is not None:
            # The function that PyTorch returns for a compiled one has the object in its closure.
            if frame.f_globals.get("__name__") == private_names.OPTIMIZE_CONTEXT.module:
                context = frame.f_locals.get("self")
                line = self._lines.get(context) if cls is not None and isinstance(context, cls) else None
                if line is not None:
                    return line
            frame = frame.f_back
        return None


def _is_not_the_programs(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in ("torch", "depyf")
