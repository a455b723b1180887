"""What the threads of this process do now: the compilations that run, with their stage, and the lines of the user."""

from __future__ import annotations

import sys
import threading
import time
from types import CodeType, FrameType
from typing import Iterator, List, Optional, Sequence, Tuple

from depyf.answers.attached import Compiling, Line
from depyf.base.own_package import is_own, without_launcher
from depyf.dynamo.capture.steps import step_of
from depyf.dynamo.hooks import known_code, private_names
from depyf.dynamo.hooks.nested_code import qualified_name
from depyf.torch_trace.user_code import is_library


def own_frame() -> Optional[FrameType]:
    """Return the frame of the program that was interrupted: the first one that is not depyf's."""
    frame: Optional[FrameType] = sys._getframe(1)
    while frame is not None and (is_own(frame.f_code.co_filename) or "injected_by_depyf" in frame.f_globals):
        frame = frame.f_back
    return frame


def callers_of(frame: Optional[FrameType]) -> Iterator[FrameType]:
    """Yield a frame and its callers, the innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def compiling_now(main: Optional[FrameType]) -> List[Compiling]:
    """Return the compilations of all threads; that of the main thread, whose frame is ``main``, comes first."""
    # Not ``threading.enumerate``: in Python 3.8 the main thread may have been interrupted while it holds that lock.
    names = {ident: thread.name for ident, thread in dict(vars(threading).get("_active") or {}).items()}
    own = threading.get_ident()
    others = [(names.get(ident, "?"), frame) for ident, frame in sys._current_frames().items() if ident != own]
    found = [_compiling(name, list(callers_of(frame))) for name, frame in [("", main), *others]]
    return [each for each in found if each is not None]


def own_work(main: Optional[FrameType]) -> Optional[str]:
    """Return the function of depyf that the main thread was interrupted in; None for a function of the program."""
    stack = list(callers_of(main))
    stack.reverse()
    stack = list(without_launcher(stack, lambda frame: frame.f_code.co_filename))
    return next((frame.f_code.co_name for frame in reversed(stack) if is_own(frame.f_code.co_filename)), None)


def imported_now(main: Optional[FrameType]) -> Optional[str]:
    """Return the module of PyTorch that the main thread is importing; None if it is importing none."""
    modules = (str(each.f_globals.get("__name__")) for each in callers_of(main) if each.f_code.co_name == "<module>")
    return next((name for name in modules if name.partition(".")[0] == "torch"), None)


def _compiling(thread: str, stack: Sequence[FrameType]) -> Optional[Compiling]:
    step = step_of(stack)
    if step is None:
        return None
    code = next((found for found in map(private_names.CODE.in_frame, stack) if found is not None), None)
    number = next((found for found in map(private_names.COMPILE_ID.in_frame, stack) if found is not None), None)
    # PyTorch keeps the time of each thread apart.
    context = None if thread else private_names.METRICS_CONTEXT.find()
    begun = private_names.METRICS_BEGUN.of(None if context is None else context())
    seconds = time.time() - begun / 1e9 if isinstance(begun, int) and begun else None
    name, place = "", None
    if isinstance(code, CodeType):
        name, place = qualified_name(code), (code.co_filename, code.co_firstlineno)
    return Compiling(thread, name, place, str(number or ""), step, seconds)


def users_stack(main: Optional[FrameType]) -> Tuple[Line, ...]:
    """Return the lines of the user that lead to ``main``, the outermost first, and last the library's that runs."""
    stack = [(each.f_code.co_filename, each.f_lineno or 0, each.f_code.co_name) for each in callers_of(main)]
    stack.reverse()
    if "depyf.dynamo.capture.hub" in sys.modules:  # else no file of a dump runs
        from depyf.dynamo.questions.watched_recompiles import in_users_lines

        stack = in_users_lines(stack)
    users = [each for each in stack if not is_library(each[0])]
    return tuple(users if not stack or stack[-1] in users[-1:] else [*users, stack[-1]])


def phase_of(main: Optional[FrameType], compiling: Sequence[Compiling]) -> str:
    """Return in words what the main thread does."""
    if compiling and not compiling[0].thread:
        return str(compiling[0])
    transformed = {id(code) for code in known_code.transformed_codes()}
    ran = next((each.f_code for each in callers_of(main) if id(each.f_code) in transformed), None)
    if ran is not None:
        return f"runs compiled code of {ran.co_name}"
    return "runs Python" if main is not None and not is_library(main.f_code.co_filename) else "runs code of a library"
