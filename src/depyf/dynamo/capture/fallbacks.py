"""Record frames that fall back to eager, with Dynamo's reason.

Dynamo reports such a frame in two of its functions, ``format_error_msg`` and ``add_skip_reason``, after the fact.
Replacing these two changes nothing of what Dynamo does. A wrapper around Dynamo's entry points would, because they look
at the frames that called them.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sysconfig
import threading
import traceback
import weakref
from types import CodeType
from typing import Any, Callable, Dict, List, Mapping, Optional, Protocol, Sequence, Tuple

from depyf.base.asynchronous import suppressed_all
from depyf.base.late_regex import regex
from depyf.base.messages import describe
from depyf.base.own_builtins import keep_builtins
from depyf.base.own_package import FOLDER
from depyf.diagnosis.break_advice import is_raised_limit
from depyf.dynamo.capture.records import Cause, FrameSkipped
from depyf.dynamo.capture.session import Session
from depyf.dynamo.capture.trace_by_hooks import supplement
from depyf.dynamo.entries.decorated import shown_name
from depyf.dynamo.hooks import compile_ids, frame_evaluation, frames, private_names, torch_names, torch_settings
from depyf.dynamo.hooks.patching import Undo, call_before
from depyf.dynamo.hooks.safely import safely
from depyf.dynamo.hooks.structured_trace_listener import listen
from depyf.dynamo.hooks.torch_types import DynamoFrame
from depyf.dynamo.store.names import StableNames
from depyf.report.analysis.compilation_events import error_stack
from depyf.torch_trace.addresses import without_addresses
from depyf.torch_trace.breaks import BreakReport, break_report
from depyf.torch_trace.events import FORWARD_METRICS, GRAPH_BREAK, Event
from depyf.torch_trace.tracebacks import Frame, users_stack
from depyf.torch_trace.user_code import innermost_line

keep_builtins(globals())

_NEVER_TO_BE_COMPILED = ("already Dynamo-generated code", "in the Dynamo skipfiles list")
_ADDED_BY_TORCH = regex(r"\n+(?:from user code:|Set TORCHDYNAMO_VERBOSE|Set TORCH_LOGS).*", re.DOTALL)
_LIMIT = regex(r"\b(?:accumulated_)?(?:recompile|cache_size)_limit\b")


class Receiver(Protocol):
    """A receiver of fallbacks: a session, or ``watch``."""

    @property
    def stable(self) -> StableNames: ...

    def add(self, record: FrameSkipped) -> None: ...


class Fallbacks:
    """Records each fallback in the sessions that ``receivers`` returns."""

    def __init__(self, receivers: Callable[[], Sequence[Receiver]]) -> None:
        self._receivers = receivers
        self._noted = threading.local()
        self._broken: Dict[Optional[str], BreakReport] = {}

    def watch(self) -> List[Undo]:
        """Start to record every such frame; return the functions that stop it."""
        notes: List[Tuple[torch_names.PrivateName, Callable[..., object]]] = [
            (private_names.FORMAT_ERROR, self._error),
            (private_names.ADD_SKIP_REASON, self._skip),
        ]
        undo: List[Undo] = []
        if private_names.ADD_SKIP_REASON.find() is None:
            # Older versions record the reasons of graph breaks that skip a frame (in a loop, for example) only in
            # messages.
            undo += [listen(self._event), *supplement(self._event)]
            ends = frame_evaluation.watch_bytecode(self._has_code)
            undo += [] if ends is None else [ends]
        for name, note in notes:
            if name.find() is not None:
                undo.append(call_before(name.holder(), name.name, note))
        return undo

    @safely("noting an error that makes a frame fall back to eager")
    def _error(self, error: BaseException, code: CodeType, *args: object, **kwargs: object) -> None:
        self._noted.code = id(code)
        if code.co_flags & inspect.CO_GENERATOR and not is_users(code):
            return  # Dynamo compiles no generators, and the user can't change the generators of libraries
        reason = _ADDED_BY_TORCH.sub("", describe(error)).strip()
        cause, limit = _cause_of(error, reason)
        if cause is not Cause.ERROR:
            reason = reason[len(f"{type(error).__name__}: ") :]  # ``Unsupported`` says nothing to the user
        receivers = list(self._receivers())
        if not receivers:
            return
        shown = ""
        with suppressed_all():  # a loader of the program is asked for its source
            shown = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        stack = users_stack(shown)
        compile_id, frame_locals = compile_ids.compile_id_of(error), frames.frame_locals(code)
        for session in receivers:
            session.add(_record(session, code, cause, reason, compile_id, stack, limit, frame_locals))
            if cause is Cause.LIMIT and isinstance(session, Session):
                session.note_limit(code)

    @safely("noting that Dynamo continues after a graph break")
    def _has_code(self, original: CodeType, transformed: CodeType) -> None:
        self._broken.pop(compile_ids.current_compile_id(), None)

    @safely("noting a frame that Dynamo skips for a graph break")
    def _event(self, event: Event) -> None:
        if event.name == GRAPH_BREAK:
            self._broken[event.compile_id] = break_report(event)
        elif event.name == FORWARD_METRICS:
            broken, code = self._broken.pop(event.compile_id, None), frames.code_being_compiled()
            if broken is not None and code is not None and not event.meta.get("fail_type"):
                reason, stack = broken.reason, broken.stack
                for session in self._receivers():
                    session.add(_record(session, code, Cause.GRAPH_BREAK, reason, event.compile_id, stack))

    @safely("noting a frame that Dynamo skips")
    def _skip(self, reason: str, frame: DynamoFrame, *args: object, **kwargs: object) -> None:
        code = frame.f_code
        noted, self._noted.code = getattr(self._noted, "code", None), None
        if noted == id(code):  # the error that caused it has been recorded, with more detail
            return
        if is_users(code) and not any(each in reason for each in _NEVER_TO_BE_COMPILED):
            for session in self._receivers():
                session.add(_record(session, code, Cause.SKIPPED, reason, frame_locals=frame.f_locals))


def _cause_of(error: BaseException, reason: str) -> Tuple[Cause, Optional[str]]:
    """Return the kind of the error, and the name of the limit if one was reached."""
    soft = tuple(filter(None, (private_names.UNSUPPORTED.find(), private_names.USER_ERROR.find())))
    is_of_dynamo = type(error).__module__ == private_names.UNSUPPORTED.module
    limit = _LIMIT.search(reason) if is_of_dynamo else None
    kind = str(getattr(error, "gb_type", None) or reason.split("\n", 1)[0])  # older versions name it in the text alone
    if limit is not None and ("limit exceeded" in kind or "reached" in kind):
        return Cause.LIMIT, limit.group()
    return (Cause.GRAPH_BREAK if isinstance(error, soft) else Cause.ERROR), None


def _record(
    session: Receiver,
    code: CodeType,
    cause: Cause,
    reason: str,
    compile_id: Optional[str] = None,
    stack: Tuple[Frame, ...] = (),
    limit: Optional[str] = None,
    frame_locals: Optional[Mapping[str, object]] = None,
) -> FrameSkipped:
    return FrameSkipped(
        compile_id=compile_id,
        cause=cause,
        reason=session.stable.text(reason),
        function=code.co_name,
        qualified_name=shown_name(code, frame_locals or {}),
        filename=code.co_filename,
        first_line=code.co_firstlineno,
        place=innermost_line(stack),
        limit=None if limit is None else (limit, torch_settings.dynamo_setting(limit)),
        original_code=weakref.ref(code),
        stack=stack,
    )


def is_users(code: CodeType) -> bool:
    """Return whether code belongs to the program: it is in a file, and not in the standard library, torch or depyf."""
    return is_users_file(code.co_filename)


@functools.lru_cache(maxsize=4096)
def is_users_file(path: str) -> bool:
    """Return whether the code of a file belongs to the program."""
    return not path.startswith(("<frozen", *_others_folders()))


@functools.lru_cache(maxsize=None)
def _others_folders() -> Tuple[str, ...]:
    """Return the folders of torch and depyf, and the files and folders of the standard library."""
    library = sysconfig.get_paths()["stdlib"]
    packages = {"site-packages", "dist-packages"}
    names = sorted(set(os.listdir(library)) - packages) if os.path.isdir(library) else []
    folders = [
        os.path.dirname(str(torch_names.module("torch").__file__)),
        FOLDER,
        *(os.path.join(library, n) for n in names),
    ]
    return tuple(folder if folder.endswith((".py", os.sep)) else folder + os.sep for folder in folders)


def fallbacks(session: Session) -> List[FrameSkipped]:
    """Return the frames that fell back to eager, once for each cause, in order. Fallbacks that Dynamo does not report
    (``fullgraph=True``, and skips in older versions) are taken from the metrics of their compilation.
    """
    noted = session.records(FrameSkipped)
    known = {frame.compile_id for frame in noted}
    names: Dict[str, Dict[str, object]] = {}
    """The function as metrics name it, by its number. The metrics of a limit that is an error have no name."""
    for event in session.events(FORWARD_METRICS):
        if isinstance(event.meta, dict):
            name = {key: event.meta.get(key) for key in _NAMES}
            name = names.setdefault((event.compile_id or "").rpartition("/")[0], name)
            failed = event.meta.get("has_guarded_code") is False or is_raised_limit(str(event.meta.get("fail_type")))
            if event.compile_id not in known and failed and name["co_name"]:
                stack = error_stack(session.records(Event, event.compile_id))
                noted.append(_from_metrics(event.compile_id, {**event.meta, **name}, stack))
    unique: Dict[Tuple[str, int, str, Cause, str], FrameSkipped] = {}
    for frame in noted:
        unique.setdefault((frame.filename, frame.first_line, frame.qualified_name, frame.cause, frame.reason), frame)
    return list(unique.values())


_NAMES = ("co_name", "co_filename", "co_firstlineno")


def _from_metrics(compile_id: Optional[str], metrics: Mapping[str, Any], stack: Tuple[Frame, ...]) -> FrameSkipped:
    failure = metrics.get("fail_type")
    reason = f"{failure}: {metrics.get('fail_reason')}" if failure else "Dynamo made no code for it, and no reason"
    return FrameSkipped(
        compile_id=compile_id,
        cause=Cause.SKIPPED if failure is None else Cause.RAISED,
        reason=without_addresses(reason),
        function=str(metrics["co_name"]),
        qualified_name=str(metrics["co_name"]),
        filename=str(metrics.get("co_filename")),
        first_line=int(metrics.get("co_firstlineno") or 0),
        place=innermost_line(stack),
        limit=None,
        original_code=None,
        stack=stack,
    )
